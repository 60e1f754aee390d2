//! What the inspector tells of JavaScript.

use serde_json::{Value, json};

use super::inspected;

#[test]
fn the_style_is_told_by_the_exports() {
    for (code, style) in [
        ("exports.main = () => 1", "function"),
        ("module.exports.main = () => 1", "function"),
        ("exports = module.exports = main; function main() {}", "function"),
        ("module.exports = class {}", "script"),
        ("module.exports = { main }; const main = () => 1", "function"),
        ("module.exports = { other: 1 }", "script"),
        ("export default function () {}", "function"),
        ("export default class {}", "script"),
        ("export default 5", "script"),
        ("export const main = wrap(() => 1)", "function"),
        ("export const main = 5", "script"),
        ("const f = () => 1; export { f as default }", "function"),
        ("export { main } from './x.js'", "function"),
        ("function main() {}", "script"),
        ("return 5", "script"),
        ("await x(); console.log(1)", "script"),
        ("#!/usr/bin/env node\nconsole.log(1)", "script"),
    ] {
        assert_eq!(inspected("javascript", code)["style"], style, "{code}");
    }
}

#[test]
fn comments_and_patterns_give_description_and_schema() {
    let code = "import fs from 'node:fs';\nimport { a } from '@s/p/q';\nimport './local.js';\n/** Greets\n * people.\n *\n * More.\n * @param {object} args\n * @param {string} args.name who\n *   to greet\n * @param {number} [args.times=2] - how often\n * @param {\"a\"|\"b\"} args.mode\n * @param {?string[]} [args.list]\n * @param {Record<string, number>} [args.map]\n */\nexport async function main(args, ctx) { await import('lodash') }";
    assert_eq!(
        inspected("javascript", code),
        json!({
        "type": "inspected", "style": "function",
        "input_schema": {"type": "object", "properties": {
            "name": {"type": "string", "description": "who to greet"},
            "times": {"type": "number", "description": "how often", "default": 2},
            "mode": {"type": "string", "enum": ["a", "b"]},
            "list": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
            "map": {"type": "object", "additionalProperties": {"type": "number"}}},
            "required": ["name", "mode"], "additionalProperties": false},
        "output_schema": null, "description": "Greets people.", "dependencies": [], "requires_python": null,
        "imports": ["@s/p", "fs", "lodash"], "third_party": ["@s/p", "lodash"], "preload": [["fs", []]],
        "warnings": []})
    );
    let pattern = inspected(
        "javascript",
        "/* Adds. */\nconst z = require('zod');\nexports.main = async ({a, b = -2, c = 'x', d = [], ...rest}) => a",
    );
    assert_eq!(pattern["description"], "Adds.");
    assert_eq!(
        pattern["input_schema"],
        json!({"type": "object", "properties": {"a": {}, "b": {"type": "number", "default": -2},
        "c": {"type": "string", "default": "x"}, "d": {"type": "array", "default": []}}, "additionalProperties": true})
    );
    assert_eq!(inspected("javascript", "export default (args) => 1")["input_schema"], Value::Null);
}

#[test]
fn faults_have_a_place() {
    for (code, line, column) in
        [("const x = 1;\nlet y = ;\n", 2, 9), ("export const main = (;", 1, 22), ("exports.main = () => {", 1, 23)]
    {
        let error = inspected("javascript", code);
        assert_eq!(
            (&error["type"], &error["line"], &error["column"]),
            (&json!("code_error"), &json!(line), &json!(column)),
            "{code}"
        );
    }
    let deep = inspected("javascript", &format!("x = {}", "[".repeat(100_000)));
    assert_eq!(deep["type"], "code_error");
    assert!(deep["text"].as_str().unwrap().len() <= 500);
}

#[test]
fn typescript_is_read_where_node_strips_types() {
    let answer = inspected("typescript", "export function main({a}: {a: number}): number { return a }");
    if answer["type"] == "code_error" {
        assert!(
            answer["message"].as_str().unwrap().starts_with("TypeScript needs Node 22.18 or newer; this is v"),
            "{answer}"
        );
    } else {
        assert_eq!(answer["input_schema"]["properties"], json!({"a": {}}));
    }
}
