//! Tokens through the real doors: what they end when they end, when they were used, and how often one may try to sign in.

use std::path::Path;
use std::time::Duration;

use omniforge::config::KeySource;
use omniforge::trust::{OperatorKey, ServerKey};
use reqwest::{Response, StatusCode};
use serde_json::{Value, json};

use crate::server::{Server, command};

/// Longer than anything here may take; a test that waits so long fails.
const PATIENCE: Duration = Duration::from_secs(30);

/// A stored token of the owner's: its text and its id.
fn token(dir: &Path, arguments: &[&str]) -> (String, String) {
    let (out, err, code) = command(dir, &[&["token", "create", "--json", "--name", "t"], arguments].concat());
    assert_eq!(code, Some(0), "{err}");
    let made: Value = serde_json::from_str(&out).unwrap();
    (made["token"].as_str().unwrap().to_owned(), made["id"].as_str().unwrap().to_owned())
}

fn revoke(dir: &Path, id: &str) {
    let (_, err, code) = command(dir, &["token", "revoke", id]);
    assert_eq!(code, Some(0), "{err}");
}

/// What `token list` says of a token.
fn listed(dir: &Path, id: &str) -> Value {
    let (out, err, code) = command(dir, &["token", "list", "--json"]);
    assert_eq!(code, Some(0), "{err}");
    let all: Vec<Value> = serde_json::from_str(&out).unwrap();
    all.into_iter().find(|token| token["id"] == id).unwrap()
}

/// Waits until this is so.
async fn until(is_so: impl AsyncFn() -> bool) {
    let wait = async {
        while !is_so().await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.expect("it comes true");
}

/// Reads a stream to its end.
async fn ends(mut stream: Response) {
    let read = async { while let Ok(Some(_)) = stream.chunk().await {} };
    tokio::time::timeout(PATIENCE, read).await.expect("the stream ends");
}

/// Reads a stream until this text has come; all that came.
async fn tells(stream: &mut Response, text: &str) -> String {
    let mut told = String::new();
    let read = async {
        while !told.contains(text) {
            let chunk = stream.chunk().await.unwrap().expect("the stream goes on");
            told.push_str(&String::from_utf8_lossy(&chunk));
        }
    };
    tokio::time::timeout(PATIENCE, read).await.unwrap_or_else(|_| panic!("it tells {text}"));
    told
}

/// The stream of the first HTTP transport, on which a session was begun.
async fn legacy(server: &Server) -> Response {
    let get = server.client.get(format!("{}/sse", server.url)).bearer_auth(&server.token);
    let mut stream = get.header("Accept", "text/event-stream").send().await.unwrap();
    let told = tells(&mut stream, "session_id=").await;
    let endpoint = format!("{}{}", server.url, told.trim().rsplit("data: ").next().unwrap());
    let params =
        json!({"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    for message in [
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
    ] {
        let post = server.client.post(&endpoint).bearer_auth(&server.token).header("Content-Type", "application/json");
        assert_eq!(post.body(message.to_string()).send().await.unwrap().status(), StatusCode::ACCEPTED);
    }
    tells(&mut stream, "serverInfo").await;
    stream
}

/// A subscription of 2026-07-28.
async fn subscription(server: &Server) -> Response {
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}});
    let params = json!({"_meta": meta, "notifications": {"toolsListChanged": true}});
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": "subscriptions/listen", "params": params});
    let headers = [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "subscriptions/listen")];
    let mut stream = server.post(body.to_string(), &headers).await;
    assert_eq!(stream.status(), StatusCode::OK);
    tells(&mut stream, "notifications/subscriptions/acknowledged").await;
    stream
}

/// Every kind of stream that stays open, and the session that one of them belongs to.
async fn open(server: &Server) -> (String, [Response; 3]) {
    let session = server.session().await;
    let listening = server.listen(&session).await;
    assert_eq!(listening.status(), StatusCode::OK);
    (session, [listening, legacy(server).await, subscription(server).await])
}

async fn status(server: &Server, headers: &[(&str, &str)]) -> StatusCode {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    server.post(body, headers).await.status()
}

#[tokio::test]
async fn a_revocation_elsewhere_ends_all_that_is_open_and_nobody_elses() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::start_on(dir.path(), &[]);
    let (other, _) = token(dir.path(), &[]);
    let (doomed, id) = token(dir.path(), &[]);
    server.token = other.clone();
    let (session, mut living) = open(&server).await;
    server.token = doomed.clone();
    let (ended, dying) = open(&server).await;
    revoke(dir.path(), &id);
    for stream in dying {
        ends(stream).await;
    }
    assert_eq!(status(&server, &[]).await, StatusCode::UNAUTHORIZED);
    assert_eq!(server.listen(&session).await.status(), StatusCode::UNAUTHORIZED);
    // The same principal's other token: its streams still tell, the revoked one's session is gone.
    server.token = other;
    assert_eq!(status(&server, &[("Mcp-Session-Id", &ended)]).await, StatusCode::NOT_FOUND);
    assert_eq!(status(&server, &[("Mcp-Session-Id", &session)]).await, StatusCode::OK);
    server.create(json!({"name": "t", "language": "bash", "code": "echo 1"})).await;
    for stream in &mut living {
        tells(stream, "notifications/tools/list_changed").await;
    }
}

