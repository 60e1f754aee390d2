"""Values reach a script as they were sent, in every language and style, and come back as the tool means them."""

import contextlib
import hashlib
import json

import pytest

from harness import answer, connect, connect_stdio, free_name

ECHO = "import sys\nsys.stdout.write(sys.stdin.read())\n"
NUMBERS = '{"big":123456789012345678901234567890,"third":0.333333333333333333333333333333,"tiny":1e-400,"one":1.0,"minus":-0}'


def call_raw(server, tool, arguments):
    """Calls with these very bytes as arguments; the result's text."""
    body = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"%s","arguments":%s}}' % (tool, arguments)
    result = answer(server.post(body.encode()))["result"]
    text = result["content"][0]["text"]
    assert not result.get("isError"), text
    return text


@pytest.fixture(scope="module")
def echo(server):
    """A script that prints its standard input."""
    server.create("echo", ECHO, input_schema={"type": "object"})
    return "echo"


def test_no_number_is_rounded_on_its_way_to_a_script(server, echo):
    assert call_raw(server, echo, NUMBERS) == NUMBERS


def test_no_number_is_rounded_on_its_way_to_a_function(server):
    server.create("digits", "def main(big: int, precise):\n    return f'{big + 1} {precise!r}'\n")
    text = call_raw(server, "digits", '{"big":123456789012345678901234567890,"precise":1}')
    assert text == "123456789012345678901234567891 1"


def test_a_coerced_call_rounds_no_other_number(server):
    schema = {"type": "object", "properties": {"count": {"type": "integer"}, "big": {"type": "integer"}}}
    server.create("coerced", ECHO, input_schema=schema)
    text = call_raw(server, "coerced", '{"count":"10","big":123456789012345678901234567890}')
    assert "123456789012345678901234567890" in text and '"10"' not in text


@pytest.mark.parametrize("builtin", ["omniforge_call_tool", "omniforge_test_tool"])
def test_a_call_through_a_built_in_rounds_no_number(server, echo, builtin):
    text = call_raw(server, builtin, '{"name":"%s","arguments":%s}' % (echo, NUMBERS))
    assert "123456789012345678901234567890" in text


@pytest.mark.parametrize(
    ("tool", "arguments", "kept"),
    [
        ("nested", '{"list":"[1.10,\\"2\\"]","other":0.10}', ['[1.10,2]', '"other":0.10']),
        ("nested", '{"list":["1.10",123456789012345678901234567890]}', ["[1.10,123456789012345678901234567890]"]),
        ("omniforge_call_tool", '{"name":"nested","arguments":"{\\"list\\":[\\"1.10\\"],\\"big\\":1e-400}"}', ["[1.10]", '"big":1e-400']),
    ],
    ids=["a list in a text", "a text in a list", "arguments in a text"],
)
def test_a_coercion_changes_nothing_else(server, tool, arguments, kept):
    schema = {"type": "object", "properties": {"list": {"type": "array", "items": {"type": "number"}}}}
    server.create("nested", ECHO, input_schema=schema, replace=True)
    text = call_raw(server, tool, arguments)
    for part in kept:
        assert part in text, text


@pytest.mark.parametrize(
    ("code", "fields"),
    [
        ("def main():\n    return {'big': 2**100 + 1, 'list': [2**70]}\n", {}),
        ("def main():\n    return {'big': 2**100 + 1, 'list': [2**70]}\n", {"output_schema": {"type": "object"}}),
        ("from omniforge import Result\n\ndef main():\n    return Result(structured={'big': 2**100 + 1, 'list': [2**70]})\n", {}),
        ("print('{\"big\":%d,\"list\":[%d]}' % (2**100 + 1, 2**70))\n", {"output_schema": {"type": "object"}}),
    ],
    ids=["function", "function with a schema", "result", "script with a schema"],
)
def test_no_digit_of_a_result_is_lost(server, code, fields):
    tool = free_name("digits")
    server.create(tool, code, **fields)
    exact = '{"big":1267650600228229401496703205377,"list":[1180591620717411303424]}'
    result = server.call(tool)
    assert (result.text, result.is_error) == (exact, False)
    assert result.structured["big"] == pytest.approx(2**100)
    runs = server.call("omniforge_list_runs", {"tool": tool}).structured["runs"]
    shown = server.call("omniforge_get_run", {"run_id": runs[0]["run_id"]})
    assert f'"structuredContent":{exact}' in shown.text


