//! The audit log through the real doors: what is in it, that it stays whole, and that no hand in the file goes unnoticed.

mod refusals;
mod tampering;

use std::path::Path;
use std::time::Duration;

use omniforge::clock::Clock;
use omniforge::config::KeySource;
use omniforge::model::Timestamp;
use omniforge::store::{AuditEntry, AuditFilter, Store};
use omniforge::trust::{OperatorKey, ServerKey};
use serde_json::{Value, json};

use crate::server::{Server, command};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// The store of a data directory, as the server opens it.
async fn open(dir: &Path, clock: &Clock) -> Store {
    let store = Store::open(dir, clock.clone()).await.unwrap();
    let operator = OperatorKey::open(&KeySource::DataDirectory, dir).unwrap();
    ServerKey::open(&store, &operator).await.unwrap();
    store
}

/// The entries, oldest first, as the command line prints them.
fn entries(dir: &Path) -> Vec<Value> {
    let (out, err, code) = command(dir, &["audit", "list", "--json", "--limit", "1000"]);
    assert_eq!(code, Some(0), "{err}");
    let mut entries: Vec<Value> = serde_json::from_str(&out).unwrap();
    entries.reverse();
    entries
}

/// What `audit verify` says; it must be content.
fn verified(dir: &Path) -> Value {
    let (out, err, code) = command(dir, &["audit", "verify", "--json"]);
    assert_eq!(code, Some(0), "{out}{err}");
    serde_json::from_str(&out).unwrap()
}

fn entry(subject: &str) -> AuditEntry {
    AuditEntry { action: "test.write".into(), subject: subject.into(), outcome: "ok".into(), ..AuditEntry::default() }
}

fn code(number: i32) -> String {
    format!("def main():\n    return {number}\n")
}

/// One change of each kind, and some that change nothing.
fn changes() -> Vec<(&'static str, Value)> {
    vec![
        ("omniforge_update_tool", json!({"name": "t", "code": code(2)})),
        ("omniforge_update_tool", json!({"name": "t", "code": code(2)})),
        ("omniforge_create_tool", json!({"name": "t", "code": code(3), "replace": true})),
        ("omniforge_rollback_tool", json!({"name": "t", "version": 1})),
        ("omniforge_set_enabled", json!({"name": "t", "enabled": false})),
        ("omniforge_delete_tool", json!({"name": "t"})),
        ("omniforge_save_prompt", json!({"name": "p", "template": "Say hello"})),
        ("omniforge_save_prompt", json!({"name": "p", "template": "Say goodbye"})),
        ("omniforge_save_prompt", json!({"name": "p", "template": "Say goodbye"})),
        ("omniforge_save_prompt", json!({"name": "p", "from_version": 1})),
        ("omniforge_save_prompt", json!({"name": "p", "enabled": false})),
        ("omniforge_delete_content", json!({"kind": "prompt", "name": "p"})),
    ]
}

#[tokio::test]
async fn every_change_says_who_what_whence_and_both_fingerprints() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start_on(dir.path(), &["--approval", "never"]);
    server.create(json!({"name": "t", "code": code(1)})).await;
    for (builtin, arguments) in changes() {
        let (text, is_error) = server.call(builtin, arguments).await;
        assert!(!is_error, "{builtin}: {text}");
    }
    let all = entries(dir.path());
    let actions: Vec<&str> = all.iter().map(|entry| entry["action"].as_str().unwrap()).collect();
    assert_eq!(
        actions,
        [
            "server.weakened",
            "token.create",
            "token.create",
            "tool.create",
            "tool.update",
            "tool.replace",
            "tool.rollback",
            "tool.set_enabled",
            "tool.delete",
            "prompt.create",
            "prompt.update",
            "prompt.rollback",
            "prompt.set_enabled",
            "prompt.delete",
        ]
    );
    assert_eq!(all[0]["detail"]["settings"], json!(["approval never"]));
    assert_eq!((&all[1]["source"], &all[1]["detail"]["scopes"]), (&json!("cli"), &json!("call author")));
    let token = server.token.split('_').nth(1).unwrap();
    for change in &all[3..] {
        assert_eq!((&change["source"], &change["token"]), (&json!("127.0.0.1"), &json!(token)), "{change}");
        assert!(change["principal"].is_string() && change["outcome"] == "ok", "{change}");
    }
    // Each change begins at what the one before it left.
    for chain in [[3, 4, 5, 6, 8].as_slice(), &[9, 10, 11, 13]] {
        assert!(all[chain[0]]["before"].is_null());
        for pair in chain.windows(2) {
            let (earlier, later) = (&all[pair[0]]["fingerprint"], &all[pair[1]]["before"]);
            assert!(earlier.is_string() && earlier == later, "{} {}", all[pair[0]], all[pair[1]]);
        }
    }
    assert_eq!(all[3]["fingerprint"], all[6]["fingerprint"], "rolled back to the first");
    assert!(all[8]["fingerprint"].is_null(), "nothing stands after a deletion");
    assert_eq!(verified(dir.path())["count"], all.len());
    let (out, ..) = command(dir.path(), &["audit", "list", "--action", "tool", "--subject", "t", "--limit", "2"]);
    assert_eq!(out.lines().count(), 2);
    assert!(
        out.contains("tool.delete") && out.contains("owner from 127.0.0.1") && !out.contains("tool.create"),
        "{out}"
    );
}

