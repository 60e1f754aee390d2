//! What a script asks of its client: server requests before 2026-07-28, `input_required` since.

use std::collections::BTreeMap;

use futures::future::join_all;
use rmcp::model::{
    CallToolResponse, CreateTaskResult, CustomRequest, ErrorData, InputRequest, InputRequests, InputRequiredResult,
    ServerRequest, Task, TaskStatus,
};
use rmcp::service::{Peer, RoleServer, ServiceError};
use serde_json::{Map, Value};

use crate::tools::{Asking, Handle, Resume};

/// How long a client may leave between two questions about a task, and how long its result is kept.
pub(super) const POLL_INTERVAL_MS: u64 = 1_000;
pub(super) const KEPT_MS: u64 = 24 * 60 * 60 * 1_000;

/// Puts every request to a client that has a session, on the stream of the request in hand; what it said.
pub(super) async fn put(peer: &Peer<RoleServer>, asking: Asking) -> Resume {
    let answers = join_all(asking.requests.into_iter().map(|(key, request)| async move {
        let answer = put_one(peer, request).await;
        (key, answer)
    }));
    let (mut given, mut refusals) = (Map::new(), BTreeMap::new());
    for (key, answer) in answers.await {
        match answer {
            Ok(answer) => drop(given.insert(key, answer)),
            Err(text) => drop(refusals.insert(key, text)),
        }
    }
    Resume { state: Some(asking.state), answers: given, refusals, at_hand: true }
}

async fn put_one(peer: &Peer<RoleServer>, mut request: Value) -> Result<Value, String> {
    let method = request.get("method").and_then(Value::as_str).unwrap_or_default().to_owned();
    // Verbatim: the SDK's own types would drop what they don't know of a form's schema.
    let mut params = request.get_mut("params").map(Value::take);
    if method == "roots/list" {
        params = None;
    }
    let sent = peer.send_request(ServerRequest::CustomRequest(CustomRequest::new(method, params))).await;
    match sent {
        Ok(answer) => serde_json::to_value(answer).map_err(|error| error.to_string()),
        Err(ServiceError::McpError(error)) => Err(error.message.into_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// The answer that asks for input.
///
/// # Errors
/// When a request has a shape that the protocol has no place for.
pub(super) fn input_required(asking: Asking) -> Result<InputRequiredResult, ErrorData> {
    let requests = input_requests(asking.requests)?;
    Ok(InputRequiredResult::new(Some(requests), Some(asking.state)))
}

/// Requests of a script, as the protocol writes them.
///
/// # Errors
/// When one has a shape that the protocol has no place for.
pub(super) fn input_requests(requests: Map<String, Value>) -> Result<InputRequests, ErrorData> {
    let typed = requests.into_iter().map(|(key, request)| {
        let read: Result<InputRequest, _> = serde_json::from_value(request);
        read.map(|request| (key.clone(), request)).map_err(|error| {
            ErrorData::internal_error(format!("the tool's request `{key}` can't be put to a client: {error}"), None)
        })
    });
    typed.collect()
}

/// The answer that hands out a task.
pub(super) fn task(handle: &Handle) -> CallToolResponse {
    let created = crate::clock::rfc3339(handle.created_at);
    let task = Task::new(handle.run.to_string(), TaskStatus::Working, created.clone(), created);
    CallToolResponse::Task(CreateTaskResult::new(task.with_ttl_ms(KEPT_MS).with_poll_interval_ms(POLL_INTERVAL_MS)))
}
