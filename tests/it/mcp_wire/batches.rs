//! Batches: arrays of messages, in 2025-03-26 alone.

use reqwest::RequestBuilder;
use serde_json::{Value, json};

use super::wire::{Events, SOON, Wire, answer, call, initialize, late, messages, rpc, text};

fn with_id(mut body: Value, id: Value) -> Value {
    body["id"] = id;
    body
}

fn note() -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/x"})
}

fn reply() -> Value {
    json!({"jsonrpc": "2.0", "id": 77, "result": {}})
}

/// Without a session.
fn alone(wire: &Wire, batch: &Value) -> RequestBuilder {
    wire.post(batch).header("mcp-protocol-version", "2025-03-26")
}

fn code_and_id(answer: &Value) -> (i64, Value) {
    (answer["error"]["code"].as_i64().unwrap_or(0), answer["id"].clone())
}

#[tokio::test]
async fn every_request_is_answered_in_order_and_nothing_else_is() {
    let wire = Wire::open().await;
    let batch = json!([
        with_id(rpc("ping", json!({})), json!("a")),
        note(),
        with_id(call("test_tool_with_progress"), json!(2)),
        5,
        reply(),
        with_id(call("ecco"), json!("c")),
        with_id(initialize("2025-03-26"), json!(4)),
        with_id(call("number"), json!("a")),
        with_id(rpc("nothing/such", json!({})), json!(5)),
        [],
        with_id(call("number"), json!(-6)),
    ]);
    let response = alone(&wire, &batch).send().await.unwrap();
    assert_eq!(
        (response.status().as_u16(), &response.headers()["content-type"]),
        (200, &"application/json".parse().unwrap())
    );
    let answers: Vec<Value> = response.json().await.unwrap();
    let expected = [
        (0, json!("a")),
        (0, json!(2)),
        (-32600, Value::Null),
        (-32602, json!("c")),
        (-32600, json!(4)),
        (-32600, json!("a")),
        (-32601, json!(5)),
        (-32600, Value::Null),
        (0, json!(-6)),
    ];
    assert_eq!(answers.iter().map(code_and_id).collect::<Vec<_>>(), expected);
    assert_eq!((text(&answers[1]), text(&answers[8])), ("done", "7"));
    assert!(answers[5]["error"]["message"].as_str().unwrap().contains("used twice"));
}

#[tokio::test]
async fn what_needs_no_answer_gets_none() {
    let wire = Wire::open().await;
    let session = wire.session("2025-03-26").await;
    for batch in [json!([note()]), json!([note(), reply(), note()])] {
        for post in [alone(&wire, &batch), session.post(&batch)] {
            let response = post.send().await.unwrap();
            assert_eq!(response.status(), 202);
            assert_eq!(response.text().await.unwrap(), "");
        }
    }
}

#[tokio::test]
async fn a_batch_holds_one_to_a_hundred_messages() {
    let wire = Wire::open().await;
    let session = wire.session("2025-03-26").await;
    let pings = |count: usize| Value::from_iter((0..count).map(|id| with_id(rpc("ping", json!({})), json!(id))));
    for (count, expected) in [(0, -32600), (101, -32600), (100, 0)] {
        for post in [alone(&wire, &pings(count)), session.post(&pings(count))] {
            let response = post.send().await.unwrap();
            assert_eq!(response.status(), if expected == 0 { 200 } else { 400 });
            if expected == 0 {
                let seen = messages(response).await;
                let seen = seen.first().and_then(Value::as_array).cloned().unwrap_or(seen);
                assert_eq!(seen.len(), 100);
                assert!(seen.iter().all(|answer| answer["result"] == json!({})));
            } else {
                assert_eq!(code_and_id(&answer(response).await), (expected, Value::Null));
            }
        }
    }
    let broken = wire.raw(r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},"#).header("mcp-protocol-version", "2025-03-26");
    assert_eq!(code_and_id(&answer(broken.send().await.unwrap()).await), (-32700, Value::Null));
}

