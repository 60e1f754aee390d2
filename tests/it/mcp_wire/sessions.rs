//! Legacy sessions: whose they are, how they end, how many there may be.

use std::time::Duration;

use reqwest::Method;
use serde_json::json;

use super::wire::{Events, Wire, answer, call, initialize, rpc, text};

#[tokio::test]
async fn every_legacy_version_is_agreed_on_and_no_other_is_echoed() {
    let wire = Wire::open().await;
    for (asked, agreed) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
        ("", "2025-11-25"),
    ] {
        let result = answer(wire.post(&initialize(asked)).send().await.unwrap()).await["result"].clone();
        assert_eq!(result["protocolVersion"], agreed);
        let lists = json!({"listChanged": true});
        assert_eq!(
            result["capabilities"],
            json!({"logging": {}, "completions": {}, "tools": lists, "prompts": lists,
                "resources": {"subscribe": true, "listChanged": true},
                "extensions": {"io.modelcontextprotocol/skills": {"directoryRead": true}}})
        );
        assert_eq!(result["serverInfo"]["name"], "omniforge-mcp");
        assert_eq!(result["instructions"], "Read omniforge_instructions first.");
    }
}

#[tokio::test]
async fn a_session_belongs_to_who_opened_it() {
    let wire = Wire::with(false, |_| {}).await;
    let open = wire.post(&initialize("2025-11-25")).bearer_auth("anna").send().await.unwrap();
    let id = open.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    for (who, status) in [("anna", 200), ("ben", 404)] {
        let ping = wire.post(&rpc("ping", json!({}))).bearer_auth(who).header("mcp-session-id", &id);
        assert_eq!(ping.send().await.unwrap().status().as_u16(), status);
    }
    let get = wire.request(Method::GET).bearer_auth("ben").header("mcp-session-id", &id);
    assert_eq!(get.header("accept", "text/event-stream").send().await.unwrap().status(), 404);
    let delete = |who: &str| wire.request(Method::DELETE).bearer_auth(who).header("mcp-session-id", &id).send();
    assert_eq!(delete("ben").await.unwrap().status(), 404);
    assert_eq!(delete("anna").await.unwrap().status(), 204);
    assert_eq!(delete("anna").await.unwrap().status(), 404);
}

#[tokio::test]
async fn an_ended_session_is_gone_and_its_stream_ends() {
    let wire = Wire::open().await;
    let session = wire.session("2025-11-25").await;
    let mut stream = session.listen().await;
    let delete = session.dress(wire.request(Method::DELETE)).send().await.unwrap();
    assert_eq!(delete.status(), 204);
    assert_eq!(stream.next().await, None);
    assert_eq!(session.post(&rpc("ping", json!({}))).send().await.unwrap().status(), 404);
}

#[tokio::test]
async fn a_principal_has_at_most_a_hundred_sessions() {
    let wire = Wire::open().await;
    let first = wire.session("2025-11-25").await;
    for _ in 1..100 {
        wire.session("2025-11-25").await;
    }
    let refused = wire.post(&initialize("2025-11-25")).send().await.unwrap();
    assert_eq!(refused.status(), 429);
    assert!(refused.text().await.unwrap().contains("already holds 100 sessions"));
    let other = wire.post(&initialize("2025-11-25")).bearer_auth("ben").send().await.unwrap();
    assert_eq!(other.status(), 200);
    first.dress(wire.request(Method::DELETE)).send().await.unwrap();
    wire.session("2025-11-25").await;
}

#[tokio::test]
async fn ids_come_back_as_they_were_sent() {
    let wire = Wire::open().await;
    let session = wire.session("2025-06-18").await;
    for id in [json!(0), json!(-1), json!(9_007_199_254_740_991_i64), json!("abc"), json!(""), json!("1")] {
        let ping = json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
        let list = json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"});
        for post in [session.post(&ping), wire.post(&ping), wire.post(&list)] {
            assert_eq!(answer(post.send().await.unwrap()).await["id"], id);
        }
    }
}

#[tokio::test]
async fn streams_open_before_there_is_anything_to_say_and_stay_open_with_signs_of_life() {
    let wire = Wire::with(true, |options| {
        options.heartbeat = Duration::from_millis(20);
        options.silence = Duration::from_millis(20);
    })
    .await;
    let session = wire.session("2025-11-25").await;
    let listen = json!({"notifications": {"toolsListChanged": true}});
    let mut listener = Events::of(wire.modern("subscriptions/listen", listen, json!({})).send().await.unwrap());
    assert_eq!(listener.next().await.unwrap()["method"], "notifications/subscriptions/acknowledged");
    let mut news = session.listen().await;
    // One that tells nothing until its reply is JSON, after white space as its signs of life.
    let call_alone = wire.post(&call("wait")).send().await.unwrap();
    assert_eq!(call_alone.headers()["content-type"], "application/json");
    wire.fixture.began.notified().await;
    let mut call = Events::of(session.post(&call("wait")).send().await.unwrap());
    wire.fixture.began.notified().await;
    for stream in [&mut listener, &mut news, &mut call] {
        while stream.comments < 3 {
            assert_eq!(stream.within(Duration::from_millis(50)).await, None);
        }
    }
    wire.fixture.change();
    for stream in [&mut listener, &mut news] {
        assert_eq!(stream.next().await.unwrap()["method"], "notifications/tools/list_changed");
    }
    wire.fixture.release.notify_waiters();
    assert_eq!(text(&call.next().await.unwrap()), "released");
    let reply = call_alone.text().await.unwrap();
    assert!(reply.starts_with(char::is_whitespace), "{reply:?}");
    assert_eq!(text(&serde_json::from_str(&reply).unwrap()), "released");
}
