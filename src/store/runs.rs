//! The run history. New rows go through the recorder; reads see them at once.

use std::collections::HashMap;
use std::sync::Arc;

use super::run_rows::{RunColumns, SummaryColumns, run_id};
use super::{Store, StoreError};
use crate::model::{Ending, PrincipalId, RunId, RunRow, SandboxLevel, Timestamp, ToolId, ToolsetId, VersionNumber};

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunState {
    /// It has not ended.
    Running,
    /// It has ended in the way that [`Ending::as_str`] calls by this word.
    Ended(&'static str),
}

/// Which runs to list; what is `None` is not asked for.
#[derive(Clone, Debug, Default)]
pub struct RunFilter {
    /// Whose runs.
    pub principal: Option<PrincipalId>,
    /// Runs that were asked for within this toolset.
    pub toolset: Option<ToolsetId>,
    /// Runs of tools of this name.
    pub tool_name: Option<String>,
    /// How far they have come.
    pub state: Option<RunState>,
    /// Only runs older than this one.
    pub before: Option<RunId>,
    /// Only runs that were asked for at this time or later.
    pub since: Option<Timestamp>,
}

/// A run without what it was given and what it wrote.
#[derive(Clone, Debug, PartialEq)]
pub struct RunSummary {
    /// Its id.
    pub id: RunId,
    /// The tool; `None` for a test run of unsaved code.
    pub tool: Option<ToolId>,
    /// The tool's name at that time.
    pub tool_name: String,
    /// The version that ran.
    pub version: Option<VersionNumber>,
    /// Whose run it is.
    pub principal: PrincipalId,
    /// The client's name and version.
    pub client: Option<String>,
    /// Which door it came through.
    pub door: String,
    /// The process that ran it.
    pub instance: String,
    /// When it was asked for.
    pub queued_at: Timestamp,
    /// When its process was started.
    pub started_at: Option<Timestamp>,
    /// When it had ended.
    pub ended_at: Option<Timestamp>,
    /// How it ended; `None` while it runs.
    pub ending: Option<Ending>,
    /// Whether the answer was an error.
    pub is_error: bool,
    /// CPU milliseconds.
    pub cpu_ms: i64,
    /// The most memory, in bytes.
    pub peak_memory_bytes: i64,
    /// How it was confined.
    pub sandbox: SandboxLevel,
    /// The toolset that it was asked for within.
    pub toolset: Option<ToolsetId>,
}

impl From<&RunRow> for RunSummary {
    fn from(row: &RunRow) -> Self {
        Self {
            id: row.id,
            tool: row.tool.clone(),
            tool_name: row.tool_name.clone(),
            version: row.version,
            principal: row.principal.clone(),
            client: row.client.clone(),
            door: row.door.clone(),
            instance: row.instance.clone(),
            queued_at: row.queued_at,
            started_at: row.started_at,
            ended_at: row.ended_at,
            ending: row.ending.clone(),
            is_error: row.is_error,
            cpu_ms: row.cpu_ms,
            peak_memory_bytes: row.peak_memory_bytes,
            sandbox: row.sandbox,
            toolset: row.toolset.clone(),
        }
    }
}

impl RunFilter {
    fn matches(&self, run: &RunSummary) -> bool {
        let state = match self.state {
            None => true,
            Some(RunState::Running) => run.ending.is_none(),
            Some(RunState::Ended(word)) => run.ending.as_ref().is_some_and(|ending| ending.as_str() == word),
        };
        state
            && self.principal.as_ref().is_none_or(|principal| *principal == run.principal)
            && self.toolset.as_ref().is_none_or(|toolset| Some(toolset) == run.toolset.as_ref())
            && self.tool_name.as_ref().is_none_or(|name| *name == run.tool_name)
            && self.before.is_none_or(|before| run.id < before)
            && self.since.is_none_or(|since| run.id.to_string() >= first_id(since))
    }
}

/// Selects summaries; every condition names all of `$1` principal, `$2` tool name, `$4` ending (`$5` is the toolset), and compares
/// literally what its index needs.
macro_rules! summaries {
    ($store:ident, $of:ident, $condition:literal) => {
        sqlx::query_as!(
            SummaryColumns,
            r#"SELECT id, tool, tool_name, version, principal, client, door, instance, queued_at, started_at, ended_at,
                      ending, ending_detail, is_error AS "is_error!: bool", cpu_ms, peak_memory_bytes, sandbox, toolset
               FROM runs WHERE id < $3 AND id >= $7 AND ($5 IS NULL OR toolset = $5) AND "#
                + $condition
                + " ORDER BY id DESC LIMIT $6",
            $of.principal,
            $of.tool_name,
            $of.before,
            $of.ending,
            $of.toolset,
            $of.limit,
            $of.since
        )
        .fetch_all($store.read())
        .await?
    };
}

/// A filter as the statements take it.
struct Bound<'a> {
    principal: Option<&'a str>,
    tool_name: Option<&'a str>,
    toolset: Option<&'a str>,
    before: String,
    ending: Option<&'a str>,
    limit: i64,
    since: String,
}

impl Store {
    /// Records a run that was asked for. It is found at once and on disk within some 50 ms; where it must be there
    /// before anybody hears of it (an asynchronous run), [`Store::flush_runs`] follows.
    ///
    /// # Errors
    /// [`StoreError::Busy`] when too many rows wait for the disk: the run must not start.
    pub fn start_run(&self, row: RunRow) -> Result<(), StoreError> {
        self.recorder.begin(row)
    }

