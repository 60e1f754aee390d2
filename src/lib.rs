//! OmniForge turns a script into a tool that every MCP client can call, safely.
//!
//! One way through: edge (`http`, `stdio`) → `mcp` → `tools` → `jobs` → `runner`, and back.
//! A module imports only from rows below it; `tests/layers.rs` checks that.

pub mod api;
pub mod app;
pub mod auth;
pub mod cli;
pub mod clock;
pub mod config;
pub mod http;
pub mod jobs;
pub mod lifecycle;
pub mod mcp;
pub mod model;
pub mod runner;
pub mod stdio;
pub mod store;
pub mod telemetry;
pub mod tools;
pub mod trust;
pub mod web;