def test_tools_hand_each_other_every_digit(server, echo):
    tool = free_name("calling")
    code = "def main(ctx):\n    ctx.state.set('n', 2**100 + 1)\n    return [ctx.call('%s', {'n': 2**100 + 1}), ctx.state.get('n')]\n" % echo
    server.create(tool, code)
    number = 2**100 + 1
    assert server.call(tool).text == '["{\\"n\\":%d}",%d]' % (number, number)


def test_a_run_shows_its_arguments_digit_by_digit(server, echo):
    call_raw(server, echo, NUMBERS)
    runs = server.call("omniforge_list_runs", {"tool": echo}).structured["runs"]
    assert f'"arguments":{NUMBERS}' in server.call("omniforge_get_run", {"run_id": runs[0]["run_id"]}).text


def test_a_number_beyond_every_double_is_text_but_no_structured_value(server):
    server.create("huge", "def main():\n    return [10**400]\n")
    result = server.call("huge")
    assert (result.text, result.structured, result.is_error) == (f"[1{'0' * 400}]", None, False)


def test_arguments_that_no_double_holds_are_refused_in_words(server, echo):
    body = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"%s","arguments":{"a":1e999}}}' % echo
    result = answer(server.post(body))["result"]
    assert result["isError"] and "number out of range" in result["content"][0]["text"]


@pytest.mark.parametrize(
    "text",
    ["žluťoučký kůň", "日本語 😀 👩‍👩‍👧‍👦", "\u202eright to left", "a\u0000b", "\ud83d\ude00", '"\\\n\t\u2028', "e\u0301 \ufeff"],
    ids=["latin", "emoji", "bidi", "nul", "surrogates", "escapes", "combining"],
)
def test_every_text_reaches_every_language(server, text):
    text = text.encode("utf-16", "surrogatepass").decode("utf-16")
    for tool, code, language in [
        ("text_function", "def main(text: str) -> str:\n    return text\n", "python"),
        ("text_script", "import json, sys\nprint(json.load(sys.stdin)['text'], end='')\n", "python"),
        ("text_node", "export default function main(args) { return args.text; }\n", "javascript"),
    ]:
        server.create(tool, code, language=language, replace=True)
        assert server.call(tool, {"text": text}).text == text, tool


