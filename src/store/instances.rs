//! The processes that use the data directory. Whether one still lives is told by its lock file, not by its row.

use super::{Store, StoreError};
use crate::model::Timestamp;

/// A process on the data directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// Its id.
    pub id: String,
    /// Its process id, in its own namespace.
    pub pid: i64,
    /// The machine it runs on, in words.
    pub host: String,
    /// The name of its lock file in the data directory.
    pub lock_file: String,
    /// When it started.
    pub started_at: Timestamp,
}

impl Store {
    /// Registers a process.
    ///
    /// # Errors
    /// [`StoreError::Database`], also when the id is taken.
    pub async fn register_instance(&self, instance: &Instance) -> Result<(), StoreError> {
        sqlx::query!(
            "INSERT INTO instances (id, pid, host, lock_file, started_at) VALUES ($1, $2, $3, $4, $5)",
            instance.id,
            instance.pid,
            instance.host,
            instance.lock_file,
            instance.started_at.0
        )
        .execute(&self.connections.writer)
        .await?;
        Ok(())
    }

    /// Every registered process, oldest first.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn list_instances(&self) -> Result<Vec<Instance>, StoreError> {
        let rows = sqlx::query!("SELECT id, pid, host, lock_file, started_at FROM instances ORDER BY started_at, id")
            .fetch_all(self.read())
            .await?;
        Ok(rows
            .into_iter()
            .map(|row| Instance {
                id: row.id,
                pid: row.pid,
                host: row.host,
                lock_file: row.lock_file,
                started_at: Timestamp(row.started_at),
            })
            .collect())
    }

    /// Forgets a process; says whether it was registered.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn remove_instance(&self, id: &str) -> Result<bool, StoreError> {
        let done = sqlx::query!("DELETE FROM instances WHERE id = $1", id).execute(&self.connections.writer).await?;
        Ok(done.rows_affected() == 1)
    }
}
