//! Opening: modes, backups, migrations with rows, newer databases, many openers at once.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use omniforge::clock::Clock;
use omniforge::model::ToolId;
use omniforge::store::{Store, StoreError, ToolSearch};
use sqlx::migrate::Migrator;
use sqlx::{Connection, Row};
use tempfile::TempDir;

use super::{NOW, raw};

const DIRECTORY_OF_CHILD: &str = "OMNIFORGE_TEST_STORE_DIRECTORY";

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

async fn open(dir: &Path) -> Result<Store, StoreError> {
    Store::open(dir, Clock::manual(NOW)).await
}

/// A database of the first release, with rows, made by the first migration alone.
async fn first_release(dir: &Path) {
    let migrations = TempDir::new().unwrap();
    let first = "0001_initial.sql";
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations").join(first);
    std::fs::copy(source, migrations.path().join(first)).unwrap();
    let mut connection = raw(dir).await;
    Migrator::new(migrations.path()).await.unwrap().run(&mut connection).await.unwrap();
    let definition = serde_json::to_string(&super::definition("Adds value-added tax.")).unwrap();
    sqlx::raw_sql(
        "INSERT INTO principals VALUES ('p', 'owner', 'person', 1);
         INSERT INTO tools VALUES ('t', 'add_vat', 'add_vat', 'p', 1, 1, 2, 5, 5), ('u', 'other', 'other', 'p', 0, NULL, 1, 6, 6);
         UPDATE meta SET catalog_generation = 3, catalog_updated_at = 6;",
    )
    .execute(&mut connection)
    .await
    .unwrap();
    for (tool, number, description) in [("t", 1, "An old text."), ("t", 2, "Adds value-added tax."), ("u", 1, "Else.")]
    {
        sqlx::query(
            "INSERT INTO tool_versions VALUES ($1, $2, 'T', $3, 'python', '[\"money\"]', 'f', 5, 'p', 'create', $4)",
        )
        .bind(tool)
        .bind(number)
        .bind(description)
        .bind(&definition)
        .execute(&mut connection)
        .await
        .unwrap();
    }
    connection.close().await.unwrap();
}

#[tokio::test]
async fn a_fresh_directory_is_private_and_needs_no_backup() {
    let parent = TempDir::new().unwrap();
    let dir = parent.path().join("a/b");
    open(&dir).await.unwrap().close().await.unwrap();
    assert_eq!(mode(&dir), 0o700);
    assert_eq!(mode(&dir.join("omniforge.db")), 0o600);
    open(&dir).await.unwrap().close().await.unwrap();
    let names: Vec<_> = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!names.iter().any(|name| name.to_string_lossy().contains("backup")), "{names:?}");
}

#[tokio::test]
async fn a_database_with_rows_is_migrated_after_a_backup() {
    let dir = TempDir::new().unwrap();
    first_release(dir.path()).await;
    let store = open(dir.path()).await.unwrap();

    let (tool, id) = (store.get_tool_by_name("add_vat").await.unwrap().unwrap(), ToolId("t".to_owned()));
    assert_eq!((&tool.id, tool.serving_version, tool.latest_version), (&id, Some(1), 2));
    assert_eq!(store.list_versions(&id).await.unwrap().len(), 2);
    let search = |text: &str| ToolSearch { text: text.to_owned(), limit: 10, ..ToolSearch::default() };
    let found = store.search_tools(&search("value-added")).await.unwrap();
    assert_eq!(found.tools.iter().map(|found| found.tool.name.as_str()).collect::<Vec<_>>(), ["add_vat"]);
    assert_eq!(store.search_tools(&search("old text")).await.unwrap().total, 0, "only the latest version is searched");

    let backup = dir.path().join("omniforge.db.backup-1");
    assert_eq!(mode(&backup), 0o600);
    let mut copy = {
        use sqlx::ConnectOptions;
        sqlx::sqlite::SqliteConnectOptions::new().filename(&backup).connect().await.unwrap()
    };
    let row = sqlx::query("SELECT (SELECT count(*) FROM tool_versions), (SELECT max(version) FROM _sqlx_migrations)")
        .fetch_one(&mut copy)
        .await
        .unwrap();
    assert_eq!((row.get::<i64, _>(0), row.get::<i64, _>(1)), (3, 1));
    assert!(!dir.path().join("omniforge.db.backup-1.part").exists());
}

#[tokio::test]
async fn a_migration_that_fails_changes_nothing_and_says_so() {
    let dir = TempDir::new().unwrap();
    first_release(dir.path()).await;
    let mut connection = raw(dir.path()).await;
    sqlx::query("CREATE TABLE tool_search (mine TEXT)").execute(&mut connection).await.unwrap();
    let error = open(dir.path()).await.unwrap_err();
    assert!(matches!(error, StoreError::Migration { from: 1, .. }), "{error}");
    sqlx::query("DROP TABLE tool_search").execute(&mut connection).await.unwrap();
    open(dir.path()).await.unwrap();
}

#[tokio::test]
async fn a_newer_database_is_refused_and_left_alone() {
    let dir = TempDir::new().unwrap();
    open(dir.path()).await.unwrap().close().await.unwrap();
    let mut connection = raw(dir.path()).await;
    sqlx::query("INSERT INTO _sqlx_migrations VALUES (9999, 'later', CURRENT_TIMESTAMP, 1, x'00', 0)")
        .execute(&mut connection)
        .await
        .unwrap();
    let error = open(dir.path()).await.unwrap_err();
    assert!(matches!(error, StoreError::Newer { found: 9999, .. }), "{error}");
    assert!(error.to_string().contains("start the newer program"), "{error}");
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused() {
    let dir = TempDir::new().unwrap();
    std::fs::write(dir.path().join("omniforge.db"), "not a database, but long enough to be read as one".repeat(50))
        .unwrap();
    assert!(matches!(open(dir.path()).await.unwrap_err(), StoreError::Database { .. }));
}

#[test]
fn many_threads_open_the_same_old_database() {
    let dir = TempDir::new().unwrap();
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime().block_on(first_release(dir.path()));
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| runtime().block_on(async { open(dir.path()).await.unwrap().close().await.unwrap() }));
        }
    });
}

/// Not a test of its own: what the processes of the next one do.
#[tokio::test]
async fn opens_as_a_child() {
    // Started without the variable, as any test, it has nothing to do.
    let Some(dir) = std::env::var_os(DIRECTORY_OF_CHILD) else { return };
    let store = Store::open(Path::new(&dir), Clock::system()).await.unwrap();
    store.use_audit_key([7; 32]).await.unwrap();
    store.append_audit(&omniforge::store::AuditEntry::default()).await.unwrap();
    store.close().await.unwrap();
}

#[tokio::test]
async fn many_processes_open_a_fresh_directory() {
    let dir = TempDir::new().unwrap();
    let children: Vec<_> = (0..5)
        .map(|_| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "store_contract::opening::opens_as_a_child"])
                .env(DIRECTORY_OF_CHILD, dir.path())
                .stdout(std::process::Stdio::piped())
                .stderr(std::process::Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    let store = open(dir.path()).await.unwrap();
    assert_eq!(store.list_audit(&Default::default(), 100).await.unwrap().len(), 5);
}