@pytest.mark.anyio
async def test_five_megabytes_arrive_whole(server, mode):
    text = "0123456789abcdef" * (5 * 1024 * 1024 // 16) + "é"
    digest = hashlib.sha256(text.encode()).hexdigest()
    function, script = free_name("big"), free_name("big")
    server.create(function, "import hashlib\ndef main(text: str):\n    return hashlib.sha256(text.encode()).hexdigest()\n")
    server.create(
        script,
        "import hashlib, json, sys\nprint(hashlib.sha256(json.load(sys.stdin)['text'].encode()).hexdigest())\n",
    )
    async with connect(server, mode) as connection:
        for tool in [function, script]:
            result = await connection.call(tool, {"text": text})
            assert (result.text, result.is_error) == (digest, False)


@pytest.mark.anyio
async def test_a_long_output_is_cut_with_a_word_and_a_long_result_is_not(server, mode):
    printed, returned = free_name("printed"), free_name("returned")
    server.create(printed, "print('x' * 3_000_000)\n")
    server.create(returned, "def main() -> str:\n    return 'x' * 500_000\n")
    async with connect(server, mode) as connection:
        result = await connection.call(printed)
        assert "[truncated: 3000001 bytes, run " in result.text and len(result.text) < 1_100_000
        assert len((await connection.call(returned)).text) == 500_000


@pytest.mark.anyio
async def test_a_result_too_large_for_the_stream_that_progress_opened_is_found_with_its_run(server, mode):
    tool = free_name("big")
    server.create(tool, "def main(ctx):\n    ctx.progress(1)\n    return 'x' * 2_000_000\n")

    async def ignore(*_):
        pass

    async with connect(server, mode) as connection:
        told = await connection.call(tool, progress_callback=ignore)
        assert told.is_error and "omniforge_get_run" in told.text, told.text[:500]
        (run,) = (await connection.call("omniforge_list_runs", {"tool": tool})).structured["runs"]
        shown = (await connection.call("omniforge_get_run", {"run_id": run["run_id"]})).structured
        assert shown["result"]["content"] == [{"type": "text", "text": "x" * 2_000_000}]


BIG = """
import time

def main(seconds: float, structured: bool):
    time.sleep(seconds)
    text = "é" * 2_090_000
    return {"text": text} if structured else text
"""


@pytest.mark.anyio
@pytest.mark.parametrize("door", ["http", "stdio"])
async def test_a_result_up_to_the_limit_arrives_whole(server, mode, door, tmp_path):
    # One event of this client's stream holds 1 MiB at most; a result may have 4 MiB, and its text says it again.
    tool = free_name("big")
    async with contextlib.AsyncExitStack() as stack:
        if door == "http":
            connection = await stack.enter_async_context(connect(server, mode))
        else:
            log = stack.enter_context((tmp_path / "stdio.log").open("wb"))
            connection = await stack.enter_async_context(connect_stdio(server.data_dir, mode, log))
        made = await connection.call("omniforge_create_tool", {"name": tool, "code": BIG})
        assert not made.is_error, made.text
        for seconds in [0, 2]:
            result = await connection.call(tool, {"seconds": seconds, "structured": False})
            assert (result.text, result.is_error) == ("é" * 2_090_000, False)
        structured = await connection.call(tool, {"seconds": 0, "structured": True})
        assert structured.structured == {"text": "é" * 2_090_000}

        async def ignore(*_):
            pass

        # A client that asks for progress, and a tool that tells none.
        result = await connection.call(tool, {"seconds": 2, "structured": False}, progress_callback=ignore)
        assert len(result.text) == 2_090_000


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("javascript", "export default function main({ a, b }) { return { sum: a + b }; }"),
        ("javascript", "export async function main(args, ctx) { ctx.info('adding'); return { sum: args.a + args.b }; }"),
        ("javascript", "exports.main = ({ a, b }) => ({ sum: a + b });"),
        ("javascript", "module.exports = async function (args) { return { sum: args.a + args.b }; };"),
        ("python", "def main(a: int, b: int):\n    return {'sum': a + b}\n"),
        ("python", "async def main(a: int, b: int):\n    return {'sum': a + b}\n"),
        ("python", "def main(**numbers):\n    return {'sum': sum(numbers.values())}\n"),
    ],
)
def test_a_function_returns_a_structured_value(server, language, code):
    tool = free_name("sum")
    server.create(tool, code, language=language)
    result = server.call(tool, {"a": 2, "b": 3})
    assert (result.structured, json.loads(result.text), result.is_error) == ({"sum": 5}, {"sum": 5}, False)


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("javascript", "const args = JSON.parse(require('fs').readFileSync(0, 'utf8'));\nconsole.log(args.a + args.b);\n"),
        ("bash", "echo $((ARG_A + ARG_B))"),
        ("bash", "read -r line; line=${line//[^0-9,]/}; echo $((${line/,/+}))"),
        ("python", "import json, os\nargs = json.load(open(os.environ['OMNIFORGE_ARGS_FILE']))\nprint(args['a'] + args['b'])\n"),
        ("python", "import json, sys\n\ndef main():\n    args = json.load(sys.stdin)\n    print(args['a'] + args['b'])\n\nif __name__ == '__main__':\n    main()\n"),
    ],
)
def test_a_script_gets_its_arguments_on_standard_input(server, language, code):
    tool = free_name("sum")
    server.create(tool, code, language=language)
    result = server.call(tool, {"a": 2, "b": 3})
    assert (result.text, result.structured, result.is_error) == ("5", None, False)


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("python", "from omniforge import ToolError\n\ndef main(city: str):\n    raise ToolError(f'No city {city}', data={'city': city})\n"),
        ("javascript", "import { ToolError } from 'omniforge';\nexport default ({ city }) => { throw new ToolError(`No city ${city}`, { city }); };\n"),
    ],
)
def test_a_tool_error_is_exactly_its_text(server, language, code):
    tool = free_name("failing")
    server.create(tool, code, language=language)
    result = server.call(tool, {"city": "Atlantis"})
    assert (result.text, result.is_error, result.structured) == ("No city Atlantis", True, {"city": "Atlantis"})


