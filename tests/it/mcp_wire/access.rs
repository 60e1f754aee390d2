//! Who may come in: credentials, Host, Origin, CORS, and how much they may send.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::wire::{SOON, Wire, rpc};

#[tokio::test]
async fn without_a_credential_nothing_is_told_but_what_is_missing() {
    let wire = Wire::with(false, |_| {}).await;
    let list = || wire.post(&rpc("tools/list", json!({})));
    for (request, said) in [
        (list(), "no Authorization header arrived"),
        (list().bearer_auth("mallory"), "an Authorization header arrived, but its token is unknown"),
        (list().body("{"), "no Authorization header arrived"),
        (wire.request(Method::GET), "no Authorization header arrived"),
        (wire.request(Method::DELETE).header("mcp-session-id", "x"), "no Authorization header arrived"),
    ] {
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 401);
        assert_eq!(response.headers()["www-authenticate"], "Bearer realm=\"omniforge\"");
        let problem: Value = response.json().await.unwrap();
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("bearer token") && detail.contains(said), "{detail}");
        assert!(!problem.to_string().contains("omniforge_instructions"));
    }
}

#[tokio::test]
async fn host_and_origin_are_checked_and_the_refusal_names_the_setting() {
    let wire = Wire::with(true, |options| options.allowed_origins = vec!["https://app.example".to_owned()]).await;
    let ping = || wire.post(&rpc("ping", json!({})));
    for (request, refused_by) in [
        (ping(), None),
        (ping().header("origin", &wire.base), None),
        (ping().header("origin", "https://app.example"), None),
        (ping().header("origin", "https://evil.example"), Some("allowed_origins")),
        (ping().header("origin", "null"), Some("allowed_origins")),
        (ping().header("sec-fetch-site", "cross-site"), Some("allowed_origins")),
        (ping().header("host", "evil.example"), Some("allowed_hosts")),
        (ping().header("host", "evil.example").bearer_auth("anna"), None),
        (
            ping().header("host", "evil.example").header("origin", "http://evil.example").bearer_auth("anna"),
            Some("allowed_hosts"),
        ),
    ] {
        let response = request.send().await.unwrap();
        let expected = if refused_by.is_some() { StatusCode::FORBIDDEN } else { StatusCode::OK };
        assert_eq!(response.status(), expected);
        let body = response.text().await.unwrap();
        assert!(refused_by.is_none_or(|setting| body.contains(setting)), "{body}");
    }
    for path in ["/healthz", "/readyz"] {
        let health = wire.client.get(format!("{}{path}", wire.base)).header("host", "evil.example").send().await;
        assert_eq!(health.unwrap().status(), 200);
    }
}

#[tokio::test]
async fn pages_of_allowed_origins_and_no_others_may_read_responses() {
    let wire = Wire::with(false, |options| options.allowed_origins = vec!["https://app.example".to_owned()]).await;
    let preflight = |origin: &str| {
        let request = wire.request(Method::OPTIONS).header("origin", origin);
        let request = request.header("access-control-request-method", "POST");
        request.header("access-control-request-headers", "mcp-session-id, mcp-param-city, x-other").send()
    };
    let allowed = preflight("https://app.example").await.unwrap();
    assert_eq!(allowed.status(), 204);
    assert_eq!(allowed.headers()["access-control-allow-origin"], "https://app.example");
    let headers = allowed.headers()["access-control-allow-headers"].to_str().unwrap();
    assert!(headers.contains("mcp-param-city") && headers.contains("authorization") && !headers.contains("x-other"));
    assert_eq!(preflight("https://evil.example").await.unwrap().status(), 403);
    for (origin, readable) in [("https://app.example", true), ("https://evil.example", false)] {
        let response = wire.post(&rpc("ping", json!({}))).header("origin", origin).send().await.unwrap();
        assert_eq!(response.headers().contains_key("access-control-allow-origin"), readable);
        assert_eq!(response.headers().contains_key("access-control-expose-headers"), readable);
    }
}

