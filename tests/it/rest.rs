//! REST: tools called by plain HTTP, and everything that is managed.

use std::path::Path;

use reqwest::{Method, Response};
use serde_json::{Value, json};

use crate::server::{Server, command};

/// A request with the server's token.
async fn send(server: &Server, method: Method, path: &str, body: Option<&str>, headers: &[(&str, &str)]) -> Response {
    let mut request = server.client.request(method, format!("{}{path}", server.url)).bearer_auth(&server.token);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    if let Some(body) = body {
        request = request.body(body.to_owned());
    }
    request.send().await.unwrap()
}

async fn call(server: &Server, path: &str, body: &str) -> (u16, Value) {
    let answer = send(server, Method::POST, path, Some(body), &[]).await;
    (answer.status().as_u16(), answer.json().await.unwrap())
}

async fn get(server: &Server, path: &str) -> (u16, Value) {
    let answer = send(server, Method::GET, path, None, &[]).await;
    (answer.status().as_u16(), answer.json().await.unwrap())
}

/// What is answered to these bytes, its first line.
fn raw(server: &Server, request: &str) -> String {
    use std::io::{BufRead as _, BufReader, Write as _};
    let mut stream = std::net::TcpStream::connect(server.url.trim_start_matches("http://")).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    line
}

fn token(dir: &Path, scope: &str) -> String {
    let (out, err, code) = command(dir, &["token", "create", "--name", "t", "--scope", scope]);
    assert_eq!(code, Some(0), "{err}");
    out.trim().to_owned()
}

