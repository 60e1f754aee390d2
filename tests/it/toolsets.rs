//! Toolsets through the real doors: what is inside is all there is.

use std::path::Path;

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::server::{Server, command};

const ONE: &str = "def main():\n    return 1\n";

fn omniforge(dir: &Path, arguments: &[&str]) -> String {
    let (out, err, code) = command(dir, arguments);
    assert_eq!(code, Some(0), "{arguments:?}: {err}");
    out
}

/// A token of the owner's that is limited to this toolset.
fn limited(dir: &Path, toolset: &str) -> String {
    omniforge(dir, &["token", "create", "--name", "limited", "--toolset", toolset]).trim().to_owned()
}

/// `invoice` is inside `billing` by its tag, `by_hand` by hand; `outside` and `other` are not.
async fn office(dir: &Path) -> Server {
    let server = Server::start_on(dir, &[]);
    for (name, tags) in [("invoice", json!(["Billing"])), ("by_hand", json!([])), ("outside", json!([]))] {
        server.create(json!({"name": name, "code": ONE, "tags": tags})).await;
    }
    server.create(json!({"name": "other", "code": ONE, "tags": ["secretary"]})).await;
    let prompt = json!({"name": "private", "template": "do it"});
    assert!(!server.call("omniforge_save_prompt", prompt).await.1);
    omniforge(dir, &["toolset", "create", "billing", "--tag", "billing", "--tool", "by_hand"]);
    omniforge(dir, &["toolset", "create", "desk", "--tag", "secretary"]);
    server
}

async fn names(server: &Server) -> Vec<String> {
    let mut names = server.saved_names().await;
    names.sort();
    names
}

#[tokio::test]
async fn a_limited_token_sees_saves_and_calls_inside_alone() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = office(dir.path()).await;
    let (text, _) = server.call("outside", json!({})).await;
    assert_eq!(text, "1");
    let runs = |text: &str| serde_json::from_str::<Value>(text).unwrap()["runs"].as_array().unwrap().clone();
    let foreign = runs(&server.call("omniforge_list_runs", json!({})).await.0)[0]["run_id"].clone();
    let free = std::mem::replace(&mut server.token, limited(dir.path(), "billing"));

    assert_eq!(names(&server).await, ["by_hand", "invoice"]);
    assert_eq!(server.call("invoice", json!({})).await.0, "1");
    let answer = server.rpc("tools/call", json!({"name": "outside"})).await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    for (tool, arguments) in [
        ("omniforge_call_tool", json!({"name": "outside"})),
        ("omniforge_get_tool", json!({"name": "outside"})),
        ("omniforge_update_tool", json!({"name": "outside", "code": ONE})),
        ("omniforge_create_tool", json!({"name": "outside", "code": ONE, "replace": true})),
        ("omniforge_delete_tool", json!({"name": "outside"})),
        ("omniforge_set_enabled", json!({"name": "outside", "enabled": false})),
        ("omniforge_tool_history", json!({"name": "outside"})),
        ("omniforge_rollback_tool", json!({"name": "outside", "version": 1})),
        ("omniforge_test_tool", json!({"name": "outside"})),
        ("omniforge_get_run", json!({"run_id": foreign})),
        ("omniforge_save_prompt", json!({"name": "private", "template": "x"})),
        ("omniforge_delete_content", json!({"kind": "prompt", "name": "private"})),
        ("omniforge_create_tool", json!({"name": "spy", "code": ONE, "tags": ["Secretary"]})),
        ("omniforge_update_tool", json!({"name": "invoice", "tags": ["secretary"]})),
    ] {
        let (text, is_error) = server.call(tool, arguments.clone()).await;
        assert!(is_error, "{tool} {arguments}: {text}");
    }
    assert!(runs(&server.call("omniforge_list_runs", json!({})).await.0).iter().all(|run| run["tool"] != "outside"));
    let found = server.call("omniforge_list_tools", json!({"query": "outside invoice"})).await.0;
    assert!(found.contains("invoice") && !found.contains("outside"), "{found}");
    assert_eq!(server.rpc("prompts/list", json!({})).await["result"]["prompts"], json!([]));

    let calls = |other: &str| format!("def main(ctx):\n    return ctx.call('{other}', {{}})\n");
    server.create(json!({"name": "made", "code": calls("invoice")})).await;
    assert_eq!(names(&server).await, ["by_hand", "invoice", "made"]);
    assert_eq!(server.call("made", json!({})).await, ("1".to_owned(), false));
    server.create(json!({"name": "made", "code": calls("outside"), "replace": true})).await;
    let (text, is_error) = server.call("made", json!({})).await;
    assert!(is_error && text.contains("Unknown tool"), "{text}");

    server.token = free;
    assert_eq!(names(&server).await, ["by_hand", "invoice", "made", "other", "outside"]);
    assert_eq!(server.call("made", json!({})).await, ("1".to_owned(), false), "outside a toolset it may");
}

