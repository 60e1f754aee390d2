//! Approvals through the real doors: REST, pages, command line; and what must not get through.

mod doors;
mod tampering;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::server::{Server, command};

/// A version that asks for reach, and the fingerprint of it.
struct Waiting {
    id: String,
    version: i64,
    fingerprint: String,
}

/// A request to the management API: status and body.
async fn api(server: &Server, token: &str, method: Method, path: &str, body: Option<Value>) -> (StatusCode, Value) {
    let mut request = server.client.request(method, format!("{}/api/v1/{path}", server.url)).bearer_auth(token);
    if let Some(body) = body {
        request = request.header("Content-Type", "application/json").body(body.to_string());
    }
    let answer = request.send().await.unwrap();
    (answer.status(), serde_json::from_str(&answer.text().await.unwrap()).unwrap())
}

fn admin(server: &Server) -> &str {
    server.ready["admin_token"].as_str().unwrap()
}

/// What a person is shown of something.
async fn review(server: &Server, name: &str) -> Value {
    let (status, review) = api(server, admin(server), Method::GET, &format!("approvals/{name}"), None).await;
    assert_eq!(status, 200, "{review}");
    review
}

async fn waiting(server: &Server, name: &str) -> Waiting {
    let review = review(server, name).await;
    assert_eq!(review["waits"], true, "{review}");
    Waiting {
        id: review["id"].as_str().unwrap().to_owned(),
        version: review["version"].as_i64().unwrap(),
        fingerprint: review["fingerprint"].as_str().unwrap().to_owned(),
    }
}

async fn decide(server: &Server, token: &str, waiting: &Waiting) -> (StatusCode, Value) {
    let body = json!({"version": waiting.version, "fingerprint": waiting.fingerprint, "note": "looked at it"});
    api(server, token, Method::POST, &format!("approvals/{}", waiting.id), Some(body)).await
}

/// Approves of what waits under this name.
async fn approve(server: &Server, name: &str) {
    let (status, said) = decide(server, admin(server), &waiting(server, name).await).await;
    assert_eq!((status, said["state"].as_str()), (StatusCode::OK, Some("active")), "{said}");
}

/// A tool whose first version asks for nothing, and whose second asks for this.
async fn tool_that_asks(server: &Server, name: &str, code: &str, ask: Value) {
    server.create(json!({"name": name, "code": "def main():\n    return 1\n"})).await;
    let mut change = json!({"name": name, "code": code});
    change.as_object_mut().unwrap().extend(ask.as_object().unwrap().clone());
    let (text, is_error) = server.call("omniforge_update_tool", change).await;
    assert!(!is_error && text.contains("Needs approval by a person"), "{text}");
}

const TWO: &str = "def main():\n    return 2\n";

