//! Calls: arguments, results, events, silence and cancelling.

use std::time::Duration;

use serde_json::{Value, json};

use super::wire::{Events, SOON, Wire, answer, call, messages, rpc, text};

/// The same request from a client that accepts this alone.
fn accepting(kind: &str, post: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
    post.headers([(reqwest::header::ACCEPT, kind.parse().unwrap())].into_iter().collect())
}

fn kinds(messages: &[Value]) -> Vec<String> {
    let kind = |message: &Value| match message["method"].as_str() {
        Some("notifications/message") => message["params"]["data"].as_str().unwrap().to_owned(),
        Some("notifications/progress") => message["params"]["progress"].to_string(),
        Some(other) => other.to_owned(),
        None => "result".to_owned(),
    };
    messages.iter().map(kind).collect()
}

#[tokio::test]
async fn no_number_is_rounded_on_its_way() {
    let wire = Wire::open().await;
    let arguments = r#"{ "n": 123456789012345678901234567890, "e":1e999, "s": "\u0041" }"#;
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo","arguments":{arguments}}}}}"#
    );
    let session = wire.session("2025-11-25").await;
    for post in [wire.raw(body.clone()), session.dress(wire.raw(body.clone()))] {
        let answer = answer(post.send().await.unwrap()).await;
        let said: Value = serde_json::from_str(text(&answer)).unwrap();
        assert_eq!(said["arguments"], arguments);
    }
}

#[tokio::test]
async fn a_result_has_what_its_era_knows() {
    let wire = Wire::open().await;
    for (version, number, object, blocks) in [
        ("2024-11-05", None, None, ["text", "text", "text"]),
        ("2025-03-26", None, None, ["text", "audio", "text"]),
        ("2025-06-18", None, Some(json!({"a": 1})), ["text", "audio", "resource_link"]),
        ("2025-11-25", None, Some(json!({"a": 1})), ["text", "audio", "resource_link"]),
        ("2026-07-28", Some(json!(7)), Some(json!({"a": 1})), ["text", "audio", "resource_link"]),
    ] {
        let ask = |name: &'static str| {
            let wire = &wire;
            async move {
                let post = match version {
                    "2026-07-28" => wire.modern("tools/call", json!({"name": name}), json!({})),
                    _ => wire.post(&call(name)).header("mcp-protocol-version", version),
                };
                answer(post.send().await.unwrap()).await["result"].clone()
            }
        };
        assert_eq!(ask("number").await.get("structuredContent"), number.as_ref(), "{version}");
        let result = ask("object").await;
        assert_eq!(result.get("structuredContent"), object.as_ref(), "{version}");
        assert_eq!(result["isError"], false);
        assert_eq!(result.get("resultType").is_some(), version == "2026-07-28");
        assert_eq!(result.get("_meta").is_some(), version == "2026-07-28");
        let result = ask("blocks").await;
        let seen: Vec<&str> =
            result["content"].as_array().unwrap().iter().map(|block| block["type"].as_str().unwrap()).collect();
        assert_eq!(seen, blocks, "{version}");
    }
}

#[tokio::test]
async fn a_session_gets_logs_and_progress_in_order_on_the_posts_own_stream() {
    let wire = Wire::open().await;
    for version in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        let session = wire.session(version).await;
        let body = rpc("tools/call", json!({"name": "mixed", "arguments": {}, "_meta": {"progressToken": "t"}}));
        let raw = session.post(&body).send().await.unwrap().text().await.unwrap();
        let empty = raw.lines().any(|line| line.trim_end() == "data:");
        assert_eq!(empty, version == "2025-11-25", "only 2025-11-25 knows the empty event:\n{raw}");
        let seen = messages(session.post(&body).send().await.unwrap()).await;
        assert_eq!(kinds(&seen), ["a", "1.0", "b", "2.0", "c", "result"]);
        assert_eq!(seen[1]["params"]["progressToken"], "t");
        assert_eq!(seen[1]["params"].get("message").is_some(), version != "2024-11-05");
    }
}

