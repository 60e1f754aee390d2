//! What is malformed or not for the caller's era is refused with the right code, status and id.

use serde_json::{Value, json};

use super::wire::{Wire, answer, call, initialize, rpc};

#[tokio::test]
async fn malformed_messages_are_refused_in_the_legacy_era() {
    let wire = Wire::open().await;
    for (body, status, code, id) in [
        (r#"{"jsonrpc":"2.0","id":1,"#, 400, -32700, Value::Null),
        (r#"{"id":1,"method":"ping"}"#, 400, -32600, json!(1)),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, 400, -32600, Value::Null),
        ("42", 400, -32600, Value::Null),
        ("[]", 400, -32600, Value::Null),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, 400, -32600, Value::Null),
        (r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"arguments":{}}}"#, 200, -32602, json!("a")),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":null}}"#,
            200,
            -32602,
            json!(1),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":[1]}}"#,
            200,
            -32602,
            json!(1),
        ),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"absent"}}"#, 200, -32602, json!(1)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"protocol_error"}}"#, 200, -31999, json!(1)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"internal_error"}}"#, 200, -32603, json!(1)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"nonsense"}}"#, 200, -32602, json!(1)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"nothing/such"}"#, 200, -32601, json!(1)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"loud"}}"#, 200, -32602, json!(1)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#, 200, -32602, json!(1)),
        (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, 400, -32600, Value::Null),
    ] {
        let response = wire.raw(body).send().await.unwrap();
        assert_eq!(response.status().as_u16(), status, "{body}");
        let answer = answer(response).await;
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &id), "{body}");
    }
}

#[tokio::test]
async fn an_unknown_tool_is_told_its_nearest_names() {
    let wire = Wire::open().await;
    let answer = answer(wire.post(&call("ecco")).send().await.unwrap()).await;
    assert_eq!(answer["error"]["message"], "Unknown tool: `ecco`; did you mean `echo`?");
}

#[tokio::test]
async fn modern_requests_are_checked_in_the_order_of_the_specification() {
    let wire = Wire::open().await;
    let meta = |version: &str, capabilities: bool| {
        let mut meta = json!({"io.modelcontextprotocol/protocolVersion": version});
        if capabilities {
            meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
        }
        meta
    };
    let list = |meta: Value| rpc("tools/list", json!({"_meta": meta}));
    let of = |method: &str| rpc(method, json!({"_meta": meta("2026-07-28", true)}));
    let none: Option<&str> = None;
    let now = Some("2026-07-28");
    for (version, method, body, status, code) in [
        (Some("2025-11-25"), Some("tools/list"), list(meta("2026-07-28", true)), 400, -32020),
        (none, Some("tools/list"), list(meta("2026-07-28", true)), 400, -32020),
        (now, none, list(meta("2026-07-28", true)), 400, -32020),
        (now, Some("Tools/list"), list(meta("2026-07-28", true)), 400, -32020),
        (now, Some("tools/call"), list(meta("v999.0.0", false)), 400, -32020),
        (now, none, list(meta("2026-07-28", false)), 400, -32020),
        (now, Some("tools/list"), list(meta("2026-07-28", false)), 400, -32602),
        (now, Some("tools/list"), list(json!({})), 400, -32602),
        (now, Some("tools/list"), rpc("tools/list", json!({})), 400, -32602),
        (Some("2099-01-01"), Some("tools/list"), list(meta("2099-01-01", false)), 400, -32602),
        (Some("2099-01-01"), Some("tools/list"), list(meta("2099-01-01", true)), 400, -32022),
        (now, Some("ping"), of("ping"), 404, -32601),
        (now, Some("initialize"), of("initialize"), 404, -32601),
        (now, Some("logging/setLevel"), of("logging/setLevel"), 404, -32601),
        (now, Some("resources/subscribe"), of("resources/subscribe"), 404, -32601),
        (now, Some("nothing/such"), of("nothing/such"), 404, -32601),
    ] {
        let mut post = wire.post(&body);
        if let Some(version) = version {
            post = post.header("mcp-protocol-version", version);
        }
        if let Some(method) = method {
            post = post.header("mcp-method", method);
        }
        let response = post.send().await.unwrap();
        assert_eq!(response.status().as_u16(), status, "{version:?} {method:?} {body}");
        let answer = answer(response).await;
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &json!(1)), "{body}");
        if code == -32022 {
            assert_eq!(answer["error"]["data"]["requested"], "2099-01-01");
        }
    }
}