async fn status_of(server: &Server, name: &str) -> String {
    let (text, _) = server.call("omniforge_get_tool", json!({"name": name})).await;
    serde_json::from_str::<Value>(&text).unwrap()["status"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn an_approved_version_serves_and_the_last_one_does_meanwhile() {
    let server = Server::start(&[]);
    tool_that_asks(&server, "t", TWO, json!({"network": ["a.example"], "timeout_seconds": 600})).await;
    assert_eq!(server.call("t", json!({})).await.0, "1");
    assert!(status_of(&server, "t").await.contains(&format!("{}/approvals/", server.url)));
    let (status, list) = api(&server, admin(&server), Method::GET, "approvals", None).await;
    assert_eq!((status, list["waiting"][0]["name"].as_str()), (StatusCode::OK, Some("t")));
    let shown = review(&server, "t").await;
    let new: Vec<&str> = shown["reach"].as_array().unwrap().iter().map(|it| it["what"].as_str().unwrap()).collect();
    assert_eq!(new, ["network: a.example", "a timeout of 600 s (more than 60)"]);
    assert!(shown["diff"].as_str().unwrap().contains("-    return 1\n+    return 2"), "{shown}");
    approve(&server, "t").await;
    assert_eq!(server.call("t", json!({})).await.0, "2");
    assert_eq!(status_of(&server, "t").await, "ready");
    let (_, list) = api(&server, admin(&server), Method::GET, "approvals", None).await;
    assert_eq!(list["waiting"], json!([]));
    // A restart changes nothing about that, and neither does the version that asks for one host more.
    let more = json!({"name": "t", "network": ["a.example", "b.example"]});
    server.call("omniforge_update_tool", more).await;
    let shown = review(&server, "t").await;
    let new: Vec<bool> = shown["reach"].as_array().unwrap().iter().map(|it| it["new"].as_bool().unwrap()).collect();
    assert_eq!((new, shown["base_version"].as_i64()), (vec![false, true, false], Some(2)));
}

#[tokio::test]
async fn a_call_of_what_never_served_says_what_is_missing_and_where() {
    let server = Server::start(&[]);
    let tool = json!({"name": "t", "code": "def main():\n    return 1\n", "network": ["a.example:443"]});
    server.create(tool).await;
    for (name, arguments) in [("t", json!({})), ("omniforge_call_tool", json!({"name": "t", "arguments": {}}))] {
        let (text, is_error) = server.call(name, arguments).await;
        assert!(is_error && text.contains("before a person approves of this: network: a.example:443."), "{text}");
        assert!(text.contains(&format!("{}/approvals/", server.url)), "{text}");
    }
    approve(&server, "t").await;
    assert_eq!(server.call("t", json!({})).await.0, "1");
}

#[tokio::test]
async fn every_later_change_asks_again() {
    let server = Server::start(&[]);
    tool_that_asks(&server, "t", TWO, json!({"network": ["a.example"]})).await;
    approve(&server, "t").await;
    for change in [
        json!({"annotations": {"destructiveHint": false}}),
        json!({"tags": ["harmless"]}),
        json!({"description": "Harmless."}),
        json!({"title": "Harmless"}),
        json!({"code": "def main():\n    return 3\n"}),
        json!({"input_schema": {"type": "object", "properties": {"a": {"type": "string"}}}}),
        json!({"network": ["a.example:443"]}),
        json!({"memory_mb": 200}),
    ] {
        let mut update = change.clone();
        update["name"] = json!("t");
        let (text, is_error) = server.call("omniforge_update_tool", update).await;
        assert!(!is_error && text.contains("Needs approval"), "{change}: {text}");
        assert_eq!(server.call("t", json!({})).await.0, "2", "{change}");
    }
}

#[tokio::test]
async fn only_what_was_shown_is_approved_and_only_by_who_may() {
    let server = Server::start(&[]);
    tool_that_asks(&server, "t", TWO, json!({"network": ["a.example"]})).await;
    let shown = waiting(&server, "t").await;
    let (status, said) = decide(&server, &server.token, &shown).await;
    assert_eq!((status, said["detail"].as_str().unwrap().contains("`approve`")), (StatusCode::FORBIDDEN, true));
    for (method, path) in [(Method::GET, "approvals"), (Method::GET, "approvals/t"), (Method::DELETE, "approvals/t")] {
        let (status, said) = api(&server, &server.token, method, path, None).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{path}: {said}");
    }
    // Saved between view and click.
    let worse = json!({"name": "t", "code": "def main():\n    return 'worse'\n"});
    server.call("omniforge_update_tool", worse).await;
    let (status, said) = decide(&server, admin(&server), &shown).await;
    assert_eq!(status, StatusCode::CONFLICT, "{said}");
    let now = Waiting { version: shown.version + 1, ..shown };
    let (status, said) = decide(&server, admin(&server), &now).await;
    assert_eq!((status, said["detail"].as_str().unwrap().contains("look at it again")), (StatusCode::CONFLICT, true));
    assert_eq!(server.call("t", json!({})).await.0, "1");
    let (status, _) = api(&server, admin(&server), Method::GET, "approvals/nothing", None).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let (status, said) = api(&server, admin(&server), Method::POST, "approvals/t", Some(json!({"version": 1}))).await;
    assert_eq!((status, said["detail"].as_str().unwrap().contains("fingerprint")), (StatusCode::BAD_REQUEST, true));
}

#[tokio::test]
async fn a_retired_approval_is_no_way_back_for_authors() {
    let server = Server::start(&[]);
    tool_that_asks(&server, "t", TWO, json!({"network": ["a.example"]})).await;
    approve(&server, "t").await;
    let three = json!({"name": "t", "code": "def main():\n    return 3\n"});
    server.call("omniforge_update_tool", three).await;
    approve(&server, "t").await;
    assert_eq!(server.call("t", json!({})).await.0, "3");
    let back = json!({"name": "t", "version": 2});
    let (text, _) = server.call("omniforge_rollback_tool", back.clone()).await;
    assert!(text.contains("Needs approval"), "{text}");
    assert_eq!(server.call("t", json!({})).await.0, "3");
    // To what was approved last, anybody may return; to what retired, who may approve, though not over this protocol.
    let (text, _) = server.call("omniforge_rollback_tool", json!({"name": "t", "version": 3})).await;
    assert!(!text.contains("Needs approval"), "{text}");
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "omniforge_rollback_tool", "arguments": back}});
    let request = server.client.post(format!("{}/mcp", server.url)).bearer_auth(admin(&server));
    let request = request.header("MCP-Protocol-Version", "2025-11-25").header("Content-Type", "application/json");
    let request = request.header("Accept", "application/json, text/event-stream").body(body.to_string());
    let text = request.send().await.unwrap().text().await.unwrap();
    assert!(text.contains("Rolled back") && text.contains("Needs approval"), "{text}");
    assert_eq!(server.call("t", json!({})).await.0, "3");
    let request = server.client.post(format!("{}/api/v1/tools/t/rollback", server.url)).bearer_auth(admin(&server));
    let request = request.header("If-Match", "*").header("Content-Type", "application/json");
    let answer = request.body(json!({"version": 2}).to_string()).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    let said = answer.text().await.unwrap();
    assert!(!said.contains("Needs approval"), "{said}");
    assert_eq!(server.call("t", json!({})).await.0, "2");
}

