//! The call pipeline: row, environment, slot, sandbox, answer.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio::sync::{Mutex, mpsc};
use tokio_util::sync::CancellationToken;

use super::arguments::{Checked, Checks};
use super::conversation::Talk;
use super::domain::CallError;
use super::reply::Finished;
use super::state::Scratch;
use super::{Live, Tools, internal};
use crate::jobs::Seat;
use crate::model::{
    Block, CallReply, Caller, ClientFacts, ContentVersion, Ending, Fault, Json, Limits, Mode, Network, Outcome,
    ReturnValue, RunError, RunId, RunRow, ToolDefinition, ToolId, VersionNumber,
};
use crate::runner::{RunNetwork, RunRequest};
use crate::trust::Refusal;

/// MCP's code for a client that can't do what is needed.
const MISSING_CAPABILITY: i32 = -32021;

/// A call whose arguments were accepted.
pub struct Invocation {
    /// Who calls.
    pub caller: Caller,
    /// The tool and version; `None` for unsaved code.
    pub version: Option<(ToolId, VersionNumber)>,
    /// The tool's name, or `(unsaved)`.
    pub name: String,
    /// The script of saved content, where it is none of a tool.
    pub content: Option<ContentCall>,
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
    /// How many calls it is nested in.
    pub depth: u32,
    /// The run that called it.
    pub parent: Option<RunId>,
    /// What makes a repeated call the same call.
    pub idempotency: Option<String>,
    /// Set where it has no reach at all, and what it tries to reach is recorded.
    pub learn: Option<Learning>,
}

/// A run that finds out what a script would reach.
#[derive(Clone, Debug)]
pub struct Learning {
    /// The secrets it would have; it gets placeholders.
    pub secrets: Vec<String>,
}

/// Where a run happens: a call's own, or a nested one within it.
pub(super) struct Within {
    /// The run whose caller listens and is asked.
    pub(super) live: Live,
    /// Kills it.
    pub(super) cancel: CancellationToken,
    /// The slot of the run it is nested in.
    pub(super) seat: Option<Arc<Seat>>,
}

/// What sets a run for saved content apart from a tool's.
pub struct ContentCall {
    /// The content's version.
    pub version: Arc<ContentVersion>,
    /// Further facts for the script's context.
    pub facts: Map<String, Value>,
}

/// How a call ended, with what `omniforge_test_tool` shows besides the answer.
#[derive(Debug)]
pub struct Done {
    /// The answer.
    pub reply: Result<CallReply, CallError>,
    /// The row as it was written.
    pub row: RunRow,
}

impl Invocation {
    /// The number of the version that runs.
    pub(super) fn number(&self) -> Option<VersionNumber> {
        self.version.as_ref().map(|(_, number)| *number).or(self.content.as_ref().map(|content| content.version.number))
    }

    /// How it answers: a test always inline.
    pub(super) fn mode(&self) -> Mode {
        if self.door == "test" { Mode::Sync } else { self.definition.mode }
    }

    /// What the run may reach: the grant of what is saved. A test runs without.
    pub(super) fn network(&self) -> Network {
        let granted = Network::parse(&self.definition.grants.network).unwrap_or(Network::None);
        if self.door == "test" { Network::None } else { granted }
    }
}

