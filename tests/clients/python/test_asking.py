"""What a script asks of its client, and runs that answer later: through the official client, both ways."""

import anyio
import mcp.types as types
import pytest
from harness import Result, Server, connect, eventually, free_name, running

pytestmark = pytest.mark.anyio

FORM = '{"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}}'
ASKS = f"""
def main(ctx) -> dict:
    first = ctx.elicit("Who are you?", {FORM})
    said = ctx.sample("Say hello to " + str(first.content))
    return {{"action": first.action, "content": first.content, "said": said.text, "roots": [r["uri"] for r in ctx.roots()]}}
"""
ASKS_IN_JAVASCRIPT = f"""
export async function main(_, ctx) {{
  const answers = await ctx.ask({{
    who: ctx.elicitation("Who are you?", {FORM}),
    hello: ctx.sampling("Say hello", {{ maxTokens: 10 }}),
  }});
  return {{ name: answers.who.content.name, hello: answers.hello.text, roots: (await ctx.roots()).length }};
}}
"""


def answers(action="accept"):
    """The callbacks of a client that answers everything; what it was asked."""
    asked = []

    async def elicit(_context, params):
        asked.append(params)
        return types.ElicitResult(action=action, content={"name": "Ada", "age": 36} if action == "accept" else None)

    async def sample(_context, params):
        asked.append(params)
        text = types.TextContent(type="text", text="Hello, Ada!")
        return types.CreateMessageResult(role="assistant", content=text, model="a-model")

    async def roots(_context):
        return types.ListRootsResult(roots=[types.Root(uri="file:///work")])

    return asked, {"elicitation_callback": elicit, "sampling_callback": sample, "list_roots_callback": roots}


@pytest.mark.parametrize("action", ["accept", "decline"])
async def test_a_script_asks_for_everything(server, mode, action):
    """Form, model and roots, one after the other; the form names its tool."""
    name = free_name()
    server.create(name, ASKS)
    asked, callbacks = answers(action)
    async with connect(server, mode, **callbacks) as connection:
        result = await connection.call(name)
    assert not result.is_error, result.text
    content = {"name": "Ada", "age": 36} if action == "accept" else None
    assert result.structured == {"action": action, "content": content, "said": "Hello, Ada!", "roots": ["file:///work"]}
    assert asked[0].message == f"Who are you?\n(asked by the tool {name})"


async def test_a_script_in_javascript_asks_for_several_things_at_once(server, mode):
    """The same from Node."""
    name = free_name()
    server.create(name, ASKS_IN_JAVASCRIPT, language="javascript")
    _, callbacks = answers()
    async with connect(server, mode, **callbacks) as connection:
        result = await connection.call(name)
    assert result.structured == {"name": "Ada", "hello": "Hello, Ada!", "roots": 1}, result.text


async def test_a_client_that_can_not_is_told_what_is_missing(server, mode):
    """-32021 with the capability in 2026-07-28; before it, the tool's own error. A script may catch it."""
    name, careful = free_name(), free_name()
    server.create(name, "def main(ctx) -> str:\n    return ctx.sample('Hello').text\n")
    server.create(
        careful,
        "from omniforge import MissingCapability\n\n\ndef main(ctx) -> str:\n    try:\n"
        "        return ctx.sample('Hello').text\n    except MissingCapability:\n        return 'without a model'\n",
    )
    async with connect(server, mode) as connection:
        assert (await connection.call(careful)).text == "without a model"
        if mode == "legacy":
            result = await connection.call(name)
            assert result.is_error and "needs a client with sampling" in result.text
        else:
            error = await connection.refused(name)
            assert error.error.code == -32021
            assert error.error.data == {"requiredCapabilities": {"sampling": {}}}


async def test_a_form_can_not_ask_for_a_password(server, mode):
    """Nothing reaches the person."""
    name = free_name()
    form = '{"type": "object", "properties": {"password": {"type": "string"}}}'
    server.create(name, f"def main(ctx) -> str:\n    return ctx.elicit('Log in', {form}).action\n")
    asked, callbacks = answers()
    async with connect(server, mode, **callbacks) as connection:
        result = await connection.call(name)
    assert result.is_error and "asks for a secret" in result.text and not asked


