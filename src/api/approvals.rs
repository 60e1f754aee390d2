//! `/api/v1/approvals`: what waits for a person, what it asks for, and the person's word.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use http::StatusCode;
use serde::Deserialize;
use serde_json::json;

use super::ApiState;
use super::door::{answer, body, wrong};
use crate::model::{Caller, VersionNumber};
use crate::trust::ApproveRequest;

/// What an approval says: exactly the version that was looked at.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Approve {
    version: VersionNumber,
    fingerprint: String,
    #[serde(default)]
    note: String,
}

/// `GET /api/v1/approvals`: what waits.
pub(super) async fn list(State(api): State<Arc<ApiState>>, Extension(caller): Extension<Caller>) -> Response {
    match api.tools.waiting(&caller).await {
        Ok(waiting) => answer(StatusCode::OK, &json!({"waiting": waiting})),
        Err(error) => wrong(&error),
    }
}

/// `GET /api/v1/approvals/{id}`: what its newest version asks for, and how it differs from what was approved.
pub(super) async fn show(
    State(api): State<Arc<ApiState>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Response {
    match api.tools.review(&caller, &id).await {
        Ok(review) => answer(StatusCode::OK, &review),
        Err(error) => wrong(&error),
    }
}

/// `POST /api/v1/approvals/{id}`: approve of the version with this fingerprint; 409 where that isn't the newest one.
pub(super) async fn approve(
    State(api): State<Arc<ApiState>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    request: Request,
) -> Response {
    let Approve { version, fingerprint, note } = match body(request).await {
        Ok(approve) => approve,
        Err(refused) => return refused,
    };
    match api.tools.approve(&caller, &id, ApproveRequest { version, fingerprint, note }).await {
        Ok(approval) => answer(StatusCode::OK, &approval),
        Err(error) => wrong(&error),
    }
}

/// `DELETE /api/v1/approvals/{id}`: take the active approval back.
pub(super) async fn revoke(
    State(api): State<Arc<ApiState>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Response {
    match api.tools.revoke_approval(&caller, &id).await {
        Ok(Some(approval)) => answer(StatusCode::OK, &approval),
        Ok(None) => crate::http::problem(StatusCode::NOT_FOUND, format!("`{id}` has no approval that is active")),
        Err(error) => wrong(&error),
    }
}
