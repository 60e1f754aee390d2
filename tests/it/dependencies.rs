//! Tools with packages of their own, through the product's door: saved, installed, called, kept and cleared away.

use serde_json::json;

use crate::server::Server;

/// The page's line of each tool: its name, and the words of its state.
async fn states(server: &Server) -> Vec<(String, String)> {
    let page = server.page("/").await;
    let between = |text: &str, start: &str, end: &str| {
        let from = text.split_once(start).unwrap_or_else(|| panic!("no {start:?} in {text}")).1;
        from.split_once(end).unwrap().0.to_owned()
    };
    page.split("<th scope=\"row\"")
        .skip(1)
        .map(|row| {
            let badge = between(row, "<span class=\"badge", "/span>");
            (between(row, "<bdi>", "</bdi>"), between(&badge, ">", "<"))
        })
        .collect()
}

#[tokio::test]
async fn the_page_tells_the_state_of_every_tool() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start_on(dir.path(), &["--auth", "none"]);
    let code = "def main():\n    return 1\n";
    for tool in [json!({"name": "off", "enabled": false}), json!({"name": "slow", "timeout_seconds": 600})] {
        let mut tool = tool;
        tool["code"] = json!(code);
        server.create(tool).await;
    }
    server.create(json!({"name": "plain", "code": code})).await;
    let owned = |states: [(&str, &str); 3]| states.map(|(name, state)| (name.to_owned(), state.to_owned()));
    let expected = owned([("plain", "Enabled"), ("slow", "Needs approval"), ("off", "Off")]);
    assert_eq!(states(&server).await, expected);
    drop(server);
    // What was saved under a laxer policy waits under a stricter one, and the page says so.
    let server = Server::start_on(dir.path(), &["--auth", "none", "--approval", "always"]);
    let expected = owned([("plain", "Needs approval"), ("slow", "Needs approval"), ("off", "Off")]);
    assert_eq!(states(&server).await, expected);
}
