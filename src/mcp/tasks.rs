//! The methods of the extension `io.modelcontextprotocol/tasks`.

use rmcp::model::{DetailedTask, ErrorData, GetTaskResult, JsonObject, Task, TaskPayload};
use serde_json::{Value, json};

use super::ask::{self, KEPT_MS, POLL_INTERVAL_MS};
use crate::tools::{TaskState, TaskView};

/// `tasks/get`: how far a run has come.
///
/// # Errors
/// When what it asks has a shape that the protocol has no place for.
pub(super) fn get(view: TaskView) -> Result<GetTaskResult, ErrorData> {
    let payload = match view.state {
        TaskState::Working => TaskPayload::Working,
        TaskState::InputRequired(requests) => {
            TaskPayload::InputRequired { input_requests: ask::input_requests(requests)? }
        }
        TaskState::Completed(result) => TaskPayload::Completed { result },
        TaskState::Failed { code, message } => {
            TaskPayload::Failed { error: object(json!({"code": code, "message": message})) }
        }
        TaskState::Cancelled => TaskPayload::Cancelled,
    };
    let (created, updated) = (crate::clock::rfc3339(view.created_at), crate::clock::rfc3339(view.updated_at));
    let task = Task::new(view.run.to_string(), payload.status(), created, updated)
        .with_ttl_ms(KEPT_MS)
        .with_poll_interval_ms(POLL_INTERVAL_MS);
    Ok(GetTaskResult::new(DetailedTask::new(task, payload)))
}

fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(object) => object,
        _ => JsonObject::new(),
    }
}
