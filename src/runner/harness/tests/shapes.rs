//! What scripts of resources, prompts and completions return, in Python and JavaScript alike.

use serde_json::{Value, json};

use super::Call;

/// What the code's result is read as.
fn shaped(language: &'static str, expects: &str, code: &str) -> Value {
    let mut call = Call::new(language, code, "{}");
    call.request["context"]["expects"] = json!(expects);
    call.request["context"]["uri"] = json!("test://a/b");
    let done = call.run();
    let last = done.frames.last().unwrap_or_else(|| panic!("no frame for:\n{code}\n{done:?}"));
    last.get("value").or(last.get("message")).cloned().unwrap_or_else(|| last["kind"].clone())
}

#[test]
fn a_resource_is_text_bytes_or_several() {
    let png = "iVBORw0KGgo=";
    let both = json!([{"text": "é"}, {"blob": png, "mimeType": "image/png"}, {"blob": "AP8="},
        {"uri": "test://c", "mimeType": "text/x", "text": "t"}]);
    for (language, code, expected) in [
        ("python", "def main(): return 'é'", json!([{"text": "é"}])),
        ("javascript", "exports.main = () => 'é'", json!([{"text": "é"}])),
        ("python", "def main(): return b'\\0\\xff'", json!([{"blob": "AP8="}])),
        ("javascript", "exports.main = () => new Uint8Array([0, 255])", json!([{"blob": "AP8="}])),
        ("python", "def main(): return {'a': [1]}", json!([{"text": "{\"a\":[1]}", "mimeType": "application/json"}])),
        (
            "javascript",
            "exports.main = () => ({ a: [1] })",
            json!([{"text": "{\"a\":[1]}", "mimeType": "application/json"}]),
        ),
        (
            "python",
            "from omniforge import *\ndef main(): return ['é', Image(b'\\x89PNG\\r\\n\\x1a\\n'), b'\\0\\xff', EmbeddedResource('test://c', text='t', mime_type='text/x')]",
            both.clone(),
        ),
        (
            "javascript",
            "const { Image, EmbeddedResource } = require('omniforge'); exports.main = () => ['é', new Image(Buffer.from('iVBORw0KGgo=', 'base64')), Buffer.from([0, 255]), new EmbeddedResource('test://c', { text: 't', mimeType: 'text/x' })]",
            both,
        ),
        ("python", "def main(ctx): return ctx.uri", json!([{"text": "test://a/b"}])),
        ("javascript", "exports.main = (_, ctx) => ctx.uri", json!([{"text": "test://a/b"}])),
        ("python", "def main(): print('x')", json!("nothing")),
    ] {
        let found = shaped(language, "resource", code);
        let sorted = |value: &Value| crate::model::canonical_json(value);
        assert_eq!(sorted(&found), sorted(&expected), "{code}");
    }
    for (language, code) in [
        ("python", "from omniforge import *\ndef main(): return ResourceLink('a://b')"),
        ("javascript", "const { ResourceLink } = require('omniforge'); exports.main = () => new ResourceLink('a://b')"),
    ] {
        let message = shaped(language, "resource", code);
        assert!(message.as_str().unwrap().contains("a resource holds"), "{message}");
    }
}

#[test]
fn a_prompt_is_messages_however_they_are_given() {
    let text = |role: &str, text: &str| json!({"role": role, "content": {"type": "text", "text": text}});
    let picture = json!({"type": "image", "data": "AA==", "mimeType": "image/png"});
    for (language, code, expected) in [
        ("python", "def main(): return 'hi'", json!({"messages": [text("user", "hi")]})),
        ("javascript", "exports.main = () => 'hi'", json!({"messages": [text("user", "hi")]})),
        (
            "python",
            "from omniforge import *\ndef main(): return {'description': 'd', 'messages': [{'role': 'assistant', 'content': ['a', Image(b'\\0', 'image/png')]}, 'b']}",
            json!({"description": "d", "messages": [text("assistant", "a"), {"role": "assistant", "content": picture}, text("user", "b")]}),
        ),
        (
            "javascript",
            "const { Image } = require('omniforge'); exports.main = () => ({ description: 'd', messages: [{ role: 'assistant', content: ['a', new Image(Buffer.from([0]), 'image/png')] }, 'b'] })",
            json!({"description": "d", "messages": [text("assistant", "a"), {"role": "assistant", "content": picture}, text("user", "b")]}),
        ),
        (
            "python",
            "def main(): return [{'content': {'type': 'resource', 'resource': {'uri': 'a://b', 'text': 't'}}}]",
            json!({"messages": [{"role": "user", "content": {"type": "resource", "resource": {"uri": "a://b", "text": "t"}}}]}),
        ),
    ] {
        let found = shaped(language, "prompt", code);
        let sorted = |value: &Value| crate::model::canonical_json(value);
        assert_eq!(sorted(&found), sorted(&expected), "{code}");
    }
    for (language, code, expected) in [
        ("python", "def main(): return [1]", "result[0] is a int"),
        ("javascript", "exports.main = () => [1]", "result[0] is a number"),
        ("python", "def main(): return {'role': 'system', 'content': 'x'}", "use user or assistant"),
        ("javascript", "exports.main = () => ({ role: 'system', content: 'x' })", "use user or assistant"),
        ("python", "def main(): return {'text': 'x'}", "a message holds"),
        ("python", "def main(): return {'content': 'x', 'rol': 1}", "a message has role and content"),
    ] {
        let message = shaped(language, "prompt", code);
        assert!(message.as_str().unwrap().contains(expected), "{code}: {message}");
    }
}

#[test]
fn a_completion_is_a_list_of_texts() {
    for (language, code, expected) in [
        ("python", "def main(): return ['a', 1, True]", json!(["a", "1", "true"])),
        ("python", "def main(): return {'a': 1}.keys()", json!(["a"])),
        ("javascript", "exports.main = () => ['a', 1, true]", json!(["a", "1", "true"])),
        ("python", "def main(): return 'abc'", json!("a completion returns a list of texts, not a str")),
        ("javascript", "exports.main = () => 'abc'", json!("a completion returns an array of strings, not a string")),
    ] {
        assert_eq!(shaped(language, "completion", code), expected, "{code}");
    }
}
