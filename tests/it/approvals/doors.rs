//! Pages and the command line.

use std::process::{Command, Output};

use super::*;

/// What stands in the answer's header of this name.
fn header(answer: &reqwest::Response, name: &str) -> String {
    answer.headers()[name].to_str().unwrap().to_owned()
}

/// A browser that signed in with the server's link: its cookie.
async fn sign_in(server: &Server) -> String {
    let link = server.ready["sign_in"].as_str().unwrap();
    let code = link.rsplit('/').next().unwrap();
    let answer = post(server, "/signin", None, format!("code={code}")).await;
    assert_eq!(answer.status(), StatusCode::SEE_OTHER);
    header(&answer, "set-cookie").split(';').next().unwrap().to_owned()
}

async fn post(server: &Server, path: &str, cookie: Option<&str>, body: String) -> reqwest::Response {
    let mut request = server.client.post(format!("{}{path}", server.url)).header("Origin", &server.url);
    request = request.header("Content-Type", "application/x-www-form-urlencoded").header("Accept", "text/html");
    if let Some(cookie) = cookie {
        request = request.header("Cookie", cookie);
    }
    request.body(body).send().await.unwrap()
}

async fn page(server: &Server, path: &str, cookie: &str) -> String {
    let request = server.client.get(format!("{}{path}", server.url)).header("Accept", "text/html");
    request.header("Cookie", cookie).send().await.unwrap().text().await.unwrap()
}

/// The value of a hidden field.
fn field(page: &str, name: &str) -> String {
    let start = format!("name=\"{name}\" value=\"");
    page.split(&start).nth(1).unwrap_or_else(|| panic!("no {name} in {page}")).split('"').next().unwrap().to_owned()
}

#[tokio::test]
async fn a_person_approves_on_a_page() {
    let server = Server::start(&[]);
    tool_that_asks(&server, "t", "def main():\n    return '<b>2</b>'\n", json!({"network": ["a.example"]})).await;
    for path in ["/approvals", "/approvals/t"] {
        assert!(server.page(path).await.contains("Sign in"), "{path}");
    }
    let cookie = sign_in(&server).await;
    let list = page(&server, "/approvals", &cookie).await;
    assert!(list.contains("1 waiting") && list.contains("network: a.example"), "{list}");
    let id = waiting(&server, "t").await.id;
    let shown = page(&server, &format!("/approvals/{id}"), &cookie).await;
    assert!(shown.contains("+    return &#39;&#60;b&#62;2&#60;/b&#62;&#39;"), "{shown}");
    let (csrf, version, fingerprint) = (field(&shown, "csrf"), field(&shown, "version"), field(&shown, "fingerprint"));
    let form = |csrf: &str, action: &str| {
        format!("csrf={csrf}&version={version}&fingerprint={fingerprint}&note=seen&do={action}")
    };
    let path = format!("/approvals/{id}");
    let without_session = post(&server, &path, None, form(&csrf, "approve")).await;
    assert!(without_session.text().await.unwrap().contains("Sign in"));
    for (csrf, action, status) in
        [("0", "approve", StatusCode::FORBIDDEN), (csrf.as_str(), "something", StatusCode::BAD_REQUEST)]
    {
        assert_eq!(post(&server, &path, Some(&cookie), form(csrf, action)).await.status(), status, "{action}");
    }
    assert_eq!(server.call("t", json!({})).await.0, "1");
    assert_eq!(post(&server, &path, Some(&cookie), form(&csrf, "approve")).await.status(), StatusCode::SEE_OTHER);
    assert_eq!(server.call("t", json!({})).await.0, "<b>2</b>");
    // The form that was sent once is stale once another version was saved.
    let three = json!({"name": "t", "code": "def main():\n    return 3\n"});
    server.call("omniforge_update_tool", three).await;
    assert_eq!(post(&server, &path, Some(&cookie), form(&csrf, "approve")).await.status(), StatusCode::CONFLICT);
    assert_eq!(post(&server, &path, Some(&cookie), form(&csrf, "revoke")).await.status(), StatusCode::SEE_OTHER);
    assert!(server.saved_names().await.is_empty());
    assert!(page(&server, &path, &cookie).await.contains("Taken back"));
}

fn command(dir: &std::path::Path, arguments: &[&str]) -> (String, bool) {
    let Output { status, stdout, stderr } = Command::new(env!("CARGO_BIN_EXE_omniforge"))
        .arg("approval")
        .args(arguments)
        .env("OMNIFORGE_DATA_DIR", dir)
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8(stdout).unwrap() + &String::from_utf8(stderr).unwrap();
    (text, status.success())
}

#[tokio::test]
async fn the_command_line_approves_beside_a_running_server() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start_on(dir.path(), &[]);
    tool_that_asks(&server, "t", TWO, json!({"network": ["a.example"]})).await;
    let (text, done) = command(dir.path(), &["list"]);
    assert!(done && text.contains("tool t, version 2 (version 1 serves)") && text.contains("a.example"), "{text}");
    let (text, done) = command(dir.path(), &["show", "t"]);
    let fingerprint = waiting(&server, "t").await.fingerprint;
    assert!(done && text.contains("new: network: a.example") && text.contains(&fingerprint), "{text}");
    let (text, done) = command(dir.path(), &["approve", "t"]);
    assert!(!done && text.contains("nobody can be asked here"), "{text}");
    let (text, done) = command(dir.path(), &["approve", "t", "--fingerprint", "0"]);
    assert!(!done && text.contains("look at it again"), "{text}");
    let (text, done) = command(dir.path(), &["approve", "nothing", "--fingerprint", "0"]);
    assert!(!done && text.contains("`nothing`"), "{text}");
    let (text, done) = command(dir.path(), &["approve", "t", "--fingerprint", &fingerprint]);
    assert!(done && text.contains("Approved: version 2 of t serves."), "{text}");
    // Another process's write: the server looks for those all the time.
    while server.call("t", json!({})).await.0 != "2" {
        tokio::task::yield_now().await;
    }
    let (text, done) = command(dir.path(), &["revoke", "t"]);
    assert!(done && text.contains("Taken back: version 2"), "{text}");
    while !server.saved_names().await.is_empty() {
        tokio::task::yield_now().await;
    }
    assert!(!command(dir.path(), &["revoke", "t"]).1);
}
