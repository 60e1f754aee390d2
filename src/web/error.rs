//! What goes wrong at this door, and how it is said: a problem document, which becomes a page for a browser.

use std::sync::Arc;

use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, Method, StatusCode};
use tracing::error;

use super::Web;
use super::frame::Frame;
use super::reply::{page, wants_page};
use super::view::ErrorPage;
use crate::auth::AuthError;
use crate::http::{Refused, problem, refuse};
use crate::store::StoreError;
use crate::tools::DeskError;

/// Longer problem documents than this are not ours.
const PROBLEM_LIMIT: usize = 64 << 10;

/// Why a page can't be shown or a form isn't accepted.
#[derive(Debug, thiserror::Error)]
pub(super) enum WebError {
    /// There is no such page.
    #[error("there is nothing at `{0}`")]
    NotFound(String),
    /// A form that another site's page sent, or one whose page we can't tell.
    #[error("a page of another site sent this form; open this server's own page and send it from there")]
    OtherSite,
    /// A form without the session's token.
    #[error("the form was made before you signed in last; load the page again and repeat what you did")]
    StaleForm,
    /// A form that can't be read.
    #[error("the form cannot be read: {detail}")]
    BadForm {
        /// The status that fits.
        status: StatusCode,
        /// What is wrong with it.
        detail: String,
    },
    /// What was asked is refused, or fails.
    #[error("{error}")]
    Refused {
        /// The status that fits.
        status: StatusCode,
        /// Why.
        error: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A peer that must wait before it tries again.
    #[error("{error}")]
    TooMany {
        /// In how many seconds.
        seconds: u64,
        /// What was tried too often.
        error: AuthError,
    },
    /// The product can't answer, or doesn't.
    #[error(transparent)]
    Desk(#[from] DeskError),
    /// Credentials can't be checked.
    #[error("credentials cannot be checked")]
    Auth(#[source] AuthError),
    /// Sessions can't be read.
    #[error("sessions cannot be read")]
    Session(#[from] StoreError),
    /// A template failed.
    #[error("a page cannot be rendered")]
    Render(#[source] askama::Error),
}

impl WebError {
    fn status(&self) -> StatusCode {
        match self {
            Self::NotFound(_) => StatusCode::NOT_FOUND,
            Self::OtherSite | Self::StaleForm => StatusCode::FORBIDDEN,
            Self::TooMany { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::BadForm { status, .. } | Self::Refused { status, .. } => *status,
            Self::Desk(DeskError::NotFound { .. }) => StatusCode::NOT_FOUND,
            Self::Desk(DeskError::Forbidden(_)) => StatusCode::FORBIDDEN,
            Self::Desk(DeskError::Overtaken { .. }) => StatusCode::CONFLICT,
            Self::Desk(DeskError::Refused(_) | DeskError::Fault(_)) => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Desk(DeskError::Broken(_)) | Self::Auth(_) | Self::Session(_) | Self::Render(_) => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
        }
    }
}

impl IntoResponse for WebError {
    fn into_response(self) -> Response {
        let status = self.status();
        let detail = if status.is_server_error() { logged(&self) } else { self.to_string() };
        match self {
            Self::OtherSite | Self::StaleForm => refuse(status, "form.refused", &detail),
            Self::TooMany { seconds, .. } => {
                let mut response = refuse(status, "sign_in.limited", &detail);
                response.headers_mut().insert(RETRY_AFTER, seconds.into());
                response
            }
            _ => problem(status, detail),
        }
    }
}

impl From<AuthError> for WebError {
    fn from(error: AuthError) -> Self {
        match error {
            AuthError::TooManyAttempts { seconds } => Self::TooMany { seconds, error },
            error => Self::Auth(error),
        }
    }
}

/// Logs our own failure and says under which id.
fn logged(failure: &WebError) -> String {
    let id = uuid::Uuid::now_v7();
    error!(error.id = %id, error = failure as &dyn std::error::Error, "Cannot show a page (error {id})");
    format!("the server failed; its log says more under the id {id}")
}

/// Middleware: turns the problem documents of every door into pages where a browser asked.
pub(super) async fn show_errors(State(web): State<Arc<Web>>, request: Request, next: Next) -> Response {
    let for_browser = wants_page(request.headers()) && !is_for_programs(request.uri().path());
    let is_head = request.method() == Method::HEAD;
    let path = request.uri().path().to_owned();
    let frame = Frame::bare(&web, request.headers());
    let response = next.run(request).await;
    let failed = response.status().is_client_error() || response.status().is_server_error();
    if !for_browser || is_head || !failed || !is_problem(response.headers()) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let body = to_bytes(body, PROBLEM_LIMIT).await.unwrap_or_default();
    let said = serde_json::from_slice::<serde_json::Value>(&body).unwrap_or_default();
    let detail = said["detail"].as_str().map(sentence);
    let detail = detail.unwrap_or_else(|| format!("There is no answer to this request at `{path}`."));
    let template = ErrorPage::new(frame, parts.status, detail);
    let mut shown = page(parts.status, &template, &template.frame).unwrap_or_else(IntoResponse::into_response);
    for name in [ALLOW, RETRY_AFTER, WWW_AUTHENTICATE] {
        if let Some(value) = parts.headers.get(&name) {
            shown.headers_mut().insert(name, value.clone());
        }
    }
    if let Some(refused) = parts.extensions.remove::<Refused>() {
        shown.extensions_mut().insert(refused);
    }
    shown
}

/// The doors that always answer in their own words, whoever asks.
fn is_for_programs(path: &str) -> bool {
    ["/mcp", "/sse", "/messages", "/.well-known"]
        .iter()
        .any(|door| path.strip_prefix(door).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
}

/// A problem document, or the router's own bare answer.
fn is_problem(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_none_or(|kind| kind == "application/problem+json")
}

/// An error's message, as a sentence on a page.
fn sentence(message: &str) -> String {
    let mut characters = message.chars();
    let first = characters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    let end = if message.ends_with(['.', '?', '!']) { "" } else { "." };
    format!("{first}{}{end}", characters.as_str())
}
