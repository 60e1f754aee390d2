//! Rich results: what scripts in both languages can say beside texts and values.

use serde_json::{Value, json};

use super::{Call, answer, check, check_exceptions};

/// The same result in Python and in JavaScript.
fn check_both(table: &[(&str, &str, Value)]) {
    for (python, javascript, expected) in table {
        let python = format!("from omniforge import *\ndef main(): return {python}");
        let javascript = format!(
            "const {{ Audio, EmbeddedResource, Image, ResourceLink, Result, Text }} = require('omniforge');\nexports.main = () => {javascript};"
        );
        check("python", &[(&python, "{}", expected.clone())]);
        check("javascript", &[(&javascript, "{}", expected.clone())]);
    }
}

fn content(blocks: Value) -> Value {
    json!({"kind": "content", "content": blocks})
}

#[test]
fn every_kind_of_block_carries_annotations_and_meta() {
    let said = json!({"annotations": {"audience": ["user"], "priority": 0.5, "lastModified": "2026-01-02T03:04:05Z"},
        "_meta": {"com.example/a": [1]}});
    let with = |mut block: Value| {
        block.as_object_mut().unwrap().extend(said.as_object().unwrap().clone());
        block
    };
    let python = "annotations={'audience': 'user', 'priority': 0.5, 'last_modified': '2026-01-02T03:04:05Z'}, meta={'com.example/a': [1]}";
    let javascript = "annotations: {audience: 'user', priority: 0.5, last_modified: '2026-01-02T03:04:05Z'}, meta: {'com.example/a': [1]}";
    check_both(&[(
        &format!(
            "[Text('t', {python}), Image('AAAA', 'image/png', {python}), Audio('AAAA', format='wav', {python}), \
             ResourceLink('a://b', 'n', 'd', 'x/y', title='T', size=3, {python}), EmbeddedResource('a://b', 'r', {python})]"
        ),
        &format!(
            "[new Text('t', {{{javascript}}}), new Image('AAAA', {{mimeType: 'image/png', {javascript}}}), \
             new Audio('AAAA', {{mimeType: 'audio/wav', {javascript}}}), \
             new ResourceLink('a://b', {{name: 'n', description: 'd', mimeType: 'x/y', title: 'T', size: 3, {javascript}}}), \
             new EmbeddedResource('a://b', {{text: 'r', {javascript}}})]"
        ),
        content(json!([
            with(json!({"type": "text", "text": "t"})),
            with(json!({"type": "image", "data": "AAAA", "mimeType": "image/png"})),
            with(json!({"type": "audio", "data": "AAAA", "mimeType": "audio/wav"})),
            with(json!({"type": "resource_link", "uri": "a://b", "name": "n", "title": "T", "description": "d",
                "mimeType": "x/y", "size": 3})),
            with(json!({"type": "resource", "resource": {"uri": "a://b", "text": "r"}})),
        ])),
    )]);
}

#[test]
fn other_values_beside_blocks_become_texts() {
    check_both(&[(
        "[Text('t'), 's', {'a': [1, None]}, 2, True, None]",
        "[new Text('t'), 's', {a: [1, null]}, 2, true, null]",
        content(json!([
            {"type": "text", "text": "t"}, {"type": "text", "text": "s"}, {"type": "text", "text": "{\"a\":[1,null]}"},
            {"type": "text", "text": "2"}, {"type": "text", "text": "true"}, {"type": "text", "text": "null"}
        ])),
    )]);
}