/// What the review shows in both places: over REST, and at the command line.
async fn shown(server: &Server, dir: &std::path::Path, name: &str) -> [String; 2] {
    let (out, err, code) = command(dir, &["approval", "show", name]);
    assert_eq!(code, Some(0), "{err}");
    [review(server, name).await["diff"].as_str().unwrap().to_owned(), out]
}

#[tokio::test]
async fn what_hides_in_code_is_shown_to_whoever_reviews_it() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start_on(dir.path(), &[]);
    let network = json!({"network": ["a.example"]});
    let python = "def main():\n    x = 1  # one\r    return 'hidden'\n";
    tool_that_asks(&server, "py", python, network.clone()).await;
    for said in shown(&server, dir.path(), "py").await {
        let line = said.lines().find(|line| line.contains("# one")).unwrap();
        assert!(line.contains("‹U+000D›"), "{line}");
    }
    let schema = json!({"type": "object", "properties": {"code": {"description": "seen as well"}}});
    let javascript = json!({"name": "js", "language": "javascript", "network": ["a.example"], "input_schema": schema,
        "code": "exports.main = () => { // one\u{2028} return 'hid' + '\u{202e}' }", "meta": {"a/b": {"code": "meta text"}}});
    server.create(javascript).await;
    for said in shown(&server, dir.path(), "js").await {
        for expected in ["‹U+2028› return", "‹U+202E›", "seen as well", "meta text"] {
            assert!(said.contains(expected), "{expected}: {said}");
        }
    }
}

#[tokio::test]
async fn a_review_starts_from_the_approval_that_counts() {
    let server = Server::start(&[]);
    tool_that_asks(&server, "t", TWO, json!({"network": ["a.example"]})).await;
    approve(&server, "t").await;
    server.call("omniforge_update_tool", json!({"name": "t", "network": ["evil.example"]})).await;
    approve(&server, "t").await;
    // Whoever may approve takes it back to the first; what it asks for next is held against that.
    let request = server.client.post(format!("{}/api/v1/tools/t/rollback", server.url)).bearer_auth(admin(&server));
    let request = request.header("If-Match", "*").header("Content-Type", "application/json");
    assert_eq!(request.body(json!({"version": 2}).to_string()).send().await.unwrap().status(), 200);
    server.call("omniforge_update_tool", json!({"name": "t", "network": ["evil.example"]})).await;
    let review = review(&server, "t").await;
    assert_eq!((&review["waits"], &review["reach"][0]["new"]), (&json!(true), &json!(true)), "{review}");
    assert!(review["diff"].as_str().unwrap().contains("evil.example"), "{review}");
}

