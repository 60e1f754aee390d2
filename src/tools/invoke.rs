//! The call pipeline: row, environment, slot, sandbox, answer. A dropped call kills its run, and the row says so.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::arguments::{Checked, Checks};
use super::domain::CallError;
use super::reply::Finished;
use super::{Tools, internal};
use crate::model::{
    CallReply, Caller, ClientFacts, Ending, Limits, Outcome, ReturnValue, RunEvent, RunId, RunRow, ToolDefinition,
    ToolId, VersionNumber,
};
use crate::runner::RunRequest;

/// The most bytes of log kept with a run.
const LOG_BYTES: usize = 1 << 20;
/// How long a listener that is behind is waited for, once.
const LISTENER: Duration = Duration::from_secs(1);

/// A call whose arguments were accepted.
pub struct Invocation {
    /// Who calls.
    pub caller: Caller,
    /// The tool and version; `None` for unsaved code.
    pub version: Option<(ToolId, VersionNumber)>,
    /// The tool's name, or `(unsaved)`.
    pub name: String,
    /// What runs.
    pub definition: Arc<ToolDefinition>,
    /// Its compiled schemas.
    pub checks: Arc<Checks>,
    /// The arguments.
    pub arguments: Checked,
    /// What the client says of itself.
    pub client: ClientFacts,
    /// Which door: `mcp`, `rest`, `cli`, `test`.
    pub door: &'static str,
    /// The door's id for the request.
    pub request_id: String,
    /// The request's `_meta`.
    pub meta: Map<String, Value>,
}

/// How a call ended, with what `omniforge_test_tool` shows besides the answer.
pub struct Done {
    /// The answer.
    pub reply: Result<CallReply, CallError>,
    /// The row as it was written.
    pub row: RunRow,
}

impl Tools {
    /// Runs a script and records the run. The run goes on in a task of its own until it has ended and its row is
    /// written.
    ///
    /// # Errors
    /// [`CallError::Internal`] when the task itself failed.
    ///
    /// # Cancellation
    /// Dropping the future kills the run.
    pub(super) async fn invoke(
        &self,
        invocation: Invocation,
        events: mpsc::Sender<RunEvent>,
        cancel: &CancellationToken,
    ) -> Result<Done, CallError> {
        // The run's own: what stops a run besides its caller is told to its caller.
        let stop = self.lifecycle.killing.child_token();
        let _dropped = stop.clone().drop_guard();
        let (tools, token) = (self.clone(), stop.clone());
        let mut task = self.lifecycle.tasks.spawn(async move { tools.run(invocation, events, token).await });
        let done = tokio::select! {
            done = &mut task => done,
            () = cancel.cancelled() => {
                stop.cancel();
                task.await
            }
        };
        let mut done = done.map_err(|error| internal("a call's task failed", &error))?;
        if cancel.is_cancelled() && done.row.ending == Some(Ending::Cancelled) {
            done.reply = Err(CallError::Cancelled);
        }
        Ok(done)
    }

    async fn run(self, invocation: Invocation, events: mpsc::Sender<RunEvent>, cancel: CancellationToken) -> Done {
        let id = self.clock.new_run_id();
        let row = self.first_row(id, &invocation);
        if let Err(error) = self.store.start_run(row.clone()) {
            return Done { reply: Err(internal("a run could not be recorded", &error)), row };
        }
        let _live = self.live.enter(id, invocation.caller.principal.clone(), cancel.clone());
        let (sender, receiver) = mpsc::channel(256);
        let forward = tokio::spawn(forward(receiver, events));
        let limits = self.limits_of(&invocation.definition);
        let mut running = Running { invocation: &invocation, limits, row };
        let result = self.execute(&mut running, sender, &cancel).await;
        running.row.log = forward.await.unwrap_or_default();
        running.row.ended_at = Some(self.clock.now());
        let reply = match result {
            Ok(outcome) => running.conclude(&outcome),
            Err(stopped) => stopped.conclude(&mut running.row),
        };
        self.store.finish_run(running.row.clone());
        Done { reply, row: running.row }
    }

    fn first_row(&self, id: RunId, invocation: &Invocation) -> RunRow {
        let client = &invocation.client;
        RunRow {
            id,
            tool: invocation.version.as_ref().map(|(tool, _)| tool.clone()),
            tool_name: invocation.name.clone(),
            version: invocation.version.as_ref().map(|(_, number)| *number),
            principal: invocation.caller.principal.clone(),
            client: client.name.as_ref().map(|name| match &client.version {
                Some(version) => format!("{name} {version}"),
                None => name.clone(),
            }),
            door: invocation.door.to_owned(),
            instance: self.instance.clone(),
            arguments: invocation.arguments.raw.get().to_owned(),
            coerced: invocation.arguments.coerced.clone(),
            queued_at: self.clock.now(),
            started_at: None,
            ended_at: None,
            ending: None,
            is_error: false,
            result: None,
            stdout: String::new(),
            stderr: String::new(),
            log: String::new(),
            cpu_ms: 0,
            peak_memory_bytes: 0,
            sandbox: self.runner.sandbox(),
        }
    }