@pytest.mark.parametrize(
    ("language", "code", "words"),
    [
        ("python", "def helper(n):\n    return 1 / n\n\ndef main(n: int):\n    return helper(n)\n", ["ZeroDivisionError: division by zero", "line 2", "line 5"]),
        ("javascript", "function helper(n) {\n  return n.missing.deep;\n}\nexport default ({ n }) => helper(n);\n", ["TypeError", "deep", "main.js:2", "main.js:4"]),
    ],
)
def test_an_exception_names_type_message_and_the_tools_own_lines(server, language, code, words):
    tool = free_name("raising")
    server.create(tool, code, language=language)
    result = server.call(tool, {"n": 0})
    assert result.is_error
    for word in words:
        assert word in result.text
    assert "site-packages" not in result.text and "/usr/lib" not in result.text


@pytest.mark.anyio
async def test_results_are_held_against_the_output_schema(server, mode):
    schema = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}
    function, script = free_name("sum"), free_name("sum")
    server.create(function, "def main(a):\n    return {'sum': a}\n", output_schema=schema)
    server.create(script, "import json, sys\nprint(json.dumps({'sum': json.load(sys.stdin)['a']}))\n", output_schema=schema)
    async with connect(server, mode) as connection:
        listed = await connection.tools()
        for tool in [function, script]:
            assert listed[tool].output_schema == schema
            good = await connection.call(tool, {"a": 5})
            assert (good.structured, good.is_error) == ({"sum": 5}, False)
            bad = await connection.call(tool, {"a": "five"})
            assert bad.is_error and bad.structured is None
            assert bad.text.startswith("Result does not match outputSchema") and "/sum" in bad.text


@pytest.mark.anyio
async def test_a_return_annotation_gives_the_output_schema(server, mode):
    tool = free_name("typed")
    code = "from typing import TypedDict\n\nclass Sum(TypedDict):\n    total: int\n\ndef main(a: int) -> Sum:\n    return {'total': a}\n"
    server.create(tool, code)
    async with connect(server, mode) as connection:
        schema = (await connection.tools())[tool].output_schema
        assert schema["type"] == "object" and schema["properties"]["total"] == {"type": "integer"}
        assert (await connection.call(tool, {"a": 5})).structured == {"total": 5}


def test_not_a_number_is_refused_with_a_clear_error(server):
    server.create("nan", "def main():\n    return {'value': float('nan')}\n")
    result = server.call("nan")
    assert result.is_error and "nan" in result.text.lower()


def test_a_banner_of_a_library_breaks_no_result(server):
    server.create("banner", "import sys\nprint('Welcome!')\ndef main():\n    print('noise', file=sys.stderr)\n    return {'ok': True}\n")
    result = server.call("banner")
    assert (result.structured, result.text, result.is_error) == ({"ok": True}, '{"ok":true}', False)


def test_typed_arguments_arrive_as_their_type(server):
    code = """
import dataclasses, datetime, decimal, enum, uuid
from typing import Literal, Optional

class Colour(enum.Enum):
    RED = "red"

@dataclasses.dataclass
class Point:
    x: int
    y: int = 0

def main(day: datetime.date, price: decimal.Decimal, id: uuid.UUID, colour: Colour, at: Point, pair: tuple[int, str],
         words: set[str], size: Literal["s", "l"] = "s", note: Optional[str] = None) -> str:
    return " ".join([type(day).__name__, type(price).__name__, type(id).__name__, colour.name, repr(at), repr(pair),
                     type(words).__name__, size, repr(note)])
"""
    server.create("typed_arguments", code)
    arguments = {"day": "2026-01-02", "price": "1.10", "id": "00000000-0000-0000-0000-000000000001", "colour": "red",
                 "at": {"x": 1}, "pair": [1, "a"], "words": ["a"]}
    assert server.call("typed_arguments", arguments).text == "date Decimal UUID RED Point(x=1, y=0) (1, 'a') set s None"