#[tokio::test]
async fn each_toolset_has_an_endpoint_with_its_own_instructions_and_news() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = office(dir.path()).await;
    omniforge(dir.path(), &["toolset", "update", "billing", "--instructions", "Only for bills."]);
    let elsewhere = server.session().await;
    server.path = "/mcp/billing".to_owned();
    assert_eq!(names(&server).await, ["by_hand", "invoice"]);
    let params =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    assert_eq!(server.rpc("initialize", params).await["result"]["instructions"], "Only for bills.");
    assert_eq!(server.modern("server/discover", json!({})).await["result"]["instructions"], "Only for bills.");
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    let status = server.post(ping.clone(), &[("Mcp-Session-Id", &elsewhere)]).await.status();
    assert_eq!(status, StatusCode::NOT_FOUND, "a session belongs to its toolset");

    let session = server.session().await;
    let mut stream = server.listen(&session).await;
    omniforge(dir.path(), &["toolset", "update", "billing", "--tool", "outside"]);
    let mut told = String::new();
    while !told.contains("notifications/tools/list_changed") {
        told += &String::from_utf8_lossy(&stream.chunk().await.unwrap().expect("the stream goes on"));
    }
    assert_eq!(names(&server).await, ["invoice", "outside"]);
    server.create(json!({"name": "made_here", "code": ONE})).await;
    assert_eq!(names(&server).await, ["invoice", "made_here", "outside"]);

    server.path = "/mcp/nothing".to_owned();
    assert_eq!(server.post(ping.clone(), &[]).await.status(), StatusCode::NOT_FOUND);
    server.token = limited(dir.path(), "billing");
    server.path = "/mcp/desk".to_owned();
    assert_eq!(server.post(ping.clone(), &[]).await.status(), StatusCode::NOT_FOUND);
    server.path = "/mcp/billing".to_owned();
    assert_eq!(server.post(ping, &[]).await.status(), StatusCode::OK);
    server.stop();
    let log = omniforge(dir.path(), &["audit", "list", "--json"]);
    for action in ["toolset.create", "toolset.update", "toolset.refused"] {
        assert!(log.contains(action), "{action} in {log}");
    }
}

#[tokio::test]
async fn a_search_toolset_lists_two_tools_and_reaches_all() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::start_on(dir.path(), &[]);
    let code = "def main(number: str):\n    \"\"\"Refunds an invoice\"\"\"\n    return 'refunded ' + number\n";
    server.create(json!({"name": "credit_note_create", "code": code})).await;
    for name in ["invoice_create", "invoice_send", "invoice_get", "invoice_list", "invoice_pay", "invoice_delete"] {
        let code = "def main():\n    \"\"\"Does something with an invoice\"\"\"\n    return 1\n";
        server.create(json!({"name": name, "code": code})).await;
    }
    omniforge(dir.path(), &["toolset", "create", "all", "--everything", "--search"]);
    server.path = "/mcp/all".to_owned();
    let listed = server.rpc("tools/list", json!({})).await;
    let listed: Vec<&str> =
        listed["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(listed, ["omniforge_list_tools", "omniforge_call_tool"]);
    let (text, _) = server.call("omniforge_list_tools", json!({"query": "refund an invoice"})).await;
    let found: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(found["tools"][0]["name"], "credit_note_create", "{found}");
    assert_eq!(found["tools"][0]["input_schema"]["required"], json!(["number"]), "{found}");
    let call = json!({"name": "credit_note_create", "arguments": {"number": "7"}});
    assert_eq!(server.call("omniforge_call_tool", call).await.0, "refunded 7");
    let made = json!({"name": "omniforge_create_tool", "arguments": {"name": "made", "code": ONE}});
    assert!(!server.call("omniforge_call_tool", made.clone()).await.1);
    assert_eq!(server.call("omniforge_call_tool", json!({"name": "made"})).await.0, "1");

    let arguments = ["token", "create", "--name", "c", "--scope", "call", "--toolset", "all"];
    server.token = omniforge(dir.path(), &arguments).trim().to_owned();
    let (text, is_error) = server.call("omniforge_call_tool", made).await;
    assert!(is_error && text.contains("Unknown tool"), "no wider than the token: {text}");
}

