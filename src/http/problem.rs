//! JSON problem documents (RFC 9457), and JSON-RPC errors as HTTP responses.

use axum::body::Body;
use axum::response::Response;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};

use crate::mcp::Refusal;
use crate::model::PrincipalId;

/// A response that says what was wrong, for programs.
pub fn problem(status: StatusCode, detail: impl Into<String>) -> Response {
    let body = serde_json::json!({
        "type": "about:blank",
        "title": status.canonical_reason().unwrap_or("Error"),
        "status": status.as_u16(),
        "detail": detail.into(),
    });
    json(status, "application/problem+json", body.to_string())
}

/// In a response's extensions: what was refused, for the audit log.
#[derive(Clone, Debug)]
pub struct Refused {
    /// What, such as `gate.refused`.
    pub action: &'static str,
    /// Why.
    pub reason: String,
    /// The token that was shown, where it is known to be genuine.
    pub token: Option<String>,
    /// Whose it is.
    pub principal: Option<PrincipalId>,
    /// To what it was about, where that is known.
    pub subject: Option<String>,
}

/// A response that refuses something of which the audit log should tell.
pub fn refuse(status: StatusCode, action: &'static str, detail: &str) -> Response {
    let mut response = problem(status, detail);
    response.extensions_mut().insert(Refused {
        action,
        reason: detail.to_owned(),
        token: None,
        principal: None,
        subject: None,
    });
    response
}

/// A JSON-RPC error that was found before the protocol layer.
pub(super) fn refusal(status: StatusCode, refusal: &Refusal) -> Response {
    json(status, "application/json", refusal.to_json())
}

/// A JSON response that no cache keeps.
pub fn json(status: StatusCode, content_type: &'static str, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
