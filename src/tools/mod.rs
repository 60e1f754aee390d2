//! The catalogue, the call pipeline and the built-in tools.

mod domain;
mod schema;

pub use domain::{CallError, CallRequest, Change, Domain, ListedTool, ToolList};
