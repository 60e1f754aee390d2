//! Subscriptions that follow tasks: `taskIds` in the filter of `subscriptions/listen`.

use serde_json::{Value, json};

use crate::mcp_wire::wire::{Events, answer};
use crate::server::{Server, command};

/// A tool that asks its caller, then ends.
const ASKS: &str = "def main(ctx, word: str) -> str:
    go = ctx.elicit('Go on?', {'type': 'object', 'properties': {'go': {'type': 'boolean'}}, 'required': ['go']}, key='go')
    return f'{word} {go.action}'";

/// A request of a client that takes tasks and forms.
async fn send(server: &Server, method: &str, mut params: Value, named: Option<&str>) -> reqwest::Response {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities":
            {"elicitation": {"form": {}}, "extensions": {"io.modelcontextprotocol/tasks": {}}},
    });
    let body = json!({"jsonrpc": "2.0", "id": "s", "method": method, "params": params}).to_string();
    let mut headers = vec![("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", method)];
    headers.extend(named.map(|named| ("Mcp-Name", named)));
    server.post(body, &headers).await
}

/// Starts the tool as a task: its id.
async fn start(server: &Server, name: &str) -> String {
    let params = json!({"name": name, "arguments": {"word": "gone"}});
    let answer = answer(send(server, "tools/call", params, Some(name)).await).await;
    answer["result"]["taskId"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

/// Opens a subscription; what was acknowledged, and its stream.
async fn follow(server: &Server, filter: Value) -> (Value, Events) {
    let response = send(server, "subscriptions/listen", json!({"notifications": filter}), None).await;
    let mut events = Events::of(response);
    let first = events.next().await.unwrap();
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged", "{first}");
    assert_eq!(first["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "s", "{first}");
    (first["params"]["notifications"].clone(), events)
}

/// The news of the task up to this status; each as `tasks/get` would have told it.
async fn until(events: &mut Events, task: &str, status: &str) -> Value {
    loop {
        let news = events.next().await.unwrap();
        assert_eq!(news["method"], "notifications/tasks", "{news}");
        assert_eq!(news["params"]["taskId"], task, "{news}");
        assert_eq!(news["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "s", "{news}");
        if news["params"]["status"] == status {
            return news["params"].clone();
        }
    }
}

#[tokio::test]
async fn a_subscription_follows_its_tasks_through_questions_to_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let (here, there) = (Server::start_on(dir.path(), &[]), Server::start_on(dir.path(), &[]));
    here.create(json!({"name": "asks", "code": ASKS, "mode": "async"})).await;
    let task = start(&here, "asks").await;
    let unknown = "019e0000-0000-7000-8000-000000000000";
    let filter = json!({"toolsListChanged": true, "taskIds": [&task, unknown, "no id", &task]});
    let (acknowledged, mut events) = follow(&here, filter).await;
    assert_eq!(acknowledged, json!({"toolsListChanged": true, "taskIds": [&task]}));
    let (_, mut elsewhere) = follow(&there, json!({"taskIds": [&task]})).await;

    let asking = until(&mut events, &task, "input_required").await;
    assert_eq!(asking["inputRequests"]["go"]["method"], "elicitation/create", "{asking}");
    let answers = json!({"taskId": &task, "inputResponses": {"go": {"action": "accept", "content": {"go": true}}}});
    let taken = answer(send(&here, "tasks/update", answers, Some(&task)).await).await;
    assert_eq!(taken["error"], Value::Null, "{taken}");
    let done = until(&mut events, &task, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "gone accept", "{done}");
    let elsewhere = until(&mut elsewhere, &task, "completed").await;
    assert_eq!(elsewhere["result"], done["result"]);

    // The lists are heard of on the same stream, and one that has ended is told of at once.
    here.create(json!({"name": "other", "code": "def main(): return 1"})).await;
    assert_eq!(events.next().await.unwrap()["method"], "notifications/tools/list_changed");
    let (_, mut late) = follow(&here, json!({"taskIds": [&task]})).await;
    until(&mut late, &task, "completed").await;
}

#[tokio::test]
async fn only_who_takes_tasks_follows_them_and_only_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::start_on(dir.path(), &[]);
    server.create(json!({"name": "asks", "code": ASKS, "mode": "async"})).await;
    let task = start(&server, "asks").await;
    let refused = server.modern("subscriptions/listen", json!({"notifications": {"taskIds": [&task]}})).await;
    assert_eq!(refused["error"]["code"], -32021, "{refused}");
    let legacy = server.rpc("subscriptions/listen", json!({"notifications": {"taskIds": [&task]}})).await;
    assert_eq!(legacy["error"]["code"], -32601, "{legacy}");
    for wrong in [json!({"taskIds": "a"}), json!({"taskIds": [1]}), json!([{"taskIds": []}])] {
        let answer = answer(send(&server, "subscriptions/listen", json!({"notifications": wrong}), None).await).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
    // What its toolset does not show it can't be followed with a limited token either.
    let (_, said, code) = command(dir.path(), &["toolset", "create", "other"]);
    assert_eq!(code, Some(0), "{said}");
    let (made, said, _) = command(dir.path(), &["token", "create", "--name", "t", "--toolset", "other"]);
    assert!(made.starts_with("ofk_"), "{made}{said}");
    server.token = made.trim().to_owned();
    let (acknowledged, _) = follow(&server, json!({"taskIds": [&task]})).await;
    assert_eq!(acknowledged, json!({"taskIds": []}));
}