#[tokio::test]
async fn a_token_that_expires_ends_what_is_open() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::start_on(dir.path(), &[]);
    // Long enough to open them on a busy machine.
    let (brief, id) = token(dir.path(), &["--expires", "10s"]);
    server.token = brief;
    let (_, streams) = open(&server).await;
    for stream in streams {
        ends(stream).await;
    }
    let refused = server.post(String::new(), &[]).await;
    assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
    assert!(refused.text().await.unwrap().contains("expired"));
    assert_eq!(listed(dir.path(), &id)["state"], "expired");
}

#[tokio::test]
async fn a_revocation_kills_the_calls_of_the_token() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::start_on(dir.path(), &[]);
    let code = "def main(ctx):\n    import time\n    ctx.info('begun')\n    time.sleep(50)\n    return 'done'\n";
    server.create(json!({"name": "long", "code": code})).await;
    let own = server.token.clone();
    let call = |version: &str| {
        let meta = json!({"io.modelcontextprotocol/protocolVersion": version,
            "io.modelcontextprotocol/clientCapabilities": {}, "io.modelcontextprotocol/logLevel": "info"});
        let mut params = json!({"name": "long", "arguments": {}});
        if version == "2026-07-28" {
            params["_meta"] = meta;
        }
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string()
    };
    let modern = [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Name", "long")];
    let legacy = [("MCP-Protocol-Version", "2025-11-25")];
    let (doomed, id) = token(dir.path(), &[]);
    server.token = doomed;
    let session = server.session().await;
    let in_session = [("MCP-Protocol-Version", "2025-11-25"), ("Mcp-Session-Id", session.as_str())];
    let calls = async {
        let calls = tokio::join!(
            server.post(call("2026-07-28"), &modern),
            server.post(call("2025-11-25"), &legacy),
            server.post(call("2025-11-25"), &in_session),
        );
        for answer in [calls.0, calls.1, calls.2] {
            ends(answer).await;
        }
    };
    let revoked = async {
        // All three run: then it is revoked.
        until(async || runs(dir.path(), "ending IS NULL").await == 3).await;
        revoke(dir.path(), &id);
    };
    tokio::time::timeout(PATIENCE, async { tokio::join!(calls, revoked) }).await.expect("they end");
    server.token = own;
    until(async || runs(dir.path(), "ending = 'cancelled'").await == 3).await;
}

/// How many runs of `long` are like that.
async fn runs(dir: &Path, condition: &str) -> i64 {
    use sqlx::ConnectOptions as _;
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(dir.join("omniforge.db"));
    let mut connection: sqlx::SqliteConnection = options.connect().await.unwrap();
    let text = format!("SELECT count(*) FROM runs WHERE tool_name = 'long' AND {condition}");
    sqlx::query_scalar(sqlx::AssertSqlSafe(text)).fetch_one(&mut connection).await.unwrap()
}

#[tokio::test]
async fn a_revocation_ends_rest_calls_too() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start_on(dir.path(), &[]);
    server.create(json!({"name": "long", "code": "import time\ndef main():\n    time.sleep(50)\n"})).await;
    let (doomed, id) = token(dir.path(), &[]);
    let call = server.client.post(format!("{}/tools/long", server.url)).bearer_auth(&doomed);
    let call = call.header("Content-Type", "application/json").body("{}").send();
    let revoked = async {
        until(async || runs(dir.path(), "ending IS NULL").await == 1).await;
        revoke(dir.path(), &id);
    };
    let both = tokio::time::timeout(PATIENCE, async { tokio::join!(call, revoked) }).await.expect("it ends");
    assert_eq!(both.0.unwrap().status(), StatusCode::UNAUTHORIZED);
    until(async || runs(dir.path(), "ending = 'cancelled'").await == 1).await;
}

#[tokio::test]
async fn without_the_scope_call_nothing_saved_runs() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::start_on(dir.path(), &[]);
    server.create(json!({"name": "t", "code": "def main(): return 'ran'"})).await;
    let resource = json!({"uri": "test://made", "code": "def main(): return 'made'"});
    let (said, is_error) = server.call("omniforge_save_resource", resource).await;
    assert!(!is_error, "{said}");
    for scope in ["author", "approve", "admin"] {
        server.token = token(dir.path(), &["--scope", scope]).0;
        assert!(server.saved_names().await.is_empty(), "{scope}");
        for (name, arguments) in [("t", json!({})), ("omniforge_call_tool", json!({"name": "t"}))] {
            let (text, is_error) = server.call(name, arguments).await;
            assert!(is_error && text.contains("scope `call`"), "{scope} {name}: {text}");
        }
        let read = server.rpc("resources/read", json!({"uri": "test://made"})).await;
        assert!(read["error"]["message"].as_str().is_some_and(|text| text.contains("scope `call`")), "{scope}: {read}");
    }
}

