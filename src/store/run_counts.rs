//! Counts of runs for charts and lists: by time, by tool, by how long they took. Triggers keep them.

use super::{Store, StoreError};
use crate::model::{PrincipalId, Timestamp};

/// How wide the slots are that runs are counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotWidth {
    /// Five minutes; kept for two days.
    Minutes,
    /// Half an hour; kept as long as runs are.
    HalfHours,
    /// Three hours; kept as long as runs are.
    Hours,
}

impl SlotWidth {
    /// In milliseconds.
    pub fn millis(self) -> i64 {
        match self {
            Self::Minutes => 300_000,
            Self::HalfHours => 1_800_000,
            Self::Hours => 10_800_000,
        }
    }
}

/// Which runs are counted; what is `None` is not asked for.
#[derive(Clone, Debug)]
pub struct CountFilter {
    /// Whose runs.
    pub principal: Option<PrincipalId>,
    /// Runs of tools of this name.
    pub tool_name: Option<String>,
    /// Runs that were asked for in the slot of this time, or later.
    pub since: Timestamp,
    /// How wide the slots are.
    pub width: SlotWidth,
}

/// Runs of one slot that took about as long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunCount {
    /// When the slot begins.
    pub at: Timestamp,
    /// They took at least this.
    pub from_ms: i64,
    /// How many ended.
    pub calls: i64,
    /// How many of them were errors.
    pub failures: i64,
}

/// Runs of one tool that took about as long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCount {
    /// The tool's name.
    pub tool_name: String,
    /// They took at least this.
    pub from_ms: i64,
    /// How many ended.
    pub calls: i64,
    /// How many of them were errors.
    pub failures: i64,
}

impl Store {
    /// Counts by slot and by how long runs took, oldest first.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn count_runs(&self, filter: &CountFilter) -> Result<Vec<RunCount>, StoreError> {
        let principal = filter.principal.as_ref().map(|principal| principal.0.as_str());
        let tool_name = filter.tool_name.as_deref();
        let width = filter.width.millis();
        let since = filter.since.0 - filter.since.0.rem_euclid(width);
        let rows = sqlx::query!(
            r#"SELECT at, from_ms, SUM(calls) AS "calls!: i64", SUM(failures) AS "failures!: i64" FROM run_counts
               WHERE width = $1 AND at >= $2 AND ($3 IS NULL OR principal = $3) AND ($4 IS NULL OR tool_name = $4)
               GROUP BY at, from_ms ORDER BY at, from_ms"#,
            width,
            since,
            principal,
            tool_name
        )
        .fetch_all(self.read())
        .await?;
        let count = |at, from_ms, calls, failures| RunCount { at: Timestamp(at), from_ms, calls, failures };
        Ok(rows.into_iter().map(|row| count(row.at, row.from_ms, row.calls, row.failures)).collect())
    }

    /// Counts by tool and by how long runs took.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn count_runs_by_tool(&self, filter: &CountFilter) -> Result<Vec<ToolCount>, StoreError> {
        let principal = filter.principal.as_ref().map(|principal| principal.0.as_str());
        let tool_name = filter.tool_name.as_deref();
        let width = filter.width.millis();
        let since = filter.since.0 - filter.since.0.rem_euclid(width);
        let rows = sqlx::query!(
            r#"SELECT tool_name, from_ms AS "from_ms!: i64", SUM(calls) AS "calls!: i64",
                      SUM(failures) AS "failures!: i64"
               FROM run_counts
               WHERE width = $1 AND at >= $2 AND ($3 IS NULL OR principal = $3) AND ($4 IS NULL OR tool_name = $4)
               GROUP BY tool_name, from_ms ORDER BY tool_name, from_ms"#,
            width,
            since,
            principal,
            tool_name
        )
        .fetch_all(self.read())
        .await?;
        let count = |tool_name, from_ms, calls, failures| ToolCount { tool_name, from_ms, calls, failures };
        Ok(rows.into_iter().map(|row| count(row.tool_name, row.from_ms, row.calls, row.failures)).collect())
    }

    /// Forgets counts that no chart shows any more: the narrow ones before the first time, all before the second.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn forget_counts_before(&self, narrow: Timestamp, all: Timestamp) -> Result<u64, StoreError> {
        let width = SlotWidth::Minutes.millis();
        let done =
            sqlx::query!("DELETE FROM run_counts WHERE (width = $1 AND at < $2) OR at < $3", width, narrow.0, all.0)
                .execute(&self.connections.writer)
                .await?;
        Ok(done.rows_affected())
    }
}