    async fn execute(
        &self,
        running: &mut Running<'_>,
        events: mpsc::Sender<RunEvent>,
        cancel: &CancellationToken,
    ) -> Result<Outcome, Stopped> {
        let (invocation, id) = (running.invocation, running.row.id);
        // Here, where every run passes: whatever its door, and whatever the policy was when its version was saved.
        let waits = self.policy.waits_for(&invocation.definition);
        if !waits.is_empty() {
            return Err(Stopped::Unapproved(format!("this can't run before it is approved: {}", waits.join("; "))));
        }
        let environment = match &invocation.definition.lock {
            None => None,
            Some(lock) => tokio::select! {
                () = cancel.cancelled() => return Err(Stopped::Cancelled),
                ready = self.environment(lock, &events) => Some(ready.map_err(Stopped::Install)?),
            },
        };
        let slot = tokio::select! {
            () = cancel.cancelled() => return Err(Stopped::Cancelled),
            slot = self.gate.enter(&invocation.caller.principal.0, &invocation.name) => slot,
        };
        let _slot = slot.map_err(|busy| Stopped::Busy(busy.to_string()))?;
        running.row.started_at = Some(self.clock.now());
        let request = RunRequest {
            id,
            language: invocation.definition.language,
            style: invocation.definition.style,
            code: invocation.definition.code.as_str().into(),
            arguments: invocation.arguments.raw.clone(),
            limits: running.limits.clone(),
            environment,
            context: context(invocation, id),
            secrets: Vec::new(),
        };
        let outcome = self.runner.run(request, events, cancel.clone()).await;
        outcome.map_err(|error| Stopped::Internal(internal("a run could not be started", &error)))
    }

    /// The limits of a run of this definition, under the server's ceilings.
    fn limits_of(&self, definition: &ToolDefinition) -> Limits {
        let mut limits = self.options.limits.clone();
        if let Some(seconds) = definition.timeout_seconds {
            limits.wall = Duration::from_secs_f64(seconds).min(self.options.ceilings.wall);
            limits.cpu = limits.cpu.max(limits.wall);
        }
        if let Some(megabytes) = definition.memory_mb {
            limits.memory_bytes = (megabytes << 20).min(self.options.ceilings.memory_bytes);
        }
        limits
    }
}

/// A run between its first row and its last.
struct Running<'a> {
    invocation: &'a Invocation,
    limits: Limits,
    row: RunRow,
}

impl Running<'_> {
    /// Makes the answer and puts it on the row.
    fn conclude(&mut self, outcome: &Outcome) -> Result<CallReply, CallError> {
        let (invocation, row) = (self.invocation, &mut self.row);
        let output = invocation.checks.output.as_ref();
        let style = invocation.definition.style;
        let reply = Finished { run: row.id, style, outcome, limits: &self.limits, output }.reply();
        row.ending = Some(match outcome.ending {
            Ending::Ok if reply.is_error => Ending::Error,
            ref other => other.clone(),
        });
        row.is_error = reply.is_error;
        row.result = Some(result_json(&reply));
        row.stdout.clone_from(&outcome.stdout.text);
        row.stderr.clone_from(&outcome.stderr.text);
        row.cpu_ms = i64::try_from(outcome.usage.cpu.as_millis()).unwrap_or(i64::MAX);
        row.peak_memory_bytes = i64::try_from(outcome.usage.peak_memory_bytes).unwrap_or(i64::MAX);
        match (&outcome.ending, &outcome.returned) {
            (Ending::Cancelled, _) => Ok(reply),
            (_, Some(ReturnValue::ProtocolError { code, text })) => {
                Err(CallError::Protocol { code: *code, text: text.clone() })
            }
            _ => Ok(reply),
        }
    }
}

/// Why a run ended before its process started.
enum Stopped {
    Unapproved(String),
    Cancelled,
    Busy(String),
    Install(String),
    Internal(CallError),
}

impl Stopped {
    fn conclude(self, row: &mut RunRow) -> Result<CallReply, CallError> {
        row.ending = Some(if matches!(self, Self::Cancelled) { Ending::Cancelled } else { Ending::Error });
        let reply = match self {
            Self::Cancelled => Ok(CallReply::error("(no output)\n[cancelled]")),
            Self::Unapproved(text) | Self::Busy(text) => Ok(CallReply::error(text)),
            Self::Install(text) => Ok(CallReply::error(format!("(no output)\n[install] {text}"))),
            Self::Internal(error) => Err(error),
        };
        row.is_error = true;
        let shown = match &reply {
            Ok(reply) => reply.clone(),
            Err(error) => CallReply::error(error.to_string()),
        };
        row.result = Some(result_json(&shown));
        reply.map(|reply| CallReply { run: Some(row.id), ..reply })
    }
}

/// Hands events on and keeps the log. A listener that doesn't take them in loses events, never the run.
async fn forward(mut receiver: mpsc::Receiver<RunEvent>, events: mpsc::Sender<RunEvent>) -> String {
    let mut log = String::new();
    let mut full = false;
    let mut patience = LISTENER;
    while let Some(event) = receiver.recv().await {
        if matches!(event, RunEvent::Log { .. }) && !full {
            let line = serde_json::to_string(&event).unwrap_or_default();
            full = log.len() + line.len() > LOG_BYTES;
            log.push_str(if full { "{\"truncated\":true}" } else { &line });
            log.push('\n');
        }
        patience = match events.send_timeout(event, patience).await {
            Ok(()) => LISTENER,
            Err(_) => Duration::ZERO,
        };
    }
    log
}

fn context(invocation: &Invocation, id: RunId) -> Value {
    json!({
        "tool": invocation.name,
        "version": invocation.version.as_ref().map(|(_, number)| number),
        "run_id": id.to_string(),
        "request_id": invocation.request_id,
        "meta": invocation.meta,
        "caller": invocation.caller.principal_name,
        "client_capabilities": invocation.client.capabilities,
    })
}

/// The answer as MCP's `CallToolResult`.
pub fn result_json(reply: &CallReply) -> String {
    let mut result = json!({"content": reply.content, "isError": reply.is_error});
    if let Some(structured) = &reply.structured {
        result["structuredContent"] = structured.clone();
    }
    result.to_string()
}
