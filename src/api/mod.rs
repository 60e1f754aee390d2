//! The management API, `/api/v1/…`: what the pages can do, for programs with a bearer token.
//!
//! Errors are problem documents. It decides nothing: who may do what is decided where it is done.

mod approvals;
mod call;
mod door;
mod openapi;
mod operations;
mod runs;
mod secrets;
mod server;
mod tag;
mod toolsets;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{delete, get, post, put};

use crate::auth::Auth;
use crate::http::{Gate, Identify};
use crate::tools::Tools;

/// The most bytes of a request's body, and how long it may take.
const BODY: (usize, Duration) = (1 << 20, Duration::from_secs(30));

/// What the API is made from.
#[derive(Clone)]
pub struct ApiState {
    /// Which hosts and origins are let in.
    pub gate: Gate,
    /// Who calls.
    pub identify: Arc<dyn Identify>,
    /// What is managed.
    pub tools: Tools,
    /// Who may have tokens.
    pub auth: Auth,
    /// The URL under which the server is known, with its path prefix.
    pub public_url: Option<String>,
}

impl ApiState {
    /// The path under which the server is known to its clients, without a slash at its end.
    fn prefix(&self) -> String {
        let url = self.public_url.as_deref().and_then(|url| url.parse::<http::Uri>().ok());
        url.map(|url| url.path().trim_end_matches('/').to_owned()).unwrap_or_default()
    }
}

/// The routes. They have no fallback of their own, so that they can be merged with the other doors.
pub fn router(state: ApiState) -> Router {
    let state = Arc::new(state);
    Router::new()
        .merge(operations::routes())
        .route("/openapi.json", get(openapi::document))
        .route("/api/v1/runs/{run_id}/log", get(runs::log))
        .route("/api/v1/runs/{run_id}/outputs/{stream}", get(runs::output))
        .route("/api/v1/tokens", get(server::tokens).post(server::create_token))
        .route("/api/v1/tokens/{id}", delete(server::revoke_token))
        .route("/api/v1/audit", get(server::audit))
        .route("/api/v1/server", get(server::server))
        .route("/tools/{name}", post(call::call))
        .route("/api/v1/approvals", get(approvals::list))
        .route("/api/v1/approvals/{*id}", get(approvals::show).post(approvals::approve).delete(approvals::revoke))
        .route("/api/v1/secrets", get(secrets::list))
        .route("/api/v1/secrets/{name}", put(secrets::set).delete(secrets::delete))
        .route("/api/v1/toolsets", get(toolsets::list).post(toolsets::create))
        .route("/api/v1/toolsets/{name}", get(toolsets::show).patch(toolsets::update).delete(toolsets::delete))
        .layer(from_fn_with_state(Arc::clone(&state), door::enter))
        .with_state(state)
}
