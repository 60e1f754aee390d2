//! One binary of tests that go through real files, processes and sockets.

#![expect(clippy::unwrap_used, reason = "a test that can't go on fails at once")]

mod approvals;
mod audit;
mod content;
mod denied;
mod dependencies;
mod environments;
mod history;
mod mcp_wire;
mod network;
mod probes;
mod product;
mod rest;
mod saving;
mod secrets;
mod server;
mod store_contract;
mod tasks;
mod tokens;
mod toolsets;
mod web;
