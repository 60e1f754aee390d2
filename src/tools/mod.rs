//! The catalogue, the call pipeline and the built-in tools.

mod arguments;
mod authoring;
mod builtin;
mod domain;
mod reply;
mod schema;

pub use domain::{CallError, CallRequest, Change, Domain, ListedTool, ToolList};