#[tokio::test]
async fn a_body_is_bounded_in_size_and_time() {
    let wire = Wire::with(true, |options| {
        options.body_limit = 1000;
        options.body_patience = Duration::from_millis(200);
    })
    .await;
    let large = wire.raw(" ".repeat(1001)).send().await.unwrap();
    assert_eq!(large.status(), 413);
    assert!(large.json::<Value>().await.unwrap()["detail"].as_str().unwrap().contains("1000 bytes"));
    let address = wire.base.strip_prefix("http://").unwrap();
    for (framing, sent, status) in [
        ("content-length: 500", "{", "408"),
        ("transfer-encoding: chunked", "1\r\n{\r\n", "408"),
        ("transfer-encoding: chunked", &format!("3e9\r\n{}\r\n", " ".repeat(1001)), "413"),
    ] {
        let mut socket = tokio::net::TcpStream::connect(address).await.unwrap();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n{framing}\r\n\r\n{sent}"
        );
        socket.write_all(head.as_bytes()).await.unwrap();
        let mut answer = vec![0; 12];
        tokio::time::timeout(SOON, socket.read_exact(&mut answer)).await.unwrap().unwrap();
        assert_eq!(String::from_utf8(answer).unwrap(), format!("HTTP/1.1 {status}"));
    }
}

#[tokio::test]
async fn discovery_names_the_endpoint_under_the_public_url() {
    let get = |wire: &Wire| wire.client.get(format!("{}/.well-known/mcp.json", wire.base)).send();
    let wire = Wire::with(false, |_| {}).await;
    let found: Value = get(&wire).await.unwrap().json().await.unwrap();
    assert_eq!(found["endpoints"][0]["url"], format!("{}/mcp", wire.base));
    let wire = Wire::with(false, |options| options.public_url = Some("https://x.example/forge/".to_owned())).await;
    let found: Value = get(&wire).await.unwrap().json().await.unwrap();
    assert_eq!(found["endpoints"][0]["url"], "https://x.example/forge/mcp");
    assert_eq!(found["endpoints"][1], json!({"transport": "sse", "url": "https://x.example/forge/sse"}));
    assert_eq!(found["authentication"], json!({"type": "bearer"}));
    assert_eq!(found["protocolVersions"].as_array().unwrap().len(), 5);
}

/// What the server says to a request whose body is (partly) not there yet, and then to the next on the same connection.
async fn twice(wire: &Wire, headers: &str, first: &str) -> String {
    let address = wire.base.strip_prefix("http://").unwrap();
    let mut socket = tokio::net::TcpStream::connect(address).await.unwrap();
    let post = format!("POST /mcp HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n{headers}\r\n");
    socket.write_all(post.as_bytes()).await.unwrap();
    socket.write_all(first.as_bytes()).await.unwrap();
    let next = format!("GET /healthz HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    // Where the connection ended already, nobody takes it.
    let _ = socket.write_all(next.as_bytes()).await;
    let mut answers = Vec::new();
    let _ = tokio::time::timeout(SOON, socket.read_to_end(&mut answers)).await.unwrap();
    String::from_utf8(answers).unwrap().to_lowercase()
}

#[tokio::test]
async fn a_refused_body_does_not_spoil_its_connection() {
    let wire = Wire::with(false, |_| {}).await;
    let small = twice(&wire, "content-length: 5\r\n", "12345").await;
    assert_eq!(small.matches("http/1.1 401").count(), 1, "{small}");
    assert_eq!(small.matches("http/1.1 200").count(), 1, "{small}");
    for (headers, first) in [
        ("content-length: 99999999\r\n", String::new()),
        ("content-length: 5\r\nexpect: 100-continue\r\n", String::new()),
        ("transfer-encoding: chunked\r\n", format!("{:x}\r\n{}\r\n", 300 << 10, " ".repeat(300 << 10))),
    ] {
        let said = twice(&wire, headers, &first).await;
        assert!(said.starts_with("http/1.1 401") && said.contains("connection: close\r\n"), "{headers}: {said}");
        assert_eq!(said.matches("http/1.1").count(), 1, "{headers}: {said}");
    }
}
