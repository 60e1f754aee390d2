//! What the guide and the documentation show of content can be saved as it stands there.

use serde_json::{Value, json};

use super::{read, save};
use crate::server::Server;

/// The JSON objects that a Markdown text shows.
fn shown(markdown: &str) -> Vec<Value> {
    let blocks = markdown.split("```json\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    blocks.flat_map(|block| serde_json::Deserializer::from_str(block).into_iter().map(Result::unwrap)).collect()
}

fn saved_by(example: &Value) -> &'static str {
    match example {
        _ if example.get("uri").is_some() => "omniforge_save_resource",
        _ if example.get("markdown").is_some() => "omniforge_save_skill",
        _ => "omniforge_save_prompt",
    }
}

#[tokio::test]
async fn what_the_guide_shows_is_served() {
    let server = Server::start(&[]);
    let (guide, _) = server.call("omniforge_instructions", json!({})).await;
    let examples = shown(&guide);
    let tools: Vec<&str> = examples.iter().map(saved_by).collect();
    assert_eq!(tools, ["omniforge_save_resource", "omniforge_save_prompt", "omniforge_save_skill"]);
    for example in examples {
        save(&server, saved_by(&example), example).await;
    }
    assert_eq!(read(&server, "notes://monday").await[0]["text"], "Notes of monday");
    assert!(read(&server, "skill://git-review/SKILL.md").await[0]["text"].as_str().unwrap().ends_with("diff first."));
}

#[tokio::test]
async fn what_the_documentation_shows_is_served() {
    let server = Server::start(&[]);
    let examples = shown(include_str!("../../../docs/content.md"));
    assert_eq!(examples.len(), 4);
    for example in examples {
        save(&server, saved_by(&example), example).await;
    }
    assert_eq!(read(&server, "notes://rules").await[0]["text"], "Be kind.\n");
    assert_eq!(read(&server, "notes://monday/all?count=3").await[0]["text"], "3 notes of monday");
}
