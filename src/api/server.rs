//! Tokens, the audit log, and what the server is.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, Query, Request, State};
use axum::response::Response;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::ApiState;
use super::door::{answer, body, failed};
use crate::auth::{AuthError, Lifetime, TokenRequest};
use crate::http::problem;
use crate::model::{Caller, Scope, Scopes, Timestamp};
use crate::store::{AuditFilter, AuditRow, Token};

/// A token to make.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewToken {
    name: String,
    scope: String,
    expires_at: Option<i64>,
    toolset: Option<String>,
}

/// Which entries of the audit log.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entries {
    action: Option<String>,
    subject: Option<String>,
    before: Option<String>,
    limit: Option<u32>,
}

fn administers(caller: &Caller) -> Result<(), Box<Response>> {
    if caller.scopes.has(Scope::Admin) && caller.toolset.is_none() {
        return Ok(());
    }
    let detail = "this needs the scope `admin`, which the credential does not carry";
    Err(Box::new(crate::http::refuse(StatusCode::FORBIDDEN, "scope.refused", detail)))
}

fn shown(token: &Token) -> Value {
    json!({"id": token.id, "name": token.name, "scope": token.scopes.to_string(), "principal": token.principal,
        "created_at": token.created_at, "expires_at": token.expires_at, "revoked_at": token.revoked_at,
        "last_used_at": token.last_used_at, "toolset": token.toolset})
}

/// `GET /api/v1/tokens`.
pub(super) async fn tokens(State(api): State<Arc<ApiState>>, Extension(caller): Extension<Caller>) -> Response {
    if let Err(refused) = administers(&caller) {
        return *refused;
    }
    match api.auth.list_tokens(None).await {
        Ok(tokens) => {
            let tokens: Vec<Value> = tokens.iter().map(|(token, _)| shown(token)).collect();
            answer(StatusCode::OK, &json!({"tokens": tokens}))
        }
        Err(error) => failed(&error),
    }
}

/// `POST /api/v1/tokens`: one of the caller's principal.
pub(super) async fn create_token(
    State(api): State<Arc<ApiState>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Response {
    if let Err(refused) = administers(&caller) {
        return *refused;
    }
    let NewToken { name, scope, expires_at, toolset } = match body(request).await {
        Ok(new) => new,
        Err(refused) => return refused,
    };
    let scopes = match Scopes::parse(&scope) {
        Ok(scopes) => scopes,
        Err(word) => {
            let detail = format!("`scope`: `{word}` is no scope; use call, author, approve, admin");
            return problem(StatusCode::BAD_REQUEST, detail);
        }
    };
    let request = TokenRequest {
        principal: caller.principal.clone(),
        name,
        scopes,
        expires_at: expires_at.map(Timestamp),
        lifetime: Lifetime::Stored,
        toolset,
    };
    match api.auth.create_token(&caller, request).await {
        Ok((token, text)) => {
            let mut made = shown(&token);
            made["token"] = json!(text);
            answer(StatusCode::CREATED, &made)
        }
        Err(AuthError::BadRequest(text)) => problem(StatusCode::BAD_REQUEST, text),
        Err(error @ AuthError::Beyond(_)) => problem(StatusCode::FORBIDDEN, error.to_string()),
        Err(error) => failed(&error),
    }
}

/// `DELETE /api/v1/tokens/{id}`.
pub(super) async fn revoke_token(
    State(api): State<Arc<ApiState>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Response {
    if let Err(refused) = administers(&caller) {
        return *refused;
    }
    match api.auth.revoke_token(&caller, &id).await {
        Ok(true) => answer(StatusCode::OK, &json!({"id": id})),
        Ok(false) => problem(StatusCode::NOT_FOUND, format!("there is no token {id} that counts")),
        Err(error) => failed(&error),
    }
}

/// `GET /api/v1/audit`: `before` is the id of the last entry of the page before.
pub(super) async fn audit(
    State(api): State<Arc<ApiState>>,
    Extension(caller): Extension<Caller>,
    Query(entries): Query<Entries>,
) -> Response {
    if let Err(refused) = administers(&caller) {
        return *refused;
    }
    let Entries { action, subject, before, limit } = entries;
    let filter = AuditFilter { principal: None, action, subject, before };
    match api.tools.store.list_audit(&filter, limit.unwrap_or(50).min(200)).await {
        Ok(rows) => {
            let entries: Vec<Value> = rows.iter().map(entry).collect();
            let next = rows.last().map(|row| row.id.clone());
            answer(StatusCode::OK, &json!({"entries": entries, "before": next}))
        }
        Err(error) => failed(&error),
    }
}

fn entry(row: &AuditRow) -> Value {
    let entry = &row.entry;
    json!({"number": row.number, "id": row.id, "at": row.at, "principal": entry.principal, "token": entry.token,
        "source": entry.source, "action": entry.action, "subject": entry.subject, "detail": entry.detail,
        "before": entry.before, "fingerprint": entry.fingerprint, "outcome": entry.outcome})
}

/// `GET /api/v1/server`.
pub(super) async fn server(State(api): State<Arc<ApiState>>, Extension(caller): Extension<Caller>) -> Response {
    let runtimes: Vec<String> = api.tools.runner.runtimes().iter().map(ToString::to_string).collect();
    let limits = &api.tools.options.limits;
    answer(
        StatusCode::OK,
        &json!({"version": env!("CARGO_PKG_VERSION"), "sandbox": api.tools.runner.sandbox(), "runtimes": runtimes,
            "principal": caller.principal_name, "scope": caller.scopes.to_string(),
            "limits": {"wall_seconds": limits.wall.as_secs_f64(), "memory_bytes": limits.memory_bytes}}),
    )
}
