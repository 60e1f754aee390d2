//! The Model Context Protocol, both eras, over the domain: the official SDK does the protocol; this module answers its
//! methods, keeps its sessions, and knows what a message is before the SDK reads it.
//!
//! It knows HTTP only as requests and responses: who may come in, and what a URL means, is the edges' business.

mod ask;
mod backlog;
mod call;
mod changes;
mod era;
mod error;
pub mod flight;
mod followed;
mod handler;
pub mod inbox;
mod listing;
mod news;
mod outlet;
mod paging;
pub mod peek;
mod pipe;
mod prompts;
mod refusal;
mod resources;
mod server;
mod sessions;
mod skills;
mod streams;
mod tasks;

use std::sync::Arc;

use rmcp::model::{Implementation, MetaObject};
use rmcp::transport::streamable_http_server::session::ServerSseMessage;
use tokio::sync::mpsc;

use crate::model::{Caller, Json};

pub use era::Era;
pub use pipe::{PipeError, serve_pipe};
pub use refusal::Refusal;
pub use server::{Called, Response, Server, SessionRefused};
pub use streams::{Downstream, Said, Upstream};

/// The name that the server goes by.
pub const SERVER_NAME: &str = "omniforge-mcp";

const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// Who calls: the edge puts it into each request's extensions.
#[derive(Clone, Debug)]
pub struct Identity(pub Arc<Caller>);

/// The bytes of `params.arguments`: the edge puts them into the extensions, so that no number is rounded on its way.
#[derive(Clone, Debug)]
pub struct RawArguments(pub Json);

/// In a request's extensions: its client reads one answer and no stream, so it gets no notifications.
#[derive(Clone, Copy, Debug)]
pub struct OneAnswer;

/// The stream of the POST that a session's request came with: for logs and progress of that request.
#[derive(Clone, Debug)]
struct OwnStream(mpsc::Sender<ServerSseMessage>);

/// Name, title and version of this server.
pub(crate) fn server_info() -> Implementation {
    Implementation::new(SERVER_NAME, env!("CARGO_PKG_VERSION")).with_title("OmniForge")
}

/// `_meta` of a 2026-07-28 result: what the tool gave, and who we are.
fn server_meta(meta: Option<MetaObject>) -> MetaObject {
    let mut meta = meta.unwrap_or_default();
    let info = serde_json::to_value(server_info()).expect("two strings serialise");
    meta.0.insert(SERVER_INFO.to_owned(), info);
    meta
}
