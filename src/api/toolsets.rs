//! `/api/v1/toolsets`: named groups of tools.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::json;

use super::ApiState;
use super::door::{answer, body, failed};
use super::tag::{revision, tagged};
use crate::http::problem;
use crate::model::Caller;
use crate::tools::{ToolsetDraft, ToolsetError};

/// A toolset to make.
#[derive(Deserialize)]
struct Create {
    name: String,
    #[serde(flatten)]
    draft: serde_json::Map<String, serde_json::Value>,
}

/// `GET /api/v1/toolsets`.
pub(super) async fn list(State(api): State<Arc<ApiState>>, Extension(caller): Extension<Caller>) -> Response {
    match api.tools.toolsets().list(&caller).await {
        Ok(toolsets) => answer(StatusCode::OK, &json!({"toolsets": toolsets})),
        Err(error) => wrong(&error),
    }
}

/// `GET /api/v1/toolsets/{name}`.
pub(super) async fn show(
    State(api): State<Arc<ApiState>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
) -> Response {
    match api.tools.toolsets().get(&caller, &name).await {
        Ok(toolset) => tagged(toolset.revision, answer(StatusCode::OK, &toolset)),
        Err(error) => wrong(&error),
    }
}

/// `POST /api/v1/toolsets`.
pub(super) async fn create(
    State(api): State<Arc<ApiState>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Response {
    let Create { name, draft } = match body(request).await {
        Ok(create) => create,
        Err(refused) => return refused,
    };
    // Flattening would take unknown fields for known ones.
    let draft: ToolsetDraft = match serde_json::from_value(draft.into()) {
        Ok(draft) => draft,
        Err(error) => {
            return problem(StatusCode::BAD_REQUEST, format!("the body is not what is expected here: {error}"));
        }
    };
    match api.tools.create_toolset(&caller, &name, draft).await {
        Ok(toolset) => tagged(toolset.revision, answer(StatusCode::CREATED, &toolset)),
        Err(error) => wrong(&error),
    }
}

/// `PATCH /api/v1/toolsets/{name}`: changes the fields that are given.
pub(super) async fn update(
    State(api): State<Arc<ApiState>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    request: Request,
) -> Response {
    let expected = match revision(request.headers()) {
        Ok(expected) => expected,
        Err(refused) => return *refused,
    };
    let draft: ToolsetDraft = match body(request).await {
        Ok(draft) => draft,
        Err(refused) => return refused,
    };
    match api.tools.update_toolset(&caller, (&name, expected), draft).await {
        Ok(toolset) => tagged(toolset.revision, answer(StatusCode::OK, &toolset)),
        Err(error) => wrong(&error),
    }
}

/// `DELETE /api/v1/toolsets/{name}`.
pub(super) async fn delete(
    State(api): State<Arc<ApiState>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Response {
    let expected = match revision(&headers) {
        Ok(expected) => expected,
        Err(refused) => return *refused,
    };
    match api.tools.delete_toolset(&caller, &name, expected).await {
        Ok(()) => answer(StatusCode::OK, &json!({"name": name})),
        Err(error) => wrong(&error),
    }
}

fn wrong(error: &ToolsetError) -> Response {
    match error.status() {
        status if status.is_server_error() => failed(error),
        status => problem(status, error.to_string()),
    }
}
