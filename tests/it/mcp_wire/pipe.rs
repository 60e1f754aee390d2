//! The stdio door, over a pipe in memory.

use std::sync::Arc;
use std::time::Duration;

use omniforge::lifecycle::Lifecycle;
use omniforge::stdio;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio::task::JoinHandle;

use super::fixture::{Fixture, caller};
use super::wire::{SOON, call, initialize, rpc, text};

/// A drain that no test outlasts.
const LONG: Duration = Duration::from_secs(60);

struct Pipe {
    fixture: Arc<Fixture>,
    input: WriteHalf<DuplexStream>,
    output: BufReader<ReadHalf<DuplexStream>>,
    lifecycle: Lifecycle,
    server: JoinHandle<()>,
}

impl Pipe {
    fn open() -> Self {
        Self::with_drain(Duration::from_millis(500))
    }

    fn with_drain(drain: Duration) -> Self {
        let lifecycle = Lifecycle::new(drain);
        let fixture = Arc::new(Fixture::of(lifecycle.clone()));
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (reader, writer) = tokio::io::split(theirs);
        let (domain, life) = (fixture.clone(), lifecycle.clone());
        let server = tokio::spawn(async move {
            stdio::serve(domain, caller("local", None), reader, writer, life).await.unwrap();
        });
        let (output, input) = tokio::io::split(ours);
        Self { fixture, input, output: BufReader::new(output), lifecycle, server }
    }

    async fn say(&mut self, line: impl ToString) {
        self.input.write_all(format!("{}\n", line.to_string()).as_bytes()).await.unwrap();
    }

    /// The next frame; every line must be one.
    async fn hear(&mut self) -> Option<Value> {
        let mut line = String::new();
        tokio::time::timeout(SOON, self.output.read_line(&mut line)).await.expect("the server is silent").unwrap();
        (!line.is_empty()).then(|| serde_json::from_str(&line).unwrap())
    }

    async fn ask(&mut self, line: impl ToString) -> Value {
        self.say(line).await;
        self.hear().await.unwrap()
    }
}

#[tokio::test]
async fn a_handshake_calls_logs_and_news() {
    let mut pipe = Pipe::open();
    let opened = pipe.ask(initialize("2025-06-18")).await;
    assert_eq!(opened["result"]["protocolVersion"], "2025-06-18");
    pipe.say(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    assert_eq!(pipe.ask(rpc("ping", json!({}))).await["result"], json!({}));
    pipe.say(rpc("tools/call", json!({"name": "mixed", "_meta": {"progressToken": 1}}))).await;
    let mut heard = Vec::new();
    for _ in 0..6 {
        heard.push(pipe.hear().await.unwrap()["method"].as_str().unwrap_or("result").to_owned());
    }
    let (log, progress) = ("notifications/message", "notifications/progress");
    assert_eq!(heard, [log, progress, log, progress, log, "result"]);
    pipe.fixture.change();
    assert_eq!(pipe.hear().await.unwrap()["method"], "notifications/tools/list_changed");
    let arguments = r#"{"n":123456789012345678901234567890}"#;
    let big = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo","arguments":{arguments}}}}}"#
    );
    let said: Value = serde_json::from_str(text(&pipe.ask(big).await)).unwrap();
    assert_eq!((&said["arguments"], &said["caller"]), (&json!(arguments), &json!("local")));
}

#[tokio::test]
async fn a_client_without_a_handshake_is_served() {
    let mut pipe = Pipe::open();
    pipe.say(json!({"jsonrpc": "2.0", "method": "notifications/x"})).await;
    let list = pipe.ask(rpc("tools/list", json!({}))).await;
    assert_eq!(list["result"]["tools"][0]["name"], "omniforge_instructions");
    assert_eq!(text(&pipe.ask(call("number")).await), "7");
}