impl Tools {
    /// The same as [`Tools::run`], with a type that has an end: a run can hold another one.
    pub(super) fn run_within(
        self,
        invocation: Arc<Invocation>,
        row: RunRow,
        within: Within,
    ) -> BoxFuture<'static, Done> {
        Box::pin(async move { self.run(invocation, row, within).await })
    }

    /// Runs a script to its end and records the run.
    pub(super) async fn run(&self, invocation: Arc<Invocation>, row: RunRow, within: Within) -> Done {
        let limits = self.limits_of(&invocation.definition);
        let mut running = Running { invocation, limits, row, missing: None };
        let result = self.execute(&mut running, &within).await;
        running.row.ended_at = Some(self.clock.now());
        let reply = match result {
            Ok(outcome) => running.conclude(&outcome),
            Err(stopped) => stopped.conclude(&mut running.row),
        };
        self.store.finish_run(running.row.clone());
        Done { reply, row: running.row }
    }

    pub(super) fn first_row(&self, id: RunId, invocation: &Invocation) -> RunRow {
        let client = &invocation.client;
        RunRow {
            id,
            tool: invocation.version.as_ref().map(|(tool, _)| tool.clone()),
            tool_name: invocation.name.clone(),
            version: invocation.number(),
            principal: invocation.caller.principal.clone(),
            client: client.name.as_ref().map(|name| match &client.version {
                Some(version) => format!("{name} {version}"),
                None => name.clone(),
            }),
            door: invocation.door.to_owned(),
            instance: self.instance.clone(),
            arguments: invocation.arguments.json.clone(),
            coerced: invocation.arguments.coerced.clone(),
            queued_at: self.clock.now(),
            started_at: None,
            ended_at: None,
            ending: None,
            is_error: false,
            result: None,
            error: None,
            stdout: String::new(),
            stderr: String::new(),
            log: String::new(),
            cpu_ms: 0,
            peak_memory_bytes: 0,
            sandbox: self.runner.sandbox(),
            idempotency: invocation.idempotency.clone(),
            tries: 1,
            parent: invocation.parent,
            network: None,
            toolset: invocation.caller.toolset.clone(),
        }
    }

    async fn execute(&self, running: &mut Running, within: &Within) -> Result<Outcome, Stopped> {
        let (invocation, cancel) = (running.invocation.clone(), &within.cancel);
        // Here, where every run passes: whatever its door, and whatever the policy was when its version was saved.
        self.check_approved(&invocation).await?;
        // Held until the run has ended, so that nobody removes it meanwhile.
        let (environment, held) = match &invocation.definition.lock {
            None => (None, None),
            Some(lock) => tokio::select! {
                () = cancel.cancelled() => return Err(Stopped::Cancelled),
                ready = self.environment(lock, &within.live) => {
                    let (path, held) = ready.map_err(Stopped::Install)?;
                    (Some(path), Some(Arc::new(held)))
                }
            },
        };
        let seat = match &within.seat {
            Some(seat) => seat.clone(),
            None => tokio::select! {
                () = cancel.cancelled() => return Err(Stopped::Cancelled),
                seat = Seat::take(&self.gate, &invocation.caller.principal.0, &invocation.name) => {
                    Arc::new(seat.map_err(|busy| Stopped::Busy(busy.to_string()))?)
                }
            },
        };
        // Once more: it may have been taken back while this waited.
        self.check_approved(&invocation).await?;
        let secrets = self.secrets_of(&invocation).await?;
        running.row.started_at = Some(self.clock.now());
        let request = RunRequest {
            id: running.row.id,
            language: invocation.definition.language,
            style: invocation.definition.style,
            code: invocation.definition.code.as_str().into(),
            arguments: invocation.arguments.json.clone(),
            limits: running.limits.clone(),
            environment,
            held,
            may_wait: invocation.number().is_some(),
            context: context(&invocation, running.row.id),
            secrets,
            network: network(&invocation),
        };
        let (listener, said) = mpsc::channel(256);
        let talk = Talk {
            tools: self.clone(),
            invocation,
            run: running.row.id,
            live: within.live.clone(),
            seat,
            over: cancel.child_token(),
            calls: Mutex::default(),
            scratch: Scratch::default(),
        };
        let talk = tokio::spawn(talk.listen(said));
        let outcome = self.runner.run(request, listener, cancel.clone()).await;
        let heard = talk.await.unwrap_or_default();
        running.row.log = heard.log;
        running.missing = heard.missing;
        outcome.map_err(|error| Stopped::Internal(internal("a run could not be started", &error)))
    }

    async fn check_approved(&self, invocation: &Invocation) -> Result<(), Stopped> {
        match self.unapproved(invocation).await {
            Ok(None) => Ok(()),
            Ok(Some(refusal)) => {
                let noted = Refusal::of(&invocation.caller, "run.refused", &invocation.name, refusal.clone());
                self.refusals.note(noted);
                Err(Stopped::Unapproved(refusal))
            }
            Err(error) => Err(Stopped::Internal(error)),
        }
    }

    /// The limits of a run of this definition, under the server's ceilings.
    pub(super) fn limits_of(&self, definition: &ToolDefinition) -> Limits {
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
struct Running {
    invocation: Arc<Invocation>,
    limits: Limits,
    row: RunRow,
    /// The capability that the client lacked, where the script asked for one.
    missing: Option<Value>,
}

impl Running {
    /// Makes the answer and puts it on the row.
    fn conclude(&mut self, outcome: &Outcome) -> Result<CallReply, CallError> {
        let (invocation, row) = (&self.invocation, &mut self.row);
        let output = invocation.checks.output.as_ref();
        let style = invocation.definition.style;
        let reply = Finished { run: row.id, style, outcome, limits: &self.limits, output }.reply();
        row.ending = Some(match outcome.ending {
            Ending::Ok if reply.is_error => Ending::Error,
            ref other => other.clone(),
        });
        row.is_error = reply.is_error;
        row.result = Some(result_json(&reply));
        if let Some(ReturnValue::ProtocolError { code, text }) = &outcome.returned {
            row.error = Some(RunError { code: *code, message: text.clone() });
        }
        row.stdout.clone_from(&outcome.stdout.text);
        row.stderr.clone_from(&outcome.stderr.text);
        row.network.clone_from(&outcome.network);
        row.cpu_ms = i64::try_from(outcome.usage.cpu.as_millis()).unwrap_or(i64::MAX);
        row.peak_memory_bytes = i64::try_from(outcome.usage.peak_memory_bytes).unwrap_or(i64::MAX);
        match (&outcome.ending, &outcome.returned) {
            (Ending::Cancelled, _) => Ok(reply),
            (Ending::Timeout, _) => Ok(CallReply { fault: Some(Fault::Timeout), ..reply }),
            (_, Some(ReturnValue::ProtocolError { code: MISSING_CAPABILITY, text })) if self.missing.is_some() => {
                let required = self.missing.take().unwrap_or_default();
                Err(CallError::MissingCapability { required, text: text.clone() })
            }
            (_, Some(ReturnValue::ProtocolError { code, text })) => {
                Err(CallError::Protocol { code: *code, text: text.clone() })
            }
            _ => Ok(reply),
        }
    }
}

/// Why a run ended before its process started.
pub(super) enum Stopped {
    Unapproved(String),
    /// A secret is missing.
    Unset(String),
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
            Self::Busy(text) => Ok(CallReply::fault(Fault::Busy, text)),
            Self::Unapproved(text) | Self::Unset(text) => Ok(CallReply::error(text)),
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

/// What the run may reach. Whether its version may serve with that was decided before.
fn network(invocation: &Invocation) -> RunNetwork {
    match invocation.definition.grants.network.as_slice() {
        _ if invocation.learn.is_some() => RunNetwork::Learn,
        [] => RunNetwork::None,
        entries => RunNetwork::Granted(entries.to_vec()),
    }
}

fn context(invocation: &Invocation, id: RunId) -> Value {
    let mut context = json!({
        "tool": invocation.name,
        "version": invocation.number(),
        "run_id": id.to_string(),
        "request_id": invocation.request_id,
        "meta": invocation.meta,
        "caller": invocation.caller.principal_name,
        "client_capabilities": invocation.client.capabilities,
    });
    if let (Some(context), Some(content)) = (context.as_object_mut(), &invocation.content) {
        context.extend(content.facts.clone());
    }
    context
}

/// The answer as MCP's `CallToolResult`.
pub fn result_json(reply: &CallReply) -> String {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Written<'a> {
        content: &'a [Block],
        is_error: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        structured_content: &'a Option<Json>,
        #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
        meta: &'a Option<Map<String, Value>>,
    }
    let CallReply { content, is_error, structured, meta, .. } = reply;
    let written = Written { content, is_error: *is_error, structured_content: structured, meta };
    serde_json::to_string(&written).expect("content, JSON and maps with string keys can be written")
}