#[tokio::test]
async fn nobody_makes_a_token_that_may_more_than_they_may() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start_on(dir.path(), &[]);
    let (admin, _) = token(dir.path(), &["--scope", "admin"]);
    let make = async |scope: &str| {
        let request = server.client.post(format!("{}/api/v1/tokens", server.url)).bearer_auth(&admin);
        let request = request.header("Content-Type", "application/json");
        let answer = request.body(json!({"name": "x", "scope": scope}).to_string()).send().await.unwrap();
        (answer.status(), answer.text().await.unwrap())
    };
    let (status, said) = make("call author approve admin").await;
    assert!(status == StatusCode::FORBIDDEN && said.contains("the scope `call`"), "{said}");
    assert_eq!(make("admin approve").await.0, StatusCode::FORBIDDEN);
    assert_eq!(make("admin").await.0, StatusCode::CREATED);
}

#[tokio::test]
async fn the_last_use_is_written_in_batches_and_shown() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::start_on(dir.path(), &[]);
    let (used, id) = token(dir.path(), &["--scope", "call", "--expires", "1d"]);
    let fresh = listed(dir.path(), &id);
    assert_eq!((&fresh["last_used_at"], &fresh["scopes"]), (&Value::Null, &json!("call")), "{fresh}");
    assert!(fresh["expires_at"].is_i64() && fresh["state"] == "valid", "{fresh}");
    server.token = used;
    for _ in 0..20 {
        assert_eq!(status(&server, &[]).await, StatusCode::OK);
    }
    until(async || listed(dir.path(), &id)["last_used_at"].is_i64()).await;
    let first = listed(dir.path(), &id)["last_used_at"].as_i64().unwrap();
    // What comes within the minute waits; a server that stops in order writes it.
    assert_eq!(status(&server, &[]).await, StatusCode::OK);
    server.stop();
    assert!(listed(dir.path(), &id)["last_used_at"].as_i64().unwrap() > first);
    let (out, ..) = command(dir.path(), &["token", "list"]);
    let (_, told) = out.split_once(&id).unwrap();
    assert!(told.contains("valid") && told.contains("call  t") && told.contains("last used 20"), "{out}");
    revoke(dir.path(), &id);
    assert_eq!(listed(dir.path(), &id)["state"], "revoked");
}

#[tokio::test]
async fn who_tries_too_often_to_sign_in_must_wait() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start_on(dir.path(), &[]);
    let attempt = async || {
        let form = server.client.post(format!("{}/signin", server.url)).header("Accept", "text/html");
        let form = form.header("Origin", &server.url).header("Sec-Fetch-Site", "same-origin");
        let form = form.header("Content-Type", "application/x-www-form-urlencoded").header("Omniforge-Peer", "1.2.3.4");
        form.body(format!("code={}", "a".repeat(43))).send().await.unwrap()
    };
    for _ in 0..10 {
        assert_eq!(attempt().await.status(), StatusCode::GONE);
    }
    let refused = attempt().await;
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    let wait: u64 = refused.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    let page = refused.text().await.unwrap();
    assert!(page.contains("Too many sign-in attempts from this address failed; try again in"), "{page}");
    server.stop();
    let (out, ..) = command(dir.path(), &["audit", "list", "--json", "--action", "sign_in"]);
    let all: Vec<Value> = serde_json::from_str(&out).unwrap();
    let limited = all.iter().find(|entry| entry["action"] == "sign_in.limited").unwrap();
    assert_eq!(limited["source"], "127.0.0.1", "whatever the request says of itself: {limited}");
}

#[tokio::test]
async fn signing_in_and_out_is_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let store = omniforge::store::Store::open(dir.path(), omniforge::clock::Clock::system()).await.unwrap();
    let operator = OperatorKey::open(&KeySource::DataDirectory, dir.path()).unwrap();
    let key = ServerKey::open(&store, &operator).await.unwrap();
    let auth = omniforge::auth::Auth::new(store.clone(), key.derive(omniforge::trust::CREDENTIALS)).await.unwrap();
    let peer = Some("192.0.2.7".parse().unwrap());
    let session = auth.spend_sign_in_code(&auth.new_sign_in_link().await.unwrap(), peer).await.unwrap();
    assert!(auth.sign_out(&session, peer).await.unwrap());
    assert!(!auth.sign_out(&session, peer).await.unwrap());
    store.close().await.unwrap();
    let (out, ..) = command(dir.path(), &["audit", "list"]);
    let told: Vec<&str> = out.lines().collect();
    assert_eq!(told.len(), 2, "{out}");
    assert!(told[0].contains("session.end") && told[0].contains("owner from 192.0.2.7"), "{out}");
    assert!(told[1].contains("sign_in.use"), "{out}");
}
