//! `tools/list` in every era, over every way, and news of its change.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::wire::{Events, Wire, answer, rpc};

const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

#[tokio::test]
async fn both_ways_to_a_list_say_the_same_in_every_era() {
    let wire = Wire::open().await;
    for version in LEGACY {
        let session = wire.session(version).await;
        assert_eq!(session.version, version);
        let list = rpc("tools/list", json!({}));
        let slow = answer(session.post(&list).send().await.unwrap()).await;
        let fast = answer(wire.post(&list).header("mcp-protocol-version", version).send().await.unwrap()).await;
        assert_eq!(slow, fast, "{version}");
        let number = fast["result"]["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "number").unwrap();
        assert!(number.get("outputSchema").is_none(), "a legacy era knows no output that is no object");
        assert_eq!(number.get("title").is_some(), version >= "2025-06-18");
    }
    let fast = answer(wire.modern("tools/list", json!({}), json!({})).send().await.unwrap()).await;
    // A progress token keeps a request from the usual answer.
    let slow = answer(wire.modern("tools/list", json!({}), json!({"progressToken": 1})).send().await.unwrap()).await;
    assert_eq!(slow, fast);
    let result = &fast["result"];
    assert_eq!(
        (&result["resultType"], &result["ttlMs"], &result["cacheScope"]),
        (&json!("complete"), &json!(0), &json!("private"))
    );
    assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "omniforge-mcp");
}

#[tokio::test]
async fn a_walk_over_the_pages_sees_every_tool_once() {
    let wire = Wire::open().await;
    wire.fixture.extra.store(450, std::sync::atomic::Ordering::SeqCst);
    let (mut cursor, mut names, mut pages) = (None, Vec::new(), 0);
    loop {
        let params = cursor.map_or(json!({}), |cursor: String| json!({"cursor": cursor}));
        let page = answer(wire.post(&rpc("tools/list", params)).send().await.unwrap()).await;
        let tools = page["result"]["tools"].as_array().unwrap();
        assert!(tools.len() >= 100 || page["result"].get("nextCursor").is_none());
        names.extend(tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()));
        pages += 1;
        wire.fixture.change();
        match page["result"]["nextCursor"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => break,
        }
    }
    assert_eq!(names[0], "omniforge_instructions");
    let all = names.len();
    names.sort();
    names.dedup();
    assert_eq!((names.len(), all, pages), (470, 470, 3));
}

#[tokio::test]
async fn a_change_reaches_a_session_within_a_second_and_a_burst_is_told_once() {
    let wire = Wire::open().await;
    let session = wire.session("2025-11-25").await;
    let mut stream = session.listen().await;
    let began = Instant::now();
    for _ in 0..100 {
        wire.fixture.change();
    }
    assert_eq!(stream.next().await.unwrap()["method"], "notifications/tools/list_changed");
    assert!(began.elapsed() < Duration::from_secs(1));
    let mut more = 0;
    while stream.within(Duration::from_millis(700)).await.is_some() {
        more += 1;
    }
    assert!(more <= 1, "a burst was told {} times", more + 1);
}

#[tokio::test]
async fn a_change_before_the_stream_opens_is_told_when_it_does() {
    let wire = Wire::open().await;
    let session = wire.session("2025-06-18").await;
    wire.fixture.change();
    assert_eq!(session.listen().await.next().await.unwrap()["method"], "notifications/tools/list_changed");
    assert_eq!(session.listen().await.within(Duration::from_millis(400)).await, None, "told once");
}

#[tokio::test]
async fn a_change_reaches_a_subscription_which_ends_with_a_result() {
    let wire = Wire::open().await;
    let listen =
        |filter: Value| wire.modern("subscriptions/listen", json!({"notifications": filter}), json!({})).send();
    let mut tools = Events::of(listen(json!({"toolsListChanged": true})).await.unwrap());
    let mut prompts = Events::of(listen(json!({"promptsListChanged": true})).await.unwrap());
    let first = tools.next().await.unwrap();
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(first["params"]["notifications"], json!({"toolsListChanged": true}));
    assert_eq!(prompts.next().await.unwrap()["params"]["notifications"], json!({"promptsListChanged": true}));
    let began = Instant::now();
    wire.fixture.change();
    let news = tools.next().await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(1));
    assert_eq!(news["method"], "notifications/tools/list_changed");
    assert_eq!(news["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 1);
    wire.lifecycle.closing.cancel();
    let end = tools.next().await.unwrap();
    assert_eq!((&end["id"], &end["result"]["resultType"]), (&json!(1), &json!("complete")));
    let end = prompts.next().await.unwrap();
    assert_eq!(end["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 1);
}
