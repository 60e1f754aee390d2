//! Everything that outlives the process: the only SQL of the program, on one SQLite file in the data directory.
//!
//! One use case is one method and one transaction. Writes go through one connection, reads through others that can't
//! write. Signatures show the words of the domain, never the database's, so that a second backend fits behind them.
//! It knows no rules of trust and runs nothing: who may ask for what is decided above.

mod approvals;
mod audit;
mod audit_chain;
mod audit_verify;
mod catalog;
mod content_reads;
mod content_rows;
mod contents;
mod environments;
mod error;
mod identity;
mod instances;
mod open;
mod recorder;
mod reviews;
mod rows;
mod run_counts;
mod run_rows;
mod run_upkeep;
mod runs;
mod secrets;
mod sign_in;
mod state;
mod tools;
mod toolsets;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use sqlx::{Sqlite, Transaction};

use crate::clock::Clock;

pub use approvals::{Approved, NewApproval, Seal};
pub use audit::{AuditEntry, AuditFilter, AuditRow};
pub use audit_verify::{AuditFault, AuditHead, NotedHead};
pub use catalog::{FoundTool, FoundTools, ToolSearch, VersionSummary};
pub use content_reads::{ContentNews, ContentSearch, ContentVersionSummary, FoundContent, FoundContents};
pub use contents::{NewContent, NewContentVersion, NewFile, Subject};
pub use error::StoreError;
pub use identity::{Hash, NewToken, Principal, PrincipalKind, Token};
pub use instances::Instance;
pub use run_counts::{CountFilter, RunCount, SlotWidth, ToolCount};
pub use runs::{RunFilter, RunState, RunSummary};
pub use secrets::{SealedKey, SealedSecret};
pub use sign_in::{SessionEntry, SessionRow};
pub use state::StateOwner;
pub use tools::{NewTool, NewVersion, Serving};
pub use toolsets::{ToolsetMember, ToolsetWrite};

/// The store of one data directory. Clones share its connections.
#[derive(Clone, Debug)]
pub struct Store {
    connections: Arc<open::Connections>,
    recorder: Arc<recorder::Recorder>,
    clock: Clock,
    dir: PathBuf,
    audit_key: Arc<OnceLock<audit_chain::AuditKey>>,
}

impl Store {
    /// Opens the database `omniforge.db` in this directory; makes both where they don't exist. Brings an older
    /// database to this program's schema, after writing a copy of it beside it. Several processes may do so at once.
    ///
    /// Nothing is recorded in the audit log before [`Store::use_audit_key`].
    ///
    /// Must be called on a tokio runtime, where the task that records runs then lives until [`Store::close`].
    ///
    /// # Errors
    /// [`StoreError::Newer`] for the database of a newer program; [`StoreError::DataDirectory`],
    /// [`StoreError::Migration`] or [`StoreError::Database`] when it can't be opened.
    pub async fn open(dir: &Path, clock: Clock) -> Result<Self, StoreError> {
        let connections = Arc::new(open::open(dir).await?);
        let recorder = Arc::new(recorder::Recorder::start(connections.writer.clone()));
        Ok(Self { connections, recorder, clock, dir: dir.to_owned(), audit_key: Arc::default() })
    }

    /// Writes the run rows that wait, and closes the file. Every later use of the store fails.
    ///
    /// # Errors
    /// [`StoreError::Database`] when rows could not be written; the file is closed nonetheless.
    pub async fn close(&self) -> Result<(), StoreError> {
        let recorded = self.recorder.stop().await;
        self.connections.readers.close().await;
        self.connections.watcher.close().await;
        self.connections.writer.close().await;
        recorded
    }

    /// A number that differs from an earlier answer when any process has written since. Costs no disk access.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn data_version(&self) -> Result<i64, StoreError> {
        Ok(sqlx::query_scalar("PRAGMA data_version").fetch_one(&self.connections.watcher).await?)
    }

    /// The clock that the store was opened with.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Starts a writing transaction. It takes the write lock at once: one that starts by reading could not wait for
    /// another process's write, SQLite would refuse it.
    async fn write(&self) -> Result<Transaction<'static, Sqlite>, StoreError> {
        Ok(self.connections.writer.begin_with("BEGIN IMMEDIATE").await?)
    }

    fn read(&self) -> &sqlx::SqlitePool {
        &self.connections.readers
    }
}
