//! Runs as tasks (the `io.modelcontextprotocol/tasks` extension): over the run rows, so that they survive a restart.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::continuation::fitting;
use super::domain::{CallError, TaskState, TaskView};
use super::{Tools, internal};
use crate::model::{Caller, ClientFacts, Ending, RunId, RunRow};

/// The extension's name.
pub const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// How often a task is looked at that this process does not run.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// How long a run that has ended is given until its row says so.
const SETTLE: Duration = Duration::from_millis(20);

/// Whether a client can be given tasks.
pub fn supported(client: &ClientFacts) -> bool {
    let modern = client.protocol_version.as_deref().is_some_and(|version| version >= "2026-07-28");
    let extensions = client.capabilities.get("extensions").and_then(Value::as_object);
    modern && extensions.is_some_and(|extensions| extensions.get(EXTENSION).is_some_and(Value::is_object))
}

/// What a client without them is told by a tool that needs them.
pub fn required(tool: &str) -> CallError {
    CallError::MissingCapability {
        required: json!({"extensions": {EXTENSION: {}}}),
        text: format!("`{tool}` runs as a task: it needs a client with the extension {EXTENSION}"),
    }
}

impl Tools {
    /// A run of the caller's, as a task.
    pub(super) async fn task_view(&self, caller: &Caller, id: &str) -> Result<TaskView, CallError> {
        let row = self.run_of(caller, id).await?;
        let open = match self.live.get(row.id, caller.sees_only()) {
            Some(live) => live.questions(),
            None => Map::new(),
        };
        let state = match (&row.ending, open.is_empty()) {
            (None, true) => TaskState::Working,
            (None, false) => TaskState::InputRequired(open),
            (Some(ending), _) => ended(&row, ending),
        };
        let updated_at = row.ended_at.or(row.started_at).unwrap_or(row.queued_at);
        Ok(TaskView { run: row.id, created_at: row.queued_at, updated_at, state })
    }

    /// Waits until a task is not as this view shows it.
    pub(super) async fn task_view_after(&self, caller: &Caller, seen: &TaskView) -> Result<TaskView, CallError> {
        loop {
            match self.live.get(seen.run, caller.sees_only()) {
                Some(live) => {
                    let mut changed = live.watch();
                    let asks = match &seen.state {
                        TaskState::InputRequired(questions) => questions.clone(),
                        _ => Map::new(),
                    };
                    while live.ended().is_none() && live.questions() == asks && changed.changed().await.is_ok() {}
                }
                // It runs in another process, or its row is about to say how it ended.
                None => tokio::time::sleep(LOOK_AGAIN).await,
            }
            let view = self.task_view(caller, &seen.run.to_string()).await?;
            if view != *seen {
                return Ok(view);
            }
            tokio::time::sleep(SETTLE).await;
        }
    }

    /// Hands a task what its client answers.
    pub(super) async fn answer_questions(
        &self,
        caller: &Caller,
        id: &str,
        answers: &Map<String, Value>,
    ) -> Result<(), CallError> {
        let row = self.run_of(caller, id).await?;
        if let Some(live) = self.live.get(row.id, caller.sees_only()) {
            live.answer(fitting(&live.questions(), answers)?);
        }
        Ok(())
    }

    /// Stops a task.
    pub(super) async fn stop_task(&self, caller: &Caller, id: &str) -> Result<(), CallError> {
        let row = self.run_of(caller, id).await?;
        self.live.cancel(row.id, caller.sees_only());
        Ok(())
    }

    /// The row of a run that this caller may see.
    pub(super) async fn run_of(&self, caller: &Caller, id: &str) -> Result<RunRow, CallError> {
        let unknown = || CallError::InvalidParams(format!("there is no task `{id}`"));
        let id = id.parse().map(RunId).map_err(|_| unknown())?;
        let row = self.store.get_run(id).await.map_err(|error| internal("a run can't be read", &error))?;
        row.filter(|row| caller.sees_run(&row.principal, row.toolset.as_ref())).ok_or_else(unknown)
    }
}

fn ended(row: &RunRow, ending: &Ending) -> TaskState {
    let failed = |code, message: &str| TaskState::Failed { code, message: message.to_owned() };
    match (ending, &row.error) {
        (Ending::Cancelled, _) => TaskState::Cancelled,
        (_, Some(error)) => failed(error.code, &error.message),
        (Ending::Interrupted, _) => failed(-32603, "the server went away while the task ran"),
        _ => match row.result.as_deref().map(serde_json::from_str) {
            Some(Ok(Value::Object(result))) => TaskState::Completed(result),
            _ => failed(-32603, "the result is not kept any more"),
        },
    }
}
