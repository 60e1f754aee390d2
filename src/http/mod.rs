//! The HTTP door: who may come in, what a URL means, and the front layer before the protocol (DESIGN §5, items 1–7).
//!
//! It speaks no protocol of its own: it identifies, refuses, repairs and routes; `mcp` answers.

mod answer;
mod batch;
mod body;
mod ending;
mod forwarded;
mod front;
mod gate;
mod identify;
mod oversize;
mod post;
mod problem;
mod routes;
mod serve;
mod sse;
mod unread;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::middleware::from_fn_with_state;
use axum::routing::{any, get};

use crate::lifecycle::Lifecycle;
use crate::mcp::Server;
use crate::tools::Domain;

pub use answer::event_stream;
pub use axum::Router;
pub use body::read as read_body;
pub use ending::{credential_ended, peer, until};
pub use forwarded::{TrustedProxies, behind_proxy};
pub use gate::{Gate, GateError, is_preflight};
pub use identify::{Identify, IdentifyError, refused};
pub use problem::{Refused, json, problem, refuse};
pub use routes::Ready;
pub use serve::serve;

/// What the HTTP door needs to know.
#[derive(Clone)]
pub struct HttpOptions {
    /// Where the server listens; on loopback, its loopback names are allowed hosts.
    pub listen: SocketAddr,
    /// Further host names, with or without a port.
    pub allowed_hosts: Vec<String>,
    /// Origins of pages that may use this server, such as `https://app.example`.
    pub allowed_origins: Vec<String>,
    /// The URL under which the server is known, with its path prefix.
    pub public_url: Option<String>,
    /// The most bytes of a request's body.
    pub body_limit: usize,
    /// How long a request's body may take to arrive.
    pub body_patience: Duration,
    /// How long a call may be silent before its response is opened and says that it lives: less than what proxies allow,
    /// and so long that most calls answer before it, with the status and in the form that fit.
    pub silence: Duration,
    /// How often an open stream says that it lives.
    pub heartbeat: Duration,
    /// Whether the product is ready to serve; `/readyz` asks.
    pub ready: Option<Arc<dyn Ready>>,
}

impl HttpOptions {
    /// The defaults for a server that listens there.
    pub fn new(listen: SocketAddr) -> Self {
        Self {
            listen,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            public_url: None,
            body_limit: 16 << 20,
            body_patience: Duration::from_secs(30),
            silence: Duration::from_secs(15),
            heartbeat: Duration::from_secs(15),
            ready: None,
        }
    }

    /// The gate that these settings make, for every door of the server.
    ///
    /// # Errors
    /// [`GateError`] when a setting makes no sense.
    pub fn gate(&self) -> Result<Gate, GateError> {
        Gate::new(self.listen, self.public_url.as_deref(), &self.allowed_hosts, &self.allowed_origins)
    }
}

/// The routes of this door: `/mcp`, `/mcp/{toolset}`, `/sse` with `/messages`, `/.well-known/…`, `/healthz`, `/readyz`; those of the `others`, and a JSON 404
/// for everything else. `/` is the others' page for browsers and an alias of `/mcp` for programs.
///
/// When the lifecycle closes, streams that wait for news end and new calls are refused; when it has ended, every stream
/// ends. Must be called inside a tokio runtime. The others must have no fallback: the router has one.
///
/// # Errors
/// [`GateError`] when a setting makes no sense.
pub fn router(
    domain: Arc<dyn Domain>,
    identify: Arc<dyn Identify>,
    options: HttpOptions,
    lifecycle: &Lifecycle,
    others: Router,
) -> Result<Router, GateError> {
    let gate = options.gate()?;
    let server = Server::new(domain, lifecycle.closing.clone(), lifecycle.ended.clone(), options.heartbeat);
    let front = Arc::new(front::Front { server, identify, gate, options, closing: lifecycle.closing.clone() });
    Ok(Router::new()
        .route("/mcp", any(front::mcp))
        .route("/mcp/{toolset}", any(front::mcp))
        .route("/sse", any(front::sse))
        .route("/messages", any(front::messages))
        .route("/healthz", get(routes::alive))
        .route("/readyz", get(routes::ready))
        .route("/.well-known/mcp.json", get(routes::discovery))
        .route("/.well-known/{*rest}", any(routes::nothing_well_known))
        .method_not_allowed_fallback(routes::wrong_method)
        .fallback(routes::nothing_here)
        .with_state(Arc::clone(&front))
        .merge(others)
        .layer(from_fn_with_state(Arc::clone(&front), front::root))
        .layer(from_fn_with_state(front, ending::note_refusals)))
}
