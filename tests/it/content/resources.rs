//! Resources: static, templates, scripts, in both eras.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{read, refused, save};
use crate::server::Server;

const SAVE: &str = "omniforge_save_resource";

#[tokio::test]
async fn a_static_text_is_read_in_both_eras() {
    let server = Server::start(&[]);
    let saved =
        save(&server, SAVE, json!({"uri": "test://static-text", "description": "A text", "text": "é, as it was\n"}))
            .await;
    assert_eq!(saved, "Created resource `test://static-text`, version 1.\nClients read it as `test://static-text`.");
    let part = json!({"uri": "test://static-text", "mimeType": "text/plain", "text": "é, as it was\n"});
    let listed = json!({"uri": "test://static-text", "name": "static-text", "description": "A text",
        "mimeType": "text/plain", "size": 14});

    let legacy = server.rpc("resources/read", json!({"uri": "test://static-text"})).await;
    assert_eq!(legacy["result"], json!({"contents": [part]}));
    assert_eq!(server.rpc("resources/list", json!({})).await["result"], json!({"resources": [listed]}));

    let modern = server.modern("resources/read", json!({"uri": "test://static-text"})).await["result"].clone();
    assert_eq!((&modern["contents"], &modern["resultType"]), (&json!([part]), &json!("complete")), "{modern}");
    assert_eq!((&modern["ttlMs"], &modern["cacheScope"]), (&json!(0), &json!("private")));
    assert_eq!(modern["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "omniforge-mcp");
    let modern = server.modern("resources/list", json!({})).await["result"].clone();
    assert_eq!((&modern["resources"], &modern["cacheScope"]), (&json!([listed]), &json!("private")));
}

#[tokio::test]
async fn what_is_not_there_is_told_in_the_words_of_the_era() {
    let server = Server::start(&[]);
    let uri = json!({"uri": "test://nonexistent"});
    let legacy = server.rpc("resources/read", uri.clone()).await["error"].clone();
    assert_eq!((&legacy["code"], &legacy["data"]), (&json!(-32002), &uri), "{legacy}");
    let modern = server.modern("resources/read", uri.clone()).await["error"].clone();
    assert_eq!((&modern["code"], &modern["data"]), (&json!(-32602), &uri), "{modern}");
    assert_eq!(refused(&server, "resources/read", json!({"uri": 1})).await.0, -32602);
    assert_eq!(refused(&server, "resources/list", json!({"cursor": "cHJvbXB0czph"})).await.0, -32602);
    for list in ["tools/list", "prompts/list", "resources/list", "resources/templates/list"] {
        assert_eq!(refused(&server, list, json!({"cursor": 5})).await.0, -32602, "{list}");
    }
}

#[tokio::test]
async fn everything_said_of_a_resource_is_listed() {
    let server = Server::start(&[]);
    save(
        &server,
        SAVE,
        json!({"uri": "test://all", "name": "all", "title": "All", "mime_type": "image/png", "blob": "iVBORw0KGgo=",
            "annotations": {"audience": ["user"], "priority": 0.5, "lastModified": "2026-01-02T03:04:05Z"},
            "tags": ["a"], "options": {"icons": [{"src": "data:image/png;base64,AA=="}], "meta": {"x.y/z": 1}}}),
    )
    .await;
    assert_eq!(
        server.rpc("resources/list", json!({})).await["result"]["resources"],
        json!([{"uri": "test://all", "name": "all", "title": "All", "mimeType": "image/png", "size": 8,
            "icons": [{"src": "data:image/png;base64,AA=="}], "_meta": {"x.y/z": 1, "omniforge/tags": ["a"]},
            "annotations": {"audience": ["user"], "priority": 0.5, "lastModified": "2026-01-02T03:04:05Z"}}])
    );
    let part = json!({"uri": "test://all", "mimeType": "image/png", "blob": "iVBORw0KGgo="});
    assert_eq!(read(&server, "test://all").await, json!([part]));
}

#[tokio::test]
async fn a_template_is_matched_and_its_values_arrive_as_their_types() {
    let server = Server::start(&[]);
    let code = "def main(day: str, count: int = 1, ctx=None):\n    \"\"\"Notes of a day.\"\"\"\n    return f'{day!r} {count + 1} {ctx.uri}'\n";
    let reply =
        save(&server, SAVE, json!({"uri": "notes://{day}/all{?count}", "code": code, "mime_type": "text/x-note"}))
            .await;
    assert!(reply.contains("Understood: python in function style") && reply.contains("what matches"), "{reply}");
    save(&server, SAVE, json!({"uri": "notes://{day}/fixed", "text": "{day} is {other} {day}"})).await;
    let templates = server.rpc("resources/templates/list", json!({})).await["result"]["resourceTemplates"].clone();
    let uris: Vec<&str> = templates.as_array().unwrap().iter().map(|it| it["uriTemplate"].as_str().unwrap()).collect();
    let expected = ["notes://{day}/all{?count}", "notes://{day}/fixed", "omniforge://runs/{run_id}/{stream}{?offset}"];
    assert_eq!(uris, expected);
    assert_eq!(templates[0]["description"], "Notes of a day.");

    let uri = "notes://a%2Fb%20c/all?count=41";
    let text = format!("'a/b c' 42 {uri}");
    assert_eq!(read(&server, uri).await, json!([{"uri": uri, "mimeType": "text/x-note", "text": text}]));
    assert_eq!(read(&server, "notes://x/fixed").await[0]["text"], "x is {other} x");
    let (code, message) = refused(&server, "resources/read", json!({"uri": "notes://x/all?count=many"})).await;
    assert!(code == -32602 && message.contains("/count"), "{message}");
    assert_eq!(refused(&server, "resources/read", json!({"uri": "notes://x/y/all"})).await.0, -32002);
    assert_eq!(refused(&server, "resources/read", json!({"uri": "notes://x/all?other=1"})).await.0, -32002);
}

#[tokio::test]
async fn a_script_may_return_anything_that_can_be_read() {
    let server = Server::start(&[]);
    for (code, language, mime_type, expected) in [
        (
            "def main(): return b'\\0\\xff'",
            "python",
            None,
            json!([{"mimeType": "application/octet-stream", "blob": "AP8="}]),
        ),
        ("def main(): return {'a': 1}", "python", None, json!([{"mimeType": "application/json", "text": "{\"a\":1}"}])),
        (
            "def main() -> dict: return {'a': 1}",
            "python",
            None,
            json!([{"mimeType": "application/json", "text": "{\"a\":1}"}]),
        ),
        ("def main(): print('printed')", "python", None, json!([{"mimeType": "text/plain", "text": "printed\n"}])),
        ("print('a program')", "python", Some("text/x"), json!([{"mimeType": "text/x", "text": "a program\n"}])),
        ("printf AP8=", "bash", Some("image/png"), json!([{"mimeType": "image/png", "blob": "AP8="}])),
        (
            "exports.main = () => ['a', Buffer.from([0, 255])]",
            "javascript",
            None,
            json!([{"mimeType": "text/plain", "text": "a"}, {"mimeType": "application/octet-stream", "blob": "AP8="}]),
        ),
    ] {
        let mut arguments = json!({"uri": "test://x", "code": code, "language": language});
        if let Some(mime_type) = mime_type {
            arguments["mime_type"] = json!(mime_type);
        }
        save(&server, SAVE, arguments).await;
        let mut contents = read(&server, "test://x").await;
        for part in contents.as_array_mut().unwrap() {
            assert_eq!(part.as_object_mut().unwrap().remove("uri").unwrap(), "test://x");
        }
        assert_eq!(contents, expected, "{code}");
    }
}

#[tokio::test]
async fn a_script_that_fails_is_an_error_with_its_run() {
    let server = Server::start(&[]);
    for (code, expected) in [
        ("def main(): raise ValueError('bad day')", "ValueError: bad day"),
        ("from omniforge import ToolError\ndef main(): raise ToolError('no such day')", "no such day"),
        ("def main(): return []", "{}"),
        ("import sys\nprint('secret', file=sys.stderr)\nsys.exit(3)", "the script failed"),
        ("def main():\n while True: pass", "[timeout]"),
    ] {
        let arguments = json!({"uri": "test://x", "code": code, "options": {"timeout_seconds": 1}});
        save(&server, SAVE, arguments).await;
        let answer = server.rpc("resources/read", json!({"uri": "test://x"})).await;
        if expected == "{}" {
            assert_eq!(answer["result"]["contents"][0]["text"], "[]");
            continue;
        }
        let error = &answer["error"];
        let message = error["message"].as_str().unwrap_or_else(|| panic!("{answer}"));
        assert!(message.contains(expected) && !message.contains("secret"), "{message}");
        assert_eq!(error["code"], -32603);
        let (run, _) = server.call("omniforge_get_run", json!({"run_id": error["data"]["run_id"]})).await;
        let run: Value = serde_json::from_str(&run).unwrap();
        assert_eq!((&run["tool"], &run["is_error"]), (&json!("resource test://x"), &json!(true)), "{run}");
    }
    let code = "from omniforge import ProtocolError\ndef main(): raise ProtocolError(-32050, 'closed')";
    save(&server, SAVE, json!({"uri": "test://x", "code": code})).await;
    assert_eq!(refused(&server, "resources/read", json!({"uri": "test://x"})).await, (-32050, "closed".to_owned()));
}

#[tokio::test]
async fn a_wrong_save_says_what_is_wrong_and_saves_nothing() {
    let server = Server::start(&[]);
    let main = "def main(day): return day";
    let large = STANDARD.encode(vec![0u8; (8 << 20) + 1]);
    for (arguments, expected) in [
        (json!({"uri": "nothing", "text": ""}), "`uri`: it must begin with a scheme"),
        (json!({"uri": "omniforge://x", "text": ""}), "is taken"),
        (json!({"uri": "a://x/{a", "text": ""}), "do not pair"),
        (json!({"uri": "a://x"}), "`text`: give"),
        (json!({"uri": "a://x", "text": "", "blob": ""}), "exactly one"),
        (json!({"uri": "a://x", "blob": "%"}), "`blob`: it is no base64"),
        (json!({"uri": "a://x", "blob": large}), "`blob`: it is 8388609 bytes"),
        (json!({"uri": "a://x", "text": "", "mime_type": "text"}), "`mime_type`"),
        (json!({"uri": "a://x", "text": "", "annotations": {"priority": 2}}), "`annotations`"),
        (json!({"uri": "a://x", "text": "", "options": {"network": ["x"]}}), "`options/network`: it is for `code`"),
        (json!({"uri": "a://x", "text": "", "options": {"colour": 1}}), "colour"),
        (json!({"uri": "a://x", "text": "", "completions": {"a": []}}), "`completions`: there is no argument `a`"),
        (json!({"uri": "a://{b}", "code": main}), "no such parameter"),
        (json!({"uri": "a://x", "code": main}), "`main` needs `day`"),
        (json!({"uri": "a://x", "code": "def main(:"}), "line 1"),
        (json!({"uri": "a://{b}", "text": "", "completion_code": "def main(x): return []"}), "`main` needs `x`"),
        (json!({"uri": "a://x", "text": "", "from_version": 1}), "`from_version`"),
        (json!({"uri": "a://x", "enabled": false}), "there is no resource `a://x`"),
        (json!({"uri": "a://x", "text": "", "surprise": 1}), "surprise"),
    ] {
        let (text, is_error) = server.call(SAVE, arguments.clone()).await;
        assert!(is_error && text.contains(expected), "{arguments}: {text}");
    }
    let (listed, _) = server.call("omniforge_list_content", json!({})).await;
    assert_eq!(serde_json::from_str::<Value>(&listed).unwrap()["total"], 0);
}

#[tokio::test]
async fn a_walk_over_pages_holds_while_others_write() {
    let server = Server::start(&[]);
    for number in 0..201 {
        save(&server, SAVE, json!({"uri": format!("test://n/{number:03}"), "text": ""})).await;
    }
    let first = server.rpc("resources/list", json!({})).await["result"].clone();
    assert_eq!(first["resources"].as_array().unwrap().len(), 200);
    save(&server, SAVE, json!({"uri": "test://n/000a", "text": ""})).await;
    save(&server, SAVE, json!({"uri": "test://n/300", "text": ""})).await;
    let rest = server.rpc("resources/list", json!({"cursor": first["nextCursor"]})).await["result"].clone();
    let uris: Vec<&Value> = rest["resources"].as_array().unwrap().iter().map(|it| &it["uri"]).collect();
    assert_eq!((uris, rest.get("nextCursor")), (vec![&json!("test://n/200"), &json!("test://n/300")], None));
}
