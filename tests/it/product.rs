//! The main job through the real door: save a script, list it, call it, change it, look at its runs.

use serde_json::{Value, json};

use crate::server::Server;

const VAT: &str = r#"
import json, sys
from decimal import Decimal, ROUND_HALF_UP
net = Decimal(str(json.load(sys.stdin)["net"])); rate = Decimal("20")
vat = (net * rate / 100).quantize(Decimal("0.01"), ROUND_HALF_UP)
print(json.dumps({"net": str(net), "rate": str(rate), "vat": str(vat), "gross": str(net + vat)}))
"#;

fn vat() -> Value {
    let schema = json!({"type": "object", "properties": {"net": {"type": "number"}}, "required": ["net"],
        "additionalProperties": false});
    json!({"name": "add_vat", "description": "Add UK VAT to a net amount", "code": VAT, "input_schema": schema})
}

#[tokio::test]
async fn the_seeds_example_comes_out_to_the_letter() {
    let server = Server::start(&[]);
    server.create(vat()).await;
    let list = server.rpc("tools/list", json!({})).await;
    let tools = list["result"]["tools"].as_array().unwrap();
    let listed = tools.iter().find(|tool| tool["name"] == "add_vat").unwrap();
    assert_eq!(listed["inputSchema"], vat()["input_schema"]);
    assert_eq!(listed["description"], "Add UK VAT to a net amount");
    let answer = server.rpc("tools/call", json!({"name": "add_vat", "arguments": {"net": 10}})).await;
    let text = r#"{"net": "10", "rate": "20", "vat": "2.00", "gross": "12.00"}"#;
    assert_eq!(answer["result"]["content"], json!([{"type": "text", "text": text}]));
    assert_eq!(answer["result"]["isError"], json!(false));
}

#[tokio::test]
async fn a_function_needs_no_schema_and_returns_a_value() {
    let server = Server::start(&[]);
    let code = "def main(net: float, rate: float = 20) -> dict:\n    \"\"\"Add VAT.\n\n    Args:\n        net: The amount.\n    \"\"\"\n    print('working')\n    return {'gross': net * (100 + rate) / 100}\n";
    let reply = server.create(json!({"name": "gross", "code": code})).await;
    assert!(reply.contains("function style") && reply.contains("read from the code"), "{reply}");
    let answer = server.rpc("tools/call", json!({"name": "gross", "arguments": {"net": 10}})).await;
    assert_eq!(answer["result"]["structuredContent"], json!({"gross": 12.0}), "{answer}");
    let (text, is_error) = server.call("gross", json!({"net": "ten"})).await;
    assert!(is_error && text.starts_with("Arguments do not match inputSchema") && text.contains("/net"), "{text}");
    let (text, is_error) = server.call("gross", json!({"net": "10"})).await;
    assert!(!is_error, "a number in a string is coerced: {text}");
}

#[tokio::test]
async fn javascript_and_bash_work_in_both_styles() {
    let server = Server::start(&[]);
    for (name, language, code, expected) in [
        ("esm", "javascript", "export default function main({ who }) { return `Hello, ${who}`; }", "Hello, Ada"),
        ("cjs", "javascript", "exports.main = async ({ who }) => `Hello, ${who}`;", "Hello, Ada"),
        (
            "node_script",
            "javascript",
            "const a = JSON.parse(require('fs').readFileSync(0)); console.log(`Hello, ${a.who}`);",
            "Hello, Ada",
        ),
        ("shell", "bash", "echo \"Hello, $ARG_WHO\"", "Hello, Ada"),
        ("shell_stdin", "bash", "cat", "{\"who\":\"Ada\"}"),
    ] {
        server.create(json!({"name": name, "language": language, "code": code})).await;
        assert_eq!(server.call(name, json!({"who": "Ada"})).await, (expected.to_owned(), false), "{name}");
    }
}

