//! The domain as every door sees it: list, call, and news of change.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};
use tokio::sync::{broadcast, mpsc};
use tokio_util::sync::CancellationToken;

use super::content::Contents;
use crate::model::{CallReply, Caller, ClientFacts, Json, RunEvent, RunId, Timestamp};

/// A tool as `tools/list` shows it, built-in or saved. Field names in JSON are MCP's.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedTool {
    /// The name to call it by.
    pub name: String,
    /// A name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it does; never empty.
    pub description: String,
    /// JSON Schema of the arguments, verbatim; the root is an object schema.
    pub input_schema: Value,
    /// JSON Schema of the structured result; any root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// All hints, explicit.
    pub annotations: Map<String, Value>,
    /// Icons.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub icons: Vec<Value>,
    /// `_meta`.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Map<String, Value>>,
}

/// What one caller sees, as of one generation of the catalogue.
#[derive(Debug)]
pub struct ToolList {
    /// The catalogue's generation.
    pub generation: u64,
    /// Names the visible set: callers with equal keys (and generation) see exactly the same list.
    pub visible: String,
    /// Built-ins first, then saved tools, most recently updated first.
    pub tools: Vec<ListedTool>,
}

/// One call, as it came through a door.
#[derive(Clone, Debug)]
pub struct CallRequest {
    /// The tool's name.
    pub name: String,
    /// The bytes of `arguments`; `None` when left out. Must be an object.
    pub arguments: Option<Json>,
    /// The JSON-RPC id or the door's own, as text.
    pub request_id: String,
    /// The request's `_meta`.
    pub meta: Map<String, Value>,
    /// What the client says of itself.
    pub client: ClientFacts,
    /// Which door: `mcp`, `rest`, `cli`.
    pub door: &'static str,
    /// What a call that was answered with [`Answer::Asking`] brings back.
    pub resume: Resume,
}

/// What a retried call brings back.
#[derive(Clone, Debug, Default)]
pub struct Resume {
    /// The `state` of [`Asking`].
    pub state: Option<String>,
    /// The client's results, by the keys of [`Asking::requests`].
    pub answers: Map<String, Value>,
    /// What the client could not answer, and why, by the same keys.
    pub refusals: BTreeMap<String, String>,
    /// Whether the client was asked while its call waits, so that it can't bring better answers: what does not fit is told
    /// to the script.
    pub at_hand: bool,
}

/// How far a call has come.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// It is over.
    Reply(CallReply),
    /// The script waits for its client.
    Asking(Asking),
    /// It goes on without its caller.
    Handle(Handle),
}

/// What a script wants of its client.
#[derive(Clone, Debug, PartialEq)]
pub struct Asking {
    /// The run that waits.
    pub run: RunId,
    /// Requests (`{"method": …, "params": …}`) by key.
    pub requests: Map<String, Value>,
    /// Sealed: brings a repeated call back to this run.
    pub state: String,
}

/// A run that nobody waits for any more.
#[derive(Clone, Debug, PartialEq)]
pub struct Handle {
    /// The run.
    pub run: RunId,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// What clients without tasks are told.
    pub reply: CallReply,
}

/// A run as a task.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskView {
    /// The run.
    pub run: RunId,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// When it changed last.
    pub updated_at: Timestamp,
    /// How far it has come.
    pub state: TaskState,
}

/// How far a task has come.
#[derive(Clone, Debug, PartialEq)]
pub enum TaskState {
    /// It goes on.
    Working,
    /// It waits for answers to these requests, by key.
    InputRequired(Map<String, Value>),
    /// It has a result, MCP's `CallToolResult`.
    Completed(Map<String, Value>),
    /// It ended in a JSON-RPC error.
    Failed {
        /// The code.
        code: i32,
        /// The message.
        message: String,
    },
    /// It was cancelled.
    Cancelled,
}