#[tokio::test]
async fn a_flood_is_thinned_in_order_and_its_last_progress_comes_before_the_reply() {
    let wire = Wire::open().await;
    let session = wire.session("2025-11-25").await;
    let token = json!({"progressToken": "t", "io.modelcontextprotocol/logLevel": "info"});
    let params = json!({"name": "flood", "arguments": {}, "_meta": {"progressToken": "t"}});
    for post in [session.post(&rpc("tools/call", params)), wire.modern("tools/call", json!({"name": "flood"}), token)] {
        let mut seen = messages(post.send().await.unwrap()).await;
        assert_eq!(text(&seen.pop().unwrap()), "done");
        let (mut left_out, mut logs, mut steps) = (0, Vec::new(), Vec::new());
        for message in &seen {
            let params = &message["params"];
            match (params["data"].as_str(), params["logger"].as_str()) {
                (Some(notice), Some("omniforge")) => {
                    left_out += notice.split_once(' ').unwrap().0.parse::<usize>().unwrap();
                }
                (Some(log), _) => logs.push(log.parse::<u32>().unwrap()),
                _ => steps.push(params["progress"].as_f64().unwrap()),
            }
        }
        assert_eq!((logs.len() + left_out, *steps.last().unwrap()), (500, 1000.0));
        assert!((100..500).contains(&logs.len()) && logs.is_sorted(), "{logs:?}");
        assert!(steps.len() < 500 && steps.is_sorted(), "{steps:?}");
    }
}

#[tokio::test]
async fn a_session_hears_logs_from_its_level_on() {
    let wire = Wire::open().await;
    let session = wire.session("2025-11-25").await;
    for (level, logs) in [("error", 0), ("debug", 3), ("info", 3), ("warning", 0)] {
        let set = session.post(&rpc("logging/setLevel", json!({"level": level})));
        assert_eq!(answer(set.send().await.unwrap()).await["result"], json!({}));
        let seen = messages(session.post(&call("mixed")).send().await.unwrap()).await;
        assert_eq!(seen.len(), logs + 1, "{level}");
    }
}

#[tokio::test]
async fn a_modern_request_gets_what_its_meta_asks_for() {
    let wire = Wire::open().await;
    for (meta, expected) in [
        (json!({}), vec!["result"]),
        (json!({"progressToken": 5}), vec!["1.0", "2.0", "result"]),
        (json!({"io.modelcontextprotocol/logLevel": "info"}), vec!["a", "b", "c", "result"]),
        (json!({"io.modelcontextprotocol/logLevel": "error"}), vec!["result"]),
    ] {
        let response = wire.modern("tools/call", json!({"name": "mixed"}), meta).send().await.unwrap();
        assert_eq!(kinds(&messages(response).await), expected);
    }
    let bad = json!({"io.modelcontextprotocol/logLevel": "loud"});
    let refused = wire.modern("tools/call", json!({"name": "mixed"}), bad).send().await.unwrap();
    assert_eq!(answer(refused).await["error"]["code"], -32602);
}

#[tokio::test]
async fn without_a_session_there_are_no_logs_and_progress_only_with_a_token() {
    let wire = Wire::open().await;
    let plain = wire.post(&call("mixed")).send().await.unwrap();
    assert_eq!(plain.headers()["content-type"], "application/json");
    let token = rpc("tools/call", json!({"name": "mixed", "_meta": {"progressToken": 1}}));
    assert_eq!(kinds(&messages(wire.post(&token).send().await.unwrap()).await), ["1.0", "2.0", "result"]);
}

#[tokio::test]
async fn a_silent_call_says_that_it_lives_in_a_stream_where_events_may_come() {
    let wire = Wire::with(true, |options| options.silence = Duration::from_millis(50)).await;
    let token = json!({"progressToken": 1});
    let with_token = rpc("tools/call", json!({"name": "wait", "_meta": token}));
    let session = wire.session("2025-06-18").await;
    for post in [
        wire.post(&with_token),
        wire.modern("tools/call", json!({"name": "wait"}), token),
        session.post(&call("wait")),
        accepting("text/event-stream", wire.post(&call("wait"))),
    ] {
        let mut events = Events::of(post.send().await.unwrap());
        wire.fixture.release.notify_one();
        assert_eq!(text(&events.next().await.unwrap()), "released");
        assert_eq!(events.comments, 1);
        assert_eq!(events.next().await, None);
    }
}