#[tokio::test]
async fn the_modern_era_needs_no_handshake_and_subscribes() {
    let mut pipe = Pipe::open();
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let found = pipe.ask(rpc("server/discover", json!({"_meta": meta}))).await;
    assert_eq!(found["result"]["supportedVersions"].as_array().unwrap().len(), 5);
    let called = pipe.ask(rpc("tools/call", json!({"name": "number", "_meta": meta}))).await;
    assert_eq!(called["result"]["structuredContent"], 7);
    let mut listen = rpc("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}, "_meta": meta}));
    listen["id"] = json!("s");
    assert_eq!(pipe.ask(listen).await["method"], "notifications/subscriptions/acknowledged");
    pipe.fixture.change();
    let news = pipe.hear().await.unwrap();
    assert_eq!(news["method"], "notifications/tools/list_changed");
    assert_eq!(news["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "s");
}

#[tokio::test]
async fn malformed_lines_are_answered_and_the_next_one_is_served() {
    let mut pipe = Pipe::open();
    for (line, code) in [
        ("{", -32700),
        ("5", -32600),
        ("[]", -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":null}}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#, -32602),
    ] {
        assert_eq!(pipe.ask(line).await["error"]["code"], code, "{line}");
    }
    pipe.say("").await;
    pipe.say(initialize("2024-11-05")).await;
    assert_eq!(pipe.hear().await.unwrap()["result"]["protocolVersion"], "2024-11-05");
    let long = format!("\"{}\"", "x".repeat(17 << 20));
    assert_eq!(pipe.ask(long).await["error"]["code"], -32600);
    assert_eq!(pipe.ask(rpc("ping", json!({}))).await["result"], json!({}));
}

#[tokio::test]
async fn a_pipe_knows_what_2026_07_28_does_not_have() {
    let mut pipe = Pipe::open();
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    for method in ["ping", "initialize", "logging/setLevel", "resources/subscribe", "unknown/method"] {
        let refused = pipe.ask(rpc(method, json!({"_meta": meta, "level": "loud"}))).await;
        assert_eq!((&refused["error"]["code"], &refused["id"]), (&json!(-32601), &json!(1)), "{method}");
    }
    assert!(pipe.ask(rpc("tools/list", json!({"_meta": meta}))).await["result"].is_object());
}

#[tokio::test]
async fn a_call_is_cancelled_by_its_id() {
    let mut pipe = Pipe::open();
    pipe.ask(initialize("2025-11-25")).await;
    pipe.say(call("wait")).await;
    pipe.fixture.began.notified().await;
    pipe.say(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})).await;
    tokio::time::timeout(SOON, pipe.fixture.cancelled.notified()).await.unwrap();
}

#[tokio::test]
async fn the_end_of_input_lets_calls_end_and_then_ends_the_server() {
    let mut pipe = Pipe::with_drain(LONG);
    pipe.ask(initialize("2025-11-25")).await;
    pipe.say(call("wait")).await;
    pipe.fixture.began.notified().await;
    pipe.input.shutdown().await.unwrap();
    pipe.fixture.release.notify_one();
    assert_eq!(text(&pipe.hear().await.unwrap()), "released");
    assert_eq!(pipe.hear().await, None);
    tokio::time::timeout(SOON, pipe.server).await.unwrap().unwrap();
}

#[tokio::test]
async fn shutdown_ends_an_idle_pipe_at_once() {
    let mut pipe = Pipe::with_drain(LONG);
    pipe.ask(initialize("2025-11-25")).await;
    pipe.lifecycle.closing.cancel();
    tokio::time::timeout(SOON, pipe.server).await.unwrap().unwrap();
}

#[tokio::test]
async fn the_end_of_input_ends_subscriptions_with_their_answer() {
    let mut pipe = Pipe::with_drain(LONG);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let mut listen = rpc("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}, "_meta": meta}));
    listen["id"] = json!("s");
    pipe.ask(listen).await;
    pipe.input.shutdown().await.unwrap();
    let ended = pipe.hear().await.unwrap();
    assert_eq!((&ended["id"], ended["result"].is_object()), (&json!("s"), true), "{ended}");
    assert_eq!(pipe.hear().await, None);
    tokio::time::timeout(SOON, pipe.server).await.unwrap().unwrap();
}

#[tokio::test]
async fn after_the_end_of_input_a_call_still_tells_and_is_answered() {
    let mut pipe = Pipe::with_drain(LONG);
    pipe.ask(initialize("2025-11-25")).await;
    pipe.say(rpc("tools/call", json!({"name": "wait_and_tell", "_meta": {"progressToken": 1}}))).await;
    pipe.fixture.began.notified().await;
    pipe.input.shutdown().await.unwrap();
    // Nothing tells from outside that the end was seen; a server that loses events from then on loses these too.
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    pipe.fixture.release.notify_one();
    assert_eq!(pipe.hear().await.unwrap()["params"]["data"], "released");
    assert_eq!(pipe.hear().await.unwrap()["params"]["progress"], 1.0);
    assert_eq!(text(&pipe.hear().await.unwrap()), "released");
    assert_eq!(pipe.hear().await, None);
}

#[tokio::test]
async fn a_call_that_outstays_the_end_of_input_is_cancelled_and_answered() {
    let mut pipe = Pipe::open();
    pipe.ask(initialize("2025-11-25")).await;
    pipe.say(call("wait")).await;
    pipe.fixture.began.notified().await;
    pipe.input.shutdown().await.unwrap();
    let answer = pipe.hear().await.unwrap();
    assert_eq!((text(&answer), &answer["result"]["isError"]), ("(no output)\n[cancelled]", &json!(true)));
    assert_eq!(pipe.hear().await, None);
    tokio::time::timeout(SOON, pipe.server).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_cancelled_call_does_not_hold_up_the_end() {
    let mut pipe = Pipe::with_drain(LONG);
    pipe.ask(initialize("2025-11-25")).await;
    pipe.say(call("wait")).await;
    pipe.fixture.began.notified().await;
    pipe.say(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})).await;
    pipe.fixture.cancelled.notified().await;
    pipe.input.shutdown().await.unwrap();
    assert_eq!(pipe.hear().await, None);
}
