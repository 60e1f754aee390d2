//! `POST /tools/{name}`: a tool called by plain HTTP. The body is the arguments; the answer is `{"result": …}` or
//! `{"error": …}`.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, Query, Request, State};
use axum::response::Response;
use http::header::{LOCATION, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::ApiState;
use super::door::answer;
use crate::http::{json as json_response, read_body};
use crate::model::{CallReply, Caller, ClientFacts, Content, Fault, Json, Scope};
use crate::tools::{Answer, CallError, CallRequest, Domain as _, Resume};

/// The most bytes of a body with arguments.
const BODY: usize = 16 << 20;
/// Names the run that a response is about.
const RUN: HeaderName = HeaderName::from_static("omniforge-run-id");
const IDEMPOTENCY: &str = "idempotency-key";
/// Where `_meta` holds what that header says.
const IDEMPOTENCY_META: &str = "omniforge/idempotency-key";

/// How the answer is to be written.
#[derive(Deserialize)]
pub(super) struct Manner {
    compat: Option<String>,
}

/// Calls a tool.
pub(super) async fn call(
    State(api): State<Arc<ApiState>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    Query(manner): Query<Manner>,
    request: Request,
) -> Response {
    let as_nanohub = match manner.compat.as_deref() {
        None => false,
        Some("nanohub") => true,
        Some(other) => {
            return failure(StatusCode::BAD_REQUEST, &format!("`compat` is `{other}`; known is nanohub"));
        }
    };
    if !caller.scopes.has(Scope::Call) {
        let text = "calling a tool needs the scope `call`, which the credential does not carry";
        return failure(StatusCode::FORBIDDEN, text);
    }
    let (parts, body) = request.into_parts();
    let bytes = match read_body(body, BODY, super::BODY.1).await {
        Ok(bytes) => bytes,
        Err(refused) => return refused,
    };
    let arguments = match arguments(&bytes) {
        Ok(arguments) => arguments,
        Err(text) => return failure(StatusCode::BAD_REQUEST, &text),
    };
    let request = CallRequest { meta: meta(&parts.headers), client: client(&parts.headers), ..plain(name, arguments) };
    let (events, _nobody_listens) = mpsc::channel(1);
    let answer = api.tools.call(&caller, request, events, CancellationToken::new()).await;
    match answer {
        Ok(Answer::Reply(reply)) => ended(&reply, as_nanohub),
        Ok(Answer::Handle(handle)) => {
            let text = handle.reply.content.iter().find_map(|block| text_of(&block.content)).unwrap_or_default();
            let mut response = json_response(StatusCode::ACCEPTED, "application/json", text.to_owned());
            let place = format!("{}/api/v1/runs/{}", api.prefix(), handle.run);
            if let Ok(place) = HeaderValue::from_str(&place) {
                response.headers_mut().insert(LOCATION, place);
            }
            with_run(response, &handle.reply)
        }
        Ok(Answer::Asking(asking)) => {
            let _stopped = api.tools.cancel_task(&caller, &asking.run.to_string()).await;
            failure(StatusCode::CONFLICT, "the tool asks its caller something, which needs an MCP client")
        }
        Err(error) => refused(&error),
    }
}

/// A call through this door.
pub(super) fn plain(name: String, arguments: Option<Json>) -> CallRequest {
    CallRequest {
        name,
        arguments,
        request_id: uuid::Uuid::now_v7().to_string(),
        meta: Map::new(),
        client: ClientFacts::default(),
        door: "rest",
        resume: Resume::default(),
    }
}

fn arguments(bytes: &[u8]) -> Result<Option<Json>, String> {
    if bytes.trim_ascii().is_empty() {
        return Ok(None);
    }
    let text = std::str::from_utf8(bytes).map_err(|_| "the body is no UTF-8 text".to_owned())?;
    if !text.trim_start().starts_with('{') {
        return Err("the body must be the tool's arguments, a JSON object".to_owned());
    }
    Json::parse(text.to_owned()).map(Some).map_err(|error| format!("the body is no JSON: {error}"))
}

fn meta(headers: &HeaderMap) -> Map<String, Value> {
    let key = headers.get(IDEMPOTENCY).map(|key| String::from_utf8_lossy(key.as_bytes()).into_owned());
    key.map(|key| (IDEMPOTENCY_META.to_owned(), Value::String(key))).into_iter().collect()
}

fn client(headers: &HeaderMap) -> ClientFacts {
    let agent = headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
    let (name, version) = agent.split(' ').next().unwrap_or_default().split_once('/').unwrap_or((agent, ""));
    let given = |text: &str| Some(text.chars().take(64).collect::<String>()).filter(|text| !text.is_empty());
    ClientFacts { name: given(name), version: given(version), ..ClientFacts::default() }
}

pub(super) fn ended(reply: &CallReply, as_nanohub: bool) -> Response {
    let texts: Vec<&str> = reply.content.iter().filter_map(|block| text_of(&block.content)).collect();
    let text = texts.join("\n");
    if reply.is_error {
        let status = match reply.fault {
            Some(Fault::Arguments) => StatusCode::BAD_REQUEST,
            Some(Fault::Missing) => StatusCode::NOT_FOUND,
            Some(Fault::Taken) => StatusCode::CONFLICT,
            Some(Fault::Stale) => StatusCode::PRECONDITION_FAILED,
            Some(Fault::Unconditional) => StatusCode::PRECONDITION_REQUIRED,
            Some(Fault::Busy) => StatusCode::TOO_MANY_REQUESTS,
            Some(Fault::Timeout) => StatusCode::GATEWAY_TIMEOUT,
            None => StatusCode::UNPROCESSABLE_ENTITY,
        };
        return with_run(failure(status, &text), reply);
    }
    let mut body = match &reply.structured {
        Some(value) if !as_nanohub => format!("{{\"result\":{}", value.get()),
        _ => format!("{{\"result\":{}", json!(text)),
    };
    // Pictures, sounds and links have no place in a value.
    if !as_nanohub && reply.content.len() > texts.len() {
        body.push_str(&format!(",\"content\":{}", json!(reply.content)));
    }
    body.push('}');
    with_run(json_response(StatusCode::OK, "application/json", body), reply)
}

fn text_of(content: &Content) -> Option<&str> {
    match content {
        Content::Text { text } => Some(text),
        _ => None,
    }
}

fn with_run(mut response: Response, reply: &CallReply) -> Response {
    if let Some(run) = reply.run.and_then(|run| HeaderValue::from_str(&run.to_string()).ok()) {
        response.headers_mut().insert(RUN, run);
    }
    response
}

pub(super) fn refused(error: &CallError) -> Response {
    let status = match error {
        CallError::UnknownTool { .. } => StatusCode::NOT_FOUND,
        CallError::InvalidParams(_) => StatusCode::BAD_REQUEST,
        CallError::MissingCapability { .. } => StatusCode::CONFLICT,
        CallError::Protocol { .. } => StatusCode::UNPROCESSABLE_ENTITY,
        CallError::Cancelled => StatusCode::CONFLICT,
        CallError::Internal { .. } => StatusCode::INTERNAL_SERVER_ERROR,
    };
    failure(status, &error.to_string())
}

/// A problem document that has its text under `error` too, where callers of nanoHUB's servers look for it.
pub(super) fn failure(status: StatusCode, text: &str) -> Response {
    let problem = json!({"type": "about:blank", "title": status.canonical_reason().unwrap_or("Error"),
        "status": status.as_u16(), "detail": text, "error": text});
    let mut response = answer(status, &problem);
    let kind = HeaderValue::from_static("application/problem+json");
    response.headers_mut().insert(http::header::CONTENT_TYPE, kind);
    if status == StatusCode::TOO_MANY_REQUESTS {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}
