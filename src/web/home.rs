//! `GET /`: the plain page for a browser, server information for everything else.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, SET_COOKIE, VARY};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::{Value, json};

use super::reply::{page, wants_page};
use super::sign_in::sign_in_page;
use super::view::{Doors, Listing, Reader, SignIn, ToolsPage};
use super::{Web, WebError, cookie};
use crate::mcp::SERVER_NAME;

/// How many tools the page shows.
const SHOWN: usize = 200;

/// `GET /`.
pub(super) async fn home(State(web): State<Arc<Web>>, headers: HeaderMap) -> Result<Response, WebError> {
    let mut response = if wants_page(&headers) {
        tools(&web, &headers).await?
    } else {
        ([(CACHE_CONTROL, "no-store")], Json(information(&web.site.mcp_url(&headers)))).into_response()
    };
    response.headers_mut().insert(VARY, HeaderValue::from_static("Accept, Cookie"));
    Ok(response)
}

async fn tools(web: &Web, headers: &HeaderMap) -> Result<Response, WebError> {
    let Some(visitor) = web.visitor(headers).await? else {
        return sign_in_page(web, headers, SignIn::NoLink);
    };
    let shown = web.state.pages.tools(&visitor.caller, SHOWN).await?;
    let listing = Listing { shown, now: web.state.clock.now() };
    let is_session = visitor.csrf.is_some();
    let reader = Reader { name: visitor.caller.principal_name, csrf: visitor.csrf };
    let doors = Doors { sandbox: web.state.sandbox, open_to_all: web.state.auth.is_anonymous() };
    let template = ToolsPage::new((&web.site, headers), doors, reader, listing);
    let mut response = page(StatusCode::OK, &template)?;
    if let Some(session_id) = cookie::read(&web.site, headers).filter(|_| is_session) {
        response.headers_mut().insert(SET_COOKIE, cookie::keep(&web.site, session_id));
    }
    Ok(response)
}

/// What anybody may know: name, version, and where to go.
fn information(mcp_url: &str) -> Value {
    let base = mcp_url.trim_end_matches("/mcp");
    let route = |methods: &str, path: &str, what: &str| json!({"methods": methods, "path": path, "what": what});
    json!({
        "name": SERVER_NAME,
        "title": "OmniForge",
        "version": env!("CARGO_PKG_VERSION"),
        "status": "running",
        "mcp": mcp_url,
        "authentication": "Authorization: Bearer ofk_…",
        "endpoints": {
            "mcp": mcp_url,
            "sse": format!("{base}/sse"),
            "openapi": format!("{base}/openapi.json"),
            "discovery": format!("{base}/.well-known/mcp.json"),
        },
        "routes": [
            route("POST, GET, DELETE", "/mcp", "Model Context Protocol, Streamable HTTP; needs a bearer token"),
            route("POST, GET, DELETE", "/", "the same, for programs; a GET that takes no event stream gets this document"),
            route("GET", "/sse", "the HTTP+SSE transport of 2024-11-05; its first event names where to post"),
            route("POST", "/messages", "the messages of that transport"),
            route("POST", "/tools/{name}", "a tool called by plain HTTP; the body is its arguments"),
            route("GET", "/openapi.json", "OpenAPI of the management API under /api/v1, and of each tool"),
            route("GET", "/.well-known/mcp.json", "where the endpoint is and which protocol versions it speaks"),
            route("GET", "/healthz", "whether the process answers"),
            route("GET", "/readyz", "whether tools can be called"),
        ],
    })
}
