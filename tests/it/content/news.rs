//! News of saved content: on the streams of sessions, and on subscriptions of 2026-07-28.

use serde_json::{Value, json};

use super::save;
use crate::mcp_wire::wire::{Events, answer};
use crate::server::Server;

const SAVE: &str = "omniforge_save_resource";

/// The next messages' methods, with the URI where there is one, up to one that is awaited.
async fn heard(events: &mut Events, last: &str) -> Vec<String> {
    let mut heard = Vec::new();
    while heard.last().is_none_or(|heard| heard != last) {
        let message = events.next().await.unwrap();
        let uri = message["params"]["uri"].as_str().map(|uri| format!(" {uri}")).unwrap_or_default();
        heard.push(format!("{}{uri}", message["method"].as_str().unwrap_or_else(|| panic!("{message}"))));
    }
    heard.sort();
    heard
}

async fn in_session(server: &Server, session: &str, method: &str, params: Value) -> Value {
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).to_string();
    let response = server.post(body, &[("Mcp-Session-Id", session)]).await;
    answer(response).await
}

#[tokio::test]
async fn a_session_hears_of_lists_and_of_what_it_follows() {
    let server = Server::start(&[]);
    save(&server, SAVE, json!({"uri": "test://a", "text": "1"})).await;
    let session = server.session().await;
    let mut events = Events::of(server.listen(&session).await);
    let uri = json!({"uri": "test://a"});
    assert_eq!(in_session(&server, &session, "resources/subscribe", uri.clone()).await["result"], json!({}));

    save(&server, SAVE, json!({"uri": "test://b", "text": "1"})).await;
    save(&server, SAVE, json!({"uri": "test://a", "text": "2"})).await;
    let updated = "notifications/resources/updated test://a";
    let resources = "notifications/resources/list_changed";
    let mut told = heard(&mut events, updated).await;
    told.dedup();
    assert_eq!(told, [resources, updated]);

    assert_eq!(in_session(&server, &session, "resources/unsubscribe", uri).await["result"], json!({}));
    save(&server, SAVE, json!({"uri": "test://a", "text": "3"})).await;
    save(&server, "omniforge_save_prompt", json!({"name": "p", "template": "x"})).await;
    let prompts = "notifications/prompts/list_changed";
    let mut told = heard(&mut events, prompts).await;
    told.dedup();
    assert_eq!(told, [prompts, resources]);
}

#[tokio::test]
async fn without_a_session_nothing_can_be_followed() {
    let server = Server::start(&[]);
    let answer = server.rpc("resources/subscribe", json!({"uri": "test://a"})).await;
    assert!(answer["error"]["message"].as_str().unwrap().contains("needs a session"), "{answer}");
    let answer = server.modern("resources/subscribe", json!({"uri": "test://a"})).await;
    assert_eq!(answer["error"]["code"], -32601, "{answer}");
}

/// Opens a subscription of 2026-07-28; its first message is the acknowledgement.
async fn subscribe(server: &Server, notifications: Value) -> Events {
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}});
    let params = json!({"_meta": meta, "notifications": notifications});
    let body = json!({"jsonrpc": "2.0", "id": "s", "method": "subscriptions/listen", "params": params}).to_string();
    let headers = [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "subscriptions/listen")];
    let mut events = Events::of(server.post(body, &headers).await);
    let first = events.next().await.unwrap();
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(first["params"]["notifications"], notifications, "{first}");
    events
}

#[tokio::test]
async fn a_subscription_hears_what_it_asked_for_and_nothing_else() {
    let server = Server::start(&[]);
    let mut prompts = subscribe(&server, json!({"promptsListChanged": true})).await;
    let mut resources = subscribe(&server, json!({"resourceSubscriptions": ["test://a", "skill://s/SKILL.md"]})).await;
    save(&server, SAVE, json!({"uri": "test://b", "text": "1"})).await;
    save(&server, SAVE, json!({"uri": "test://a", "text": "1"})).await;
    server.create(json!({"name": "t", "code": "def main(): return 1"})).await;
    save(&server, "omniforge_save_prompt", json!({"name": "p", "template": "x"})).await;
    let message = prompts.next().await.unwrap();
    assert_eq!(message["method"], "notifications/prompts/list_changed");
    assert_eq!(message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "s");
    let updated = "notifications/resources/updated test://a";
    assert_eq!(heard(&mut resources, updated).await, [updated]);
    save(&server, "omniforge_save_skill", json!({"markdown": "---\nname: s\ndescription: d\n---\n"})).await;
    let updated = "notifications/resources/updated skill://s/SKILL.md";
    assert_eq!(heard(&mut resources, updated).await, [updated]);
}

#[tokio::test]
async fn scripts_say_what_has_changed() {
    let server = Server::start(&[]);
    let python = "def main(ctx):\n    for _ in range(50):\n        ctx.resource_updated('test://a')\n    ctx.notify('prompts')\n    return 'told'";
    let javascript = "exports.main = async (_, ctx) => { await ctx.resource_updated('test://a'); await ctx.notify('prompts'); return 'told'; }";
    server.create(json!({"name": "python", "code": python})).await;
    server.create(json!({"name": "javascript", "language": "javascript", "code": javascript})).await;
    server.create(json!({"name": "wrong", "code": "def main(ctx): ctx.notify('all')"})).await;
    let filter = json!({"promptsListChanged": true, "resourceSubscriptions": ["test://a"]});
    let mut events = subscribe(&server, filter).await;
    let (updated, prompts) = ("notifications/resources/updated test://a", "notifications/prompts/list_changed");
    for tool in ["python", "javascript"] {
        assert_eq!(server.call(tool, json!({})).await, ("told".to_owned(), false));
        let told = heard(&mut events, prompts).await;
        // Fifty notices are two: the first, and one after its pause.
        assert!(
            (2..=3).contains(&told.len()) && told.iter().all(|told| told == updated || told == prompts),
            "{told:?}"
        );
    }
    let (text, is_error) = server.call("wrong", json!({})).await;
    assert!(is_error && text.contains("\"tools\", \"prompts\" or \"resources\""), "{text}");
}

#[tokio::test]
async fn what_many_notices_tell_of_comes_in_rounds_and_whole() {
    let server = Server::start(&[]);
    let code = "def main(ctx):\n    for number in range(300):\n        ctx.resource_updated(f'test://{number}')\n";
    server.create(json!({"name": "many", "code": code})).await;
    let uris: Vec<String> = (0..300).map(|number| format!("test://{number}")).collect();
    let mut events = subscribe(&server, json!({"resourceSubscriptions": &uris})).await;
    server.call("many", json!({})).await;
    let mut told = std::collections::HashSet::new();
    while told.len() < uris.len() {
        told.insert(events.next().await.unwrap()["params"]["uri"].as_str().unwrap().to_owned());
    }
    assert_eq!(told, uris.into_iter().collect());
}

#[tokio::test]
async fn another_process_on_the_same_data_is_heard_too() {
    let dir = tempfile::tempdir().unwrap();
    let (here, there) = (Server::start_on(dir.path(), &[]), Server::start_on(dir.path(), &[]));
    let mut events =
        subscribe(&here, json!({"resourcesListChanged": true, "resourceSubscriptions": ["test://a"]})).await;
    save(&there, SAVE, json!({"uri": "test://a", "text": "from there"})).await;
    let updated = "notifications/resources/updated test://a";
    assert_eq!(heard(&mut events, updated).await, ["notifications/resources/list_changed", updated]);
    assert_eq!(super::read(&here, "test://a").await[0]["text"], "from there");
}