#[tokio::test]
async fn what_waits_is_found_among_many_that_do_not() {
    let server = Server::start(&[]);
    tool_that_asks(&server, "waits", TWO, json!({"network": ["a.example"]})).await;
    for number in 0..210 {
        let tool = json!({"name": format!("short_{number}"), "code": "def main(): return 1", "timeout_seconds": 5});
        server.create(tool).await;
    }
    let (_, all) = api(&server, admin(&server), Method::GET, "approvals", None).await;
    assert!(all.to_string().contains("\"waits\""), "{all}");
}

#[tokio::test]
async fn what_is_taken_back_stops_at_once() {
    let server = Server::start(&[]);
    tool_that_asks(&server, "t", TWO, json!({"network": ["a.example"]})).await;
    approve(&server, "t").await;
    let (status, said) = api(&server, admin(&server), Method::DELETE, "approvals/t", None).await;
    assert_eq!((status, said["state"].as_str()), (StatusCode::OK, Some("revoked")), "{said}");
    assert!(server.saved_names().await.is_empty());
    let (text, is_error) = server.call("t", json!({})).await;
    assert!(is_error && text.contains("before a person approves of this: network: a.example."), "{text}");
    let (status, _) = api(&server, admin(&server), Method::DELETE, "approvals/t", None).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    // It waits anew, and can be approved anew.
    let (text, _) = server.call("omniforge_rollback_tool", json!({"name": "t", "version": 2})).await;
    assert!(text.contains("Needs approval"), "{text}");
    approve(&server, "t").await;
    assert_eq!(server.call("t", json!({})).await.0, "2");
}

#[tokio::test]
async fn a_test_runs_without_the_reach_that_nobody_approved() {
    let server = Server::start(&["--network-private-allow", "127.0.0.0/8"]);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let reach = format!(
        "import socket\ndef main():\n    try:\n        socket.create_connection(('127.0.0.1', {port}), 5).close()\n    \
         except OSError as error:\n        return 'refused'\n    return 'reached'\n"
    );
    let host = json!({"network": [format!("127.0.0.1:{port}")], "timeout_seconds": 600});
    tool_that_asks(&server, "t", &reach, host).await;
    let test = || async {
        let arguments = json!({"name": "omniforge_test_tool", "arguments": {"name": "t", "version": 2}});
        let answer = server.rpc("tools/call", arguments).await;
        let text = |block: usize| answer["result"]["content"][block]["text"].as_str().unwrap().to_owned();
        (text(0), text(1))
    };
    let (result, report) = test().await;
    assert_eq!(result, "refused");
    assert!(report.contains("ran_without") && report.contains(&port.to_string()), "{report}");
    approve(&server, "t").await;
    let (result, report) = test().await;
    assert_eq!((result.as_str(), report.contains("ran_without")), ("reached", false), "{report}");
    assert_eq!(server.call("t", json!({})).await.0, "reached");
}

#[tokio::test]
async fn calls_into_reach_are_reach() {
    let server = Server::start(&[]);
    tool_that_asks(&server, "far", TWO, json!({"network": ["a.example"]})).await;
    approve(&server, "far").await;
    let code = "def main(ctx):\n    return ctx.call('far')\n";
    server.create(json!({"name": "sly", "code": code})).await;
    let (text, is_error) = server.call("sly", json!({})).await;
    assert!(is_error && text.contains("`calls` grant"), "{text}");
    let (text, _) = server.call("omniforge_update_tool", json!({"name": "sly", "calls": ["far"]})).await;
    assert!(text.contains("Needs approval by a person: calls: far"), "{text}");
    assert!(server.call("sly", json!({})).await.1);
    approve(&server, "sly").await;
    assert_eq!(server.call("sly", json!({})).await.0, "2");
    // What the approved caller may call must itself be approved.
    api(&server, admin(&server), Method::DELETE, "approvals/far", None).await;
    assert!(server.call("sly", json!({})).await.1);
}