async def test_the_clock_stands_and_the_slot_is_free_while_a_person_thinks(tmp_path, mode):
    """One slot, a limit of one second, and a person who takes longer; another call runs meanwhile."""
    with running(tmp_path, "--slots", "1") as server:
        server.create("asks", f"def main(ctx) -> str:\n    return ctx.elicit('Who?', {FORM}).action\n", timeout_seconds=1)
        server.create("quick", "def main() -> str:\n    return 'quick'\n")
        began, finish = anyio.Event(), anyio.Event()

        async def elicit(_context, _params):
            began.set()
            await finish.wait()
            return types.ElicitResult(action="accept", content={})

        async with connect(server, mode, elicitation_callback=elicit) as connection, anyio.create_task_group() as group:
            results = []

            async def ask():
                results.append(await connection.call("asks"))

            group.start_soon(ask)
            await began.wait()
            assert (await anyio.to_thread.run_sync(server.call, "quick")).text == "quick"
            await anyio.sleep(1.5)  # longer than the tool may run: that is what is tested
            finish.set()
        assert results[0].text == "accept"


async def test_a_handle_breaks_no_strict_client(tmp_path, mode):
    """An `auto` tool with an output schema that takes too long, and an `async` one without."""
    wait = "import time\n\n\ndef main(seconds: float) -> dict:\n    time.sleep(seconds)\n    return {'slept': seconds}\n"
    schema = {"type": "object", "properties": {"slept": {"type": "number"}}, "required": ["slept"]}
    with running(tmp_path, "--inline-wait-seconds", "1") as server:
        server.create("slow", wait, output_schema=schema)
        server.create("later", wait, output_schema=schema, mode="async")
        async with connect(server, mode) as connection:
            tools = await connection.tools()
            assert tools["slow"].output_schema and not tools["later"].output_schema and "get_job_result" in tools
            quick = await connection.call("slow", {"seconds": 0})
            assert quick.structured == {"slept": 0}
            handle = await connection.call("slow", {"seconds": 3})
            assert handle.is_error and "still running, do not call again" in handle.text
            later = await connection.call("later", {"seconds": 0.5})
            assert not later.is_error and later.structured["status"] == "running"
            job = later.structured["job_id"]

            def done():
                found = server.call("get_job_result", {"job_id": job}).structured
                return found["status"] == "done" and found

            # Not consumed by reading.
            for _ in range(2):
                assert eventually(done, "the job is done")["result"] == {"slept": 0.5}
            run = server.call("omniforge_get_run", {"run_id": job}).structured
            assert run["result"]["structuredContent"] == {"slept": 0.5}
        other = server.call("get_job_result", {"job_id": "0190"}).structured
        assert other["status"] == "not_found"


async def test_a_result_survives_a_restart(tmp_path):
    """The same job id, asked of the next process."""
    code = "def main() -> dict:\n    return {'a': 1}\n"
    with running(tmp_path) as server:
        server.create("later", code, mode="async")
        job = server.call("later").structured["job_id"]
        eventually(lambda: server.call("get_job_result", {"job_id": job}).structured["status"] == "done", "done")
    with running(tmp_path, name="second") as server:
        assert server.call("get_job_result", {"job_id": job}).structured == {"status": "done", "result": {"a": 1}}


async def test_an_interrupted_run_is_started_again_where_the_tool_asks_for_it(tmp_path):
    """After kill -9: the one with `retry` runs again under its id, the other is marked as interrupted."""
    code = "import time\n\n\ndef main() -> str:\n    time.sleep(1)\n    return 'done'\n"
    server = Server(tmp_path)
    server.create("again", code, mode="async", retry=True)
    server.create("once", code, mode="async")
    again, once = (server.call(name).structured["job_id"] for name in ("again", "once"))
    server.kill()
    with running(tmp_path, name="second") as server:

        def status(job):
            return server.call("get_job_result", {"job_id": job}).structured

        eventually(lambda: status(again) == {"status": "done", "result": "done"}, "the run was started again")
        assert status(once) == {"status": "error", "error": "the server went away while it ran"}


def test_the_same_key_is_the_same_call(server):
    """Only an explicit key; scoped to the arguments."""
    name = free_name()
    server.create(name, "import random\n\n\ndef main(x: int) -> float:\n    return random.random()\n")

    def call(x, key=None):
        meta = {"omniforge/idempotency-key": key} if key else {}
        reply = server.rpc("tools/call", {"name": name, "arguments": {"x": x}, "_meta": meta})
        return Result.read(reply["result"]).text

    assert call(1, "a") == call(1, "a")
    assert len({call(1, "a"), call(2, "a"), call(1, "b"), call(1), call(1)}) == 5
    refused = server.rpc("tools/call", {"name": name, "arguments": {"x": 1}, "_meta": {"omniforge/idempotency-key": 7}})
    assert refused["error"]["code"] == -32602


