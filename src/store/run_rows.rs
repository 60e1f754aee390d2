//! Rows of `runs`, turned into the words of the domain and back.

use sqlx::SqliteConnection;

use super::error::corrupt;
use super::{RunSummary, StoreError};
use crate::model::{
    Ending, Json, Limit, PrincipalId, RunId, RunRow, SandboxLevel, Timestamp, ToolId, ToolsetId, VersionNumber,
};

/// The columns of a [`RunSummary`].
pub(super) struct SummaryColumns {
    pub id: String,
    pub tool: Option<String>,
    pub tool_name: String,
    pub version: Option<VersionNumber>,
    pub principal: String,
    pub client: Option<String>,
    pub door: String,
    pub instance: String,
    pub queued_at: i64,
    pub started_at: Option<i64>,
    pub ended_at: Option<i64>,
    pub ending: Option<String>,
    pub ending_detail: Option<String>,
    pub is_error: bool,
    pub cpu_ms: i64,
    pub peak_memory_bytes: i64,
    pub sandbox: String,
    pub toolset: Option<String>,
}

/// Every column of `runs`.
pub(super) struct RunColumns {
    pub id: String,
    pub tool: Option<String>,
    pub tool_name: String,
    pub version: Option<VersionNumber>,
    pub principal: String,
    pub client: Option<String>,
    pub door: String,
    pub instance: String,
    pub queued_at: i64,
    pub started_at: Option<i64>,
    pub ended_at: Option<i64>,
    pub ending: Option<String>,
    pub ending_detail: Option<String>,
    pub is_error: bool,
    pub cpu_ms: i64,
    pub peak_memory_bytes: i64,
    pub sandbox: String,
    pub coerced: String,
    pub arguments: String,
    pub result: Option<String>,
    pub stdout: String,
    pub stderr: String,
    pub log: String,
    pub error: Option<String>,
    pub idempotency: Option<String>,
    pub tries: i64,
    pub parent: Option<String>,
    pub network: Option<String>,
    pub toolset: Option<String>,
}

impl TryFrom<SummaryColumns> for RunSummary {
    type Error = StoreError;

    fn try_from(row: SummaryColumns) -> Result<Self, StoreError> {
        Ok(Self {
            id: run_id(&row.id)?,
            tool: row.tool.map(ToolId),
            tool_name: row.tool_name,
            version: row.version,
            principal: PrincipalId(row.principal),
            client: row.client,
            door: row.door,
            instance: row.instance,
            queued_at: Timestamp(row.queued_at),
            started_at: row.started_at.map(Timestamp),
            ended_at: row.ended_at.map(Timestamp),
            ending: ending(row.ending, row.ending_detail)?,
            is_error: row.is_error,
            cpu_ms: row.cpu_ms,
            peak_memory_bytes: row.peak_memory_bytes,
            sandbox: sandbox(&row.sandbox)?,
            toolset: row.toolset.map(ToolsetId),
        })
    }
}

impl TryFrom<RunColumns> for RunRow {
    type Error = StoreError;

    fn try_from(row: RunColumns) -> Result<Self, StoreError> {
        Ok(Self {
            id: run_id(&row.id)?,
            tool: row.tool.map(ToolId),
            tool_name: row.tool_name,
            version: row.version,
            principal: PrincipalId(row.principal),
            client: row.client,
            door: row.door,
            instance: row.instance,
            arguments: Json::parse(row.arguments).map_err(|error| corrupt("arguments", error))?,
            coerced: serde_json::from_str(&row.coerced).map_err(|error| corrupt("list of coercions", error))?,
            queued_at: Timestamp(row.queued_at),
            started_at: row.started_at.map(Timestamp),
            ended_at: row.ended_at.map(Timestamp),
            ending: ending(row.ending, row.ending_detail)?,
            is_error: row.is_error,
            result: row.result,
            stdout: row.stdout,
            stderr: row.stderr,
            log: row.log,
            cpu_ms: row.cpu_ms,
            peak_memory_bytes: row.peak_memory_bytes,
            sandbox: sandbox(&row.sandbox)?,
            error: row
                .error
                .map(|error| serde_json::from_str(&error))
                .transpose()
                .map_err(|error| corrupt("error of a run", error))?,
            idempotency: row.idempotency,
            tries: row.tries,
            parent: row.parent.as_deref().map(run_id).transpose()?,
            network: row
                .network
                .map(|network| serde_json::from_str(&network))
                .transpose()
                .map_err(|error| corrupt("network use of a run", error))?,
            toolset: row.toolset.map(ToolsetId),
        })
    }
}