/// Why a call has no reply.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CallError {
    /// No tool of that name is visible and enabled.
    #[error("Unknown tool: `{name}`{}", hint(nearest))]
    UnknownTool {
        /// The name asked for.
        name: String,
        /// The nearest names that exist.
        nearest: Vec<String>,
    },
    /// The request itself is malformed.
    #[error("{0}")]
    InvalidParams(String),
    /// `raise ProtocolError(code, text)` in the script.
    #[error("{text}")]
    Protocol {
        /// The JSON-RPC code.
        code: i32,
        /// The message.
        text: String,
    },
    /// The client can't do what the script needs.
    #[error("{text}")]
    MissingCapability {
        /// What it would have to declare, in the shape of `ClientCapabilities`.
        required: Value,
        /// In words.
        text: String,
    },
    /// The caller itself cancelled; nobody waits for an answer.
    #[error("the call was cancelled")]
    Cancelled,
    /// Our own failure; the id finds the log line.
    #[error("internal error {id}; the server's log says more under this id")]
    Internal {
        /// The error's id.
        id: String,
    },
}

fn hint(nearest: &[String]) -> String {
    match nearest {
        [] => String::new(),
        names => format!("; did you mean `{}`?", names.join("`, `")),
    }
}

/// Something changed that clients are told of. Sent after this process's caches were dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The catalogue's generation from which the change can be read.
    pub generation: u64,
}

/// What the doors need of the product.
#[async_trait]
pub trait Domain: Contents {
    /// What this caller may see. Served from a cache of at most 5 seconds that every change clears.
    ///
    /// # Errors
    /// [`CallError::Internal`] when the store fails.
    async fn list(&self, caller: &Caller) -> Result<Arc<ToolList>, CallError>;

    /// Calls a built-in or saved tool. Events arrive on `events`, in order, before the reply; when that channel
    /// stays full for long, or is closed, events are dropped.
    ///
    /// # Errors
    /// [`CallError`]; a tool that fails is a [`CallReply`] with `is_error`.
    ///
    /// # Cancellation
    /// `cancel` is the caller's own: it kills the run's whole process tree, and the result is [`CallError::Cancelled`].
    /// Dropping the future kills too, unless the run had become a [`Handle`]. A run that is stopped by anything else is
    /// answered with an error result.
    async fn call(
        &self,
        caller: &Caller,
        request: CallRequest,
        events: mpsc::Sender<RunEvent>,
        cancel: CancellationToken,
    ) -> Result<Answer, CallError>;

    /// A run of the caller's as a task.
    ///
    /// # Errors
    /// [`CallError::InvalidParams`] when there is none of that id.
    async fn task(&self, caller: &Caller, id: &str) -> Result<TaskView, CallError>;

    /// Waits until a task of the caller's is not as this view shows it; the new view. One that has ended stays as it is:
    /// don't wait for it.
    ///
    /// # Errors
    /// [`CallError::InvalidParams`] when there is no such task any more.
    async fn task_changed(&self, caller: &Caller, view: &TaskView) -> Result<TaskView, CallError>;

    /// Answers what a task asks; keys that nothing waits under are ignored.
    ///
    /// # Errors
    /// [`CallError::InvalidParams`] when there is no such task, or an answer does not fit.
    async fn answer_task(&self, caller: &Caller, id: &str, answers: Map<String, Value>) -> Result<(), CallError>;

    /// Stops a task; one that has ended stays as it is.
    ///
    /// # Errors
    /// [`CallError::InvalidParams`] when there is no such task.
    async fn cancel_task(&self, caller: &Caller, id: &str) -> Result<(), CallError>;

    /// News of change, from this process and others on the same data directory.
    fn changes(&self) -> broadcast::Receiver<Change>;

    /// `instructions` of the initialize and discover results.
    ///
    /// # Errors
    /// [`CallError::Internal`] when the store fails.
    async fn instructions(&self, caller: &Caller) -> Result<String, CallError>;

    /// The caller within this toolset; `None` where there is none of that name for it.
    ///
    /// # Errors
    /// [`CallError::Internal`] when the store fails.
    async fn within(&self, caller: &Caller, toolset: &str) -> Result<Option<Caller>, CallError>;
}
