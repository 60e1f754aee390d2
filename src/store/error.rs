//! What can go wrong in the store.

use std::path::PathBuf;

use crate::model::{PrincipalId, VersionNumber};

/// Why the store did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The data directory can't be made or used.
    #[error("cannot {action} `{}`", path.display())]
    DataDirectory {
        /// What was tried, such as `create`.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// There is no key for the audit log.
    #[error("nothing can be recorded before the audit log has its key")]
    NoAuditKey,
    /// The database was written by a newer program.
    #[error(
        "the database `{}` has schema {found}, this program knows schemas up to {known}; \
         start the newer program, or restore the backup that it wrote beside the database",
        path.display()
    )]
    Newer {
        /// The database file.
        path: PathBuf,
        /// Its schema's number.
        found: i64,
        /// The newest number that this program knows.
        known: i64,
    },
    /// The database can't be brought to this program's schema.
    #[error("cannot bring the database `{}` to schema {to}; it stays at schema {from}", path.display())]
    Migration {
        /// The database file.
        path: PathBuf,
        /// Its schema's number.
        from: i64,
        /// The number that was wanted.
        to: i64,
        /// What failed.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Something else has this name.
    #[error("the name is taken")]
    NameTaken {
        /// Whose that is.
        owner: PrincipalId,
    },
    /// The tool or content has moved on since the caller read it.
    #[error("it has changed meanwhile: its newest version is {latest}, not {expected}; read it again")]
    VersionConflict {
        /// What the caller took for the newest version.
        expected: VersionNumber,
        /// What it is.
        latest: VersionNumber,
    },
    /// No such tool (any more).
    #[error("there is no such tool")]
    NoSuchTool,
    /// No such content (any more).
    #[error("there is no such content")]
    NoSuchContent,
    /// No such toolset (any more).
    #[error("there is no such toolset")]
    NoSuchToolset,
    /// Tokens are limited to the toolset.
    #[error("{tokens} token(s) are limited to the toolset; revoke them first")]
    ToolsetInUse {
        /// How many.
        tokens: i64,
    },
    /// The tool has no version of this number.
    #[error("the tool has no version {number}")]
    NoSuchVersion {
        /// The number asked for.
        number: VersionNumber,
    },
    /// More run rows wait for the disk than may.
    #[error("too many runs wait to be recorded; the disk is slow or full")]
    Busy,
    /// A stored value is none that this program writes.
    #[error("the database holds a bad {what}: {problem}")]
    Corrupt {
        /// Which value.
        what: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// A value can't be written as JSON.
    #[error("cannot write the {what} as JSON")]
    Encode {
        /// Which value.
        what: &'static str,
        /// Why not.
        #[source]
        source: serde_json::Error,
    },
    /// SQLite refused or failed.
    #[error("the database failed")]
    Database {
        /// What it said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl From<sqlx::Error> for StoreError {
    fn from(source: sqlx::Error) -> Self {
        Self::Database { source: Box::new(source) }
    }
}

/// Makes the error for a stored value that can't be read.
pub(super) fn corrupt(what: &'static str, problem: impl ToString) -> StoreError {
    StoreError::Corrupt { what, problem: problem.to_string() }
}