#[tokio::test]
async fn a_portable_toolset_serves_plain_schemas_and_checks_the_real_ones() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::start_on(dir.path(), &[]);
    let schema = json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
        "oneOf": [{"properties": {"a": {"$ref": "#/$defs/n"}}, "required": ["a"]},
                  {"properties": {"b": {"$ref": "#/$defs/n"}}, "required": ["b"]}],
        "$defs": {"n": {"type": "integer", "minimum": 3}}});
    server.create(json!({"name": "t", "code": "import sys; print(sys.stdin.read())", "input_schema": schema})).await;
    omniforge(dir.path(), &["toolset", "create", "plain", "--everything", "--portable"]);
    server.path = "/mcp/plain".to_owned();
    let tools = server.rpc("tools/list", json!({})).await["result"]["tools"].clone();
    for tool in tools.as_array().unwrap() {
        let schema = &tool["inputSchema"];
        assert_eq!(schema["type"], "object");
        for keyword in ["$schema", "$defs", "oneOf", "anyOf", "allOf"] {
            assert!(schema.get(keyword).is_none(), "{keyword} in {tool}");
        }
        assert!(!schema.to_string().contains("$ref"), "{tool}");
        if tool["name"] == "t" {
            assert_eq!(schema["properties"]["b"], json!({"type": "integer", "minimum": 3}));
        }
    }
    let (text, is_error) = server.call("t", json!({"a": 1})).await;
    assert!(is_error && text.starts_with("Arguments do not match inputSchema"), "{text}");
    assert!(!server.call("t", json!({"a": 4})).await.1);
}

#[tokio::test]
async fn toolsets_are_managed_over_rest_by_those_who_may() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = office(dir.path()).await;
    let url = format!("{}/api/v1/toolsets", server.url);
    let send = async |server: &Server, method: &str, path: &str, tag: Option<&str>, body: Value| {
        let method = method.parse().unwrap();
        let mut request = server.client.request(method, format!("{url}{path}")).bearer_auth(&server.token);
        if let Some(tag) = tag {
            request = request.header("If-Match", tag);
        }
        let answer = request.body(body.to_string()).send().await.unwrap();
        let tag = answer.headers().get("etag").map(|tag| tag.to_str().unwrap().to_owned());
        (answer.status().as_u16(), tag, answer.json::<Value>().await.unwrap())
    };
    let none = || json!({});
    let (status, tag, made) = send(&server, "POST", "", None, json!({"name": "rest", "tools": ["outside"]})).await;
    assert_eq!((status, tag.as_deref()), (201, Some("\"1\"")), "{made}");
    assert_eq!((&made["path"], &made["all_tools"]), (&json!("/mcp/rest"), &json!(["outside"])));
    for (body, status) in [
        (json!({"name": "rest"}), 409),
        (json!({"name": "a b"}), 400),
        (json!({"name": "x", "tools": ["missing"]}), 400),
        (json!({"name": "x", "surprise": 1}), 400),
        (json!([]), 400),
    ] {
        assert_eq!(send(&server, "POST", "", None, body.clone()).await.0, status, "{body}");
    }
    assert_eq!(send(&server, "PATCH", "/rest", None, none()).await.0, 428);
    assert_eq!(send(&server, "PATCH", "/rest", Some("\"9\""), json!({"search": true})).await.0, 412);
    let (status, tag, changed) = send(&server, "PATCH", "/rest", Some("\"1\""), json!({"search": true})).await;
    assert_eq!((status, tag.as_deref(), &changed["search"]), (200, Some("\"2\""), &json!(true)));
    assert_eq!(changed["tools"], json!(["outside"]), "what is not named stays");
    assert_eq!(send(&server, "GET", "/nothing", None, none()).await.0, 404);
    assert_eq!(send(&server, "GET", "", None, none()).await.2["toolsets"].as_array().unwrap().len(), 3);

    let free = std::mem::replace(&mut server.token, limited(dir.path(), "rest"));
    assert_eq!(send(&server, "GET", "", None, none()).await.2["toolsets"].as_array().unwrap().len(), 1);
    assert_eq!(send(&server, "GET", "/billing", None, none()).await.0, 404);
    assert_eq!(send(&server, "PATCH", "/rest", Some("*"), json!({"everything": true})).await.0, 403);
    assert_eq!(send(&server, "POST", "", None, json!({"name": "wide", "everything": true})).await.0, 403);
    let caller = ["token", "create", "--name", "c", "--scope", "call"];
    server.token = omniforge(dir.path(), &caller).trim().to_owned();
    assert_eq!(send(&server, "POST", "", None, json!({"name": "wide"})).await.0, 403);

    server.token = free;
    let (status, _, problem) = send(&server, "DELETE", "/rest", Some("*"), none()).await;
    assert!(status == 409 && problem["detail"].as_str().unwrap().contains("1 token"), "{problem}");
    assert_eq!(send(&server, "DELETE", "/desk", Some("*"), none()).await.0, 200);
    let refused = command(dir.path(), &["token", "create", "--name", "x", "--scope", "admin", "--toolset", "rest"]);
    assert!(refused.1.contains("call and author alone"), "{refused:?}");
    assert!(
        command(dir.path(), &["token", "create", "--name", "x", "--toolset", "none"]).1.contains("no such toolset")
    );
}
