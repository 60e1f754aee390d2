//! What happens to run rows besides running: the runs of dead processes end, old ones are forgotten.

use super::run_rows::SummaryColumns;
use super::{RunSummary, Store, StoreError};
use crate::model::{Ending, Timestamp};

/// How many rows one transaction deletes, so that other writers get their turn.
const ROWS_A_TRANSACTION: i64 = 500;

impl Store {
    /// Ends the unended runs of these instances as interrupted, and returns them as they are now, oldest first.
    /// Callers make sure that those processes are gone (their lock files are free).
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Corrupt`].
    pub async fn interrupt_runs(&self, instances: &[String]) -> Result<Vec<RunSummary>, StoreError> {
        let now = self.clock.now();
        let instances =
            serde_json::to_string(instances).map_err(|source| StoreError::Encode { what: "instance ids", source })?;
        let mut transaction = self.write().await?;
        let rows = sqlx::query_as!(
            SummaryColumns,
            r#"SELECT id, tool, tool_name, version, principal, client, door, instance, queued_at, started_at, ended_at,
                      ending, ending_detail, is_error AS "is_error!: bool", cpu_ms, peak_memory_bytes, sandbox, toolset
               FROM runs WHERE ending IS NULL AND instance IN (SELECT value FROM json_each($1)) ORDER BY id"#,
            instances
        )
        .fetch_all(&mut *transaction)
        .await?;
        let interrupted = Ending::Interrupted.as_str();
        sqlx::query!(
            "UPDATE runs SET ending = $2, ended_at = $3, is_error = 1
             WHERE ending IS NULL AND instance IN (SELECT value FROM json_each($1))",
            instances,
            interrupted,
            now.0
        )
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await?;
        rows.into_iter()
            .map(|row| {
                let run = RunSummary::try_from(row)?;
                Ok(RunSummary { ending: Some(Ending::Interrupted), ended_at: Some(now), is_error: true, ..run })
            })
            .collect()
    }

    /// Deletes the runs that ended before this time; says how many.
    ///
    /// # Errors
    /// [`StoreError::Database`]; what was deleted until then stays so.
    pub async fn delete_runs_ended_before(&self, time: Timestamp) -> Result<u64, StoreError> {
        let mut deleted = 0;
        loop {
            let done = sqlx::query!(
                "DELETE FROM runs WHERE id IN (SELECT id FROM runs WHERE ended_at < $1 LIMIT $2)",
                time.0,
                ROWS_A_TRANSACTION
            )
            .execute(&self.connections.writer)
            .await?;
            deleted += done.rows_affected();
            if done.rows_affected() == 0 {
                return Ok(deleted);
            }
        }
    }

    /// Deletes the oldest ended runs until not many more than `keep` are left; says how many.
    ///
    /// # Errors
    /// [`StoreError::Database`]; what was deleted until then stays so.
    pub async fn delete_runs_beyond(&self, keep: u32) -> Result<u64, StoreError> {
        let newest_beyond = sqlx::query_scalar!("SELECT id FROM runs ORDER BY id DESC LIMIT 1 OFFSET $1", keep)
            .fetch_optional(self.read())
            .await?;
        let Some(newest_beyond) = newest_beyond else { return Ok(0) };
        let mut deleted = 0;
        loop {
            let done = sqlx::query!(
                "DELETE FROM runs WHERE id IN
                 (SELECT id FROM runs WHERE id <= $1 AND ending IS NOT NULL ORDER BY id LIMIT $2)",
                newest_beyond,
                ROWS_A_TRANSACTION
            )
            .execute(&self.connections.writer)
            .await?;
            deleted += done.rows_affected();
            if done.rows_affected() == 0 {
                return Ok(deleted);
            }
        }
    }

    /// Forgets the results (not the rows) of runs that ended before this time; says how many.
    ///
    /// # Errors
    /// [`StoreError::Database`]; what was forgotten until then stays so.
    pub async fn forget_results_ended_before(&self, time: Timestamp) -> Result<u64, StoreError> {
        let mut forgotten = 0;
        loop {
            let done = sqlx::query!(
                "UPDATE runs SET result = NULL WHERE id IN
                 (SELECT id FROM runs WHERE result IS NOT NULL AND ended_at < $1 LIMIT $2)",
                time.0,
                ROWS_A_TRANSACTION
            )
            .execute(&self.connections.writer)
            .await?;
            forgotten += done.rows_affected();
            if done.rows_affected() == 0 {
                return Ok(forgotten);
            }
        }
    }
}
