//! The small routes: health, discovery, and what is said where nothing is.

use std::sync::Arc;

use async_trait::async_trait;
use axum::extract::State;
use axum::response::Response;
use http::header::HOST;
use http::{HeaderMap, Method, StatusCode, Uri};

use super::front::Front;
use super::problem::{json, problem};
use crate::mcp::{Era, SERVER_NAME};

/// Tells whether the product can serve.
#[async_trait]
pub trait Ready: Send + Sync + 'static {
    /// Whether everything that a call needs is there.
    async fn ready(&self) -> bool;
}

/// `/healthz`: the process answers.
pub(super) async fn alive() -> Response {
    json(StatusCode::OK, "application/json", r#"{"status":"ok"}"#)
}

/// `/readyz`: the product can serve.
pub(super) async fn ready(State(front): State<Arc<Front>>) -> Response {
    let ready = match &front.options.ready {
        _ if front.closing.is_cancelled() => false,
        Some(check) => check.ready().await,
        None => true,
    };
    if ready {
        json(StatusCode::OK, "application/json", r#"{"status":"ready"}"#)
    } else {
        json(StatusCode::SERVICE_UNAVAILABLE, "application/json", r#"{"status":"not ready"}"#)
    }
}

/// `/.well-known/mcp.json`: where the endpoint is and what it speaks.
pub(super) async fn discovery(State(front): State<Arc<Front>>, uri: Uri, headers: HeaderMap) -> Response {
    if let Err(refused) = front.gate.check(&uri, &headers, false) {
        return refused;
    }
    let base = match &front.options.public_url {
        Some(url) => url.trim_end_matches('/').to_owned(),
        None => {
            let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost");
            format!("http://{host}")
        }
    };
    let body = serde_json::json!({
        "name": SERVER_NAME,
        "title": "OmniForge",
        "version": env!("CARGO_PKG_VERSION"),
        "endpoints": [
            {"transport": "streamable-http", "url": format!("{base}/mcp")},
            {"transport": "sse", "url": format!("{base}/sse")},
            {"transport": "openapi", "url": format!("{base}/openapi.json")},
        ],
        // The same in the words of nanohub-mcp.
        "mcpVersion": "2025-11-25",
        "supportedVersions": Era::ALL.map(Era::as_str),
        "serverInfo": {"name": SERVER_NAME, "version": env!("CARGO_PKG_VERSION")},
        "capabilities": {"tools": {}, "resources": {}, "prompts": {}},
        "transports": [
            {"type": "streamable-http", "url": format!("{base}/mcp")},
            {"type": "sse", "url": format!("{base}/sse")},
        ],
        "protocolVersions": Era::ALL.map(Era::as_str),
        "authentication": {"type": if front.identify.wants_credential() { "bearer" } else { "none" }},
    });
    json(StatusCode::OK, "application/json", body.to_string())
}

/// An unknown `/.well-known/…`.
pub(super) async fn nothing_well_known(uri: Uri) -> Response {
    problem(
        StatusCode::NOT_FOUND,
        format!("there is no `{}` here; `/.well-known/mcp.json` describes this server", uri.path()),
    )
}

/// An unknown route.
pub(super) async fn nothing_here(uri: Uri) -> Response {
    problem(StatusCode::NOT_FOUND, format!("there is nothing at `{}`; the protocol endpoint is `/mcp`", uri.path()))
}

/// A route that has other methods.
pub(super) async fn wrong_method(method: Method, uri: Uri) -> Response {
    problem(StatusCode::METHOD_NOT_ALLOWED, format!("`{}` does not answer {method}", uri.path()))
}
