//! `/` as an alias of `/mcp`, without being in the way of the page there.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use super::wire::{Events, Wire, answer, call, initialize, rpc, text};

fn request(wire: &Wire, method: Method) -> RequestBuilder {
    wire.client.request(method, format!("{}/", wire.base))
}

fn post(wire: &Wire, body: &Value) -> RequestBuilder {
    let post = request(wire, Method::POST).header("content-type", "application/json");
    post.header("accept", "application/json, text/event-stream").body(body.to_string())
}

#[tokio::test]
async fn a_whole_session_at_the_root() {
    let wire = Wire::open().await;
    let opened = post(&wire, &initialize("2025-11-25")).send().await.unwrap();
    let id = opened.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    assert_eq!(answer(opened).await["result"]["protocolVersion"], "2025-11-25");
    let dress = |request: RequestBuilder| request.header("mcp-session-id", &id);
    let mut news =
        Events::of(dress(request(&wire, Method::GET)).header("accept", "text/event-stream").send().await.unwrap());
    let called = dress(post(&wire, &call("number"))).send().await.unwrap();
    assert_eq!(text(&answer(called).await), "7");
    wire.fixture.change();
    assert_eq!(news.next().await.unwrap()["method"], "notifications/tools/list_changed");
    assert_eq!(dress(request(&wire, Method::DELETE)).send().await.unwrap().status(), 204);
    assert_eq!(news.next().await, None);
}

#[tokio::test]
async fn a_request_alone_in_either_era() {
    let wire = Wire::open().await;
    let plain = request(&wire, Method::POST).header("content-type", "application/json");
    let plain = plain.body(call("number").to_string()).send().await.unwrap();
    assert_eq!(plain.headers()["content-type"], "application/json");
    assert_eq!(text(&answer(plain).await), "7");
    let modern = wire.modern("tools/call", json!({"name": "number"}), json!({})).build().unwrap();
    let modern = request(&wire, Method::POST)
        .headers(modern.headers().clone())
        .body(modern.body().unwrap().as_bytes().unwrap().to_vec());
    assert_eq!(answer(modern.send().await.unwrap()).await["result"]["structuredContent"], 7);
}

#[tokio::test]
async fn who_takes_no_stream_gets_the_page() {
    let wire = Wire::open().await;
    for (accept, stream) in [
        ("text/html,application/xhtml+xml,*/*;q=0.8", false),
        ("application/json", false),
        ("*/*", false),
        ("application/json, text/event-stream", false),
        ("text/event-stream", true),
    ] {
        let response = request(&wire, Method::GET).header("accept", accept).send().await.unwrap();
        // Without a session there is no stream, and a client that asks for one does without.
        assert_eq!(response.status(), if stream { 405 } else { 200 }, "{accept}");
        assert_eq!(response.text().await.unwrap() == "a page", !stream, "{accept}");
    }
    assert_eq!(request(&wire, Method::PUT).send().await.unwrap().status(), 405);
}

#[tokio::test]
async fn the_same_people_are_let_in_as_at_the_other_door() {
    let wire = Wire::with(false, |options| options.allowed_origins = vec!["https://app.example".to_owned()]).await;
    let ping = || post(&wire, &rpc("ping", json!({})));
    for (request, status) in [
        (ping(), 401),
        (ping().header("cookie", "omniforge=x"), 401),
        (ping().bearer_auth("anna"), 200),
        (ping().bearer_auth("anna").header("origin", "https://evil.example"), 403),
        (ping().bearer_auth("anna").header("origin", "https://app.example"), 200),
        (request(&wire, Method::DELETE), 401),
        (request(&wire, Method::GET).header("mcp-session-id", "x").header("accept", "text/event-stream"), 401),
    ] {
        assert_eq!(request.send().await.unwrap().status(), status);
    }
    let asks = request(&wire, Method::OPTIONS).header("origin", "https://app.example");
    let asks = asks.header("access-control-request-method", "POST").send().await.unwrap();
    assert_eq!(asks.status(), 204);
}
