//! The protocol doors over real sockets and pipes, with a domain in memory.
#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod access;
mod batches;
mod fixture;
mod listing;
mod pipe;
mod refusals;
mod root;
mod runs;
mod sessions;
mod sse;
pub mod wire;
