//! Refusals in the log, and that a flood of them is a few entries.

use http::StatusCode;

use super::*;

/// How many refusals of this action the log tells of.
fn times(all: &[Value], action: &str) -> u64 {
    let of = all.iter().filter(|entry| entry["action"] == action);
    of.map(|entry| entry["detail"]["times"].as_u64().unwrap_or(1)).sum()
}

/// The first entry of this action.
fn first<'a>(all: &'a [Value], action: &str) -> &'a Value {
    all.iter().find(|entry| entry["action"] == action).unwrap_or_else(|| panic!("no {action} in {all:#?}"))
}

fn token(dir: &Path, arguments: &[&str]) -> String {
    let (out, err, code) = command(dir, &[&["token", "create", "--name", "t"], arguments].concat());
    assert_eq!(code, Some(0), "{err}");
    out.trim().to_owned()
}

#[tokio::test]
async fn each_kind_of_refusal_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::start_on(dir.path(), &[]);
    server.create(json!({"name": "slow", "language": "bash", "code": "echo 1", "timeout_seconds": 600})).await;
    server.call("omniforge_test_tool", json!({"name": "slow"})).await;
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    let other_site = server.post(body.clone(), &[("Origin", "https://evil.example")]).await;
    assert_eq!(other_site.status(), StatusCode::FORBIDDEN);
    let code = server.client.post(format!("{}/signin", server.url)).header("Origin", &server.url);
    let code = code.header("Content-Type", "application/x-www-form-urlencoded").body("code=nonsense");
    assert_eq!(code.header("Sec-Fetch-Site", "same-origin").send().await.unwrap().status(), StatusCode::GONE);
    let revoked = token(dir.path(), &[]);
    let id = revoked.split('_').nth(1).unwrap().to_owned();
    assert_eq!(command(dir.path(), &["token", "revoke", &id]).2, Some(0));
    server.token = token(dir.path(), &["--scope", "call"]);
    let weak = server.token.split('_').nth(1).unwrap().to_owned();
    let answer =
        server.rpc("tools/call", json!({"name": "omniforge_delete_tool", "arguments": {"name": "slow"}})).await;
    assert!(answer["error"].is_object(), "{answer}");
    server.token = revoked;
    assert_eq!(server.post(body, &[]).await.status(), StatusCode::UNAUTHORIZED);
    server.stop();
    let all = entries(dir.path());
    for action in ["gate.refused", "sign_in.refused", "scope.refused", "auth.refused"] {
        let entry = first(&all, action);
        assert_eq!((&entry["source"], &entry["outcome"]), (&json!("127.0.0.1"), &json!("refused")), "{entry}");
    }
    let text = |entry: &Value| entry["detail"]["reason"].as_str().unwrap().to_owned();
    assert!(text(first(&all, "gate.refused")).contains("https://evil.example"));
    let scope = first(&all, "scope.refused");
    assert_eq!((&scope["token"], &scope["subject"]), (&json!(weak), &json!("omniforge_delete_tool")));
    assert!(text(scope).contains("`author`") && scope["principal"].is_string());
    let auth = first(&all, "auth.refused");
    assert!(auth["token"] == id && text(auth).contains("revoked"), "{auth}");
    assert_eq!(verified(dir.path())["count"], all.len());
}

#[tokio::test]
async fn a_run_that_waits_for_a_person_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start_on(dir.path(), &[]);
    server.create(json!({"name": "t", "language": "bash", "code": "echo 1"})).await;
    server.stop();
    let server = Server::start_on(dir.path(), &["--approval", "always"]);
    assert!(server.call("t", json!({})).await.1);
    server.stop();
    let all = entries(dir.path());
    let refused = first(&all, "run.refused");
    assert_eq!((&refused["subject"], &refused["source"]), (&json!("t"), &json!("127.0.0.1")), "{refused}");
}

#[tokio::test]
async fn a_flood_of_bad_tokens_is_two_entries() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::start_on(dir.path(), &[]);
    server.token = format!("ofk_{}_{}", "a".repeat(16), "b".repeat(43));
    for _ in 0..300 {
        assert_eq!(server.post(String::new(), &[]).await.status(), StatusCode::UNAUTHORIZED);
    }
    server.stop();
    let all = entries(dir.path());
    assert_eq!(times(&all, "auth.refused"), 300);
    // One more where a minute ended meanwhile.
    assert!(all.iter().filter(|entry| entry["action"] == "auth.refused").count() <= 4, "{all:#?}");
    assert!(first(&all, "auth.refused")["token"].is_null(), "nobody knows whose that was to be");
    assert_eq!(verified(dir.path())["count"], all.len());
}
