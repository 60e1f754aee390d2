//! Python: results, errors, the context, both styles.

use serde_json::json;

use super::{Call, answer, check, check_exceptions, text, value};

#[test]
fn results_take_the_form_of_their_value() {
    check(
        "python",
        &[
            ("def main(a, b=2): return {'s': a + b}", r#"{"a":1}"#, value(json!({"s": 3}))),
            ("def main(): return 'é\\ud800'", "{}", text("é\u{fffd}")),
            ("def main(): print('hi')", "{}", json!({"kind": "nothing"})),
            ("def main(): return [1, 2.5, True, None, {'k': ()}]", "{}", value(json!([1, 2.5, true, null, {"k": []}]))),
            (
                "def main(): return {1: 'a', True: 'b', None: 'c', 2.5: 'd'}",
                "{}",
                value(json!({"1": "b", "null": "c", "2.5": "d"})),
            ),
            (
                "async def main(x: int):\n import asyncio\n await asyncio.sleep(0)\n return x * 2",
                r#"{"x":3.0}"#,
                value(json!(6)),
            ),
            ("def main(a, /, b=1, *, c): return [a, b, c]", r#"{"a":1,"c":3}"#, value(json!([1, 1, 3]))),
            ("def main(a=1, b=2, /): return [a, b]", r#"{"b":5}"#, value(json!([1, 5]))),
            ("def main(**kw): return kw", r#"{"x":1,"y":"z"}"#, value(json!({"x": 1, "y": "z"}))),
            ("def main(): return __name__", "{}", text("tool")),
            (
                "if __name__ == '__mai' + 'n__': raise SystemExit(5)\ndef main(): return __file__",
                "{}",
                text("/tool/main.py"),
            ),
            ("import sys\ndef main(): sys.exit()", "{}", json!({"kind": "nothing"})),
            ("def main(): exit(0)", "{}", json!({"kind": "nothing"})),
            (
                "import functools\ndef d(f):\n @functools.wraps(f)\n def w(*a, **k): return f(*a, **k)\n return w\n@d\ndef main(x, ctx): return [x, ctx.tool]",
                r#"{"x":1}"#,
                value(json!([1, "sum"])),
            ),
            (
                "import functools\ndef f(a, b): return a + b\nmain = functools.partial(f, b=2)",
                r#"{"a":1}"#,
                value(json!(3)),
            ),
            (
                "import pickle\nclass A:\n x = 1\ndef main(): return pickle.loads(pickle.dumps(A())).x",
                "{}",
                value(json!(1)),
            ),
            (
                "import inspect\ndef main(): return inspect.getsource(main)",
                "{}",
                text("def main(): return inspect.getsource(main)\n"),
            ),
            (
                "import os\ndef main():\n try: os.get_inheritable(3)\n finally: return os.get_inheritable(3)",
                "{}",
                value(json!(false)),
            ),
        ],
    );
}

#[test]
fn a_hundred_levels_arrive() {
    let code = "def main():\n a = []\n for _ in range(99): a = [a, [], [], {'[': '{'}]\n return a";
    assert_eq!(answer("python", code, "{}")["kind"], "value");
    let code = "exports.main = () => { let a = []; for (let i = 0; i < 99; i++) a = [a, []]; return a }";
    assert_eq!(answer("javascript", code, "{}")["kind"], "value");
}

#[test]
fn richer_results_become_sensible_json() {
    let header = "from dataclasses import dataclass, field\nfrom decimal import Decimal\nfrom datetime import *\nfrom enum import Enum\nfrom uuid import UUID\nfrom typing import NamedTuple\nfrom types import MappingProxyType\n";
    let of = |body: &str| answer("python", &format!("{header}{body}"), "{}");
    assert_eq!(
        of("@dataclass\nclass P:\n x: int\n d: Decimal\ndef main(): return P(1, Decimal('0.10'))"),
        value(json!({"x": 1, "d": "0.10"}))
    );
    assert_eq!(
        of(
            "def main(): return [date(2024, 1, 2), datetime(2024, 1, 2, 3, tzinfo=timezone.utc), time(1, 2), timedelta(minutes=1)]"
        ),
        value(json!(["2024-01-02", "2024-01-02T03:00:00+00:00", "01:02:00", 60.0]))
    );
    assert_eq!(
        of("class C(Enum):\n A = 'a'\ndef main(): return {C.A: C.A, UUID(int=1): MappingProxyType({'x': 1})}"),
        value(json!({"a": "a", "00000000-0000-0000-0000-000000000001": {"x": 1}}))
    );
    assert_eq!(of("class C(str, Enum):\n A = 'a'\ndef main(): return C.A"), text("a"));
    assert_eq!(of("class P(NamedTuple):\n x: int\ndef main(): return P(1)"), value(json!([1])));
    assert_eq!(
        of("class M:\n def model_dump(self, mode, by_alias): return {'m': mode}\ndef main(): return M()"),
        value(json!({"m": "json"}))
    );
    assert_eq!(
        of(
            "def main(): return 12345678901234567890123456789012345678901234567890 - 12345678901234567890123456789012345678901234567889"
        ),
        value(json!(1))
    );
}

#[test]
fn what_json_has_no_form_for_is_named_with_its_path() {
    check_exceptions(
        "python",
        &[
            (
                "def main(): return {'s': {1, 2}, 'b': b'x'}",
                "{}",
                "TypeError: result.s is a set, which JSON has no form for; return list(…) of it",
            ),
            ("def main(): return {'a b': [b'x']}", "{}", "result['a b'][0] is a bytes"),
            ("def main(): return object()", "{}", "TypeError: result is a object"),
            ("def main(): return {'a': [1, float('nan')]}", "{}", "ValueError: result.a[1] is NaN"),
            ("def main(): return float('-inf')", "{}", "result is -Infinity"),
            ("def main():\n a = []; a.append(a); return a", "{}", "result[0] contains itself"),
            (
                "def main():\n a = []\n for _ in range(100000): a = [a]\n return a",
                "{}",
                "ValueError: the result is nested more than 100 levels deep",
            ),
            (
                "def main():\n a = []\n for _ in range(101): a = {'a': [a]}\n return a",
                "{}",
                "nested more than 100 levels deep",
            ),
            ("def main(): return {(1, 2): 3}", "{}", "result has a key that is a tuple"),
            ("def main(): return (x for x in [1])", "{}", "result is a generator"),
            ("def main(): return {'n': 10 ** 5000}", "{}", "result.n is an integer of too many digits"),
            ("async def f(): pass\ndef main(): return [f()]", "{}", "result[0] is a coroutine"),
            (
                "from omniforge import Image\ndef main(): return {'i': Image(b'\\xff\\xd8\\xff')}",
                "{}",
                "result.i is a omniforge.Image",
            ),
            ("from omniforge import Text\ndef main(): return [Text('a'), {1}]", "{}", "result[1] is a set"),
        ],
    );
}

#[test]
fn exceptions_carry_the_tools_own_frames() {
    let answer = answer(
        "python",
        "import json\ndef inner(s):\n    return json.loads(s)\ndef main():\n    return inner('{')",
        "{}",
    );
    assert_eq!(answer["exception"], "json.decoder.JSONDecodeError");
    assert_eq!(
        answer["traceback"],
        "  File \"/tool/main.py\", line 5, in main\n    return inner('{')\n  File \"/tool/main.py\", line 3, in inner\n    return json.loads(s)\n"
    );
    check_exceptions(
        "python",
        &[
            ("import sys\ndef main(): print('bye'); sys.exit('my message')", "{}", "SystemExit: my message"),
            ("import sys\ndef main(): sys.exit(3)", "{}", "SystemExit: the tool left with exit status 3"),
            ("def main(x): pass", "{}", "TypeError: main() missing 1 required positional argument: 'x'"),
            ("def main(): raise KeyboardInterrupt", "{}", "KeyboardInterrupt: "),
            (
                "class Odd(Exception):\n def __str__(self): raise ValueError\ndef main(): raise Odd",
                "{}",
                "Odd: <the message of this Odd can't be shown>",
            ),
            ("x = 1", "{}", "NameError: the code defines no function `main`"),
            ("main = 5", "{}", "TypeError: `main` is a int, not a function"),
            ("def main(: pass", "{}", "SyntaxError: invalid syntax"),
            ("def main():\n def f(): return f()\n f()", "{}", "RecursionError: maximum recursion depth"),
            ("raise ValueError('at import')\ndef main(): pass", "{}", "ValueError: at import"),
        ],
    );
}

#[test]
fn causes_and_groups_are_told() {
    let chained = answer(
        "python",
        "def main():\n  try: {}['k']\n  except KeyError as e: raise RuntimeError('outer') from e",
        "{}",
    );
    let traceback = chained["traceback"].as_str().unwrap();
    assert!(
        traceback.contains("\nCaused by KeyError: 'k'\n  File \"/tool/main.py\", line 2, in main\n"),
        "{traceback}"
    );
}

#[test]
fn errors_made_for_callers_keep_their_words() {
    check(
        "python",
        &[
            (
                "from omniforge import ToolError\ndef main(): raise ToolError('no such city', {'a': {1}})",
                "{}",
                json!({"kind": "tool_error", "text": "no such city", "data": {"a": "{1}"}}),
            ),
            (
                "from omniforge import ToolError\nclass Mine(ToolError): pass\ndef main(): raise Mine('x')",
                "{}",
                json!({"kind": "tool_error", "text": "x", "data": null}),
            ),
            (
                "from omniforge import ProtocolError\ndef main(): raise ProtocolError(-32042, 'p')",
                "{}",
                json!({"kind": "protocol_error", "code": -32042, "text": "p"}),
            ),
        ],
    );
    let script = Call::new("python", "from omniforge import ToolError\nprint('x')\nraise ToolError('t', [1])", "{}")
        .with("style", json!("script"))
        .run();
    assert_eq!(script.frames, [json!({"type": "return", "kind": "tool_error", "text": "t", "data": [1]})]);
    assert_eq!((script.stdout.as_str(), script.stderr.as_str(), script.status), ("x\n", "", Some(0)));
}

#[test]
fn content_has_a_text_block_among_it() {
    let png = json!({"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"});
    check(
        "python",
        &[
            (
                "from omniforge import *\ndef main(): return Image(b'\\x89PNG\\r\\n\\x1a\\n')",
                "{}",
                json!({"kind": "content", "content": [png, {"type": "text", "text": "[image: image/png, 8 bytes]"}]}),
            ),
            (
                "from omniforge import *\ndef main(): return ['hi', Audio('AAAA', 'audio/wav'), ResourceLink('a://b/c'), EmbeddedResource('x://y', blob=b'z', mime_type='a/b')]",
                "{}",
                json!({"kind": "content", "content": [
                {"type": "text", "text": "hi"},
                {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
                {"type": "resource_link", "uri": "a://b/c", "name": "c"},
                {"type": "resource", "resource": {"uri": "x://y", "mimeType": "a/b", "blob": "eg=="}}]}),
            ),
            (
                "from omniforge import *\ndef main(): return Text('t')",
                "{}",
                json!({"kind": "content", "content": [{"type": "text", "text": "t"}]}),
            ),
        ],
    );
    check_exceptions(
        "python",
        &[
            ("from omniforge import *\ndef main(): return Image(b'??')", "{}", "pass mime_type=\"image/…\""),
            ("from omniforge import *\ndef main(): return Image('§')", "{}", "this text is no base64"),
            ("from omniforge import *\ndef main(): return EmbeddedResource('a://b')", "{}", "either text or blob"),
        ],
    );
}

#[test]
fn the_context_reaches_every_style_of_asking() {
    let code = "from omniforge import Context, ctx as module_ctx\nasync def main(a, where: Context):\n await where.info({'s': {1}})\n module_ctx.log('WARN', 'w', logger='l')\n where.progress(1, 2, 'half')\n where.report_progress(2.5)\n return [where is module_ctx, where.tool, where.version, where.run_id, where.request_id, where.meta, where.caller, where.client_capabilities]";
    let done = Call::new("python", code, r#"{"a":1}"#).run();
    assert_eq!(
        done.frames,
        [
            json!({"type": "log", "level": "info", "data": {"s": "{1}"}}),
            json!({"type": "log", "level": "warning", "data": "w", "logger": "l"}),
            json!({"type": "progress", "progress": 1, "total": 2, "message": "half"}),
            json!({"type": "progress", "progress": 2.5}),
            json!({"type": "return", "kind": "value", "value": [true, "sum", 3, "run", 7, {"a": 1}, "owner", {"sampling": {}}]}),
        ]
    );
    check_exceptions(
        "python",
        &[
            ("def main(ctx): ctx.log('loud', 1)", "{}", "the log level must be one of debug, info"),
            ("def main(ctx): ctx.progress(float('nan'))", "{}", "progress must be a finite number"),
            ("def main(ctx): ctx.telepathy('x')", "{}", "AttributeError: the context has no 'telepathy'"),
        ],
    );
}

#[test]
fn threads_log_whole_frames() {
    let code = "import threading\ndef main(ctx):\n def work(n):\n  for i in range(50): ctx.info('x' * 5000)\n ts = [threading.Thread(target=work, args=(n,)) for n in range(8)]\n [t.start() for t in ts]; [t.join() for t in ts]\n return 'done'";
    let done = Call::new("python", code, "{}").run();
    assert_eq!(done.frames.len(), 401);
}

#[test]
fn the_result_does_not_wait_and_only_the_tool_answers() {
    check(
        "python",
        &[
            (
                "import threading, time\ndef main():\n threading.Thread(target=time.sleep, args=(1000,)).start()\n return 1",
                "{}",
                value(json!(1)),
            ),
            (
                "import asyncio, time\nasync def main():\n asyncio.get_running_loop().run_in_executor(None, time.sleep, 1000)\n asyncio.create_task(asyncio.sleep(1000))\n return 1",
                "{}",
                value(json!(1)),
            ),
            ("import os\ndef main():\n for f in (0, 1, 2): os.close(f)\n return 2", "{}", value(json!(2))),
            ("import sys\ndef main():\n sys.stdout.close(); sys.stderr = None\n return 3", "{}", value(json!(3))),
        ],
    );
    let forked = Call::new("python", "import os\ndef main(ctx):\n pid = os.fork()\n if pid: os.waitpid(pid, 0)\n else: ctx.info('child')\n return bool(pid)", "{}").run();
    assert_eq!(forked.frames, [json!({"type": "return", "kind": "value", "value": true})]);
    let closed =
        Call::new("python", "import os\ndef main(ctx):\n os.close(3)\n ctx.info('lost')\n return 1", "{}").run();
    assert_eq!((closed.frames.len(), closed.status), (0, Some(1)));
}

#[test]
fn a_result_over_the_limit_names_it() {
    let done = Call::new("python", "def main(): return 'é' * 600", "{}").with("result_limit", json!(1000)).run();
    assert_eq!(done.frames[0]["exception"], "ResultTooLarge");
    assert_eq!(done.frames[0]["message"], "the result is 1202 bytes of JSON; the limit is 1000 bytes (result_limit)");
    let logged =
        Call::new("python", "def main(ctx): ctx.info('é' * 6000)", "{}").with("result_limit", json!(1000)).run();
    assert_eq!(logged.frames[0]["data"].as_str().unwrap().chars().count(), 125 + "… [truncated]".chars().count());
}

#[test]
fn a_context_that_is_optional_or_somebody_elses_is_told_apart() {
    let optional = "from omniforge import Context\nfrom typing import Optional
def main(a: Optional[Context] = None, b: 'Context | None' = None, c: Context = None):
    return [x is not None for x in (a, b, c)]";
    let own = "class Context: pass\ndef main(a: Context = None): return a is None";
    check("python", &[(optional, "{}", value(json!([true, true, true]))), (own, "{}", value(json!(true)))]);
}

#[test]
fn a_log_of_a_cycle_does_not_fail_the_tool() {
    let code = "def main(ctx):\n a = []; a.append({'a': a}); ctx.info(a); ctx.info(float('nan'))\n return 1";
    let done = Call::new("python", code, "{}").run();
    assert_eq!((done.frames.len(), &done.frames[1]["data"], &done.frames[2]["value"]), (3, &json!("nan"), &json!(1)));
}

#[test]
fn arguments_that_python_cannot_hold_are_a_clear_error() {
    for given in
        [format!("{{\"n\":{}}}", "1".repeat(5000)), format!("{{\"n\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000))]
    {
        let frame = format!(
            "{{\"style\":\"function\",\"code\":\"def main(n): return 1\",\"arguments\":{given},\"inspect\":false}}"
        );
        let done = Call::raw(frame).run();
        let message = done.frames[0]["message"].as_str().unwrap();
        assert!(message.starts_with("the arguments can't be read: "), "{message}");
    }
}
