//! An edited database approves nothing.

use sqlx::{ConnectOptions as _, SqliteConnection};

use super::*;

async fn edit(dir: &std::path::Path, statements: &[&str]) {
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(dir.join("omniforge.db"));
    let mut connection: SqliteConnection = options.connect().await.unwrap();
    for statement in statements {
        sqlx::query(sqlx::AssertSqlSafe((*statement).to_owned())).execute(&mut connection).await.unwrap();
    }
}

const SERVE_LATEST: &str =
    "UPDATE tools SET serving_version = latest_version; UPDATE meta SET catalog_generation = catalog_generation + 1";
const NO_TRIGGER: &str = "DROP TRIGGER tool_versions_refuse_update";

#[tokio::test]
async fn rows_that_the_server_did_not_write_approve_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start_on(dir.path(), &[]);
    tool_that_asks(&server, "t", TWO, json!({"network": ["a.example"]})).await;
    let shown = waiting(&server, "t").await;
    let Waiting { id, fingerprint, .. } = &shown;
    let forged = format!(
        "INSERT INTO approvals (id, subject, version, fingerprint, state, approved_at, approved_by, note, seal)
         VALUES ('x', '{id}', 2, '{fingerprint}', 'active', 1, 'me', '', '{fingerprint}')"
    );
    edit(dir.path(), &[&forged, SERVE_LATEST]).await;
    let refused = || async {
        let (text, is_error) = server.call("omniforge_call_tool", json!({"name": "t"})).await;
        assert!(is_error && text.contains("before a person approves"), "{text}");
    };
    refused().await;
    assert!(status_of(&server, "t").await.starts_with("needs approval"));
    assert_eq!(review(&server, "t").await["approvals"], json!([]));
    // The real approval ends the forged one, without giving it a seal; it can't be revived.
    approve(&server, "t").await;
    assert_eq!(server.call("t", json!({})).await.0, "2");
    api(&server, admin(&server), Method::DELETE, "approvals/t", None).await;
    for revived in ["id = 'x'", "id <> 'x'"] {
        let revive = format!("UPDATE approvals SET state = 'active', ended_at = NULL, ended_by = NULL WHERE {revived}");
        edit(dir.path(), &[&revive, SERVE_LATEST]).await;
        refused().await;
        edit(dir.path(), &["UPDATE approvals SET state = 'revoked'"]).await;
    }
}

#[tokio::test]
async fn an_approved_version_that_was_edited_is_not_the_approved_one() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start_on(dir.path(), &[]);
    tool_that_asks(&server, "t", TWO, json!({"network": ["a.example"]})).await;
    approve(&server, "t").await;
    assert_eq!(server.call("t", json!({})).await.0, "2");
    let change = "UPDATE tool_versions SET definition = replace(definition, 'return 2', 'return 9') WHERE number = 2";
    edit(dir.path(), &[NO_TRIGGER, change, SERVE_LATEST]).await;
    drop(server);
    let server = Server::start_on(dir.path(), &[]);
    let (text, is_error) = server.call("omniforge_call_tool", json!({"name": "t"})).await;
    assert!(is_error && text.contains("before a person approves"), "{text}");
    assert!(review(&server, "t").await["waits"].as_bool().unwrap());
}

#[tokio::test]
async fn approvals_hold_with_the_same_key_alone() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start_on(dir.path(), &[]);
    tool_that_asks(&server, "t", TWO, json!({"network": ["a.example"]})).await;
    approve(&server, "t").await;
    drop(server);
    let server = Server::start_on(dir.path(), &[]);
    assert_eq!(server.call("t", json!({})).await.0, "2");
    drop(server);
    std::fs::remove_file(dir.path().join("server.key")).unwrap();
    let server = Server::start_on(dir.path(), &[]);
    let (text, is_error) = server.call("t", json!({})).await;
    assert!(is_error && text.contains("before a person approves"), "{text}");
    approve(&server, "t").await;
    assert_eq!(server.call("t", json!({})).await.0, "2");
}
