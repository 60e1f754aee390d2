//! Secrets through the real doors: who sets them, which runs get them, and where they must not stand.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::server::Server;

const NAME: &str = "SERVICE_KEY";
const SECRET: &str = "tr0ub4dor/&3+\"quoted\" ünd more";

async fn api(server: &Server, token: &str, method: Method, path: &str, body: Option<Value>) -> (StatusCode, Value) {
    let mut request = server.client.request(method, format!("{}/api/v1/{path}", server.url)).bearer_auth(token);
    if let Some(body) = body {
        request = request.header("Content-Type", "application/json").body(body.to_string());
    }
    let answer = request.send().await.unwrap();
    (answer.status(), serde_json::from_str(&answer.text().await.unwrap()).unwrap())
}

fn admin(server: &Server) -> &str {
    server.ready["admin_token"].as_str().unwrap()
}

async fn set(server: &Server, name: &str, value: &str, hosts: Value) {
    let body = json!({"value": value, "hosts": hosts});
    let (status, said) = api(server, admin(server), Method::PUT, &format!("secrets/{name}"), Some(body)).await;
    assert_eq!((status, said), (StatusCode::OK, json!({"name": name})));
}

fn command(dir: &Path, arguments: &[&str], input: &str) -> (String, bool) {
    let mut process = Command::new(env!("CARGO_BIN_EXE_omniforge"))
        .arg("secret")
        .args(arguments)
        .env("OMNIFORGE_DATA_DIR", dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    process.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = process.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    (text, output.status.success())
}

/// A script that tells its secret in every form, to every outlet.
const TELL_ALL: &str = r#"
import base64, json, os, sys, urllib.parse

KEY = os.environ["SERVICE_KEY"]

def forms():
    yield KEY
    yield json.dumps(KEY)
    yield json.dumps(KEY, ensure_ascii=False)
    yield urllib.parse.quote(KEY, safe="")
    yield urllib.parse.quote_plus(KEY)
    yield KEY.encode().hex()
    for before in ("", "a", "ab"):
        yield base64.b64encode((before + KEY).encode()).decode()
        yield base64.urlsafe_b64encode((before + KEY + "!").encode()).decode()

def main(ctx, fail: bool = False):
    for form in forms():
        ctx.info("log: " + form)
        ctx.progress(1, 2, "progress: " + form)
        print("out:", form)
    for byte in KEY.encode():
        # A piece at a time.
        os.write(1, bytes([byte]))
        os.write(2, bytes([byte]))
    sys.stdout.write("x" * 2_000_000 + KEY)
    sys.stdout.flush()
    ctx.state.set("key", KEY)
    if fail:
        raise ValueError(KEY)
    return {"all": list(forms()), KEY: ctx.state.get("key"), "works": len(KEY), "head": KEY[:3]}
"#;

/// What must stand nowhere: the value, and parts of it in other forms.
fn traces() -> Vec<Vec<u8>> {
    let hex: String = SECRET.bytes().map(|byte| format!("{byte:02x}")).collect();
    let mut traces: Vec<Vec<u8>> =
        [SECRET, "tr0ub4dor", "%26 3", "%263%2B", "\\u00fcnd more", &hex].map(|text| text.as_bytes().to_vec()).into();
    // The inside of its base64 at each place.
    traces.extend(["cjB1YjRkb3Iv", "MHViNGRvci8m", "dHIwdWI0ZG9y"].map(|text| text.as_bytes().to_vec()));
    traces
}

/// Every file below this, but the key.
fn files(dir: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

fn assert_clean(what: &str, bytes: &[u8]) {
    for trace in traces() {
        let at = bytes.windows(trace.len()).position(|window| window == trace);
        let shown = at.map(|at| String::from_utf8_lossy(&bytes[at.saturating_sub(60)..(at + 90).min(bytes.len())]));
        assert_eq!(shown, None, "{what} holds {}", String::from_utf8_lossy(&trace));
    }
}

#[tokio::test]
async fn a_secret_reaches_the_run_and_nothing_that_it_says() {
    let dir = tempfile::tempdir().unwrap();
    let mut logging = Command::new("sh");
    logging.args(["-c", "exec \"$0\" \"$@\" 2>\"$LOG\"", env!("CARGO_BIN_EXE_omniforge")]);
    let log = tempfile::NamedTempFile::new().unwrap();
    logging.env("LOG", log.path());
    let server = Server::start_program(logging, dir.path(), &["--approval", "never", "--log", "debug"]);
    set(&server, NAME, SECRET, json!([])).await;
    server.create(json!({"name": "tell", "code": TELL_ALL, "secrets": [NAME]})).await;
    let bash =
        "printf '%s\\n' \"$SERVICE_KEY\"; printf '%s' \"$SERVICE_KEY\" | base64 -w0 >&2; echo \"${#SERVICE_KEY}\"";
    server.create(json!({"name": "tell_bash", "language": "bash", "code": bash, "secrets": [NAME]})).await;
    let node = "exports.main = () => { console.log(process.env.SERVICE_KEY); \
                return {key: process.env.SERVICE_KEY, works: process.env.SERVICE_KEY.length}; };";
    server.create(json!({"name": "tell_node", "language": "javascript", "code": node, "secrets": [NAME]})).await;
    let length = SECRET.chars().count();
    for (tool, arguments) in [
        ("tell", json!({})),
        ("tell", json!({"fail": true})),
        ("tell_bash", json!({})),
        ("tell_node", json!({})),
        ("omniforge_call_tool", json!({"name": "tell"})),
        ("omniforge_test_tool", json!({"name": "tell"})),
    ] {
        let params = json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": "p"}});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let answer = server.post(body.to_string(), &[("MCP-Protocol-Version", "2025-11-25")]).await;
        let text = answer.text().await.unwrap();
        assert_clean(tool, text.as_bytes());
        assert!(text.contains("***"), "{tool}: {text}");
        let failed = arguments.get("fail").is_some();
        assert!(failed || text.contains(&length.to_string()), "{tool} has not had its secret: {text}");
        assert!(tool != "tell" || text.contains("progress: ***"), "{text}");
    }
    let (runs, _) = server.call("omniforge_list_runs", json!({})).await;
    let runs: Value = serde_json::from_str(&runs).unwrap();
    for run in runs["runs"].as_array().unwrap() {
        let (text, _) = server.call("omniforge_get_run", json!({"run_id": run["run_id"]})).await;
        assert_clean("a run", text.as_bytes());
    }
    drop(server);
    let log = std::fs::read(log.path()).unwrap();
    assert!(log.len() > 1000, "there is a log");
    assert_clean("the server's log", &log);
    let mut found = Vec::new();
    files(dir.path(), &mut found);
    assert!(found.iter().any(|path| path.ends_with("omniforge.db")), "{found:?}");
    assert!(found.iter().any(|path| path.to_string_lossy().contains("outputs")), "no long output in {found:?}");
    for path in found {
        assert_clean(&path.to_string_lossy(), &std::fs::read(&path).unwrap());
    }
}

#[tokio::test]
async fn only_approved_versions_get_it_and_only_when_it_is_set() {
    let server = Server::start(&[]);
    let code = "import os\ndef main():\n    return len(os.environ.get('SERVICE_KEY', ''))\n";
    let text = server.create(json!({"name": "t", "code": code, "secrets": [NAME]})).await;
    assert!(text.contains("Needs approval by a person: secrets: SERVICE_KEY"), "{text}");
    set(&server, NAME, SECRET, json!([])).await;
    // Not by a test, and not by learning.
    for arguments in [json!({"name": "t"}), json!({"name": "t", "version": 1}), json!({"name": "t", "learn": true})] {
        let (text, is_error) = server.call("omniforge_test_tool", arguments.clone()).await;
        let learned = if arguments.get("learn").is_some() { "placeholder-for-SERVICE_KEY".len() } else { 0 };
        assert_eq!((text, is_error), (learned.to_string(), false), "{arguments}");
    }
    let review = api(&server, admin(&server), Method::GET, "approvals/t", None).await.1;
    let approve = json!({"version": review["version"], "fingerprint": review["fingerprint"]});
    let (status, said) = api(&server, admin(&server), Method::POST, "approvals/t", Some(approve)).await;
    assert_eq!(status, StatusCode::OK, "{said}");
    assert_eq!(server.call("t", json!({})).await.0, SECRET.chars().count().to_string());
    assert_eq!(api(&server, admin(&server), Method::DELETE, "secrets/SERVICE_KEY", None).await.0, StatusCode::OK);
    let (text, is_error) = server.call("t", json!({})).await;
    assert!(is_error && text.contains("`SERVICE_KEY` is not set") && text.contains("omniforge secret set"), "{text}");
}

#[tokio::test]
async fn a_secret_for_hosts_is_given_to_nothing_that_reaches_further() {
    let server = Server::start(&["--approval", "never"]);
    set(&server, NAME, SECRET, json!(["*.Example.org"])).await;
    let code = "def main():\n    return 'ran'\n";
    let tool =
        |network: Value| json!({"name": "t", "code": code, "secrets": [NAME], "network": network, "replace": true});
    server.create(tool(json!(["api.example.org"]))).await;
    assert_eq!(server.call("t", json!({})).await.0, "ran");
    for far in [json!("full"), json!(["api.example.org", "evil.example"])] {
        server.create(tool(far)).await;
        let (text, is_error) = server.call("t", json!({})).await;
        assert!(is_error && text.contains("is for *.example.org, but the version may also reach"), "{text}");
    }
    // Nor where what it calls reaches further, or what that calls.
    let hop = |name: &str, calls: &str| json!({"name": name, "code": code, "calls": [calls]});
    server.create(json!({"name": "far", "code": code, "network": "full"})).await;
    server.create(hop("near", "far")).await;
    let mut calling = tool(json!(["api.example.org"]));
    calling["calls"] = json!(["near"]);
    server.create(calling).await;
    let (text, is_error) = server.call("t", json!({})).await;
    assert!(is_error && text.contains("but the version may also reach"), "{text}");
}

#[tokio::test]
async fn values_go_in_and_never_come_out() {
    let server = Server::start(&[]);
    set(&server, NAME, SECRET, json!(["a.example"])).await;
    let (status, list) = api(&server, admin(&server), Method::GET, "secrets", None).await;
    assert_eq!(
        (status, &list["secrets"][0]["name"], &list["secrets"][0]["hosts"]),
        (StatusCode::OK, &json!(NAME), &json!(["a.example"]))
    );
    assert_clean("the list", list.to_string().as_bytes());
    for (method, path, body) in [
        (Method::GET, "secrets", None),
        (Method::PUT, "secrets/OTHER", Some(json!({"value": "something else"}))),
        (Method::DELETE, "secrets/SERVICE_KEY", None),
    ] {
        let (status, said) = api(&server, &server.token, method, path, body).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{path}: {said}");
    }
    for (name, body, words) in [
        ("lower%20case", json!({"value": SECRET}), "name"),
        ("PATH", json!({"value": SECRET}), "reserved"),
        ("KEY", json!({"value": ""}), "`value`"),
        ("KEY", json!({"value": "a\u{0}b"}), "`value`"),
        ("KEY", json!({"value": SECRET, "hosts": ["full"]}), "`hosts`"),
        ("KEY", json!({"value": SECRET, "hosts": ["not a host"]}), "`hosts`"),
        ("KEY", json!({"hosts": []}), "value"),
        ("KEY", json!({"value": SECRET, "host": []}), "host"),
    ] {
        let (status, said) = api(&server, admin(&server), Method::PUT, &format!("secrets/{name}"), Some(body)).await;
        let detail = said["detail"].as_str().unwrap();
        assert!(status == StatusCode::BAD_REQUEST && detail.contains(words), "{name}: {status} {detail}");
        assert_clean("a refusal", detail.as_bytes());
    }
}

#[tokio::test]
async fn the_command_line_sets_lists_and_replaces_the_key() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start_on(dir.path(), &["--approval", "never"]);
    let code = "import os\ndef main():\n    return len(os.environ['SERVICE_KEY'])\n";
    server.create(json!({"name": "t", "code": code, "secrets": [NAME]})).await;
    let (text, done) = command(dir.path(), &["set", NAME, "--host", "a.example"], &format!("{SECRET}\n"));
    assert!(done && text.contains("Set."), "{text}");
    assert_eq!(server.call("t", json!({})).await.0, SECRET.chars().count().to_string());
    let (text, done) = command(dir.path(), &["list"], "");
    assert!(done && text.contains("SERVICE_KEY") && text.contains("for a.example"), "{text}");
    assert_clean("the list", text.as_bytes());
    assert!(!command(dir.path(), &["set", "no name"], "x").1);
    let key = |name: &str| std::fs::read(dir.path().join(name)).unwrap();
    let before = key("server.key");
    let (text, done) = command(dir.path(), &["rotate-key"], "");
    assert!(done && key("server.key") != before && !dir.path().join("server.key.next").exists(), "{text}");
    // The server that runs goes on, the next one starts with the new key, and the old key opens nothing.
    assert_eq!(server.call("t", json!({})).await.0, SECRET.chars().count().to_string());
    drop(server);
    let server = Server::start_on(dir.path(), &["--approval", "never"]);
    assert_eq!(server.call("t", json!({})).await.0, SECRET.chars().count().to_string());
    drop(server);
    std::fs::write(dir.path().join("old.key"), &before).unwrap();
    restrict(&dir.path().join("old.key"));
    let old = dir.path().join("old.key").to_string_lossy().into_owned();
    let server = Server::start_on(dir.path(), &["--approval", "never", "--key-file", &old]);
    let (text, is_error) = server.call("t", json!({})).await;
    assert!(is_error && text.contains("can't be opened with this server's key"), "{text}");
    drop(server);
    let server = Server::start_on(dir.path(), &["--approval", "never"]);
    assert_eq!(server.call("t", json!({})).await.0, SECRET.chars().count().to_string(), "the right key is back");
    let (text, done) = command(dir.path(), &["delete", NAME], "");
    assert!(done && !command(dir.path(), &["delete", NAME], "").1, "{text}");
}

fn restrict(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

#[tokio::test]
async fn the_key_can_be_kept_elsewhere_and_replaced_there() {
    let (dir, keys) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (first, second) = (keys.path().join("first"), keys.path().join("second"));
    std::fs::write(&first, "5a".repeat(32)).unwrap();
    restrict(&first);
    let [first, second] = [first, second].map(|path| path.to_string_lossy().into_owned());
    assert!(command(dir.path(), &["set", NAME, "--key-file", &first], SECRET).1);
    assert!(!dir.path().join("server.key").exists());
    let (text, done) = command(dir.path(), &["rotate-key", "--key-file", &first], "");
    assert!(!done && text.contains("--new-key-file"), "{text}");
    let (text, done) = command(dir.path(), &["rotate-key", "--key-file", &first, "--new-key-file", &second], "");
    assert!(done && text.contains("--finish"), "{text}");
    let code = "import os\ndef main():\n    return len(os.environ['SERVICE_KEY'])\n";
    for (number, key) in [&first, &second].into_iter().enumerate() {
        let server = Server::start_on(dir.path(), &["--approval", "never", "--key-file", key]);
        if number == 0 {
            server.create(json!({"name": "t", "code": code, "secrets": [NAME]})).await;
        }
        assert_eq!(server.call("t", json!({})).await.0, SECRET.chars().count().to_string(), "{key}");
    }
    assert!(command(dir.path(), &["rotate-key", "--key-file", &second, "--finish"], "").1);
    let server = Server::start_on(dir.path(), &["--approval", "never", "--key-file", &first]);
    assert!(server.call("t", json!({})).await.1, "the first key opens nothing any more");
}
