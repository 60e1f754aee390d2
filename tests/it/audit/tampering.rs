//! Every kind of hand in the file, by somebody who may drop triggers but has no key.

use std::path::Path;

use sqlx::migrate::Migrator;
use sqlx::{ConnectOptions as _, Connection as _, SqliteConnection};

use super::*;

/// Changes the database past the program.
pub(super) async fn edit(dir: &Path, statements: &[&str]) {
    let mut connection = connect(dir).await;
    for statement in statements {
        sqlx::raw_sql(sqlx::AssertSqlSafe((*statement).to_owned())).execute(&mut connection).await.unwrap();
    }
    connection.close().await.unwrap();
}

async fn connect(dir: &Path) -> SqliteConnection {
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(dir.join("omniforge.db")).create_if_missing(true);
    options.connect().await.unwrap()
}

/// A database as it was before the log was a chain, with these subjects in it.
pub(super) async fn before_the_chain(dir: &Path, subjects: &[&str]) {
    let older = tempfile::tempdir().unwrap();
    for file in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations")).unwrap() {
        let file = file.unwrap();
        if file.file_name().to_string_lossy().as_ref() < "0010" {
            std::fs::copy(file.path(), older.path().join(file.file_name())).unwrap();
        }
    }
    let mut connection = connect(dir).await;
    Migrator::new(older.path()).await.unwrap().run(&mut connection).await.unwrap();
    for (number, subject) in subjects.iter().enumerate() {
        sqlx::query(
            "INSERT INTO audit (id, at, action, subject, detail, outcome) VALUES ($1, 5, 'tool.save', $2, '{}', 'ok')",
        )
        .bind(number.to_string())
        .bind(subject)
        .execute(&mut connection)
        .await
        .unwrap();
    }
    connection.close().await.unwrap();
}

const NO_TRIGGERS: &str = "DROP TRIGGER audit_refuse_update; DROP TRIGGER audit_refuse_delete; \
                           DROP TRIGGER audit_refuse_replace; DROP TRIGGER audit_seals_refuse_return; \
                           DROP TRIGGER audit_seals_refuse_delete; DROP TRIGGER audit_seals_refuse_replace";

/// A log of ten entries, the first two of them pruned.
async fn log(dir: &Path) {
    let clock = Clock::manual(Timestamp(1_000));
    let store = open(dir, &clock).await;
    for number in 1..=2 {
        store.append_audit(&entry(&number.to_string())).await.unwrap();
    }
    clock.advance(3 * DAY);
    for number in 3..=9 {
        store.append_audit(&entry(&number.to_string())).await.unwrap();
    }
    assert_eq!(store.prune_audit(DAY).await.unwrap(), 2);
    store.close().await.unwrap();
}

fn copy(from: &Path) -> tempfile::TempDir {
    let to = tempfile::tempdir().unwrap();
    for file in std::fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), to.path().join(file.file_name())).unwrap();
    }
    to
}

#[tokio::test]
async fn each_kind_is_found_and_named() {
    let dir = tempfile::tempdir().unwrap();
    log(dir.path()).await;
    assert_eq!(verified(dir.path())["count"], 10);
    let columns = "id || 'x', at, principal, token, source, action, subject, detail, before, fingerprint, outcome, mac";
    let forged =
        |number: i64, of: i64| format!("INSERT INTO audit SELECT {number}, {columns} FROM audit WHERE number = {of}");
    let swap = "UPDATE audit SET number = -1 WHERE number = 5; UPDATE audit SET number = 5 WHERE number = 6; \
                UPDATE audit SET number = 6 WHERE number = -1";
    let close_gap = "DELETE FROM audit WHERE number = 5; UPDATE audit SET number = number - 1 WHERE number > 5; \
                     UPDATE audit_seals SET number = number - 1 WHERE name = 'head'";
    let cut_and_move_head = "DELETE FROM audit WHERE number > 8; UPDATE audit_seals SET number = 8, \
                             mac = (SELECT mac FROM audit WHERE number = 8) WHERE name = 'head'";
    let move_checkpoint =
        "DELETE FROM audit WHERE number < 6; UPDATE audit_seals SET number = 5 WHERE name = 'checkpoint'";
    for (kind, statement, number, problem) in [
        ("a field", "UPDATE audit SET outcome = 'ok ' WHERE number = 5", 5, "its MAC does not fit"),
        ("a time", "UPDATE audit SET at = at + 1 WHERE number = 10", 10, "its MAC does not fit"),
        ("a null", "UPDATE audit SET source = '' WHERE number = 4", 4, "its MAC does not fit"),
        ("no MAC", "UPDATE audit SET mac = NULL WHERE number = 7", 7, "has no MAC"),
        ("the middle", "DELETE FROM audit WHERE number IN (5, 6)", 5, "the entries 5 to 6 are missing"),
        ("the middle, closed up", close_gap, 5, "its MAC does not fit"),
        ("the end", "DELETE FROM audit WHERE number = 10", 10, "it is missing"),
        ("the end, with the head", cut_and_move_head, 8, "the head, which says where the log ends, was not sealed"),
        ("the head", "DELETE FROM audit_seals WHERE name = 'head'", 10, "is missing"),
        ("the beginning", "DELETE FROM audit WHERE number = 3", 3, "it is missing"),
        ("the beginning, with the checkpoint", move_checkpoint, 0, "the checkpoint"),
        ("the checkpoint", "DELETE FROM audit_seals WHERE name = 'checkpoint'", 1, "the entries 1 to 2 are missing"),
        ("everything", "DELETE FROM audit", 3, "the entries 3 to 10 are missing"),
        ("an insertion at the end", &forged(11, 10), 11, "its MAC does not fit"),
        ("an insertion before the beginning", &forged(1, 3), 1, "it stands where no entry can"),
        ("a swap", swap, 5, "its MAC does not fit"),
    ] {
        let copy = copy(dir.path());
        edit(copy.path(), &[NO_TRIGGERS, statement]).await;
        let (_, err, code) = command(copy.path(), &["audit", "verify"]);
        assert_eq!(code, Some(1), "{kind}: {err}");
        let named = format!("Entry {number}: ");
        assert!(err.contains(&named) && err.contains(problem), "{kind}: {err}");
        // What is written afterwards does not heal it.
        assert_eq!(command(copy.path(), &["token", "create", "--name", "later"]).2, Some(0), "{kind}");
        let (out, err, code) = command(copy.path(), &["audit", "verify", "--json"]);
        assert_eq!(code, Some(1), "{kind}, and an entry after it: {err}");
        let found: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(found["whole"], false, "{kind}");
    }
}