pub(super) fn run_id(text: &str) -> Result<RunId, StoreError> {
    text.parse().map(RunId).map_err(|error| corrupt("run id", error))
}

fn sandbox(text: &str) -> Result<SandboxLevel, StoreError> {
    [SandboxLevel::Full, SandboxLevel::Landlock, SandboxLevel::None]
        .into_iter()
        .find(|level| level.as_str() == text)
        .ok_or_else(|| corrupt("sandbox level", text))
}

fn ending(word: Option<String>, detail: Option<String>) -> Result<Option<Ending>, StoreError> {
    let Some(word) = word else { return Ok(None) };
    let bad = || corrupt("ending", format!("`{word}` with the detail {detail:?}"));
    let number = || detail.as_deref().and_then(|detail| detail.parse().ok()).ok_or_else(bad);
    Ok(Some(match word.as_str() {
        "ok" => Ending::Ok,
        "error" => Ending::Error,
        "exit" => Ending::Exit(number()?),
        "signal" => Ending::Signal(number()?),
        "timeout" => Ending::Timeout,
        "cancelled" => Ending::Cancelled,
        "limit" => Ending::Limit(
            [Limit::Cpu, Limit::Memory, Limit::Output, Limit::Result]
                .into_iter()
                .find(|limit| Some(limit.as_str()) == detail.as_deref())
                .ok_or_else(bad)?,
        ),
        "interrupted" => Ending::Interrupted,
        _ => return Err(bad()),
    }))
}

fn ending_detail(ending: &Ending) -> Option<String> {
    match ending {
        Ending::Exit(number) | Ending::Signal(number) => Some(number.to_string()),
        Ending::Limit(limit) => Some(limit.as_str().to_owned()),
        Ending::Ok | Ending::Error | Ending::Timeout | Ending::Cancelled | Ending::Interrupted => None,
    }
}

fn encoded(what: &'static str, value: Option<&impl serde::Serialize>) -> Result<Option<String>, StoreError> {
    value.map(serde_json::to_string).transpose().map_err(|source| StoreError::Encode { what, source })
}

/// Stores a run, or the newer state of one.
pub(super) async fn upsert(connection: &mut SqliteConnection, run: &RunRow) -> Result<(), StoreError> {
    let id = run.id.to_string();
    let tool = run.tool.as_ref().map(|tool| tool.0.as_str());
    let (started_at, ended_at) = (run.started_at.map(|at| at.0), run.ended_at.map(|at| at.0));
    let ending = run.ending.as_ref().map(Ending::as_str);
    let ending_detail = run.ending.as_ref().and_then(ending_detail);
    let (sandbox, arguments) = (run.sandbox.as_str(), run.arguments.get());
    let coerced = serde_json::to_string(&run.coerced)
        .map_err(|source| StoreError::Encode { what: "list of coercions", source })?;
    let error = encoded("error of a run", run.error.as_ref())?;
    let network = encoded("network use of a run", run.network.as_ref())?;
    let toolset = run.toolset.as_ref().map(|toolset| toolset.0.as_str());
    let parent = run.parent.map(|parent| parent.to_string());
    sqlx::query!(
        "INSERT INTO runs (id, tool, tool_name, version, principal, client, door, instance, queued_at, started_at,
                           ended_at, ending, ending_detail, is_error, cpu_ms, peak_memory_bytes, sandbox, coerced,
                           arguments, result, stdout, stderr, log, error, idempotency, tries, parent, network,
                           toolset)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22,
                 $23, $24, $25, $26, $27, $28, $29)
         ON CONFLICT (id) DO UPDATE SET
             started_at = excluded.started_at, ended_at = excluded.ended_at, ending = excluded.ending,
             ending_detail = excluded.ending_detail, is_error = excluded.is_error, cpu_ms = excluded.cpu_ms,
             peak_memory_bytes = excluded.peak_memory_bytes, sandbox = excluded.sandbox, coerced = excluded.coerced,
             result = excluded.result, stdout = excluded.stdout, stderr = excluded.stderr, log = excluded.log,
             error = excluded.error, tries = excluded.tries, network = excluded.network, instance = excluded.instance",
        id,
        tool,
        run.tool_name,
        run.version,
        run.principal.0,
        run.client,
        run.door,
        run.instance,
        run.queued_at.0,
        started_at,
        ended_at,
        ending,
        ending_detail,
        run.is_error,
        run.cpu_ms,
        run.peak_memory_bytes,
        sandbox,
        coerced,
        arguments,
        run.result,
        run.stdout,
        run.stderr,
        run.log,
        error,
        run.idempotency,
        run.tries,
        parent,
        network,
        toolset
    )
    .execute(connection)
    .await?;
    Ok(())
}