#[tokio::test]
async fn a_method_that_2026_07_28_does_not_have_is_not_found_however_imperfect_its_request() {
    let wire = Wire::open().await;
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let with = |name: &str, value: Value| {
        let mut meta = meta.clone();
        meta[name] = value;
        json!({"_meta": meta})
    };
    for method in [
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
        "tasks/list",
        "tasks/result",
        "unknown/method",
    ] {
        for params in [
            json!({"_meta": meta}),
            json!({"_meta": meta, "level": "loud", "uri": 5}),
            with("progressToken", json!(1.5)),
            with("io.modelcontextprotocol/logLevel", json!("loud")),
            with("io.modelcontextprotocol/clientInfo", json!("me")),
            with("io.modelcontextprotocol/clientCapabilities", json!(null)),
            json!({"_meta": 5}),
            json!([]),
            json!({}),
        ] {
            for named in [Some(method), None] {
                let post = wire.post(&rpc(method, params.clone())).header("mcp-protocol-version", "2026-07-28");
                let post = named.map_or(post.try_clone().unwrap(), |named| post.header("mcp-method", named));
                let response = post.send().await.unwrap();
                assert_eq!(response.status(), 404, "{method} {params}");
                let answer = answer(response).await;
                assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32601), &json!(1)), "{method} {params}");
            }
        }
    }
}

#[tokio::test]
async fn modern_names_and_parameters_must_agree_with_their_headers() {
    let wire = Wire::open().await;
    let call = |arguments: Value| json!({"name": "test_custom_header", "arguments": arguments});
    let post = |arguments: Value| wire.modern("tools/call", call(arguments), json!({}));
    let good = post(json!({"value": "a"})).header("mcp-param-value", "a").send().await.unwrap();
    assert_eq!(super::wire::text(&answer(good).await), r#"{"value":"a"}"#);
    for bad in [
        post(json!({"value": "a"})),
        post(json!({"value": "a"})).header("mcp-param-value", "b"),
        post(json!({})).header("mcp-name", "other"),
    ] {
        let response = bad.send().await.unwrap();
        assert_eq!(response.status(), 400);
        assert_eq!(answer(response).await["error"]["code"], -32020);
    }
}

#[tokio::test]
async fn http_itself_is_refused_in_json() {
    let wire = Wire::open().await;
    let post = |kind: &str, version: &str| {
        let post = wire.request(reqwest::Method::POST).header("content-type", kind).body(call("echo").to_string());
        post.header("mcp-protocol-version", version)
    };
    for (request, status) in [
        (post("text/plain", "2025-11-25"), 415),
        (post("application/json", "1999-01-01"), 400),
        (wire.request(reqwest::Method::GET), 405),
        (wire.request(reqwest::Method::PUT), 405),
        (wire.request(reqwest::Method::DELETE), 405),
        (wire.request(reqwest::Method::GET).header("mcp-session-id", "x").header("accept", "text/event-stream"), 404),
        (wire.client.get(format!("{}/.well-known/oauth-protected-resource", wire.base)), 404),
        (wire.client.get(format!("{}/nothing", wire.base)), 404),
        (wire.client.delete(format!("{}/healthz", wire.base)), 405),
    ] {
        let response = request.send().await.unwrap();
        assert_eq!(response.status().as_u16(), status);
        assert_eq!(response.headers().contains_key("allow"), status == 405);
        assert_eq!(response.headers()["content-type"], "application/problem+json");
        let problem: Value = response.json().await.unwrap();
        assert_eq!(problem["status"], status);
        assert!(!problem["detail"].as_str().unwrap().is_empty());
    }
}

#[tokio::test]
async fn any_accept_header_is_served() {
    let wire = Wire::open().await;
    for accept in [None, Some("*/*"), Some("application/json")] {
        for body in [initialize("2025-11-25"), call("test_tool_with_progress"), rpc("tools/list", json!({}))] {
            let mut post = wire.request(reqwest::Method::POST).body(body.to_string());
            if let Some(accept) = accept {
                post = post.header("accept", accept);
            }
            let response = post.send().await.unwrap();
            assert_eq!(response.headers()["content-type"], "application/json");
            assert!(!response.headers().contains_key("mcp-session-id"));
            assert!(response.json::<Value>().await.unwrap()["result"].is_object());
        }
    }
}