#[test]
fn a_whole_result_has_content_a_value_and_meta() {
    check_both(&[
        (
            "Result('t', {'a': 1}, meta={'m': 2})",
            "new Result({content: 't', structured: {a: 1}, meta: {m: 2}})",
            json!({"kind": "result", "content": [{"type": "text", "text": "t"}], "structured": {"a": 1}, "meta": {"m": 2}}),
        ),
        (
            "Result([Image('AAAA', 'image/png'), {'b': 2}], [1])",
            "new Result({content: [new Image('AAAA', 'image/png'), {b: 2}], structured: [1]})",
            json!({"kind": "result", "content": [{"type": "image", "data": "AAAA", "mimeType": "image/png"},
                {"type": "text", "text": "{\"b\":2}"}], "structured": [1]}),
        ),
        (
            "Result(Audio('AAAA', 'audio/wav'))",
            "new Result({content: new Audio('AAAA', 'audio/wav')})",
            json!({"kind": "result", "content": [{"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
                {"type": "text", "text": "[audio: audio/wav, 3 bytes]"}]}),
        ),
        (
            "Result([])",
            "new Result({content: []})",
            json!({"kind": "result", "content": [{"type": "text", "text": "(no output)"}]}),
        ),
        ("Result(structured=False)", "new Result({structured: false})", json!({"kind": "result", "structured": false})),
        ("Result()", "new Result()", json!({"kind": "result"})),
    ]);
    let date = "from datetime import datetime, timezone\nfrom omniforge import *\ndef main():\n \
                return Text('t', annotations={'lastModified': datetime(2026, 1, 2, tzinfo=timezone.utc)})";
    let expected = json!([{"type": "text", "text": "t", "annotations": {"lastModified": "2026-01-02T00:00:00+00:00"}}]);
    assert_eq!(answer("python", date, "{}")["content"], expected);
}

#[test]
fn what_is_wrong_with_a_result_is_said() {
    let python = [
        ("Text('t', annotations={'audience': 'me'})", "the audience is a list of \"user\" and \"assistant\""),
        ("Text('t', annotations={'priority': 2})", "the priority is a number from 0 to 1, not 2"),
        ("Text('t', annotations={'lastModified': 1})", "lastModified is a moment"),
        ("Text('t', annotations={'colour': 1})", "annotations have no 'colour'"),
        ("Text('t', annotations=['user'])", "annotations is an object (a dict), not a list"),
        ("Text('t', meta='m')", "meta is an object (a dict), not a str"),
        ("Text('t', meta={'a': {1}})", "meta.a is a set"),
        ("ResourceLink('a://b', size=-1)", "number of bytes, not -1"),
        ("Result(structured={'a': {1}})", "result.structured.a is a set"),
        ("Result([Text('a'), {1}])", "result.content[1] is a set"),
        ("[Text('a'), Result('b')]", "result[1] is a Result; return it by itself"),
        ("{'a': Result('b')}", "result.a is a omniforge.Result"),
    ];
    for (code, expected) in python {
        let code = format!("from omniforge import *\ndef main(): return {code}");
        check_exceptions("python", &[(&code, "{}", expected)]);
    }
    let javascript = [
        ("new Text('t', {annotations: {audience: 'me'}})", "the audience is an array of \"user\" and \"assistant\""),
        ("new Text('t', {annotations: {priority: 2}})", "the priority is a number from 0 to 1, not 2"),
        ("new Text('t', {annotations: {lastModified: 1}})", "lastModified is a Date"),
        ("new Text('t', {annotations: {colour: 1}})", "annotations have no colour"),
        ("new Text('t', {annotations: []})", "annotations is an object, not an array"),
        ("new Text('t', {meta: 'm'})", "meta is an object, not string"),
        ("new ResourceLink('a://b', {size: -1})", "number of bytes, not -1"),
        ("new Result({structured: {a: 1n}})", "result.structured.a is a BigInt"),
        ("new Result({content: [new Text('a'), 1n]})", "result.content[1] is a BigInt"),
        ("[new Text('a'), new Result({content: 'b'})]", "result[1] is a Result; return it by itself"),
        ("({a: new Result({content: 'b'})})", "result.a is Result; return it by itself"),
    ];
    for (code, expected) in javascript {
        let code =
            format!("const {{ ResourceLink, Result, Text }} = require('omniforge');\nexports.main = () => {code};");
        check_exceptions("javascript", &[(&code, "{}", expected)]);
    }
}

#[test]
fn the_limit_counts_all_parts_of_a_result() {
    for (language, code) in [
        ("python", "from omniforge import *\ndef main(): return Result('x' * 60, 'y' * 60)"),
        (
            "javascript",
            "const { Result } = require('omniforge');\nexports.main = () => new Result({content: 'x'.repeat(60), structured: 'y'.repeat(60)});",
        ),
    ] {
        let done = Call::new(language, code, "{}").with("result_limit", json!(100)).run();
        assert_eq!(done.frames[0]["exception"], "ResultTooLarge", "{done:?}");
    }
}