def test_tools_call_each_other(server):
    """Value and failure come back; the nested run has a row of its own; depth has an end."""
    inner, outer, deep = free_name(), free_name(), free_name()
    server.create(inner, "def main(x: int) -> dict:\n    if x < 0:\n        raise ValueError('negative')\n    return {'y': x + 1}\n")
    server.create(
        outer,
        f"from omniforge import ToolError\n\n\ndef main(x: int, ctx) -> str:\n    try:\n        return str(ctx.call('{inner}', x=x)['y'])\n"
        "    except ToolError as error:\n        return 'failed: ' + str(error).splitlines()[0]\n",
    )
    server.create(deep, f"def main(n: int, ctx) -> int:\n    return 1 + ctx.call('{deep}', n=n - 1) if n else 0\n")
    assert server.call(outer, {"x": 1}).text == "2"
    assert server.call(outer, {"x": -1}).text == "failed: ValueError: negative"
    assert server.call(deep, {"n": 8}).text == "8"
    result = server.call(deep, {"n": 9})
    assert result.is_error and "8 deep" in result.text
    runs = server.call("omniforge_list_runs", {"tool": inner}).structured["runs"]
    assert [run["is_error"] for run in runs] == [True, False]
    assert server.call(outer, {"x": "nonsense"}).is_error


def test_state_lasts_from_call_to_call_and_not_into_tests(server):
    """By tool and caller; limits are named."""
    name = free_name()
    code = (
        "def main(ctx, size: int = 0) -> int:\n    count = ctx.state.get('count', 0) + 1\n    ctx.state.set('count', count)\n"
        "    if size:\n        ctx.state.set('big', 'x' * size)\n    return count\n"
    )
    server.create(name, code)
    assert [server.call(name).text for _ in range(3)] == ["1", "2", "3"]
    assert server.call("omniforge_test_tool", {"name": name}).text.startswith("1\n")
    result = server.call(name, {"size": 70_000})
    assert result.is_error and "65536 bytes" in result.text
    assert server.call(name).text == "5"
    in_javascript = free_name()
    server.create(
        in_javascript,
        "export async function main(_, ctx) {\n  const n = (await ctx.state.get('n', 0)) + 1;\n  await ctx.state.set('n', n);\n"
        "  return { n, deleted: n > 1 ? await ctx.state.delete('n') : false };\n}\n",
        language="javascript",
    )
    found = [server.call(in_javascript).structured for _ in range(3)]
    assert found == [{"n": 1, "deleted": False}, {"n": 2, "deleted": True}, {"n": 1, "deleted": False}]


async def test_a_page_is_shown_where_the_tool_may_go_alone(tmp_path, mode):
    """The person is sent to a URL, if its host is granted; the client answers that they went."""
    asks = """
def main(ctx, url: str) -> str:
    return ctx.elicit("Please sign in", url=url).action
"""
    shown = []

    async def elicit(_context, params):
        shown.append(params)
        return types.ElicitResult(action="accept")

    with running(tmp_path, "--approval", "never") as server:
        server.create("sign_in", asks, network=["id.example.org"])
        async with connect(server, mode, elicitation_callback=elicit) as connection:
            result = await connection.call("sign_in", {"url": "https://id.example.org/sign?in=1"})
            assert (result.text, result.is_error) == ("accept", False)
            refused = await connection.call("sign_in", {"url": "https://evil.example.org/"})
            assert refused.is_error and "`evil.example.org:443` is not in it" in refused.text
    assert [(page.url, page.message) for page in shown] == [("https://id.example.org/sign?in=1", "Please sign in\n(asked by the tool sign_in)")]


async def test_scripts_of_resources_and_prompts_ask_too(server, mode):
    """Reading and getting are requests like a call: they wait for the client in both eras."""
    name = free_name("note")
    uri = f"test://{name}"
    resource = f"def main(ctx):\n    answer = ctx.elicit('Whose note?', {FORM})\n    return 'Note of ' + answer.content['name']\n"
    prompt = f"def main(ctx):\n    return 'Write to ' + ctx.elicit('To whom?', {FORM}).content['name']\n"
    assert not server.call("omniforge_save_resource", {"uri": uri, "code": resource}).is_error
    assert not server.call("omniforge_save_prompt", {"name": name, "code": prompt}).is_error
    asked, callbacks = answers()
    async with connect(server, mode, **callbacks) as connection:
        read = await connection.client.read_resource(uri)
        got = await connection.client.get_prompt(name)
    assert read.contents[0].text == "Note of Ada"
    assert got.messages[0].content.text == "Write to Ada"
    assert [params.message.split("\n")[0] for params in asked] == ["Whose note?", "To whom?"]
