//! Versions of saved content: history, rollback, the switch, deleting, and whose it is.

use serde_json::{Value, json};

use super::{read, refused, save};
use crate::server::Server;

const SAVE: &str = "omniforge_save_resource";

async fn shown(server: &Server, arguments: Value) -> Value {
    let (text, is_error) = server.call("omniforge_list_content", arguments).await;
    assert!(!is_error, "{text}");
    serde_json::from_str(&text).unwrap()
}

#[tokio::test]
async fn content_is_versioned_switched_and_deleted() {
    let server = Server::start(&[]);
    let uri = "test://x";
    save(&server, SAVE, json!({"uri": uri, "text": "one"})).await;
    let again = save(&server, SAVE, json!({"uri": uri, "text": "one"})).await;
    assert!(again.starts_with("Nothing changed in resource `test://x`, version 1."), "{again}");
    let second = save(&server, SAVE, json!({"uri": uri, "text": "two", "description": "Two"})).await;
    assert!(second.starts_with("Saved resource `test://x`, version 2."), "{second}");
    assert_eq!(read(&server, uri).await[0]["text"], "two");
    let back = save(&server, SAVE, json!({"uri": uri, "from_version": 1})).await;
    assert!(back.starts_with("Rolled back resource `test://x`, version 3."), "{back}");
    assert_eq!(read(&server, uri).await[0]["text"], "one");

    let found = shown(&server, json!({"kind": "resource", "name": uri})).await;
    let notes: Vec<&Value> = found["history"].as_array().unwrap().iter().map(|it| &it["note"]).collect();
    assert_eq!(notes, [&json!("rollback to 1"), &json!("update"), &json!("create")]);
    assert_eq!(found["versions"], json!({"serving": 3, "latest": 3}));
    let second = shown(&server, json!({"kind": "resource", "name": uri, "version": 2})).await;
    assert_eq!((&second["definition"]["description"], &second["files"][0]["size"]), (&json!("Two"), &json!(3)));
    let (text, is_error) = server.call(SAVE, json!({"uri": uri, "from_version": 9})).await;
    assert!(is_error && text.contains("no version 9"), "{text}");

    save(&server, SAVE, json!({"uri": uri, "enabled": false})).await;
    assert_eq!(refused(&server, "resources/read", json!({"uri": uri})).await.0, -32002);
    assert_eq!(server.rpc("resources/list", json!({})).await["result"]["resources"], json!([]));
    save(&server, SAVE, json!({"uri": uri, "enabled": true})).await;
    assert_eq!(read(&server, uri).await[0]["text"], "one");

    let delete = json!({"kind": "resource", "name": uri});
    let (text, _) = server.call("omniforge_delete_content", delete.clone()).await;
    assert_eq!(text, "Deleted resource `test://x` with its 3 version(s).");
    let (text, is_error) = server.call("omniforge_delete_content", delete).await;
    assert!(is_error && text.contains("there is no resource"), "{text}");
    assert_eq!(refused(&server, "resources/read", json!({"uri": uri})).await.0, -32002);
    save(&server, SAVE, json!({"uri": uri, "text": "anew"})).await;
    assert_eq!(shown(&server, json!({"kind": "resource", "name": uri})).await["version"], 1);
}

#[tokio::test]
async fn content_is_found_by_kind_and_words() {
    let server = Server::start(&[]);
    save(&server, SAVE, json!({"uri": "test://a", "text": "", "description": "About Trees"})).await;
    save(&server, SAVE, json!({"uri": "test://b", "text": ""})).await;
    save(&server, "omniforge_save_prompt", json!({"name": "trees", "template": "x"})).await;
    let names = |found: Value| {
        found["content"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(shown(&server, json!({})).await), ["trees", "test://a", "test://b"]);
    assert_eq!(names(shown(&server, json!({"query": "TREES"})).await), ["trees", "test://a"]);
    assert_eq!(names(shown(&server, json!({"query": "trees", "kind": "resource"})).await), ["test://a"]);
    let second = shown(&server, json!({"limit": 1, "offset": 1})).await;
    assert_eq!((second["total"].clone(), names(second)), (json!(3), vec!["test://a".to_owned()]));
}

#[tokio::test]
async fn what_waits_for_approval_is_saved_and_not_served() {
    let server = Server::start(&["--approval", "always"]);
    save(&server, SAVE, json!({"uri": "test://fixed", "text": "no code in it"})).await;
    assert_eq!(read(&server, "test://fixed").await[0]["text"], "no code in it");
    let code = "def main(): return 'x'";
    let reply = save(&server, SAVE, json!({"uri": "test://x", "code": code})).await;
    assert!(
        reply.contains("Needs approval by a person: its code") && reply.contains("no version is served"),
        "{reply}"
    );
    assert_eq!(refused(&server, "resources/read", json!({"uri": "test://x"})).await.0, -32002);
    let reply =
        save(&server, "omniforge_save_prompt", json!({"name": "p", "template": "{a}", "completion_code": code})).await;
    assert!(reply.contains("Needs approval"), "{reply}");
}