#[tokio::test]
async fn a_tool_is_called_by_plain_http() {
    let server = Server::start(&[]);
    let add = "def main(a: float, b: float) -> float:\n    return float(a) + float(b)\n";
    let facts = "def main(n: int) -> dict:\n    return {'n': n}\n";
    for (name, code) in [("add", add), ("facts", facts), ("text", "def main():\n    return 'hello'\n")] {
        server.create(json!({"name": name, "code": code})).await;
    }
    assert_eq!(call(&server, "/tools/add", r#"{"a": 2, "b": 3}"#).await, (200, json!({"result": 5.0})));
    assert_eq!(call(&server, "/tools/facts", r#"{"n": 7}"#).await, (200, json!({"result": {"n": 7}})));
    assert_eq!(call(&server, "/tools/text", "").await, (200, json!({"result": "hello"})));
    let as_nanohub = call(&server, "/tools/add?compat=nanohub", r#"{"a": 2, "b": 3}"#).await;
    assert_eq!(as_nanohub, (200, json!({"result": "5.0"})));
    let exact =
        send(&server, Method::POST, "/tools/facts", Some(r#"{"n": 123456789012345678901234567890}"#), &[]).await;
    assert_eq!(exact.text().await.unwrap(), r#"{"result":{"n":123456789012345678901234567890}}"#);
}

#[tokio::test]
async fn each_failure_of_a_call_has_its_status() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::start_on(dir.path(), &[]);
    let divide = "def main(a: float, b: float):\n    if b == 0:\n        raise ToolError('Cannot divide by zero')\n    return a / b\n";
    let divide = format!("from omniforge import ToolError\n{divide}");
    let asks = "def main(ctx):\n    return ctx.elicit('how many?', {'type': 'object', 'properties': {'n': {'type': 'integer'}}})\n";
    let slow = "import time\ndef main():\n    time.sleep(60)\n";
    for tool in [
        json!({"name": "divide", "code": divide}),
        json!({"name": "asks", "code": asks}),
        json!({"name": "slow", "code": slow, "timeout_seconds": 0.3}),
        json!({"name": "job", "code": "def main():\n    return 1\n", "mode": "async"}),
    ] {
        server.create(tool).await;
    }
    for (path, body, status, words) in [
        ("/tools/divide", r#"{"a": 1, "b": 0}"#, 422, "Cannot divide by zero"),
        ("/tools/divide", r#"{"a": 1}"#, 400, "Arguments do not match inputSchema"),
        ("/tools/divide", "[1]", 400, "JSON object"),
        ("/tools/divide", "{", 400, "no JSON"),
        ("/tools/divid", "{}", 404, "did you mean `divide`"),
        ("/tools/divide?compat=x", "{}", 400, "nanohub"),
        ("/tools/asks", "{}", 409, ""),
        ("/tools/slow", "{}", 504, "[timeout]"),
    ] {
        let (found, answer) = call(&server, path, body).await;
        assert_eq!(found, status, "{path} {body}: {answer}");
        assert!(answer["error"].as_str().unwrap().contains(words), "{answer}");
        assert_eq!((&answer["detail"], &answer["status"]), (&answer["error"], &json!(status)));
    }
    let announced = format!(
        "POST /tools/divide HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nContent-Length: 17825792\r\n\r\n",
        server.token
    );
    assert!(raw(&server, &announced).contains("413 Payload Too Large"));

    let answer = send(&server, Method::POST, "/tools/job", None, &[("Idempotency-Key", "k")]).await;
    assert_eq!(answer.status(), 202);
    let place = answer.headers()["location"].to_str().unwrap().to_owned();
    let handle: Value = answer.json().await.unwrap();
    assert_eq!(place, format!("/api/v1/runs/{}", handle["job_id"].as_str().unwrap()));
    let run = loop {
        let run = get(&server, &place).await.1;
        if run["status"] != "running" {
            break run;
        }
    };
    assert_eq!((&run["status"], &run["door"]), (&json!("ok"), &json!("rest")));
    let again = send(&server, Method::POST, "/tools/job", None, &[("Idempotency-Key", "k")]).await;
    assert_eq!(again.headers()["omniforge-run-id"].to_str().unwrap(), handle["job_id"], "the same run");

    let caller = std::mem::replace(&mut server.token, token(dir.path(), "approve"));
    assert_eq!(call(&server, "/tools/divide", "{}").await.0, 403);
    server.token = "ofk_wrong".to_owned();
    assert_eq!(call(&server, "/tools/divide", "{}").await.0, 401);
    server.token = caller;
}

#[tokio::test]
async fn tools_are_managed_and_no_write_overwrites_what_was_not_seen() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::start_on(dir.path(), &[]);
    let tools = "/api/v1/tools";
    let code = |n: i32| json!({"name": "t", "code": format!("def main():\n    return {n}\n")}).to_string();
    let (status, made) = call(&server, tools, &code(1)).await;
    assert_eq!((status, &made["version"]), (201, &json!(1)), "{made}");
    assert_eq!(call(&server, tools, &code(1)).await.0, 409);
    assert_eq!(call(&server, tools, r#"{"name": "u", "code": "def main(:"}"#).await.0, 422);
    assert_eq!(call(&server, tools, r#"{"name": "u"}"#).await.0, 400);
    assert_eq!(get(&server, "/api/v1/tools/nothing").await.0, 404);
    let (_, found) = get(&server, "/api/v1/tools?query=t&limit=1").await;
    assert_eq!((&found["total"], &found["tools"][0]["name"]), (&json!(1), &json!("t")));
    assert_eq!(get(&server, "/api/v1/tools?limit=many").await.0, 400);
    assert_eq!(get(&server, "/api/v1/tools?surprise=1").await.0, 400);

    let shown = send(&server, Method::GET, "/api/v1/tools/t", None, &[]).await;
    let tag = shown.headers()["etag"].to_str().unwrap().to_owned();
    let change = r#"{"code": "def main():\n    return 2\n"}"#;
    let write = async |method: Method, path: &str, body: Option<&str>, tag: Option<&str>| {
        let headers: Vec<(&str, &str)> = tag.map(|tag| ("If-Match", tag)).into_iter().collect();
        let answer = send(&server, method, &format!("/api/v1/tools/t{path}"), body, &headers).await;
        (answer.status().as_u16(), answer.json::<Value>().await.unwrap())
    };
    assert_eq!(write(Method::PATCH, "", Some(change), None).await.0, 428);
    let (status, saved) = write(Method::PATCH, "", Some(change), Some(&tag)).await;
    assert_eq!((status, &saved["version"]), (200, &json!(2)), "{saved}");
    assert_eq!(write(Method::PATCH, "", Some(change), Some(&tag)).await.0, 412, "it is version 2 now");
    assert_eq!(write(Method::POST, "/rollback", Some(r#"{"version": 1}"#), Some(&tag)).await.0, 412);
    assert_eq!(write(Method::POST, "/rollback", Some(r#"{"version": 9}"#), Some("*")).await.0, 404);
    assert_eq!(write(Method::POST, "/rollback", Some(r#"{"version": 1}"#), Some("\"2.1\"")).await.0, 200);
    assert_eq!(call(&server, "/tools/t", "").await.1["result"], 1);
    assert_eq!(get(&server, "/api/v1/tools/t/versions").await.1["history"].as_array().unwrap().len(), 3);
    let (_, difference) = get(&server, "/api/v1/tools/t/versions?from=1&to=2").await;
    assert!(difference["message"].as_str().unwrap().contains("+    return 2"), "{difference}");
    let (status, tried) = write(Method::POST, "/test", Some(r#"{"version": 2}"#), None).await;
    assert!(status == 200 && tried["message"].as_str().unwrap().contains("[test run]"), "{tried}");
    assert_eq!(write(Method::PUT, "/enabled", Some(r#"{"enabled": false}"#), Some("*")).await.0, 200);
    assert_eq!(call(&server, "/tools/t", "").await.0, 404);
    assert_eq!(write(Method::DELETE, "", None, Some("\"3.1\"")).await.0, 412, "it is off now");
    assert_eq!(write(Method::DELETE, "", None, Some("\"3.0\"")).await.0, 200);

    server.token = token(dir.path(), "call");
    let (status, problem) = call(&server, tools, &code(1)).await;
    assert!(status == 403 && problem["detail"].as_str().unwrap().contains("`author`"), "{problem}");
}

#[tokio::test]
async fn content_tokens_and_the_log_are_managed() {
    let mut server = Server::start(&[]);
    let prompt = "/api/v1/prompts/greet";
    let put = async |server: &Server, body: &str, headers: &[(&str, &str)]| {
        send(server, Method::PUT, prompt, Some(body), headers).await.status().as_u16()
    };
    assert_eq!(put(&server, r#"{"template": "Hello {who}"}"#, &[]).await, 200, "there is none to overwrite");
    assert_eq!(put(&server, r#"{"template": "Bye {who}"}"#, &[]).await, 428);
    assert_eq!(put(&server, r#"{"template": "Bye {who}"}"#, &[("If-Match", "\"7.1\"")]).await, 412);
    let shown = send(&server, Method::GET, prompt, None, &[]).await;
    let tag = shown.headers()["etag"].to_str().unwrap().to_owned();
    assert_eq!(put(&server, r#"{"template": "Bye {who}"}"#, &[("If-Match", &tag)]).await, 200);
    assert_eq!(get(&server, "/api/v1/prompts").await.1["total"], 1);
    let resource = r#"{"uri": "notes://a/b", "text": "x"}"#;
    assert_eq!(send(&server, Method::PUT, "/api/v1/resource", Some(resource), &[]).await.status(), 200);
    assert_eq!(get(&server, "/api/v1/resource?name=notes%3A%2F%2Fa%2Fb").await.1["name"], "notes://a/b");
    let gone = send(&server, Method::DELETE, "/api/v1/resource?name=notes://a/b", None, &[("If-Match", "*")]).await;
    assert_eq!(gone.status(), 200);

    for path in ["/api/v1/tokens", "/api/v1/audit"] {
        assert_eq!(get(&server, path).await.0, 403, "{path}");
    }
    assert_eq!(get(&server, "/api/v1/server").await.1["scope"], "call author");
    server.token = server.ready["admin_token"].as_str().unwrap().to_owned();
    let (status, made) = call(&server, "/api/v1/tokens", r#"{"name": "new", "scope": "call"}"#).await;
    assert_eq!(status, 201, "{made}");
    assert_eq!(call(&server, "/api/v1/tokens", r#"{"name": "new", "scope": "fly"}"#).await.0, 400);
    let (_, listed) = get(&server, "/api/v1/tokens").await;
    assert!(!listed.to_string().contains(made["token"].as_str().unwrap()), "no secret is shown twice");
    let admin = std::mem::replace(&mut server.token, made["token"].as_str().unwrap().to_owned());
    assert_eq!(get(&server, "/api/v1/server").await.0, 200);
    server.token = admin;
    let id = made["id"].as_str().unwrap();
    assert_eq!(send(&server, Method::DELETE, &format!("/api/v1/tokens/{id}"), None, &[]).await.status(), 200);
    let (_, first) = get(&server, "/api/v1/audit?limit=1").await;
    assert_eq!(first["entries"][0]["action"], "token.revoke");
    let before = first["before"].as_str().unwrap();
    let (_, second) = get(&server, &format!("/api/v1/audit?limit=1&before={before}")).await;
    assert_eq!(second["entries"][0]["action"], "token.create", "{second}");
}

#[tokio::test]
async fn a_log_is_followed_live_and_read_afterwards() {
    let server = Server::start(&[]);
    let code = "import time\ndef main(ctx):\n    ctx.info('first')\n    ctx.progress(1, 2)\n    print('out')\n    while ctx.state.get('go') is None:\n        time.sleep(0.05)\n    ctx.info('last')\n";
    server.create(json!({"name": "job", "code": code, "mode": "async"})).await;
    let (_, handle) = call(&server, "/tools/job", "").await;
    let run = handle["job_id"].as_str().unwrap();
    let path = format!("/api/v1/runs/{run}/log");
    let mut live = send(&server, Method::GET, &path, None, &[]).await;
    assert_eq!(live.headers()["content-type"], "text/event-stream");
    assert_eq!(live.headers()["x-accel-buffering"], "no");
    let mut told = String::new();
    while !told.contains("event: progress") {
        told += &String::from_utf8_lossy(&live.chunk().await.unwrap().expect("it goes on"));
    }
    assert!(told.contains("first") && !told.contains("event: end"), "{told}");
    let stopped = send(&server, Method::POST, &format!("/api/v1/runs/{run}/cancel"), None, &[]).await;
    assert_eq!(stopped.status(), 200);
    told += &live.text().await.unwrap();
    assert!(told.contains("event: end") && told.contains("cancelled"), "{told}");
    let after = send(&server, Method::GET, &path, None, &[]).await.text().await.unwrap();
    assert!(after.contains("first") && after.contains("event: end"), "{after}");
    let (status, output) = get(&server, &format!("/api/v1/runs/{run}/outputs/stdout")).await;
    assert!(status == 200 && output["text"].as_str().is_some(), "{output}");
    assert_eq!(get(&server, &format!("/api/v1/runs/{run}/outputs/nothing")).await.0, 404);
    assert_eq!(get(&server, "/api/v1/runs/x/log").await.0, 404);
    assert_eq!(get(&server, "/api/v1/runs?tool=job").await.1["runs"][0]["status"], "cancelled");
}

#[tokio::test]
async fn the_document_names_what_there_is_under_the_prefix() {
    let server = Server::start(&["--public-url", "https://forge.example/x/"]);
    server.create(json!({"name": "add", "code": "def main(a: float, b: float) -> dict:\n    return {}\n"})).await;
    let (status, document) = get(&server, "/openapi.json").await;
    assert_eq!((status, &document["openapi"]), (200, &json!("3.1.0")));
    assert_eq!(document["servers"], json!([{"url": "https://forge.example/x"}]));
    let operation = &document["paths"]["/tools/add"]["post"];
    assert_eq!(operation["operationId"], "add");
    assert_eq!(operation["requestBody"]["content"]["application/json"]["schema"]["required"], json!(["a", "b"]));
    let mut ids = std::collections::HashSet::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            assert!(ids.insert(operation["operationId"].clone()), "{path} {method} has a name of its own");
            let real = path.replace("{stream}", "stdout").replace(['{', '}'], "");
            let method: Method = method.to_uppercase().parse().unwrap();
            let answer = send(&server, method.clone(), &real, None, &[]).await;
            let missing = answer.text().await.unwrap();
            assert!(
                !missing.contains("there is nothing at") && !missing.contains("does not answer"),
                "{method} {path}"
            );
        }
    }
    let none = server.client.get(format!("{}/openapi.json", server.url)).send().await.unwrap();
    assert_eq!(none.status(), 401);
}

#[tokio::test]
async fn everything_answers_under_the_prefix_and_only_trusted_proxies_name_the_client() {
    let dir = tempfile::tempdir().unwrap();
    for (trusted, source) in [("127.0.0.0/8", "203.0.113.9"), ("10.0.0.0/8", "127.0.0.1")] {
        let options = ["--public-url", "https://forge.example/x", "--trusted-proxies", trusted];
        let mut server = Server::start_on(dir.path(), &options);
        server.path = "/x/mcp".to_owned();
        server.create(json!({"name": "t", "code": "def main():\n    return 1\n", "replace": true})).await;
        assert_eq!(call(&server, "/x/tools/t", "").await.1["result"], 1);
        assert_eq!(call(&server, "/tools/t", "").await.1["result"], 1);
        assert_eq!(get(&server, "/xy/openapi.json").await.0, 404);
        let discovery = server.client.get(format!("{}/x/.well-known/mcp.json", server.url));
        let discovery: Value = discovery.header("Host", "forge.example").send().await.unwrap().json().await.unwrap();
        assert_eq!(discovery["transports"][0]["url"], "https://forge.example/x/mcp");
        let forwarded = [("X-Forwarded-For", "198.51.100.7, 203.0.113.9"), ("If-Match", "*")];
        assert_eq!(send(&server, Method::DELETE, "/x/api/v1/tools/t", None, &forwarded).await.status(), 200);
        server.token = server.ready["admin_token"].as_str().unwrap().to_owned();
        let (_, log) = get(&server, "/x/api/v1/audit?action=tool.delete&limit=1").await;
        assert_eq!(log["entries"][0]["source"], source, "{log}");
    }
}
