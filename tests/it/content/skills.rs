//! Skills: saved documents, served as the extension says.

use serde_json::{Value, json};

use super::{read, refused, save};
use crate::server::Server;

const SAVE: &str = "omniforge_save_skill";
const MARKDOWN: &str = "---\nname: git-review\ndescription: Reviews a change.\nlicense: MIT\n---\n# Review\n";

fn files() -> Value {
    json!([{"path": "scripts/check it.py", "text": "print(1)\n"}, {"path": "logo.png", "blob": "iVBORw0KGgo="}])
}

#[tokio::test]
async fn a_skill_is_listed_read_and_walked() {
    let server = Server::start(&[]);
    let reply = save(&server, SAVE, json!({"markdown": MARKDOWN, "files": files()})).await;
    assert!(reply.starts_with("Created skill `git-review`, version 1.\nFiles: 3."), "{reply}");
    let uri = "skill://git-review/SKILL.md";
    let listed = server.rpc("resources/list", json!({})).await["result"]["resources"].clone();
    let expected = json!([{"uri": uri, "name": "git-review", "description": "Reviews a change.",
        "mimeType": "text/markdown", "size": MARKDOWN.len()}]);
    assert_eq!(listed, expected);
    assert_eq!(read(&server, uri).await, json!([{"uri": uri, "mimeType": "text/markdown", "text": MARKDOWN}]));
    let script = "skill://git-review/scripts/check%20it.py";
    assert_eq!(read(&server, script).await[0]["text"], "print(1)\n");
    assert_eq!(read(&server, "skill://git-review/logo.png").await[0]["blob"], "iVBORw0KGgo=");

    for answer in [server.rpc("skills/list", json!({})).await, server.modern("skills/list", json!({})).await] {
        let skill = answer["result"]["skills"][0].clone();
        assert_eq!(skill["uri"], uri, "{answer}");
        let frontmatter = json!({"name": "git-review", "description": "Reviews a change.", "license": "MIT"});
        assert_eq!(skill["frontmatter"], frontmatter);
        let uris: Vec<&Value> = skill["resources"].as_array().unwrap().iter().map(|it| &it["uri"]).collect();
        assert_eq!(uris, [&json!(uri), &json!("skill://git-review/logo.png"), &json!(script)]);
        let get = server.rpc("skills/get", json!({"uri": uri})).await["result"]["skill"].clone();
        assert_eq!(get, skill);
    }
    let directory = |uri: &str| server.rpc("resources/directory/read", json!({"uri": uri}));
    let root = directory("skill://git-review").await["result"]["resources"].clone();
    let types: Vec<&Value> = root.as_array().unwrap().iter().map(|it| &it["mimeType"]).collect();
    assert_eq!(types, [&json!("text/markdown"), &json!("image/png"), &json!("inode/directory")]);
    assert_eq!(directory("skill://git-review/scripts").await["result"]["resources"][0]["uri"], script);
    for (method, uri) in [
        ("resources/directory/read", uri),
        ("resources/directory/read", "skill://none"),
        ("skills/get", "skill://none/SKILL.md"),
        ("skills/get", "skill://git-review"),
    ] {
        assert_eq!(refused(&server, method, json!({"uri": uri})).await.0, -32602, "{method} {uri}");
    }
}

#[tokio::test]
async fn a_skill_is_versioned_like_the_rest() {
    let server = Server::start(&[]);
    save(&server, SAVE, json!({"markdown": MARKDOWN, "files": files()})).await;
    let again = save(&server, SAVE, json!({"markdown": MARKDOWN, "files": files()})).await;
    assert!(again.starts_with("Nothing changed"), "{again}");
    save(&server, SAVE, json!({"markdown": MARKDOWN})).await;
    let logo = json!({"uri": "skill://git-review/logo.png"});
    assert_eq!(refused(&server, "resources/read", logo.clone()).await.0, -32002);
    save(&server, SAVE, json!({"name": "git-review", "from_version": 1})).await;
    assert_eq!(read(&server, "skill://git-review/logo.png").await[0]["blob"], "iVBORw0KGgo=");
    save(&server, SAVE, json!({"name": "git-review", "enabled": false})).await;
    assert_eq!(refused(&server, "resources/read", logo).await.0, -32002);
    assert_eq!(server.rpc("skills/list", json!({})).await["result"]["skills"], json!([]));
}

#[tokio::test]
async fn a_wrong_save_says_what_is_wrong() {
    let server = Server::start(&[]);
    let with = |files: Value| json!({"markdown": MARKDOWN, "files": files});
    for (arguments, expected) in [
        (json!({}), "`markdown`: give"),
        (json!({"name": "x"}), "`markdown`: give"),
        (json!({"markdown": "# no front matter"}), "must begin with front matter"),
        (json!({"markdown": "---\nname: a\n---\n"}), "no `description`"),
        (json!({"markdown": MARKDOWN, "name": "other"}), "says `git-review`"),
        (with(json!([{"path": "../x", "text": ""}])), "`files/0/path`"),
        (with(json!([{"path": "SKILL.md", "text": ""}])), "`files/0/path`"),
        (with(json!([{"path": "x"}])), "`files/0`: give either"),
        (with(json!([{"path": "x", "text": ""}, {"path": "x", "text": ""}])), "twice"),
        (with(json!([{"path": "x", "text": ""}, {"path": "x/y", "text": ""}])), "the folder of"),
    ] {
        let (text, is_error) = server.call(SAVE, arguments.clone()).await;
        assert!(is_error && text.contains(expected), "{arguments}: {text}");
    }
}
