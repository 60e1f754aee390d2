//! A real server for tests: the built program on a fresh data directory, spoken to over HTTP.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

/// A value in the server's environment that no script may see.
pub const CANARY: &str = "canary-in-the-servers-environment";

/// A running server. Killed when dropped.
pub struct Server {
    process: Child,
    pub url: String,
    pub token: String,
    /// The path of the protocol's endpoint.
    pub path: String,
    /// What the server said when it was ready.
    pub ready: Value,
    pub client: reqwest::Client,
    _own_dir: Option<tempfile::TempDir>,
}

impl Server {
    /// A server on a data directory of its own.
    pub fn start(arguments: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut server = Self::start_on(dir.path(), arguments);
        server._own_dir = Some(dir);
        server
    }

    /// A server on this data directory.
    pub fn start_on(data_dir: &Path, arguments: &[&str]) -> Self {
        Self::start_program(Command::new(env!("CARGO_BIN_EXE_omniforge")), data_dir, arguments)
    }

    /// A server from this command (which names program and user) on this data directory.
    pub fn start_program(mut command: Command, data_dir: &Path, arguments: &[&str]) -> Self {
        let mut process = command
            .args(["serve", "--listen", "127.0.0.1:0", "--ready-json", "--data-dir"])
            .arg(data_dir)
            .args(arguments)
            .env("OMNIFORGE_TEST_CANARY", CANARY)
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ready: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("not ready: {line:?}"));
        let text = |key: &str| ready[key].as_str().unwrap_or_default().to_owned();
        // A second installation of the TLS provider is no error.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
        // Behind a proxy its URL is the proxy's.
        let url = format!("http://{}", text("listen"));
        Self { process, url, token: text("token"), path: "/mcp".to_owned(), ready, client, _own_dir: None }
    }

    /// One JSON-RPC request without a session; the response message.
    pub async fn rpc(&self, method: &str, params: Value) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        self.rpc_raw(body.to_string()).await
    }

    /// The same, from a body's text.
    pub async fn rpc_raw(&self, body: String) -> Value {
        answer(self.post(body, &[("MCP-Protocol-Version", "2025-11-25")]).await.text().await.unwrap())
    }

    /// One JSON-RPC request of 2026-07-28; the response message.
    pub async fn modern(&self, method: &str, mut params: Value) -> Value {
        params["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {}});
        let named = params.get("uri").or(params.get("name")).and_then(Value::as_str).unwrap_or_default().to_owned();
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let mut headers = vec![("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", method)];
        if ["tools/call", "prompts/get", "resources/read"].contains(&method) {
            headers.push(("Mcp-Name", &named));
        }
        answer(self.post(body.to_string(), &headers).await.text().await.unwrap())
    }

    /// A POST to the protocol's endpoint.
    pub async fn post(&self, body: String, headers: &[(&str, &str)]) -> reqwest::Response {
        let mut request = self
            .client
            .post(format!("{}{}", self.url, self.path))
            .bearer_auth(&self.token)
            .header("Content-Type", "application/json")
            .header("Accept", "application/json, text/event-stream");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(body).send().await.unwrap()
    }

    /// A session of 2025-11-25: its id.
    pub async fn session(&self) -> String {
        let params =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let opened = self.post(body.to_string(), &[]).await;
        let id = opened.headers()["mcp-session-id"].to_str().unwrap().to_owned();
        opened.text().await.unwrap();
        let told = json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string();
        assert_eq!(self.post(told, &[("Mcp-Session-Id", &id)]).await.status(), 202);
        id
    }

    /// The stream on which a session hears of changes.
    pub async fn listen(&self, session: &str) -> reqwest::Response {
        let get = self.client.get(format!("{}{}", self.url, self.path)).bearer_auth(&self.token);
        get.header("Accept", "text/event-stream").header("Mcp-Session-Id", session).send().await.unwrap()
    }

    /// What a browser is shown there.
    pub async fn page(&self, path: &str) -> String {
        let request = self.client.get(format!("{}{path}", self.url)).header("Accept", "text/html");
        request.send().await.unwrap().text().await.unwrap()
    }

    /// Calls a tool; the text of its first block and whether it is an error.
    pub async fn call(&self, name: &str, arguments: Value) -> (String, bool) {
        let answer = self.rpc("tools/call", json!({"name": name, "arguments": arguments})).await;
        let result = &answer["result"];
        let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
        (text.to_owned(), result["isError"].as_bool().unwrap_or(false))
    }

    /// Saves a tool that must be accepted.
    pub async fn create(&self, tool: Value) -> String {
        let (text, is_error) = self.call("omniforge_create_tool", tool).await;
        assert!(!is_error, "{text}");
        text
    }

    /// The names of the saved tools, in the order of the list.
    pub async fn saved_names(&self) -> Vec<String> {
        let answer = self.rpc("tools/list", json!({})).await;
        let tools = answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("{answer}")).clone();
        let names = tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned());
        names.filter(|name| !name.starts_with("omniforge_")).collect()
    }
}

impl Server {
    /// Stops in order, as SIGTERM asks for.
    pub fn stop(mut self) {
        let pid = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        self.process.wait().unwrap();
    }
}

/// Runs the program on a data directory; what it printed, and its exit status.
pub fn command(data_dir: &Path, arguments: &[&str]) -> (String, String, Option<i32>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_omniforge"));
    let done = command.args(arguments).arg("--data-dir").arg(data_dir).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(done.stdout), text(done.stderr), done.status.code())
}

/// The response message in a body of plain JSON or of events.
fn answer(text: String) -> Value {
    let is_answer = |value: &Value| value.get("result").is_some() || value.get("error").is_some();
    let events = text.lines().filter_map(|line| line.strip_prefix("data:"));
    let found = serde_json::from_str(&text).ok().filter(is_answer);
    found
        .or_else(|| events.filter_map(|data| serde_json::from_str(data).ok()).find(is_answer))
        .unwrap_or_else(|| panic!("no answer in {text:?}"))
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have been killed by the test.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