#[tokio::test]
async fn wrong_saves_say_what_is_wrong_and_save_nothing() {
    let server = Server::start(&[]);
    let good = "def main():\n    return 1\n";
    for (tool, expected) in [
        (json!({"name": "9x", "code": good}), "must start with a letter"),
        (json!({"name": "a b", "code": good}), "at character 2"),
        (json!({"name": "omniforge_x", "code": good}), "reserved"),
        (json!({"name": "x", "code": "def main(:\n"}), "line 1"),
        (json!({"name": "x", "code": "  "}), "empty"),
        (json!({"name": "x", "code": good, "input_schema": {"type": "array"}}), "\"type\": \"object\""),
        (
            json!({"name": "x", "code": good, "input_schema": {"type": "object", "properties": {"a": {"type": "nope"}}}}),
            "/properties/a/type",
        ),
        (json!({"name": "x", "code": good, "output_schema": {"pattern": "(?=a)"}}), "output_schema"),
        (json!({"name": "x", "code": good, "dependencies": ["--index-url http://x"]}), "dependencies"),
        (json!({"name": "x", "code": good, "dependencies": ["a @ https://x/y.whl"]}), "dependencies"),
        (json!({"name": "x", "code": "def main(*args): return 1"}), "*args"),
        (json!({"name": "x", "language": "javascript", "code": "export function main( {"}), "line 1"),
        (json!({"name": "x", "language": "bash", "code": "if true; then\n"}), "code"),
        (json!({"name": "x", "code": good, "surprise": 1}), "surprise"),
        (json!({"name": "x"}), "code"),
    ] {
        let (text, is_error) = server.call("omniforge_create_tool", tool.clone()).await;
        assert!(is_error && text.contains(expected), "{tool}: {text}");
    }
    assert_eq!(server.saved_names().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_tool_is_changed_rolled_back_switched_off_and_deleted() {
    let server = Server::start(&[]);
    let code = |n: i32| format!("def main():\n    return 'version {n}'\n");
    server.create(json!({"name": "t", "code": code(1)})).await;
    let (text, is_error) = server.call("omniforge_create_tool", json!({"name": "t", "code": code(9)})).await;
    assert!(is_error && text.contains("replace"), "{text}");
    let (text, is_error) = server.call("omniforge_update_tool", json!({"name": "t", "code": code(2)})).await;
    assert!(!is_error && text.contains("version 2"), "{text}");
    assert_eq!(server.call("t", json!({})).await.0, "version 2");
    let (text, _) = server.call("omniforge_tool_history", json!({"name": "t", "to": 2})).await;
    assert!(text.contains("-    return 'version 1'") && text.contains("+    return 'version 2'"), "{text}");
    server.call("omniforge_rollback_tool", json!({"name": "t", "version": 1})).await;
    assert_eq!(server.call("t", json!({})).await.0, "version 1");
    let (text, _) = server.call("omniforge_get_tool", json!({"name": "t"})).await;
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["version"], 3);
    server.call("omniforge_set_enabled", json!({"name": "t", "enabled": false})).await;
    assert!(server.saved_names().await.is_empty());
    let answer = server.rpc("tools/call", json!({"name": "t"})).await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    server.call("omniforge_set_enabled", json!({"name": "t", "enabled": true})).await;
    assert_eq!(server.saved_names().await, ["t"]);
    server.call("omniforge_delete_tool", json!({"name": "t"})).await;
    assert!(server.saved_names().await.is_empty());
    let (text, is_error) = server.call("omniforge_get_tool", json!({"name": "t"})).await;
    assert!(is_error && text.contains("no tool `t`"), "{text}");
}

#[tokio::test]
async fn a_run_is_in_the_history_with_its_ending_and_its_log() {
    let server = Server::start(&[]);
    let code = "import sys\ndef main(ctx, fail: bool = False):\n    ctx.info('hello log')\n    print('to stdout')\n    if fail: raise ValueError('bad luck')\n    return 'fine'\n";
    server.create(json!({"name": "t", "code": code})).await;
    server.call("t", json!({})).await;
    let (text, is_error) = server.call("t", json!({"fail": true})).await;
    assert!(is_error && text.contains("ValueError: bad luck") && text.contains("line 5"), "{text}");
    let (text, _) = server.call("omniforge_list_runs", json!({"tool": "t"})).await;
    let runs: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(runs["runs"][0]["status"], "error");
    assert_eq!(runs["runs"][1]["status"], "ok");
    let id = runs["runs"][1]["run_id"].as_str().unwrap();
    let (text, _) = server.call("omniforge_get_run", json!({"run_id": id})).await;
    let run: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(run["stdout"], "to stdout\n");
    assert_eq!(run["log"][0]["data"], "hello log");
    assert_eq!(run["result"]["content"][0]["text"], "fine");
    assert_eq!(run["sandbox"], "full");
}

#[tokio::test]
async fn reach_waits_and_says_what_for() {
    let server = Server::start(&[]);
    let code = "def main():\n    return 1\n";
    server.create(json!({"name": "t", "code": code})).await;
    let change = json!({"name": "t", "code": "def main():\n    return 2\n", "network": ["example.com:443"], "timeout_seconds": 600});
    let (text, is_error) = server.call("omniforge_update_tool", change).await;
    assert!(
        !is_error && text.contains("Needs approval") && text.contains("example.com:443") && text.contains("600"),
        "{text}"
    );
    assert_eq!(server.call("t", json!({})).await.0, "1", "the last version without reach serves meanwhile");
    let (text, _) = server.call("omniforge_get_tool", json!({"name": "t"})).await;
    assert!(text.contains("needs approval"), "{text}");
}

#[tokio::test]
async fn limits_are_named_when_they_are_hit() {
    let server = Server::start(&[]);
    let memory = "def main():\n    return len([b'x' * (10 << 20) for _ in range(300)])\n";
    server.create(json!({"name": "memory", "code": memory, "memory_mb": 64})).await;
    let (text, is_error) = server.call("memory", json!({})).await;
    assert!(is_error && (text.contains("[limit] memory") || text.contains("MemoryError")), "{text}");
    let slow = "import time\nprint('begin', flush=True)\ntime.sleep(60)\n";
    server.create(json!({"name": "slow", "code": slow, "timeout_seconds": 1})).await;
    assert_eq!(server.call("slow", json!({})).await, ("begin\n[timeout]".to_owned(), true));
}

#[tokio::test]
async fn a_test_run_shows_everything_and_saves_nothing() {
    let server = Server::start(&[]);
    let code = "def main(ctx, n: int):\n    ctx.warning('careful')\n    print('out')\n    return n + 1\n";
    let answer = server
        .rpc("tools/call", json!({"name": "omniforge_test_tool", "arguments": {"code": code, "arguments": {"n": 1}}}))
        .await;
    let content = answer["result"]["content"].as_array().unwrap();
    assert_eq!(content[0]["text"], "2");
    let report = content[1]["text"].as_str().unwrap();
    assert!(
        report.contains("careful") && report.contains("\"stdout\": \"out\\n\"") && report.contains("run_ms"),
        "{report}"
    );
    assert!(server.saved_names().await.is_empty());
}

#[tokio::test]
async fn names_that_are_almost_right_are_suggested() {
    let server = Server::start(&[]);
    server.create(vat()).await;
    let answer = server.rpc("tools/call", json!({"name": "add_vta", "arguments": {}})).await;
    assert_eq!(answer["error"]["code"], -32602);
    assert!(answer["error"]["message"].as_str().unwrap().contains("`add_vat`"), "{answer}");
}

#[tokio::test]
async fn long_numbers_reach_a_script_as_they_were_sent() {
    let server = Server::start(&[]);
    server.create(json!({"name": "echo", "language": "bash", "code": "cat"})).await;
    let number = "3.141592653589793238462643383279";
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo","arguments":{{"n":{number}}}}}}}"#
    );
    let answer = server.rpc_raw(body).await;
    assert_eq!(answer["result"]["content"][0]["text"], format!("{{\"n\":{number}}}"));
}

