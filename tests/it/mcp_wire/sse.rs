//! The HTTP transport of 2024-11-05: `GET /sse`, and `POST /messages` to where its first event says.

use std::time::Duration;

use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};

use super::wire::{Events, SOON, Wire, call, initialize, late, rpc, text};

/// A client of that transport.
struct Client<'a> {
    wire: &'a Wire,
    who: &'static str,
    events: Events,
    endpoint: String,
}

impl<'a> Client<'a> {
    /// A client that has its stream and knows where to post.
    async fn of(wire: &'a Wire, who: &'static str) -> Self {
        let mut events = Events::of(stream(wire, who).send().await.unwrap());
        let (name, endpoint) = events.event().await.unwrap();
        assert_eq!(name, "endpoint");
        Self { wire, who, events, endpoint }
    }

    /// A client that has held its handshake, too.
    async fn open(wire: &'a Wire, version: &str) -> Self {
        let mut client = Self::of(wire, "anna").await;
        let mut hello = initialize(version);
        hello["id"] = json!("hello");
        let opened = client.ask(&hello).await;
        assert_eq!(opened["result"]["protocolVersion"], version);
        client.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        client
    }

    fn post(&self, body: impl ToString) -> RequestBuilder {
        post(self.wire, &self.endpoint, self.who, body)
    }

    /// Posts what must be accepted.
    async fn say(&self, body: &Value) {
        let response = self.post(body).send().await.unwrap();
        assert_eq!(response.status(), 202);
        assert_eq!(response.text().await.unwrap(), "");
    }

    async fn ask(&mut self, body: &Value) -> Value {
        self.say(body).await;
        self.next().await
    }

    async fn next(&mut self) -> Value {
        let (name, data) = self.events.event().await.expect("a message");
        assert_eq!(name, "message");
        serde_json::from_str(&data).unwrap()
    }
}

fn stream(wire: &Wire, who: &str) -> RequestBuilder {
    let get = wire.client.get(format!("{}/sse", wire.base)).timeout(SOON);
    get.header("accept", "text/event-stream").bearer_auth(who)
}

fn post(wire: &Wire, endpoint: &str, who: &str, body: impl ToString) -> RequestBuilder {
    let post = wire.client.post(format!("{}{endpoint}", wire.base)).timeout(SOON).bearer_auth(who);
    post.header("content-type", "application/json").body(body.to_string())
}

async fn problem(response: Response) -> String {
    assert_eq!(response.headers()["content-type"], "application/problem+json");
    response.json::<Value>().await.unwrap()["detail"].as_str().unwrap().to_owned()
}

fn with_id(mut body: Value, id: Value) -> Value {
    body["id"] = id;
    body
}

#[tokio::test]
async fn answers_logs_progress_and_news_come_on_the_one_stream_in_order() {
    let wire = Wire::with(false, |_| {}).await;
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut client = Client::open(&wire, version).await;
        assert_eq!(client.ask(&rpc("ping", json!({}))).await["result"], json!({}));
        client.say(&rpc("tools/call", json!({"name": "mixed", "_meta": {"progressToken": "t"}}))).await;
        let mut heard = Vec::new();
        for _ in 0..6 {
            heard.push(client.next().await["method"].as_str().unwrap_or("result").to_owned());
        }
        let (log, progress) = ("notifications/message", "notifications/progress");
        assert_eq!(heard, [log, progress, log, progress, log, "result"]);
        wire.fixture.change();
        assert_eq!(client.next().await["method"], "notifications/tools/list_changed");
        let set = rpc("logging/setLevel", json!({"level": "error"}));
        assert_eq!(client.ask(&set).await["result"], json!({}));
        assert_eq!(text(&client.ask(&call("mixed")).await), "done");
    }
}

#[tokio::test]
async fn who_calls_is_known_by_each_posts_own_credential_and_no_number_is_rounded() {
    let wire = Wire::with(false, |_| {}).await;
    let mut client = Client::open(&wire, "2024-11-05").await;
    let arguments = r#"{ "n": 123456789012345678901234567890, "e":1e999 }"#;
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{{"name":"echo","arguments":{arguments}}}}}"#
    );
    let sent = client.post(body).header("idempotency-key", "k1").send().await.unwrap();
    assert_eq!(sent.status(), 202);
    let answer = client.next().await;
    assert_eq!(answer["id"], "x");
    let said: Value = serde_json::from_str(text(&answer)).unwrap();
    assert_eq!((&said["arguments"], &said["caller"]), (&json!(arguments), &json!("anna")));
    assert_eq!((&said["client"], &said["version"]), (&json!("t"), &json!("2024-11-05")));
    assert_eq!(said["key"], "k1");
}