#[tokio::test]
async fn a_silent_call_without_events_says_that_it_lives_in_json() {
    let wire = Wire::with(true, |options| options.silence = Duration::from_millis(50)).await;
    for post in [wire.post(&call("wait")), wire.modern("tools/call", json!({"name": "wait"}), json!({}))] {
        let mut response = post.send().await.unwrap();
        assert_eq!(response.headers()["content-type"], "application/json");
        assert_eq!(response.chunk().await.unwrap().unwrap(), "\n");
        wire.fixture.release.notify_one();
        assert_eq!(text(&response.json().await.unwrap()), "released");
    }
}

#[tokio::test]
async fn a_reply_that_is_all_there_is_to_say_is_plain_json() {
    let wire = Wire::open().await;
    let sessions = [wire.session("2024-11-05").await, wire.session("2025-11-25").await];
    let token = json!({"progressToken": 1});
    for (post, kind) in [
        (wire.modern("tools/call", json!({"name": "number"}), json!({})), "application/json"),
        (wire.modern("tools/call", json!({"name": "number"}), token), "application/json"),
        (wire.post(&call("number")), "application/json"),
        (sessions[0].post(&call("number")), "application/json"),
        (sessions[1].post(&call("number")), "application/json"),
        (sessions[1].post(&call("absent")), "application/json"),
        (sessions[1].post(&rpc("ping", json!({}))), "application/json"),
        (sessions[1].post(&call("mixed")), "text/event-stream"),
        (accepting("application/json", sessions[1].post(&call("mixed"))), "application/json"),
        (accepting("text/event-stream", sessions[1].post(&call("number"))), "text/event-stream"),
        (accepting("text/event-stream", wire.post(&call("number"))), "text/event-stream"),
        (accepting("text/event-stream", wire.post(&rpc("tools/list", json!({})))), "text/event-stream"),
    ] {
        let response = post.send().await.unwrap();
        assert_eq!((response.status().as_u16(), &response.headers()["content-type"]), (200, &kind.parse().unwrap()));
        answer(response).await;
    }
}

#[tokio::test]
async fn a_client_that_reads_no_such_event_is_told_where_its_result_is() {
    let wire = Wire::open().await;
    let session = wire.session("2025-11-25").await;
    let token = json!({"progressToken": 1});
    for (agent, arrives) in [("python-httpx2/2.5.0", false), ("node", true)] {
        for post in [
            session.post(&call("big_after_a_log")),
            wire.modern("tools/call", json!({"name": "big_after_a_log"}), token.clone()),
        ] {
            let mut events = Events::of(post.header("user-agent", agent).send().await.unwrap());
            assert!(events.next().await.unwrap()["method"].is_string());
            let answer = events.next().await.unwrap();
            let is_modern = answer["result"].get("resultType").is_some();
            assert_eq!((&answer["id"], answer["result"].get("_meta").is_some()), (&json!(1), is_modern));
            assert_eq!(answer["result"]["isError"], !arrives);
            assert_eq!(text(&answer).len() == 2 << 20, arrives);
            assert!(arrives || text(&answer).contains("omniforge_get_run"), "{answer}");
        }
    }
}

#[tokio::test]
async fn a_modern_call_ends_with_its_connection_before_and_after_the_stream_opened() {
    for silence in [Duration::from_millis(20), Duration::from_secs(60)] {
        let wire = Wire::with(true, |options| options.silence = silence).await;
        let post = wire.modern("tools/call", json!({"name": "wait"}), json!({}));
        let request = tokio::spawn(async move {
            let _open = post.send().await;
            std::future::pending::<()>().await;
        });
        wire.fixture.began.notified().await;
        if silence < Duration::from_secs(1) {
            tokio::time::sleep(silence * 5).await;
        }
        request.abort();
        tokio::time::timeout(SOON, wire.fixture.cancelled.notified()).await.unwrap();
    }
}

