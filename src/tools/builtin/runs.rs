//! Built-ins that show and stop runs.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::{BuiltinCall, Failed, Handled, missing, parse, reply};
use crate::clock::rfc3339;
use crate::model::{CallReply, Ending, Json, NetworkUse, RunId, RunRow, SandboxLevel, VersionNumber};
use crate::store::{RunFilter, RunState};
use crate::tools::Tools;

#[derive(Deserialize)]
struct OneRun {
    run_id: String,
}

#[derive(Deserialize)]
struct Job {
    job_id: String,
}

#[derive(Deserialize)]
struct List {
    tool: Option<String>,
    ending: Option<String>,
    before: Option<String>,
    limit: Option<u32>,
}

impl Tools {
    pub(super) async fn builtin_get_run(&self, call: BuiltinCall) -> Handled {
        let OneRun { run_id } = parse(&call.arguments)?;
        let id = parse_id(&run_id)?;
        let row =
            self.store.get_run(id).await?.filter(|row| call.caller.sees_run(&row.principal, row.toolset.as_ref()));
        let row = row.ok_or_else(|| unknown(&run_id))?;
        let shown = Shown { whole_outputs: self.output_uris(id), ..shown(&row) };
        reply(&shown)
    }

    /// A run in the words of nanoHUB: `running`, or `done` with a result, `error`, `cancelled`, `not_found`.
    pub(super) async fn builtin_job_result(&self, call: BuiltinCall) -> Handled {
        let Job { job_id } = parse(&call.arguments)?;
        let row = match job_id.parse().map(RunId) {
            Ok(id) => {
                self.store.get_run(id).await?.filter(|row| call.caller.sees_run(&row.principal, row.toolset.as_ref()))
            }
            Err(_) => None,
        };
        let Some(row) = row else { return Ok(CallReply::value(json!({"status": "not_found", "job_id": job_id}))) };
        let text = |row: &RunRow| {
            let result: Option<Value> = row.result.as_deref().and_then(|text| serde_json::from_str(text).ok());
            let texts = result
                .as_ref()
                .and_then(|result| result["content"].as_array())
                .map(|blocks| blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n"));
            (result.and_then(|result| result.get("structuredContent").cloned()), texts.unwrap_or_default())
        };
        let (structured, text) = text(&row);
        Ok(CallReply::value(match &row.ending {
            None => json!({"status": "running", "job_id": job_id}),
            Some(Ending::Cancelled) => json!({"status": "cancelled", "job_id": job_id}),
            Some(Ending::Interrupted) => json!({"status": "error", "error": "the server went away while it ran"}),
            Some(_) if row.result.is_none() => json!({"status": "error", "error": "the result is not kept any more"}),
            Some(_) if row.is_error => json!({"status": "error", "error": text}),
            Some(_) => json!({"status": "done", "result": structured.unwrap_or(Value::String(text))}),
        }))
    }

    pub(super) async fn builtin_list_runs(&self, call: BuiltinCall) -> Handled {
        let List { tool, ending, before, limit } = parse(&call.arguments)?;
        let filter = RunFilter {
            principal: call.caller.sees_only().cloned(),
            toolset: call.caller.toolset.clone(),
            tool_name: tool,
            state: ending.as_deref().and_then(state),
            before: before.as_deref().map(parse_id).transpose()?,
            since: None,
        };
        let rows = self.store.list_runs(&filter, limit.unwrap_or(50)).await?;
        let runs: Vec<Value> = rows
            .iter()
            .map(|row| {
                json!({"run_id": row.id.to_string(), "tool": row.tool_name, "version": row.version,
                    "status": row.ending.as_ref().map_or("running", |ending| ending.as_str()), "is_error": row.is_error,
                    "queued_at": rfc3339(row.queued_at), "ended_at": row.ended_at.map(rfc3339)})
            })
            .collect();
        Ok(CallReply::value(json!({"runs": runs})))
    }

    pub(super) async fn builtin_cancel_run(&self, call: &BuiltinCall) -> Handled {
        let OneRun { run_id } = parse(&call.arguments)?;
        let id = parse_id(&run_id)?;
        let row = self.store.get_run(id).await?;
        let theirs = row.is_some_and(|row| call.caller.sees_run(&row.principal, row.toolset.as_ref()));
        if theirs && self.live.cancel(id, call.caller.sees_only()) {
            return Ok(CallReply::text(format!("Run {run_id} is being stopped, with every process it started.")));
        }
        Err(missing(format!("no run {run_id} of yours is alive in this server; omniforge_list_runs shows them")))
    }
}

/// The state that the schema's words name.
fn state(word: &str) -> Option<RunState> {
    let ended = ["ok", "error", "exit", "signal", "timeout", "cancelled", "limit", "interrupted"];
    match word {
        "running" => Some(RunState::Running),
        word => ended.into_iter().find(|ended| *ended == word).map(RunState::Ended),
    }
}

fn parse_id(text: &str) -> Result<RunId, Failed> {
    text.parse().map(RunId).map_err(|_| {
        Failed::Refused(format!("`{text}` is no run id; one looks like 01890a5d-ac96-774b-bcce-b302099a8057"))
    })
}

fn unknown(id: &str) -> Failed {
    missing(format!("there is no run {id}; omniforge_list_runs shows those there are"))
}

/// A run as `omniforge_get_run` shows it. What the caller sent and the script said stands in it digit by digit.
#[derive(Serialize)]
struct Shown<'a> {
    run_id: String,
    tool: &'a str,
    version: Option<VersionNumber>,
    status: &'static str,
    ending: &'a Option<Ending>,
    is_error: bool,
    arguments: &'a Json,
    coerced: &'a [String],
    result: Option<&'a RawValue>,
    stdout: &'a str,
    stderr: &'a str,
    log: Vec<&'a RawValue>,
    /// Where the whole of what was printed can be read, where it was too much for here.
    #[serde(skip_serializing_if = "Map::is_empty")]
    whole_outputs: Map<String, Value>,
    client: &'a Option<String>,
    door: &'a str,
    queued_at: String,
    started_at: Option<String>,
    ended_at: Option<String>,
    cpu_ms: i64,
    peak_memory_bytes: i64,
    sandbox: SandboxLevel,
    #[serde(skip_serializing_if = "Option::is_none")]
    network: &'a Option<NetworkUse>,
}

fn shown(row: &RunRow) -> Shown<'_> {
    Shown {
        run_id: row.id.to_string(),
        tool: &row.tool_name,
        version: row.version,
        status: row.ending.as_ref().map_or("running", |ending| ending.as_str()),
        ending: &row.ending,
        is_error: row.is_error,
        arguments: &row.arguments,
        coerced: &row.coerced,
        result: row.result.as_deref().and_then(|result| serde_json::from_str(result).ok()),
        stdout: &row.stdout,
        stderr: &row.stderr,
        log: row.log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect(),
        whole_outputs: Map::new(),
        client: &row.client,
        door: &row.door,
        queued_at: rfc3339(row.queued_at),
        started_at: row.started_at.map(rfc3339),
        ended_at: row.ended_at.map(rfc3339),
        cpu_ms: row.cpu_ms,
        peak_memory_bytes: row.peak_memory_bytes,
        sandbox: row.sandbox,
        network: &row.network,
    }
}