#[tokio::test]
async fn a_session_is_its_openers_alone_and_takes_bearer_tokens_only() {
    let wire = Wire::with(false, |options| options.allowed_origins = vec!["https://app.example".to_owned()]).await;
    let client = Client::open(&wire, "2024-11-05").await;
    let ping = rpc("ping", json!({}));
    let bare = |kind| {
        let post = wire.client.post(format!("{}{}", wire.base, client.endpoint)).body(ping.to_string());
        post.header("content-type", kind)
    };
    let unopened = |who| post(&wire, "/messages?session_id=1234", who, &ping);
    let get = || wire.client.get(format!("{}/sse", wire.base));
    for (request, status) in [
        (post(&wire, &client.endpoint, "ben", &ping), 404),
        (unopened("anna"), 404),
        (post(&wire, "/messages", "anna", &ping), 400),
        (post(&wire, "/messages?session_id=", "anna", &ping), 404),
        (bare("application/json"), 401),
        (bare("application/json").header("cookie", "omniforge=x"), 401),
        (get(), 401),
        (get().bearer_auth("mallory"), 401),
        (client.post(&ping).header("origin", "https://evil.example"), 403),
        (client.post(&ping).header("sec-fetch-site", "cross-site"), 403),
        (stream(&wire, "anna").header("origin", "https://evil.example"), 403),
        (bare("text/plain").bearer_auth("anna"), 415),
        (client.post(&ping).header("mcp-protocol-version", "1999-01-01"), 400),
        (wire.client.post(format!("{}/sse", wire.base)).bearer_auth("anna"), 405),
        (wire.client.get(format!("{}{}", wire.base, client.endpoint)).bearer_auth("anna"), 405),
    ] {
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), status);
        assert!(!problem(response).await.is_empty());
    }
    let page = client.post(&ping).header("origin", "https://app.example").send().await.unwrap();
    assert_eq!(
        (page.status().as_u16(), &page.headers()["access-control-allow-origin"]),
        (202, &"https://app.example".parse().unwrap())
    );
    for path in ["/sse", "/messages"] {
        let asks = wire.client.request(Method::OPTIONS, format!("{}{path}", wire.base));
        let asks = asks.header("origin", "https://app.example").header("access-control-request-method", "POST");
        assert_eq!(asks.send().await.unwrap().status(), 204);
    }
}

#[tokio::test]
async fn host_is_checked_where_no_bearer_token_came() {
    let wire = Wire::open().await;
    for path in ["/sse", "/messages?session_id=1"] {
        let get = wire.client.get(format!("{}{path}", wire.base)).header("host", "evil.example");
        let response = get.send().await.unwrap();
        assert_eq!(response.status(), 403);
        assert!(problem(response).await.contains("allowed_hosts"));
    }
}

#[tokio::test]
async fn a_call_is_cancelled_by_its_id_and_by_the_end_of_the_stream() {
    let wire = Wire::with(false, |_| {}).await;
    let mut client = Client::open(&wire, "2024-11-05").await;
    client.say(&with_id(call("wait"), json!("w"))).await;
    wire.fixture.began.notified().await;
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "w"}});
    client.say(&cancel).await;
    tokio::time::timeout(SOON, wire.fixture.cancelled.notified()).await.unwrap();
    assert_eq!(client.ask(&rpc("ping", json!({}))).await["id"], 1, "nothing more is said of a cancelled call");
    client.say(&call("wait")).await;
    wire.fixture.began.notified().await;
    let (wire, endpoint) = (client.wire, client.endpoint.clone());
    drop(client);
    tokio::time::timeout(SOON, wire.fixture.cancelled.notified()).await.unwrap();
    let late = post(wire, &endpoint, "anna", rpc("ping", json!({}))).send().await.unwrap();
    assert_eq!(late.status(), 404);
    assert!(problem(late).await.contains("GET /sse"));
}

#[tokio::test]
async fn what_is_malformed_is_answered_where_its_client_waits_for_it() {
    let wire = Wire::with(false, |_| {}).await;
    let mut client = Client::open(&wire, "2024-11-05").await;
    for (body, code) in [
        ("{", -32700),
        ("5", -32600),
        ("[]", -32600),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600),
    ] {
        let response = client.post(body).send().await.unwrap();
        assert_eq!(response.status(), 400, "{body}");
        assert_eq!(response.json::<Value>().await.unwrap()["error"]["code"], code, "{body}");
    }
    for (body, code) in [
        (rpc("tools/call", json!({"name": "echo", "arguments": null})), -32602),
        (rpc("tools/call", json!({"name": "ecco"})), -32602),
        (rpc("nothing/such", json!({})), -32601),
        (json!({"id": 1, "method": "ping"}), -32600),
    ] {
        let answer = client.ask(&body).await;
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &json!(1)), "{body}");
    }
    assert_eq!(client.ask(&rpc("ping", json!({}))).await["result"], json!({}));
}

