//! Saves that meet each other, and saves that are refused.

use futures::future::join_all;
use serde_json::{Value, json};

use crate::server::Server;

const CODE: &str = "def main():\n    return 1\n";

async fn definition(server: &Server, name: &str) -> Value {
    let (text, is_error) = server.call("omniforge_get_tool", json!({"name": name})).await;
    assert!(!is_error, "{text}");
    serde_json::from_str(&text).unwrap()
}

#[tokio::test]
async fn parallel_creates_of_one_name_make_one_tool_and_say_whose_it_is() {
    let server = Server::start(&[]);
    let creates = (0..6)
        .map(|n| server.call("omniforge_create_tool", json!({"name": "t", "code": CODE, "title": format!("{n}")})));
    let (saved, refused): (Vec<_>, Vec<_>) = join_all(creates).await.into_iter().partition(|(_, is_error)| !is_error);
    assert_eq!(saved.len(), 1, "{saved:?}");
    for (text, _) in refused {
        assert!(text.contains("exists already") && text.contains("replace"), "{text}");
    }
    let replaces = (0..6).map(|n| {
        server
            .call("omniforge_create_tool", json!({"name": "u", "code": CODE, "title": format!("{n}"), "replace": true}))
    });
    for (text, is_error) in join_all(replaces).await {
        assert!(!is_error, "{text}");
    }
    assert_eq!(definition(&server, "u").await["version"], 6);
}

#[tokio::test]
async fn parallel_updates_compose_also_from_two_processes() {
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (Server::start_on(dir.path(), &[]), Server::start_on(dir.path(), &[]));
    one.create(json!({"name": "t", "code": CODE})).await;
    let updates = [
        (&one, json!({"name": "t", "title": "Title"})),
        (&two, json!({"name": "t", "description": "Described"})),
        (&one, json!({"name": "t", "tags": ["tag"]})),
        (&two, json!({"name": "t", "timeout_seconds": 7})),
        (&one, json!({"name": "t", "memory_mb": 64})),
        (&two, json!({"name": "t", "code": "def main():\n    return 2\n"})),
    ];
    let calls = updates.iter().map(|(server, update)| server.call("omniforge_update_tool", update.clone()));
    for (text, is_error) in join_all(calls).await {
        assert!(!is_error, "{text}");
    }
    let saved = definition(&one, "t").await;
    assert_eq!(saved["version"], 7);
    for (field, expected) in [
        ("title", json!("Title")),
        ("description", json!("Described")),
        ("tags", json!(["tag"])),
        ("timeout_seconds", json!(7.0)),
        ("memory_mb", json!(64)),
        ("code", json!("def main():\n    return 2\n")),
    ] {
        assert_eq!(saved[field], expected, "{field}");
    }
}
