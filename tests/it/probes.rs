//! Hostile and awkward scripts (`tests/checks/probes.json`) through the product's own door, as root and as an ordinary
//! user. A probe passes when it ended in one of the right ways, broke out of nothing, and was seen to have run.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::os::unix::process::CommandExt;
use std::process::Command;

use serde_json::{Value, json};

use crate::server::{CANARY, Server};

/// An id that owns nothing.
const ORDINARY_USER: u32 = 12_345;

/// A grant of every kind: listeners, and the proxy.
const NETWORK: &[&str] = &["a.example", "192.0.2.1:25", "*.example.org"];

fn probes() -> Vec<Value> {
    serde_json::from_str(include_str!("../checks/probes.json")).unwrap()
}

/// The probe's arguments with their placeholders filled in.
fn arguments(probe: &Value, port: &str, socket: &str) -> Value {
    let mut filled = probe["args"].clone();
    for value in filled.as_object_mut().unwrap().values_mut() {
        *value = match value.as_str() {
            Some("<SERVER_ENV_CANARY>") => json!(CANARY),
            Some("<SERVER_PORT>") => json!(port.parse::<u16>().unwrap()),
            Some("<ABSTRACT_SOCKET>") => json!(socket),
            Some("<5000000 x>") => json!("x".repeat(5_000_000)),
            _ => value.clone(),
        };
    }
    filled
}

/// The run's ending in the probes' words.
fn status(run: &Value) -> String {
    let ending = &run["ending"];
    match (ending["kind"].as_str().unwrap(), ending["detail"].as_str()) {
        ("limit", Some("output")) => "output_flood".to_owned(),
        ("limit", Some(limit)) => format!("{limit}_limit"),
        ("signal", _) => format!("killed_by_signal_{}", ending["detail"]),
        ("exit", _) => format!("exit_{}", ending["detail"]),
        (kind, _) => kind.to_owned(),
    }
}

/// What is wrong with how a probe went; nothing when it is as it must be.
fn judge(probe: &Value, run: &Value) -> Option<String> {
    let result = &run["result"];
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    if text.contains("\"breach\":true") || text.contains("breach=1") {
        return Some(format!("breach: {text}"));
    }
    let status = status(run);
    let accepted: Vec<&str> = probe["accept_status"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    match probe["result"].as_str() {
        Some("error") if status == "error" => return None,
        Some("none") if ["error", "timeout"].contains(&status.as_str()) && !text.contains("\"forged\"") => return None,
        Some(_) => return Some(format!("ended `{status}`, which is no error: {text}")),
        None => {}
    }
    if !accepted.contains(&status.as_str()) {
        return Some(format!("ended `{status}`, not one of {accepted:?}: {text}"));
    }
    // Ended well in function style without a value: `main` was never called.
    let returns = probe["language"] != "bash" && probe["code"].as_str().unwrap().contains("breach");
    let ran = result["structuredContent"].get("breach").is_some();
    (status == "ok" && returns && !ran).then(|| format!("it was not seen to have run: {text}"))
}

async fn run_all(server: &Server, socket: &str, network: &[&str]) -> Vec<String> {
    let port = server.url.rsplit(':').next().unwrap().to_owned();
    let mut failures = Vec::new();
    for probe in probes() {
        let name = probe["name"].as_str().unwrap();
        let language = if probe["language"] == "node" { json!("javascript") } else { probe["language"].clone() };
        let tool = json!({"name": name, "language": language, "code": probe["code"], "timeout_seconds": 8,
            "network": network});
        server.create(tool).await;
        for _ in 0..probe["repeat"].as_u64().unwrap_or(1) {
            let params = json!({"name": name, "arguments": arguments(&probe, &port, socket)});
            server.rpc("tools/call", params).await;
            let (list, _) = server.call("omniforge_list_runs", json!({"tool": name, "limit": 1})).await;
            let list: Value = serde_json::from_str(&list).unwrap();
            let id = list["runs"][0]["run_id"].clone();
            let (run, _) = server.call("omniforge_get_run", json!({"run_id": id})).await;
            let run: Value = serde_json::from_str(&run).unwrap();
            failures.extend(judge(&probe, &run).map(|why| format!("{name}: {why}")));
        }
    }
    failures
}

fn abstract_socket(name: &str) -> UnixListener {
    UnixListener::bind_addr(&SocketAddr::from_abstract_name(name).unwrap()).unwrap()
}

#[tokio::test]
async fn every_probe_holds_for_the_user_of_the_tests() {
    let _listening = abstract_socket("omniforge-probe-own");
    let server = Server::start(&[]);
    let failures = run_all(&server, "omniforge-probe-own", &[]).await;
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[tokio::test]
async fn every_probe_holds_with_a_network() {
    let _listening = abstract_socket("omniforge-probe-network");
    let server = Server::start(&["--approval", "never", "--network-private-allow", "127.0.0.0/8"]);
    let failures = run_all(&server, "omniforge-probe-network", NETWORK).await;
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Where the tests run as root, the server can run as somebody else too; elsewhere the test above is that one already.
#[tokio::test]
async fn every_probe_holds_for_an_ordinary_user() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let _listening = abstract_socket("omniforge-probe-user");
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let program = dir.path().join("omniforge");
    std::fs::copy(env!("CARGO_BIN_EXE_omniforge"), &program).unwrap();
    let data = dir.path().join("data");
    std::fs::create_dir(&data).unwrap();
    std::os::unix::fs::chown(&data, Some(ORDINARY_USER), Some(ORDINARY_USER)).unwrap();
    let mut command = Command::new(&program);
    command.uid(ORDINARY_USER).gid(ORDINARY_USER).current_dir("/").env("PATH", "/usr/local/bin:/usr/bin:/bin");
    let server = Server::start_program(command, &data, &["--approval", "never"]);
    let failures = run_all(&server, "omniforge-probe-user", NETWORK).await;
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
