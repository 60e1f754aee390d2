//! Opens the database file: one process at a time migrates it, after a backup, and never a newer one.

use std::fs::{DirBuilder, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sqlx::migrate::Migrator;
use sqlx::pool::PoolOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, SqliteConnection};

use super::StoreError;

static MIGRATOR: Migrator = sqlx::migrate!("./migrations");

const DATABASE_FILE: &str = "omniforge.db";
const LOCK_FILE: &str = "omniforge.db.migration-lock";
/// Stands beside the database while the chain of its audit log has yet to begin.
pub(super) const CHAIN_PENDING: &str = "omniforge.db.audit-begins";
const READERS: u32 = 4;
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The connections to one database file.
#[derive(Debug)]
pub(super) struct Connections {
    /// The only connection that writes.
    pub writer: SqlitePool,
    /// Connections that can't write.
    pub readers: SqlitePool,
    /// One connection that never writes, so that its `data_version` tells of everybody's writes.
    pub watcher: SqlitePool,
}

/// Opens the database in this directory, at this program's schema.
pub(super) async fn open(dir: &Path) -> Result<Connections, StoreError> {
    let path = dir.join(DATABASE_FILE);
    let lock = {
        let dir = dir.to_owned();
        tokio::task::spawn_blocking(move || prepare(&dir))
            .await
            .expect("preparing the data directory does not panic")?
    };
    migrate(&path).await?;
    let writer = pool(options(&path), 1).await?;
    drop(lock);
    let read_only = options(&path).pragma("query_only", "ON");
    let readers = pool(read_only.clone(), READERS).await?;
    let watcher = pool(read_only, 1).await?;
    Ok(Connections { writer, readers, watcher })
}

/// Makes the directory and the (empty) database file, private to this user, and takes the migration lock: SQLite's
/// own locks don't span several migrations, the backup before them and the switch to WAL.
fn prepare(dir: &Path) -> Result<File, StoreError> {
    let failed = |action: &'static str, path: PathBuf| {
        move |source: std::io::Error| StoreError::DataDirectory { action, path, source }
    };
    DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed("create", dir.to_owned()))?;
    let private = |path: &Path| {
        OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(path)
            .map_err(failed("write", path.to_owned()))
    };
    private(&dir.join(DATABASE_FILE))?;
    let lock_path = dir.join(LOCK_FILE);
    let lock = private(&lock_path)?;
    lock.lock().map_err(failed("lock", lock_path))?;
    Ok(lock)
}

fn options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Normal)
        .foreign_keys(true)
        .busy_timeout(BUSY_TIMEOUT)
        .disable_statement_logging()
}

async fn pool(options: SqliteConnectOptions, connections: u32) -> Result<SqlitePool, StoreError> {
    let pool = PoolOptions::new()
        .max_connections(connections)
        .min_connections(u32::from(connections == 1))
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(false)
        .connect_with(options)
        .await?;
    Ok(pool)
}

/// Brings the database to this program's schema.
async fn migrate(path: &Path) -> Result<(), StoreError> {
    // Migrations that rebuild a table need foreign keys off; they are checked at the end.
    let mut connection = options(path).foreign_keys(false).connect().await?;
    let found = schema(&mut connection).await?;
    let known = MIGRATOR.iter().map(|migration| migration.version).max().unwrap_or(0);
    if found > known {
        return Err(StoreError::Newer { path: path.to_owned(), found, known });
    }
    let failed = |source: Box<dyn std::error::Error + Send + Sync>| StoreError::Migration {
        path: path.to_owned(),
        from: found,
        to: known,
        source,
    };
    if !is_chained(&mut connection).await? {
        let pending = path.with_file_name(CHAIN_PENDING);
        std::fs::write(&pending, "").map_err(|source| StoreError::DataDirectory {
            action: "write",
            path: pending,
            source,
        })?;
    }
    if 0 < found && found < known {
        back_up(&mut connection, path, found).await?;
    }
    MIGRATOR.run(&mut connection).await.map_err(|error| failed(Box::new(error)))?;
    if found < known {
        let broken = sqlx::query("PRAGMA foreign_key_check").fetch_all(&mut connection).await?;
        if !broken.is_empty() {
            return Err(failed(format!("{} rows refer to rows that do not exist", broken.len()).into()));
        }
    }
    connection.close().await?;
    Ok(())
}

/// Whether the audit log is a chain already.
async fn is_chained(connection: &mut SqliteConnection) -> Result<bool, StoreError> {
    let seals = sqlx::query_scalar("SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'audit_seals'");
    Ok(seals.fetch_one(connection).await.map(|tables: i64| tables > 0)?)
}

/// The number of the newest migration that the database has; 0 for an empty one.
async fn schema(connection: &mut SqliteConnection) -> Result<i64, StoreError> {
    let migrated: i64 =
        sqlx::query_scalar("SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = '_sqlx_migrations'")
            .fetch_one(&mut *connection)
            .await?;
    if migrated == 0 {
        return Ok(0);
    }
    Ok(sqlx::query_scalar("SELECT COALESCE(max(version), 0) FROM _sqlx_migrations").fetch_one(connection).await?)
}

/// Writes a copy beside the database, named by its schema. It appears whole or not at all.
async fn back_up(connection: &mut SqliteConnection, path: &Path, schema: i64) -> Result<(), StoreError> {
    let backup = path.with_file_name(format!("{DATABASE_FILE}.backup-{schema}"));
    let part = path.with_file_name(format!("{DATABASE_FILE}.backup-{schema}.part"));
    let failed = |source| StoreError::DataDirectory { action: "write the backup", path: backup.clone(), source };
    // SQLite writes into an empty file that exists, and so keeps its mode.
    let file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&part).map_err(failed)?;
    let target = part.to_str().ok_or_else(|| failed(std::io::Error::other("the path is not UTF-8")))?;
    sqlx::query("VACUUM INTO $1").bind(target).execute(connection).await?;
    tokio::task::spawn_blocking(move || file.sync_all())
        .await
        .expect("syncing a file does not panic")
        .map_err(failed)?;
    std::fs::rename(&part, &backup).map_err(failed)
}