#[tokio::test]
async fn the_triggers_let_a_prune_through_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    log(dir.path()).await;
    let mut connection = connect(dir.path()).await;
    for statement in [
        "UPDATE audit SET outcome = 'x' WHERE number = 5",
        "UPDATE audit SET mac = NULL WHERE number = 5",
        "DELETE FROM audit WHERE number = 3",
        "INSERT OR REPLACE INTO audit SELECT * FROM audit WHERE number = 5",
        "UPDATE audit_seals SET number = 1 WHERE name = 'checkpoint'",
        "UPDATE audit_seals SET seal = zeroblob(32) WHERE name = 'head'",
        "DELETE FROM audit_seals",
        "INSERT OR REPLACE INTO audit_seals SELECT * FROM audit_seals",
    ] {
        let refused = sqlx::query(sqlx::AssertSqlSafe(statement)).execute(&mut connection).await.unwrap_err();
        assert!(refused.to_string().contains("never"), "{statement}: {refused}");
    }
    assert_eq!(verified(dir.path())["count"], 10);
}

#[tokio::test]
async fn an_older_copy_is_told_by_what_was_noted() {
    let dir = tempfile::tempdir().unwrap();
    log(dir.path()).await;
    let older = copy(dir.path());
    assert_eq!(command(dir.path(), &["token", "create", "--name", "t"]).2, Some(0));
    let state = verified(dir.path());
    let noted = format!("{}:{}", state["count"], state["head"].as_str().unwrap());
    assert_eq!(verified(older.path())["count"], 10, "from inside it is a whole log");
    let (_, err, code) = command(older.path(), &["audit", "verify", "--noted", &noted]);
    assert!(code == Some(1) && err.contains("Entry 11: the log had 11 entries when it was noted"), "{err}");
    // And where it has grown since, by what it says there.
    assert_eq!(command(older.path(), &["token", "create", "--name", "other"]).2, Some(0));
    let (_, err, code) = command(older.path(), &["audit", "verify", "--noted", &noted]);
    assert!(code == Some(1) && err.contains("Entry 11: it is not the entry that was noted"), "{err}");
    let (_, err, code) = command(older.path(), &["audit", "verify", "--noted", "11:beef"]);
    assert!(code == Some(1) && err.contains("COUNT:HEAD"), "{err}");
}

#[tokio::test]
async fn another_key_is_found_too() {
    let dir = tempfile::tempdir().unwrap();
    log(dir.path()).await;
    let (key, away) = (dir.path().join("server.key"), dir.path().join("away.key"));
    std::fs::rename(&key, &away).unwrap();
    for asked in [&["audit", "verify"][..], &["token", "create", "--name", "t"]] {
        let (_, err, code) = command(dir.path(), asked);
        assert!(code == Some(1) && err.contains("the key is not the one") && err.contains("--key-file"), "{err}");
    }
    let file = away.to_str().unwrap();
    assert_eq!(command(dir.path(), &["audit", "verify", "--key-file", file]).2, Some(0), "nothing was written");
    // A server does start with another one; what it writes is not what the first one wrote.
    Server::start_on(dir.path(), &[]).stop();
    let (_, err, code) = command(dir.path(), &["audit", "verify"]);
    assert!(code == Some(1) && err.contains("the checkpoint") && err.contains("not sealed by this server"), "{err}");
    std::fs::rename(&away, &key).unwrap();
    let (_, err, code) = command(dir.path(), &["audit", "verify"]);
    assert!(code == Some(1) && err.contains("Entry 11: its MAC does not fit"), "{err}");
}
