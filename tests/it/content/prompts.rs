//! Prompts and suggestions: templates, scripts, questions to the client.

use serde_json::{Value, json};

use super::{refused, save};
use crate::server::Server;

const SAVE: &str = "omniforge_save_prompt";

fn text(role: &str, text: &str) -> Value {
    json!({"role": role, "content": {"type": "text", "text": text}})
}

async fn messages(server: &Server, name: &str, arguments: Value) -> Value {
    let answer = server.rpc("prompts/get", json!({"name": name, "arguments": arguments})).await;
    answer["result"].get("messages").unwrap_or_else(|| panic!("{answer}")).clone()
}

#[tokio::test]
async fn a_template_takes_its_arguments_from_its_text() {
    let server = Server::start(&[]);
    let template = "Write {language} that {task}. Keep {\"json\": 1}.";
    let reply =
        save(&server, SAVE, json!({"name": "code", "description": "Asks for code", "template": template})).await;
    assert!(reply.contains("Arguments: language, task."), "{reply}");
    let listed = json!([{"name": "code", "description": "Asks for code",
        "arguments": [{"name": "language", "required": true}, {"name": "task", "required": true}]}]);
    assert_eq!(server.rpc("prompts/list", json!({})).await["result"], json!({"prompts": listed}));
    let arguments = json!({"language": "{task}", "task": "adds"});
    let expected = text("user", "Write {task} that adds. Keep {\"json\": 1}.");
    assert_eq!(messages(&server, "code", arguments.clone()).await, json!([expected]));
    let modern = server.modern("prompts/get", json!({"name": "code", "arguments": arguments})).await["result"].clone();
    assert_eq!((&modern["resultType"], &modern["description"]), (&json!("complete"), &json!("Asks for code")));

    for (params, expected) in [
        (json!({"name": "cod"}), "did you mean `code`?"),
        (json!({"name": "code", "arguments": {"language": "x"}}), "`task` is missing"),
        (json!({"name": "code", "arguments": {"language": "x", "task": "y", "z": ""}}), "no argument `z`"),
        (json!({"name": "code", "arguments": {"language": "x", "task": 1}}), "must be a string"),
    ] {
        let (code, message) = refused(&server, "prompts/get", params).await;
        assert!(code == -32602 && message.contains(expected), "{message}");
    }
}

#[tokio::test]
async fn messages_hold_any_block_and_optional_arguments() {
    let server = Server::start(&[]);
    let resource = json!({"type": "resource", "resource": {"uri": "{uri}", "mimeType": "text/plain", "text": "t"}});
    let reply = save(
        &server,
        SAVE,
        json!({"name": "p", "arguments": [{"name": "uri", "title": "URI", "description": "Of what"}, {"name": "unused"}],
            "messages": [{"role": "assistant", "content": "At {uri}, {x}"}, {"content": resource}]}),
    )
    .await;
    assert!(reply.contains("uri (optional)") && reply.contains("`unused` is used nowhere") && reply.contains("{x}"));
    let filled = json!({"type": "resource", "resource": {"uri": "a://b", "mimeType": "text/plain", "text": "t"}});
    let expected = json!([text("assistant", "At a://b, {x}"), {"role": "user", "content": filled}]);
    assert_eq!(messages(&server, "p", json!({"uri": "a://b"})).await, expected);
    assert_eq!(messages(&server, "p", json!({})).await[0], text("assistant", "At , {x}"));
}

#[tokio::test]
async fn a_script_takes_its_arguments_from_its_signature() {
    let server = Server::start(&[]);
    let code = "from omniforge import Image\nfrom typing import Literal\ndef main(topic: str, style: Literal['short', 'long'] = 'short', count: int = 1):\n    \"\"\"Explain.\n\n    Args:\n        topic: What about.\n    \"\"\"\n    return {'description': 'd', 'messages': [f'{topic} {style} {count + 1}', {'role': 'assistant', 'content': Image(b'x', 'image/png')}]}\n";
    save(&server, SAVE, json!({"name": "explain", "code": code})).await;
    let listed = server.rpc("prompts/list", json!({})).await["result"]["prompts"][0].clone();
    assert_eq!(listed["description"], "Explain.");
    assert_eq!(listed["arguments"][0], json!({"name": "topic", "description": "What about.", "required": true}));
    let answer =
        server.rpc("prompts/get", json!({"name": "explain", "arguments": {"topic": "tea", "count": "2"}})).await;
    let image = json!({"role": "assistant", "content": {"type": "image", "data": "eA==", "mimeType": "image/png"}});
    assert_eq!(answer["result"], json!({"description": "d", "messages": [text("user", "tea short 3"), image]}));
    let (code, message) =
        refused(&server, "prompts/get", json!({"name": "explain", "arguments": {"topic": "t", "style": "odd"}})).await;
    assert!(code == -32602 && message.contains("/style"), "{message}");

    let program = "echo \"Hi $ARG_WHO\"";
    let arguments = json!([{"name": "who", "required": true}]);
    save(&server, SAVE, json!({"name": "hi", "language": "bash", "code": program, "arguments": arguments})).await;
    assert_eq!(messages(&server, "hi", json!({"who": "Ada"})).await, json!([text("user", "Hi Ada")]));
    save(&server, SAVE, json!({"name": "bad", "code": "def main(): return [{'role': 'x', 'content': 'y'}]"})).await;
    let (code, message) = refused(&server, "prompts/get", json!({"name": "bad"})).await;
    assert!(code == -32603 && message.contains("use user or assistant"), "{message}");
}