#[tokio::test]
async fn a_legacy_call_outlives_its_connection() {
    let wire = Wire::open().await;
    let post = wire.post(&call("wait"));
    let request = tokio::spawn(post.send());
    wire.fixture.began.notified().await;
    request.abort();
    let cancelled = tokio::time::timeout(Duration::from_millis(500), wire.fixture.cancelled.notified());
    assert!(cancelled.await.is_err(), "a broken connection cancels nothing before 2026-07-28");
    wire.fixture.release.notify_one();
}

#[tokio::test]
async fn shutdown_refuses_new_calls_lets_old_ones_end_and_then_cancels() {
    let wire = Wire::open().await;
    let session = wire.session("2025-11-25").await;
    let mut stream = session.listen().await;
    let first = tokio::spawn(wire.post(&call("wait")).send());
    wire.fixture.began.notified().await;
    wire.lifecycle.closing.cancel();
    assert_eq!(stream.next().await, None, "streams that wait for news end");
    wire.fixture.release.notify_one();
    let answer = answer(first.await.unwrap().unwrap()).await;
    assert_eq!(text(&answer), "released");
    tokio::time::timeout(SOON, wire.server).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_call_that_outstays_shutdown_is_cancelled() {
    let wire = Wire::open().await;
    let call = tokio::spawn(wire.post(&call("wait")).send());
    wire.fixture.began.notified().await;
    wire.lifecycle.closing.cancel();
    tokio::time::timeout(SOON, wire.fixture.cancelled.notified()).await.unwrap();
    let answer = answer(call.await.unwrap().unwrap()).await;
    assert_eq!((text(&answer), &answer["result"]["isError"]), ("(no output)\n[cancelled]", &json!(true)));
    tokio::time::timeout(SOON, wire.server).await.unwrap().unwrap();
}

#[tokio::test]
async fn who_calls_with_what_is_known_to_the_domain() {
    let wire = Wire::with(false, |_| {}).await;
    let post = wire.post(&call("echo")).bearer_auth("anna").header("user-agent", "robot/7 (x)");
    let said: Value = serde_json::from_str(text(&answer(post.send().await.unwrap()).await)).unwrap();
    assert_eq!(
        (&said["caller"], &said["client"], &said["version"]),
        (&json!("anna"), &json!("robot"), &json!("2025-03-26"))
    );
    assert_eq!(said["key"], Value::Null);
    let info = json!({"io.modelcontextprotocol/clientInfo": {"name": "modern", "version": "1"}});
    let post =
        wire.modern("tools/call", json!({"name": "echo"}), info).bearer_auth("ben").header("idempotency-key", "k1");
    let said = answer(post.send().await.unwrap()).await["result"]["structuredContent"].clone();
    assert_eq!(
        (&said["caller"], &said["client"], &said["version"]),
        (&json!("ben"), &json!("modern"), &json!("2026-07-28"))
    );
    assert_eq!(said["key"], "k1");
}

#[tokio::test]
async fn a_broken_stream_is_taken_up_again_by_its_last_event() {
    let wire = Wire::with(true, |options| options.silence = Duration::from_millis(50)).await;
    let session = wire.session("2025-11-25").await;
    let mut broken = session.post(&call("wait")).send().await.unwrap();
    let primed = String::from_utf8(broken.chunk().await.unwrap().unwrap().to_vec()).unwrap();
    let id = primed.lines().find_map(|line| line.strip_prefix("id:")).unwrap().trim().to_owned();
    wire.fixture.began.notified().await;
    drop(broken);
    let get = session.dress(wire.request(reqwest::Method::GET)).header("accept", "text/event-stream");
    let mut again = Events::of(get.header("last-event-id", id).send().await.unwrap());
    wire.fixture.release.notify_one();
    assert_eq!(text(&again.next().await.unwrap()), "released");
}