#[tokio::test]
async fn a_sessions_batch_brings_logs_and_progress_and_is_cancelled_by_id() {
    let wire = Wire::open().await;
    let session = wire.session("2025-03-26").await;
    let mixed = rpc("tools/call", json!({"name": "mixed", "_meta": {"progressToken": "t"}}));
    let batch = json!([
        with_id(mixed, json!("m")),
        note(),
        with_id(call("wait"), json!("w")),
        with_id(call("ecco"), json!(3)),
        5
    ]);
    let mut events = Events::of(session.post(&batch).send().await.unwrap());
    wire.fixture.began.notified().await;
    let (mut logs, mut progress, mut answers) = (0, 0, Vec::new());
    while answers.len() < 3 {
        let message = events.next().await.unwrap();
        match message["method"].as_str() {
            Some("notifications/message") => logs += 1,
            Some("notifications/progress") => progress += 1,
            _ => answers.push(code_and_id(&message)),
        }
    }
    answers.sort_by_key(|(_, id)| id.to_string());
    assert_eq!(answers, [(0, json!("m")), (-32602, json!(3)), (-32600, Value::Null)]);
    assert_eq!((logs, progress), (3, 2));
    let cancel = json!([{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "w"}}]);
    assert_eq!(session.post(&cancel).send().await.unwrap().status(), 202);
    tokio::time::timeout(SOON, wire.fixture.cancelled.notified()).await.unwrap();
    assert_eq!(events.next().await, None, "nothing more is said of a cancelled call");
}

#[tokio::test]
async fn who_calls_in_a_batch_is_known() {
    let wire = Wire::with(false, |_| {}).await;
    let open = wire.post(&initialize("2025-03-26")).bearer_auth("anna").send().await.unwrap();
    let id = open.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let batch = json!([call("echo")]);
    let in_session = wire.post(&batch).bearer_auth("anna").header("mcp-session-id", &id).send().await.unwrap();
    let said: Value = serde_json::from_str(text(&answer(in_session).await)).unwrap();
    assert_eq!(
        (&said["caller"], &said["client"], &said["version"]),
        (&json!("anna"), &json!("t"), &json!("2025-03-26"))
    );
    let of_another = wire.post(&batch).bearer_auth("ben").header("mcp-session-id", &id).send().await.unwrap();
    assert_eq!(of_another.status(), 404);
    let alone: Vec<Value> = alone(&wire, &batch).bearer_auth("ben").send().await.unwrap().json().await.unwrap();
    let said: Value = serde_json::from_str(text(&alone[0])).unwrap();
    assert_eq!(said["caller"], "ben");
}

#[tokio::test]
async fn no_other_version_has_batches() {
    let wire = Wire::open().await;
    let batch = json!([call("number")]);
    let no_version = wire.post(&batch);
    let mut refused = vec![no_version, wire.post(&batch).header("mcp-protocol-version", "2026-07-28")];
    let sessions =
        [wire.session("2024-11-05").await, wire.session("2025-06-18").await, wire.session("2025-11-25").await];
    refused.extend(sessions.iter().map(|session| session.post(&batch)));
    for post in refused {
        let response = post.send().await.unwrap();
        assert_eq!(response.status(), 400);
        let answer = answer(response).await;
        assert_eq!(code_and_id(&answer), (-32600, Value::Null));
        assert!(answer["error"]["message"].as_str().unwrap().contains("2025-03-26"));
    }
    let modern = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let smuggled = json!([rpc("tools/list", json!({"_meta": modern}))]);
    let answers: Vec<Value> = alone(&wire, &smuggled).send().await.unwrap().json().await.unwrap();
    assert_eq!(code_and_id(&answers[0]), (-32020, json!(1)));
}

#[tokio::test]
async fn a_call_in_a_batch_outlives_its_connection() {
    let wire = Wire::open().await;
    let session = wire.session("2025-03-26").await;
    for post in [alone(&wire, &json!([call("wait")])), session.post(&json!([call("wait")]))] {
        let request = tokio::spawn(post.send());
        wire.fixture.began.notified().await;
        request.abort();
        let cancelled = tokio::time::timeout(std::time::Duration::from_millis(300), wire.fixture.cancelled.notified());
        assert!(cancelled.await.is_err(), "a broken connection cancels nothing before 2026-07-28");
        wire.fixture.release.notify_one();
    }
}

#[tokio::test]
async fn what_http_refuses_is_refused_in_json_rpc() {
    let wire = Wire::draining(true, SOON, |_| {}).await;
    let batch = json!([with_id(call("number"), json!("late")), with_id(rpc("ping", json!({})), json!(2))]);
    let answer = late(&wire, "/mcp", "mcp-protocol-version: 2025-03-26\r\n", &batch).await;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    let answers: Vec<Value> = serde_json::from_str(body).unwrap_or_else(|_| panic!("{answer}"));
    assert_eq!(code_and_id(&answers[0]), (-32603, json!("late")));
    assert!(answers[0]["error"]["message"].as_str().unwrap().contains("shutting down"));
    assert_eq!(answers[1]["result"], json!({}));
}