#[tokio::test]
async fn state_written_with_reach_is_not_read_without() {
    let server = Server::start(&[]);
    let keep = "def main(ctx, write: str | None = None):\n    if write:\n        ctx.state.set('k', write)\n    \
                return ctx.state.get('k')\n";
    tool_that_asks(&server, "t", keep, json!({"network": ["a.example"]})).await;
    approve(&server, "t").await;
    assert_eq!(server.call("t", json!({"write": "from inside"})).await.0, "from inside");
    assert_eq!(server.call("t", json!({})).await.0, "from inside");
    let (text, _) = server.call("omniforge_update_tool", json!({"name": "t", "network": []})).await;
    assert!(!text.contains("Needs approval"), "{text}");
    assert!(!server.call("t", json!({})).await.0.contains("inside"));
}

#[tokio::test]
async fn state_of_all_callers_is_reach_and_apart_from_each_callers_own() {
    let server = Server::start(&[]);
    let count = "def main(ctx, scope: str):\n    n = ctx.state.get('n', 0, scope=scope) + 1\n    \
                 ctx.state.set('n', n, scope=scope)\n    return n\n";
    server.create(json!({"name": "t", "code": count})).await;
    let (text, is_error) = server.call("t", json!({"scope": "tool"})).await;
    assert!(is_error && text.contains("`shared_state: true`"), "{text}");
    let (text, _) = server.call("omniforge_update_tool", json!({"name": "t", "shared_state": true})).await;
    assert!(text.contains("Needs approval by a person: state that all callers share"), "{text}");
    approve(&server, "t").await;
    for (scope, count) in [("tool", "1"), ("tool", "2"), ("caller", "1"), ("tool", "3")] {
        assert_eq!(server.call("t", json!({"scope": scope})).await.0, count, "{scope}");
    }
}

#[tokio::test]
async fn without_a_full_sandbox_all_code_waits() {
    let server = Server::start(&["--sandbox", "none"]);
    let text = server.create(json!({"name": "t", "code": TWO})).await;
    assert!(text.contains("Needs approval by a person: its code"), "{text}");
    assert!(server.saved_names().await.is_empty());
    let (text, is_error) = server.call("omniforge_test_tool", json!({"name": "t"})).await;
    assert!(is_error && text.contains("before a person approves"), "{text}");
    let (text, is_error) = server.call("omniforge_test_tool", json!({"code": TWO})).await;
    assert!(is_error && text.contains("unapproved"), "{text}");
    approve(&server, "t").await;
    assert_eq!(server.call("t", json!({})).await.0, "2");
    server.call("omniforge_update_tool", json!({"name": "t", "tags": ["x"]})).await;
    assert_eq!(server.call("t", json!({})).await.0, "2", "the approved version serves on");
    assert!(status_of(&server, "t").await.starts_with("needs approval"));
}

#[tokio::test]
async fn scripts_of_content_wait_and_are_served_once_approved() {
    let server = Server::start(&[]);
    let resource =
        json!({"uri": "test://far", "code": "def main():\n    return 'text'\n", "options": {"network": ["a.example"]}});
    let (text, is_error) = server.call("omniforge_save_resource", resource).await;
    assert!(!is_error && text.contains("Needs approval"), "{text}");
    let read = || server.rpc("resources/read", json!({"uri": "test://far"}));
    assert!(read().await["error"].is_object());
    let (_, list) = api(&server, admin(&server), Method::GET, "approvals", None).await;
    assert_eq!(
        (list["waiting"][0]["kind"].as_str(), list["waiting"][0]["name"].as_str()),
        (Some("resource"), Some("test://far"))
    );
    approve(&server, "resource:test://far").await;
    assert_eq!(read().await["result"]["contents"][0]["text"], "text");
    let change =
        json!({"uri": "test://far", "code": "def main():\n    return 'more'\n", "options": {"network": ["a.example"]}});
    let (text, _) = server.call("omniforge_save_resource", change).await;
    assert!(text.contains("Needs approval"), "{text}");
    assert_eq!(read().await["result"]["contents"][0]["text"], "text");
}