#[tokio::test]
async fn two_processes_write_one_chain_at_the_same_time() {
    let dir = tempfile::tempdir().unwrap();
    let servers = [Server::start_on(dir.path(), &[]), Server::start_on(dir.path(), &[])];
    let work = async |server: &Server, name: &'static str| {
        for number in 0..10 {
            let code = format!("echo {number}");
            server.create(json!({"name": name, "language": "bash", "code": code, "replace": true})).await;
            server.call("omniforge_set_enabled", json!({"name": name, "enabled": number % 2 == 0})).await;
        }
    };
    let third = async {
        for _ in 0..5 {
            let dir = dir.path().to_owned();
            let made = tokio::task::spawn_blocking(move || command(&dir, &["token", "create", "--name", "t"])).await;
            assert_eq!(made.unwrap().2, Some(0));
        }
    };
    tokio::join!(work(&servers[0], "a"), work(&servers[1], "b"), third);
    let state = verified(dir.path());
    assert_eq!(state["count"], 2 * 2 + 2 * 20 + 5, "{:#?}", entries(dir.path()));
    let numbers: Vec<i64> = entries(dir.path()).iter().map(|entry| entry["number"].as_i64().unwrap()).collect();
    assert!(numbers.iter().copied().eq(1..=49));
    let noted = format!("49:{}", state["head"].as_str().unwrap());
    servers[0].call("omniforge_delete_tool", json!({"name": "a"})).await;
    assert_eq!(command(dir.path(), &["audit", "verify", "--noted", &noted]).2, Some(0), "it has grown since");
}

#[tokio::test]
async fn pruning_leaves_a_checkpoint_and_a_whole_chain() {
    let dir = tempfile::tempdir().unwrap();
    let week_ago = Timestamp(Clock::system().now().0 - 7 * 24 * 3_600_000);
    let clock = Clock::manual(week_ago);
    let store = open(dir.path(), &clock).await;
    for number in 0..1_010 {
        store.append_audit(&entry(&number.to_string())).await.unwrap();
    }
    clock.advance(5 * DAY);
    store.append_audit(&entry("kept")).await.unwrap();
    store.close().await.unwrap();
    let noted = verified(dir.path());
    Server::start_on(dir.path(), &[]).stop();
    assert_eq!(verified(dir.path())["pruned"], 0, "the default keeps everything");
    let server = Server::start_on(dir.path(), &["--audit-keep-days", "3"]);
    // The keeper works beside the requests.
    let prunes = || entries(dir.path()).iter().filter(|entry| entry["action"] == "audit.prune").count();
    let both = async {
        while prunes() < 2 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), both).await.expect("it prunes");
    let pruned = entries(dir.path());
    assert_eq!(pruned[0]["subject"], "kept");
    assert_eq!(pruned[0]["number"], 1_011);
    server.create(json!({"name": "t", "language": "bash", "code": "echo 1"})).await;
    let state = verified(dir.path());
    assert_eq!(state["pruned"], 1_010);
    let noted = format!("1011:{}", noted["head"].as_str().unwrap());
    assert_eq!(command(dir.path(), &["audit", "verify", "--noted", &noted]).2, Some(0));
    let (out, ..) = command(dir.path(), &["audit", "verify"]);
    assert!(out.contains("The first 1010 entries were pruned."), "{out}");
}

#[tokio::test]
async fn what_was_tampered_with_is_not_pruned_away() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Clock::manual(Timestamp(1_000));
    let store = open(dir.path(), &clock).await;
    for subject in ["a", "b", "c"] {
        store.append_audit(&entry(subject)).await.unwrap();
    }
    tampering::edit(
        dir.path(),
        &["DROP TRIGGER audit_refuse_update", "UPDATE audit SET subject = 'x' WHERE number = 2"],
    )
    .await;
    clock.advance(10 * DAY);
    let error = store.prune_audit(DAY).await.unwrap_err().to_string();
    assert!(error.contains("entry 2") && error.contains("nothing was pruned"), "{error}");
    assert_eq!(store.list_audit(&AuditFilter::default(), 10).await.unwrap().len(), 3);
}

#[tokio::test]
async fn an_old_log_is_taken_in_once_and_says_so() {
    let dir = tempfile::tempdir().unwrap();
    tampering::before_the_chain(dir.path(), &["a", "b", "c"]).await;
    let (out, err, code) = command(dir.path(), &["audit", "verify"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("count  4") && out.contains("The first 3 entries are older than the chain"), "{out}");
    let all = entries(dir.path());
    let told: Vec<&str> = all.iter().map(|entry| entry["subject"].as_str().unwrap()).collect();
    assert_eq!(told, ["a", "b", "c", "audit"]);
    assert_eq!((&all[3]["action"], &all[3]["detail"]), (&json!("audit.begin"), &json!({"adopted": 3})));
    // Only then: a chain that lost its beginning is not begun again.
    let again = ["DROP TRIGGER audit_seals_refuse_delete", "DELETE FROM audit_seals"];
    tampering::edit(dir.path(), &again).await;
    assert_eq!(command(dir.path(), &["token", "create", "--name", "t"]).2, Some(0));
    let (_, err, code) = command(dir.path(), &["audit", "verify"]);
    assert!(code == Some(1) && err.contains("Entry 5: the head was gone"), "{err}");
}
