//! A real server on a real socket, and the small client that the tests speak to it with.

use std::sync::{Arc, Once};
use std::time::Duration;

use axum::routing::get;
use omniforge::http::{HttpOptions, Router, router, serve};
use omniforge::lifecycle::Lifecycle;
use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::fixture::{Fixture, Names};

/// How long a test waits for what must come.
pub const SOON: Duration = Duration::from_secs(10);

pub struct Wire {
    pub fixture: Arc<Fixture>,
    pub base: String,
    pub client: reqwest::Client,
    pub lifecycle: Lifecycle,
    pub server: JoinHandle<()>,
}

/// Somebody else's page at `/`.
fn page() -> Router {
    Router::new().route("/", get(|| async { "a page" }))
}

impl Wire {
    pub async fn open() -> Self {
        Self::with(true, |_| {}).await
    }

    pub async fn with(open: bool, change: impl FnOnce(&mut HttpOptions)) -> Self {
        Self::draining(open, Duration::from_millis(500), change).await
    }

    /// The same, with so much time for calls that go on when the server stops.
    pub async fn draining(open: bool, drain: Duration, change: impl FnOnce(&mut HttpOptions)) -> Self {
        static PROVIDER: Once = Once::new();
        PROVIDER.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));
        let lifecycle = Lifecycle::new(drain);
        let fixture = Arc::new(Fixture::of(lifecycle.clone()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut options = HttpOptions::new(address);
        change(&mut options);
        let router = router(fixture.clone(), Arc::new(Names { open }), options, &lifecycle, page()).unwrap();
        let life = lifecycle.clone();
        let server = tokio::spawn(async move { serve(listener, router, &life).await });
        let client = reqwest::Client::new();
        Self { fixture, base: format!("http://{address}"), client, lifecycle, server }
    }

    pub fn request(&self, method: Method) -> RequestBuilder {
        self.client.request(method, format!("{}/mcp", self.base)).timeout(SOON)
    }

    pub fn post(&self, body: &Value) -> RequestBuilder {
        self.raw(body.to_string())
    }

    pub fn raw(&self, body: impl Into<String>) -> RequestBuilder {
        let post = self.request(Method::POST).header("content-type", "application/json");
        post.header("accept", "application/json, text/event-stream").body(body.into())
    }

    /// A 2026-07-28 request, with more `_meta`.
    pub fn modern(&self, method: &str, params: Value, meta: Value) -> RequestBuilder {
        let mut all = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        all.as_object_mut().unwrap().extend(meta.as_object().unwrap().clone());
        let mut params = params;
        params["_meta"] = all;
        let name = params["name"].as_str().map(ToOwned::to_owned);
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let post = self.post(&body).header("mcp-protocol-version", "2026-07-28").header("mcp-method", method);
        match name {
            Some(name) => post.header("mcp-name", name),
            None => post,
        }
    }

    pub async fn session(&self, version: &str) -> Session<'_> {
        let response = self.post(&initialize(version)).send().await.unwrap();
        assert_eq!(response.status(), 200);
        let id = response.headers()["mcp-session-id"].to_str().unwrap().to_owned();
        let version = answer(response).await["result"]["protocolVersion"].as_str().unwrap().to_owned();
        let session = Session { wire: self, id, version };
        let told = session.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        assert_eq!(told.send().await.unwrap().status(), 202);
        session
    }
}

pub struct Session<'a> {
    pub wire: &'a Wire,
    pub id: String,
    pub version: String,
}

impl Session<'_> {
    pub fn post(&self, body: &Value) -> RequestBuilder {
        self.dress(self.wire.post(body))
    }

    pub fn dress(&self, request: RequestBuilder) -> RequestBuilder {
        request.header("mcp-session-id", &self.id).header("mcp-protocol-version", &self.version)
    }

    pub async fn listen(&self) -> Events {
        let get = self.dress(self.wire.request(Method::GET)).header("accept", "text/event-stream");
        Events::of(get.send().await.unwrap())
    }
}

pub fn initialize(version: &str) -> Value {
    rpc(
        "initialize",
        json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}),
    )
}

pub fn rpc(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

pub fn call(name: &str) -> Value {
    rpc("tools/call", json!({"name": name, "arguments": {}}))
}

/// The messages of an event stream, as they come.
pub struct Events {
    response: Response,
    buffer: String,
    pub comments: usize,
}

impl Events {
    pub fn of(response: Response) -> Self {
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { response, buffer: String::new(), comments: 0 }
    }

    /// The next message; `None` at the end of the stream.
    pub async fn next(&mut self) -> Option<Value> {
        self.event().await.map(|(_, data)| serde_json::from_str(&data).unwrap())
    }

    /// The next event with data: its name and its data.
    pub async fn event(&mut self) -> Option<(String, String)> {
        loop {
            while let Some(end) = self.buffer.find("\n\n") {
                let event: String = self.buffer.drain(..end + 2).collect();
                self.comments += event.lines().filter(|line| line.starts_with(':')).count();
                let name = event.lines().find_map(|line| line.strip_prefix("event:")).unwrap_or("message");
                let data: Vec<&str> = event.lines().filter_map(|line| line.strip_prefix("data:")).collect();
                let data = data.join("\n");
                if !data.trim().is_empty() {
                    return Some((name.trim().to_owned(), data.trim().to_owned()));
                }
            }
            let chunk = tokio::time::timeout(SOON, self.response.chunk()).await.expect("the stream is silent");
            match chunk {
                Ok(Some(chunk)) => self.buffer.push_str(std::str::from_utf8(&chunk).unwrap()),
                Ok(None) | Err(_) => return None,
            }
        }
    }

    /// The next message, unless none comes within this time.
    pub async fn within(&mut self, time: Duration) -> Option<Value> {
        tokio::time::timeout(time, self.next()).await.ok().flatten()
    }

    pub async fn all(mut self) -> Vec<Value> {
        let mut all = Vec::new();
        while let Some(message) = self.next().await {
            all.push(message);
        }
        all
    }
}

/// All messages of a response, JSON or stream.
pub async fn messages(response: Response) -> Vec<Value> {
    if response.headers()["content-type"] == "text/event-stream" {
        Events::of(response).all().await
    } else {
        vec![response.json().await.unwrap()]
    }
}

/// The one response in a response.
pub async fn answer(response: Response) -> Value {
    let mut all = messages(response).await;
    let last = all.pop().expect("a response");
    assert!(last.get("method").is_none() && last["jsonrpc"] == "2.0", "{last}");
    last
}

/// The text of a result's first block.
pub fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text in {answer}"))
}

/// Sends a request whose body comes after the server has begun to shut down; the whole response as it is on the wire.
pub async fn late(wire: &Wire, path: &str, headers: &str, body: &Value) -> String {
    let address = wire.base.strip_prefix("http://").unwrap();
    let body = body.to_string();
    let mut socket = tokio::net::TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\nauthorization: Bearer anna\r\n\
         {headers}content-length: {}\r\nexpect: 100-continue\r\nconnection: close\r\n\r\n",
        body.len()
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    let mut answer = vec![0; 25];
    // It is sent when the body is asked for.
    tokio::time::timeout(SOON, socket.read_exact(&mut answer)).await.unwrap().unwrap();
    assert_eq!(answer, b"HTTP/1.1 100 Continue\r\n\r\n");
    wire.lifecycle.closing.cancel();
    socket.write_all(body.as_bytes()).await.unwrap();
    let mut answer = String::new();
    tokio::time::timeout(SOON, socket.read_to_string(&mut answer)).await.unwrap().unwrap();
    answer
}
