//! Who comes in, how bodies are read, and how answers and errors are written.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::StatusCode;
use http::header::{AUTHORIZATION, ORIGIN};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{ApiState, BODY};
use crate::http::{Refused, credential_ended, is_preflight, json, peer, problem, read_body, refused, until};
use crate::trust::{ApprovalError, SecretError};

/// Middleware: tells who calls, and puts the caller into the request.
pub(super) async fn enter(State(api): State<Arc<ApiState>>, mut request: Request, next: Next) -> Response {
    if is_preflight(request.method(), request.headers()) {
        return api.gate.preflight(request.headers());
    }
    let origin = request.headers().get(ORIGIN).cloned();
    let authorization = request.headers().get(AUTHORIZATION).cloned();
    let mut response = match api.identify.identify(authorization.as_ref()).await {
        Err(error) => refused(&error, authorization.as_ref()),
        Ok(caller) => {
            let bearer = authorization.is_some() && caller.token_id.is_some();
            match api.gate.check(request.uri(), request.headers(), bearer) {
                Err(refused) => refused,
                Ok(()) => {
                    let (source, ended) = (peer(request.extensions()), api.identify.ended(&caller));
                    let (caller, path) = (caller.from_source(source), request.uri().path().to_owned());
                    request.extensions_mut().insert(caller.clone());
                    // Dropping the work kills the run in it.
                    let mut response = tokio::select! {
                        response = next.run(request) => response,
                        () = ended.cancelled() => credential_ended(),
                    };
                    if let Some(refused) = response.extensions_mut().get_mut::<Refused>() {
                        refused.token = refused.token.take().or(caller.token_id);
                        refused.principal = Some(caller.principal);
                        refused.subject = refused.subject.take().or(Some(path));
                    }
                    until(ended, response)
                }
            }
        }
    };
    api.gate.open_to(origin.as_ref(), &mut response);
    response
}

/// Reads a JSON body.
pub(super) async fn body<T: DeserializeOwned>(request: Request) -> Result<T, Response> {
    let bytes = read_body(request.into_body(), BODY.0, BODY.1).await?;
    serde_json::from_slice(&bytes)
        .map_err(|error| problem(StatusCode::BAD_REQUEST, format!("the body is not what is expected here: {error}")))
}

/// A JSON answer.
pub(super) fn answer(status: StatusCode, value: &impl Serialize) -> Response {
    match serde_json::to_string(value) {
        Ok(text) => json(status, "application/json", text),
        Err(error) => failed(&error),
    }
}

/// What went wrong with an approval, as a problem document.
pub(super) fn wrong(error: &ApprovalError) -> Response {
    match error.status() {
        status if status.is_server_error() => failed(error),
        status => problem(status, error.to_string()),
    }
}

/// What went wrong with a secret, as a problem document.
pub(super) fn secret_error(error: &SecretError) -> Response {
    match error {
        SecretError::Key(_) | SecretError::Store(_) => failed(error),
        refused => problem(refused.status(), refused.to_string()),
    }
}

/// Our own failure: logged under an id, which is all that is said of it.
pub(super) fn failed(error: &dyn std::error::Error) -> Response {
    let id = uuid::Uuid::now_v7();
    tracing::error!(error.id = %id, %error, "A request to the API failed (error {id})");
    problem(StatusCode::INTERNAL_SERVER_ERROR, format!("the server failed; its log says more under the id {id}"))
}