#[tokio::test]
async fn a_prompt_may_ask_its_client_first() {
    let server = Server::start(&[]);
    let code = "def main(ctx):\n    form = {'type': 'object', 'properties': {'who': {'type': 'string'}}, 'required': ['who']}\n    return 'Greet ' + ctx.elicit('Whom?', form, key='who').content['who']\n";
    save(&server, SAVE, json!({"name": "greet", "code": code})).await;
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}});
    let get = |more: Value| {
        let mut params = json!({"name": "greet", "_meta": meta});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "prompts/get", "params": params}).to_string();
        let headers = [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "prompts/get"), ("Mcp-Name", "greet")];
        let server = &server;
        async move { server.post(body, &headers).await.json::<Value>().await.unwrap() }
    };
    let asked = get(json!({})).await["result"].clone();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    assert_eq!(asked["inputRequests"]["who"]["method"], "elicitation/create");
    let answers = json!({"who": {"action": "accept", "content": {"who": "Ada"}}});
    let state = &asked["requestState"];
    let done = get(json!({"inputResponses": answers, "requestState": state})).await["result"].clone();
    assert_eq!(done["messages"], json!([text("user", "Greet Ada")]), "{done}");
    let tampered = format!("{}x", state.as_str().unwrap());
    assert_eq!(get(json!({"inputResponses": answers, "requestState": tampered})).await["error"]["code"], -32602);
}

#[tokio::test]
async fn suggestions_come_from_values_schema_or_script() {
    let server = Server::start(&[]);
    let many: Vec<String> = (0..120).map(|number| format!("v{number:03}")).collect();
    let code = "from typing import Literal\ndef main(style: Literal['short', 'long'], city: str, other: str, more: str): return style";
    let suggest =
        "def main(argument, value, arguments):\n    return [f'{argument}:{value}:{arguments.get(\"style\")}', 1]";
    save(
        &server,
        SAVE,
        json!({"name": "p", "code": code, "completions": {"city": ["Paris", "Berlin", "Bern"], "more": many},
            "completion_code": suggest}),
    )
    .await;
    save(&server, "omniforge_save_resource", json!({"uri": "a://{x}/y", "text": "{x}", "completions": {"x": ["one"]}}))
        .await;
    let prompt = json!({"type": "ref/prompt", "name": "p"});
    let resource = json!({"type": "ref/resource", "uri": "a://{x}/y"});
    for (of, argument, value, expected) in [
        (&prompt, "city", "ber", json!({"values": ["Berlin", "Bern"], "total": 2, "hasMore": false})),
        (&prompt, "style", "", json!({"values": ["short", "long"], "total": 2, "hasMore": false})),
        (&prompt, "other", "o", json!({"values": ["other:o:long", "1"], "total": 2, "hasMore": false})),
        (&prompt, "more", "", json!({"values": many[..100], "total": 120, "hasMore": true})),
        (&resource, "x", "", json!({"values": ["one"], "total": 1, "hasMore": false})),
    ] {
        let params = json!({"ref": of, "argument": {"name": argument, "value": value}, "context": {"arguments": {"style": "long"}}});
        let answer = server.rpc("completion/complete", params.clone()).await;
        assert_eq!(answer["result"]["completion"], expected, "{argument}: {answer}");
        let modern = server.modern("completion/complete", params).await;
        assert_eq!(modern["result"]["completion"], expected, "{argument}: {modern}");
    }
    for (of, argument, expected) in [
        (prompt, "none", "there is no argument `none`"),
        (json!({"type": "ref/prompt", "name": "q"}), "x", "Unknown prompt"),
        (json!({"type": "ref/resource", "uri": "a://z"}), "x", "no resource template"),
    ] {
        let params = json!({"ref": of, "argument": {"name": argument, "value": ""}});
        let (code, message) = refused(&server, "completion/complete", params).await;
        assert!(code == -32602 && message.contains(expected), "{message}");
    }
}

#[tokio::test]
async fn a_wrong_save_says_what_is_wrong() {
    let server = Server::start(&[]);
    let image = |data: &str| json!([{"content": {"type": "image", "data": data, "mimeType": "image/png"}}]);
    for (arguments, expected) in [
        (json!({"name": "a b", "template": "x"}), "at character 2"),
        (json!({"name": "p"}), "`template`: give"),
        (json!({"name": "p", "template": "x", "code": "y"}), "exactly one"),
        (json!({"name": "p", "messages": []}), "at least one"),
        (json!({"name": "p", "messages": image("%")}), "`messages/0/content`: it is no base64"),
        (json!({"name": "p", "messages": [{"role": "system", "content": "x"}]}), "messages/0/role"),
        (json!({"name": "p", "template": "x", "arguments": [{"name": "a-b"}]}), "`arguments`: `a-b`"),
        (json!({"name": "p", "template": "x", "arguments": [{"name": "a"}, {"name": "a"}]}), "twice"),
        (json!({"name": "p", "template": "{a}", "completions": {"b": ["x"]}}), "no argument `b`"),
        (json!({"name": "p", "template": "x", "completion_code": "def main(): return []"}), "no argument whose value"),
        (json!({"name": "p", "template": "{a}", "completion_code": "def main(:"}), "`completion_code`"),
        (json!({"name": "p", "template": "x", "input_schema": {"type": "object"}}), "`input_schema`: it is for `code`"),
    ] {
        let (text, is_error) = server.call(SAVE, arguments.clone()).await;
        assert!(is_error && text.contains(expected), "{arguments}: {text}");
    }
}
