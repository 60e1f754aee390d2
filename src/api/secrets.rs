//! `/api/v1/secrets`: what there is, and how it is set. A value goes in and never comes out.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use http::StatusCode;
use serde::Deserialize;
use serde_json::json;

use super::ApiState;
use super::door::{answer, body, secret_error};
use crate::http::problem;
use crate::model::Caller;

/// A value to keep.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Set {
    value: String,
    #[serde(default)]
    hosts: Vec<String>,
}

/// `GET /api/v1/secrets`: names, hosts and times.
pub(super) async fn list(State(api): State<Arc<ApiState>>, Extension(caller): Extension<Caller>) -> Response {
    match api.tools.secrets.list(&caller).await {
        Ok(secrets) => answer(StatusCode::OK, &json!({"secrets": secrets})),
        Err(error) => secret_error(&error),
    }
}

/// `PUT /api/v1/secrets/{name}`: set it.
pub(super) async fn set(
    State(api): State<Arc<ApiState>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    request: Request,
) -> Response {
    let Set { value, hosts } = match body(request).await {
        Ok(set) => set,
        Err(refused) => return refused,
    };
    match api.tools.secrets.set(&caller, &name, &value, &hosts).await {
        Ok(()) => answer(StatusCode::OK, &json!({"name": name})),
        Err(error) => secret_error(&error),
    }
}

/// `DELETE /api/v1/secrets/{name}`.
pub(super) async fn delete(
    State(api): State<Arc<ApiState>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
) -> Response {
    match api.tools.secrets.delete(&caller, &name).await {
        Ok(true) => answer(StatusCode::OK, &json!({"name": name})),
        Ok(false) => problem(StatusCode::NOT_FOUND, format!("there is no secret `{name}`")),
        Err(error) => secret_error(&error),
    }
}
