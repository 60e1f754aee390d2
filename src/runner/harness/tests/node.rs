//! JavaScript: modules of both kinds, results, errors, the context, scripts.

use serde_json::json;

use super::{Call, answer, check, check_exceptions, text, value};

#[test]
fn every_way_to_export_main_is_called() {
    for code in [
        "exports.main = ({a}) => a + 1",
        "module.exports = async function ({a}) { return a + 1 }",
        "module.exports = { main({a}) { return a + 1 } }",
        "export function main({a}) { return a + 1 }",
        "export async function main({a}) { return a + 1 }",
        "export const main = ({a}) => a + 1",
        "export default ({a}) => a + 1",
        "function f({a}) { return a + 1 }\nexport { f as main }",
        "import { add } from 'node:util'; export default 5",
        "const one = await Promise.resolve(1);\nexport default ({a}) => a + one",
    ] {
        if code.contains("add") {
            check_exceptions("javascript", &[(code, r#"{"a":1}"#, "SyntaxError: ")]);
        } else {
            assert_eq!(answer("javascript", code, r#"{"a":1}"#), value(json!(2)), "{code}");
        }
    }
}

#[test]
fn results_take_the_form_of_their_value() {
    check(
        "javascript",
        &[
            ("exports.main = () => 'é\\ud800'", "{}", text("é\u{fffd}")),
            ("exports.main = () => null", "{}", json!({"kind": "nothing"})),
            ("exports.main = () => {}", "{}", json!({"kind": "nothing"})),
            (
                "exports.main = () => ({a: [1, undefined], b: undefined, d: new Date(0)})",
                "{}",
                value(json!({"a": [1, null], "d": "1970-01-01T00:00:00.000Z"})),
            ),
            ("exports.main = (a) => a", r#"{"__proto__":{"x":1}}"#, value(json!({"__proto__": {"x": 1}}))),
            ("exports.main = () => { setInterval(() => {}, 1000); return false }", "{}", value(json!(false))),
            ("exports.main = () => process.exit()", "{}", json!({"kind": "nothing"})),
            (
                "const {Image, Text} = require('omniforge'); exports.main = () => [new Image(Buffer.from('ffd8ff', 'hex')), 'x']",
                "{}",
                json!({"kind": "content", "content": [{"type": "image", "data": "/9j/", "mimeType": "image/jpeg"}, {"type": "text", "text": "x"}]}),
            ),
            (
                "import {ResourceLink} from 'omniforge'; export default () => new ResourceLink('a://b/c', {mimeType: 'x/y'})",
                "{}",
                json!({"kind": "content", "content": [{"type": "resource_link", "uri": "a://b/c", "name": "c", "mimeType": "x/y"}, {"type": "text", "text": "[resource: c, a://b/c]"}]}),
            ),
        ],
    );
}

#[test]
fn what_json_has_no_form_for_is_named_with_its_path() {
    check_exceptions(
        "javascript",
        &[
            ("exports.main = () => ({a: [1, NaN]})", "{}", "TypeError: result.a[1] is NaN"),
            ("exports.main = () => ({'a b': 1n})", "{}", "result[\"a b\"] is a BigInt"),
            ("exports.main = () => ({f() {}})", "{}", "result.f is a function"),
            ("exports.main = () => ({s: Symbol()})", "{}", "result.s is a symbol"),
            (
                "exports.main = () => new Map()",
                "{}",
                "result is a Map, which JSON has no form for; return Object.fromEntries(…) of it",
            ),
            ("exports.main = () => ({b: Buffer.from('x')})", "{}", "result.b is a Buffer"),
            ("exports.main = () => { const a = {}; a.b = a; return a }", "{}", "result.b contains itself"),
            (
                "exports.main = () => [Promise.resolve()]",
                "{}",
                "result[0] is a Promise, which JSON has no form for; await it first",
            ),
            ("exports.main = () => ({d: new Date(NaN)})", "{}", "result.d is an invalid Date"),
            (
                "exports.main = () => { let a = []; for (let i = 0; i < 1e5; i++) a = [a]; return a }",
                "{}",
                "the result is nested more than 100 levels deep",
            ),
        ],
    );
    let done =
        Call::new("javascript", "exports.main = () => 'é'.repeat(600)", "{}").with("result_limit", json!(1000)).run();
    assert_eq!(done.frames[0]["message"], "the result is 1202 bytes of JSON; the limit is 1000 bytes (result_limit)");
}

#[test]
fn errors_carry_the_tools_own_frames() {
    let thrown = answer(
        "javascript",
        "export function f() { throw new RangeError('boom', {cause: new Error('inner')}) }\nexport const main = () => f()",
        "{}",
    );
    assert_eq!((&thrown["exception"], &thrown["message"]), (&json!("RangeError"), &json!("boom")));
    let traceback = thrown["traceback"].as_str().unwrap();
    assert!(
        traceback
            .starts_with("    at f (/tool/main.js:1:29)\n    at main (/tool/main.js:2:27)\nCaused by Error: inner\n"),
        "{traceback}"
    );
    check_exceptions(
        "javascript",
        &[
            ("exports.main = () => { throw 'text' }", "{}", "Error: text"),
            ("exports.main = () => { throw {a: 1} }", "{}", "Error: { a: 1 }"),
            ("exports.main = () => { process.exit(3) }", "{}", "ProcessExit: the tool left with exit status 3"),
            ("exports.main = () => new Promise(() => {})", "{}", "`main` never finished"),
            (
                "exports.main = () => { Promise.reject(new Error('rejected')); return new Promise(r => setTimeout(r, 5000)) }",
                "{}",
                "Error: rejected",
            ),
            (
                "exports.main = () => { setTimeout(() => { throw new Error('later') }, 1); return new Promise(r => setTimeout(r, 5000)) }",
                "{}",
                "Error: later",
            ),
            ("let x = 1", "{}", "Error: the code exports no function `main`"),
            ("exports.main = () => { return ( }", "{}", "SyntaxError: Unexpected token (line 1, column 33)"),
            ("export const main = () => 1\nlet a = ;", "{}", "SyntaxError: Unexpected token (line 2, column 9)"),
            ("exports.main = () => JSON.parse('{')", "{}", "SyntaxError: Expected property name"),
            (
                "import x from 'missing-package'; export default () => x",
                "{}",
                "Error: Cannot find package 'missing-package'",
            ),
        ],
    );
    check(
        "javascript",
        &[
            (
                "const {ToolError} = require('omniforge'); exports.main = () => { throw new ToolError('no', {a: 1n}) }",
                "{}",
                json!({"kind": "tool_error", "text": "no", "data": "{ a: 1n }"}),
            ),
            (
                "import {ProtocolError} from 'omniforge'; export default async () => { throw new ProtocolError(-32042, 'p') }",
                "{}",
                json!({"kind": "protocol_error", "code": -32042, "text": "p"}),
            ),
        ],
    );
}

#[test]
fn the_context_is_the_second_argument_and_an_export() {
    let code = "import { ctx as other } from 'omniforge';\nexport function main(args, ctx) { ctx.info({b: 1n}); ctx.log('warn', 'w', 'l'); const {progress} = ctx; progress(1, 2, 'half'); ctx.report_progress(2.5);\n return [ctx === other, ctx.tool, ctx.version, ctx.run_id, ctx.request_id, ctx.meta, ctx.caller, ctx.client_capabilities] }";
    let done = Call::new("javascript", code, "{}").run();
    assert_eq!(
        done.frames,
        [
            json!({"type": "log", "level": "info", "data": "{ b: 1n }"}),
            json!({"type": "log", "level": "warning", "data": "w", "logger": "l"}),
            json!({"type": "progress", "progress": 1, "total": 2, "message": "half"}),
            json!({"type": "progress", "progress": 2.5}),
            json!({"type": "return", "kind": "value", "value": [true, "sum", 3, "run", 7, {"a": 1}, "owner", {"sampling": {}}]}),
        ]
    );
}

#[test]
fn scripts_run_as_programs() {
    let run = |code: &str| Call::new("javascript", code, r#"{"a":1}"#).with("style", json!("script")).run();
    let common =
        run("const fs = require('fs'); console.log(fs.readFileSync(0, 'utf8'), require.main === module, __filename)");
    assert_eq!(
        (common.stdout.as_str(), common.frames.len(), common.status),
        ("{\"a\":1} true /tool/main.js\n", 0, Some(0))
    );
    let module = run("import fs from 'fs';\nconst a = await Promise.resolve(4);\nsetTimeout(() => console.log(a), 5)");
    assert_eq!((module.stdout.as_str(), module.status), ("4\n", Some(0)));
    let thrown = run("function f() { null.x }\nf()");
    assert_eq!(thrown.status, Some(1));
    assert!(
        thrown.stderr.starts_with(
            "Uncaught TypeError: Cannot read properties of null (reading 'x')\n    at f (/tool/main.js:1:"
        ),
        "{}",
        thrown.stderr
    );
    assert!(!thrown.stderr.contains("driver.cjs"), "{}", thrown.stderr);
    assert_eq!(run("process.exitCode = 4").status, Some(4));
    assert_eq!(run("await new Promise(() => {})").status, Some(13));
    let asked = run("const {ToolError} = require('omniforge'); setTimeout(() => { throw new ToolError('later') }, 1)");
    assert_eq!(asked.frames, [json!({"type": "return", "kind": "tool_error", "text": "later", "data": null})]);
}

#[test]
fn packages_come_from_the_environment() {
    let environment = tempfile::tempdir().unwrap();
    let package = environment.path().join("node_modules/shout");
    std::fs::create_dir_all(&package).unwrap();
    std::fs::write(package.join("package.json"), r#"{"exports":{"import":"./index.mjs","require":"./index.cjs"}}"#)
        .unwrap();
    std::fs::write(package.join("index.mjs"), "export const kind = 'module'").unwrap();
    std::fs::write(package.join("index.cjs"), "exports.kind = 'commonjs'").unwrap();
    for (code, expected) in [
        ("import {kind} from 'shout'; export default () => kind", "module"),
        ("const {kind} = require('shout'); exports.main = () => kind", "commonjs"),
        ("exports.main = async () => (await import('shout')).kind", "module"),
        ("export const main = async () => (await import('shout')).kind", "module"),
    ] {
        let mut call = Call::new("javascript", code, "{}");
        call.environment = Some(environment.path().to_str().unwrap().to_owned());
        assert_eq!(call.run().frames, [json!({"type": "return", "kind": "text", "text": expected})], "{code}");
    }
}