    /// Records a newer state of a run: that its process has started, or all that is known at its end. Never refused.
    pub fn finish_run(&self, row: RunRow) {
        self.recorder.put(row);
    }

    /// Returns when every run recorded so far is on disk.
    ///
    /// # Errors
    /// [`StoreError::Database`]; the rows then still wait, and are tried again.
    pub async fn flush_runs(&self) -> Result<(), StoreError> {
        self.recorder.flush().await
    }

    /// The run with this id.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Corrupt`].
    pub async fn get_run(&self, id: RunId) -> Result<Option<RunRow>, StoreError> {
        // A row leaves the recorder only after it was committed, so one of the two has it.
        if let Some(row) = self.recorder.get(id) {
            return Ok(Some(Arc::unwrap_or_clone(row)));
        }
        let id = id.to_string();
        sqlx::query_as!(
            RunColumns,
            r#"SELECT id, tool, tool_name, version, principal, client, door, instance, queued_at, started_at, ended_at,
                      ending, ending_detail, is_error AS "is_error!: bool", cpu_ms, peak_memory_bytes, sandbox, coerced,
                      arguments, result, stdout, stderr, log, error, idempotency, tries, parent, network, toolset
               FROM runs WHERE id = $1"#,
            id
        )
        .fetch_optional(self.read())
        .await?
        .map(RunRow::try_from)
        .transpose()
    }

    /// The newest run of this caller's key.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn run_by_idempotency(&self, key: &str) -> Result<Option<RunId>, StoreError> {
        let waiting = self.recorder.all();
        let waiting = waiting.iter().filter(|row| row.idempotency.as_deref() == Some(key)).map(|row| row.id).max();
        let stored =
            sqlx::query_scalar!(r#"SELECT id AS "id!" FROM runs WHERE idempotency = $1 ORDER BY id DESC LIMIT 1"#, key);
        let stored = stored.fetch_optional(self.read()).await?.map(|id| run_id(&id)).transpose()?;
        Ok(waiting.max(stored))
    }

    /// Runs, newest first. The next page is asked for with the last one's id as `before`.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Corrupt`].
    pub async fn list_runs(&self, filter: &RunFilter, limit: u32) -> Result<Vec<RunSummary>, StoreError> {
        let waiting: Vec<RunSummary> = self.recorder.all().iter().map(|row| RunSummary::from(&**row)).collect();
        // Some of the rows on disk are older states of those that wait, and may drop out.
        let stored = self.stored_runs(filter, i64::from(limit) + waiting.len() as i64).await?;
        let mut runs: HashMap<RunId, RunSummary> = stored.into_iter().map(|run| (run.id, run)).collect();
        for run in waiting {
            // The state on disk is the newer one when the run was finished and written since `waiting` was read.
            if runs.get(&run.id).is_none_or(|stored| stored.ending.is_none()) {
                runs.insert(run.id, run);
            }
        }
        let mut runs: Vec<RunSummary> = runs.into_values().filter(|run| filter.matches(run)).collect();
        runs.sort_unstable_by_key(|run| std::cmp::Reverse(run.id));
        runs.truncate(limit as usize);
        Ok(runs)
    }

    async fn stored_runs(&self, filter: &RunFilter, limit: i64) -> Result<Vec<RunSummary>, StoreError> {
        let of = Bound {
            principal: filter.principal.as_ref().map(|principal| principal.0.as_str()),
            tool_name: filter.tool_name.as_deref(),
            toolset: filter.toolset.as_ref().map(|toolset| toolset.0.as_str()),
            before: filter.before.map_or_else(|| "~".to_owned(), |id| id.to_string()), // `~` follows every id
            ending: match filter.state {
                Some(RunState::Ended(word)) => Some(word),
                _ => None,
            },
            limit,
            since: filter.since.map(first_id).unwrap_or_default(),
        };
        let is_running = filter.state == Some(RunState::Running);
        let rows = match (is_running, of.tool_name, of.ending, of.principal) {
            (true, ..) => summaries!(
                self,
                of,
                "ending IS NULL AND $4 IS NULL AND ($1 IS NULL OR principal = $1) AND ($2 IS NULL OR tool_name = $2)"
            ),
            (_, Some(_), Some(_), _) => {
                summaries!(self, of, "tool_name = $2 AND ending = $4 AND ($1 IS NULL OR principal = $1)")
            }
            (_, Some(_), None, _) => {
                summaries!(self, of, "tool_name = $2 AND $4 IS NULL AND ($1 IS NULL OR principal = $1)")
            }
            (_, None, Some(_), _) => {
                summaries!(self, of, "ending = $4 AND $2 IS NULL AND ($1 IS NULL OR principal = $1)")
            }
            (_, None, None, Some(_)) => summaries!(self, of, "principal = $1 AND $2 IS NULL AND $4 IS NULL"),
            (_, None, None, None) => summaries!(self, of, "$1 IS NULL AND $2 IS NULL AND $4 IS NULL"),
        };
        rows.into_iter().map(RunSummary::try_from).collect()
    }
}

/// The least id of a run that was asked for then: ids are UUIDv7, which begin with the time.
fn first_id(since: Timestamp) -> String {
    let time = since.0.clamp(0, (1 << 48) - 1);
    format!("{:08x}-{:04x}-", time >> 16, time & 0xffff)
}