#[tokio::test]
async fn an_id_is_not_used_again_before_its_answer() {
    let wire = Wire::with(false, |_| {}).await;
    let mut client = Client::open(&wire, "2024-11-05").await;
    client.say(&call("wait")).await;
    wire.fixture.began.notified().await;
    let twice = client.post(rpc("ping", json!({}))).send().await.unwrap();
    assert_eq!(twice.status(), 400);
    assert!(twice.text().await.unwrap().contains("not answered yet"));
    wire.fixture.release.notify_one();
    assert_eq!(text(&client.next().await), "released");
    assert_eq!(client.ask(&rpc("ping", json!({}))).await["result"], json!({}));
}

#[tokio::test]
async fn a_batch_of_2025_03_26_is_answered_message_by_message() {
    let wire = Wire::with(false, |_| {}).await;
    let mut client = Client::open(&wire, "2025-03-26").await;
    let note = json!({"jsonrpc": "2.0", "method": "notifications/x"});
    client.say(&json!([with_id(call("number"), json!("a")), note, 5, with_id(call("ecco"), json!("b"))])).await;
    let mut heard = Vec::new();
    for _ in 0..3 {
        heard.push(client.next().await);
    }
    heard.sort_by_key(|answer| answer["id"].to_string());
    assert_eq!((text(&heard[0]), &heard[0]["id"]), ("7", &json!("a")));
    assert_eq!((&heard[1]["error"]["code"], &heard[1]["id"]), (&json!(-32602), &json!("b")));
    assert_eq!((&heard[2]["error"]["code"], &heard[2]["id"]), (&json!(-32600), &Value::Null));
}

#[tokio::test]
async fn no_handshake_is_needed_and_the_modern_era_is_served() {
    let wire = Wire::with(false, |_| {}).await;
    let mut client = Client::of(&wire, "ben").await;
    assert_eq!(text(&client.ask(&call("number")).await), "7");
    let mut client = Client::of(&wire, "ben").await;
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let found = client.ask(&rpc("server/discover", json!({"_meta": meta}))).await;
    assert_eq!(found["result"]["supportedVersions"].as_array().unwrap().len(), 5);
    let called = client.ask(&rpc("tools/call", json!({"name": "number", "_meta": meta}))).await;
    assert_eq!(called["result"]["structuredContent"], 7);
}

#[tokio::test]
async fn sessions_are_counted_and_given_back_with_their_streams() {
    let wire = Wire::with(false, |_| {}).await;
    let mut held = Vec::new();
    for _ in 0..100 {
        held.push(Client::of(&wire, "anna").await);
    }
    let refused = stream(&wire, "anna").send().await.unwrap();
    assert_eq!(refused.status(), 429);
    assert!(problem(refused).await.contains("already holds 100 sessions"));
    let both = wire.post(&initialize("2025-11-25")).bearer_auth("anna").send().await.unwrap();
    assert_eq!(both.status(), 429, "both transports share one count");
    Client::of(&wire, "ben").await;
    held.pop();
    tokio::time::timeout(SOON, async {
        while stream(&wire, "anna").send().await.unwrap().status() != 200 {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_silent_stream_says_that_it_lives() {
    let wire = Wire::with(false, |options| options.heartbeat = Duration::from_millis(20)).await;
    let mut client = Client::open(&wire, "2024-11-05").await;
    client.say(&call("wait")).await;
    while client.events.comments < 3 {
        assert_eq!(client.events.within(Duration::from_millis(50)).await, None);
    }
    wire.fixture.release.notify_one();
    assert_eq!(text(&client.next().await), "released");
}

#[tokio::test]
async fn shutdown_lets_a_call_end_takes_no_new_one_and_ends_the_stream() {
    let wire = Wire::draining(false, SOON, |_| {}).await;
    let mut client = Client::open(&wire, "2024-11-05").await;
    let mut idle = Client::open(&wire, "2024-11-05").await;
    client.say(&call("wait")).await;
    wire.fixture.began.notified().await;
    let refused = late(&wire, &client.endpoint, "", &with_id(call("number"), json!("late"))).await;
    assert!(refused.starts_with("HTTP/1.1 202"), "{refused}");
    let refused = client.next().await;
    assert_eq!((&refused["error"]["code"], &refused["id"]), (&json!(-32603), &json!("late")));
    assert!(refused["error"]["message"].as_str().unwrap().contains("shutting down"));
    assert_eq!(idle.events.next().await, None, "a session without calls ends at once");
    wire.fixture.release.notify_one();
    assert_eq!(text(&client.next().await), "released");
    assert_eq!(client.events.next().await, None);
    tokio::time::timeout(SOON, wire.server).await.unwrap().unwrap();
}

#[tokio::test]
async fn the_endpoint_keeps_the_public_urls_prefix() {
    let wire = Wire::with(false, |options| options.public_url = Some("https://forge.example/x/".to_owned())).await;
    let mut events = Events::of(stream(&wire, "anna").send().await.unwrap());
    let (_, endpoint) = events.event().await.unwrap();
    assert!(endpoint.starts_with("/x/messages?session_id="), "{endpoint}");
}