#[tokio::test]
async fn what_waits_for_approval_runs_through_no_door() {
    let server = Server::start(&["--approval", "always"]);
    let code = "def main():\n    return 'RAN'\n";
    server.create(json!({"name": "t", "code": code, "timeout_seconds": 600})).await;
    for (door, arguments) in [
        ("omniforge_test_tool", json!({"name": "t"})),
        ("omniforge_test_tool", json!({"name": "t", "version": 1})),
        ("omniforge_test_tool", json!({"code": code, "timeout_seconds": 600})),
        ("omniforge_call_tool", json!({"name": "t"})),
    ] {
        let (text, is_error) = server.call(door, arguments.clone()).await;
        assert!(is_error && !text.contains("RAN"), "{door} {arguments}: {text}");
    }
}

#[tokio::test]
async fn a_stricter_policy_holds_for_what_was_saved_before_it() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start_on(dir.path(), &[]);
    server.create(json!({"name": "t", "code": "def main():\n    return 'RAN'\n"})).await;
    assert_eq!(server.call("t", json!({})).await.0, "RAN");
    drop(server);
    for stricter in [["--approval", "always"], ["--sandbox", "none"]] {
        let server = Server::start_on(dir.path(), &stricter);
        for (door, arguments) in [("t", json!({})), ("omniforge_test_tool", json!({"name": "t"}))] {
            let (text, is_error) = server.call(door, arguments).await;
            assert!(
                is_error && text.contains("before a person approves") && !text.contains("RAN"),
                "{stricter:?} {door}: {text}"
            );
        }
        let (text, _) = server.call("omniforge_get_tool", json!({"name": "t"})).await;
        assert!(text.contains("needs approval"), "{stricter:?}: {text}");
        let (text, _) = server.call("omniforge_list_tools", json!({})).await;
        let found: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(found["tools"][0]["status"], "needs approval", "{stricter:?}: {text}");
    }
}
