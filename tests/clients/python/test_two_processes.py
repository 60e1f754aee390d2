"""Several processes on one data directory: what one saves, the clients of the others hear of, and then see."""

import json
import subprocess

import anyio
import pytest

from harness import BUILTINS, connect, connect_stdio, environment, free_name, program, run_program, running

pytestmark = pytest.mark.anyio

HELLO = "def main(name: str) -> str:\n    return f'Hello {name}'\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("shared")


@pytest.fixture(scope="module")
def first(folder):
    with running(folder, name="first") as server:
        yield server


@pytest.fixture(scope="module")
def second(folder, first):
    with running(folder, name="second") as server:
        yield server


async def test_a_change_at_one_reaches_the_clients_of_the_other(first, second, mode):
    tool = free_name("shared")
    async with connect(second, mode) as connection:
        assert tool not in await connection.tools()
        await anyio.to_thread.run_sync(lambda: first.create(tool, HELLO))
        await connection.changed(within=2)
        assert list(await connection.tools())[BUILTINS] == tool
        assert (await connection.call(tool, {"name": "Ada"})).text == "Hello Ada"

        change = {"name": tool, "code": HELLO.replace("Hello", "Goodbye"), "title": "Parting"}
        await anyio.to_thread.run_sync(lambda: first.call("omniforge_update_tool", change))
        await connection.changed(within=2)
        assert (await connection.tools())[tool].title == "Parting"
        assert (await connection.call(tool, {"name": "Ada"})).text == "Goodbye Ada"

        await anyio.to_thread.run_sync(lambda: first.call("omniforge_set_enabled", {"name": tool, "enabled": False}))
        await connection.changed(within=2)
        assert tool not in await connection.tools()
        assert (await connection.refused(tool, {"name": "Ada"})).code == -32602

        await anyio.to_thread.run_sync(lambda: first.call("omniforge_set_enabled", {"name": tool, "enabled": True}))
        await connection.changed(within=2)
        assert tool in await connection.tools()

        await anyio.to_thread.run_sync(lambda: first.call("omniforge_delete_tool", {"name": tool}))
        await connection.changed(within=2)
        assert tool not in await connection.tools()


async def test_a_token_made_on_the_command_line_opens_both(first, second, folder, mode):
    done = run_program("token", "create", "--name", "laptop", "--scope", "call,author", "--data-dir", str(folder / "data"))
    assert done.returncode == 0, done.stderr
    token = done.stdout.strip()
    assert token.startswith("ofk_")
    tool = free_name("token")
    async with connect(first, mode, token=token) as one, connect(second, mode, token=token) as two:
        saved = await one.call("omniforge_create_tool", {"name": tool, "code": HELLO})
        assert not saved.is_error, saved.text
        await two.changed(within=2)
        assert (await two.call(tool, {"name": "Ada"})).text == "Hello Ada"


async def test_both_may_save_at_once_and_no_save_is_lost(first, second):
    prefix = free_name("race")

    def save(server, number):
        server.create(f"{prefix}_{number}", HELLO)

    async with anyio.create_task_group() as saves:
        for number in range(20):
            saves.start_soon(anyio.to_thread.run_sync, save, [first, second][number % 2], number)
    for server in [first, second]:
        listed = await anyio.to_thread.run_sync(server.tools)
        assert {f"{prefix}_{number}" for number in range(20)} <= set(listed)


async def test_only_one_of_two_may_take_a_name(first, second):
    tool, replies = free_name("race"), []

    def save(server):
        replies.append(server.call("omniforge_create_tool", {"name": tool, "code": HELLO}))

    async with anyio.create_task_group() as saves:
        for server in [first, second]:
            saves.start_soon(anyio.to_thread.run_sync, save, server)
    assert sorted(reply.is_error for reply in replies) == [False, True]
    assert "exists" in next(reply for reply in replies if reply.is_error).text


async def life_over_stdio(connection):
    """Create, list, call, change, switch, delete."""
    tool = free_name("local")
    saved = await connection.call("omniforge_create_tool", {"name": tool, "code": HELLO})
    assert not saved.is_error, saved.text
    await connection.changed()
    assert list(await connection.tools())[BUILTINS] == tool
    assert (await connection.call(tool, {"name": "Ada"})).text == "Hello Ada"
    await connection.call("omniforge_update_tool", {"name": tool, "code": HELLO.replace("Hello", "Goodbye")})
    await connection.changed()
    assert (await connection.call(tool, {"name": "Ada"})).text == "Goodbye Ada"
    await connection.call("omniforge_rollback_tool", {"name": tool, "version": 1})
    await connection.changed()
    assert (await connection.call(tool, {"name": "Ada"})).text == "Hello Ada"
    await connection.call("omniforge_delete_tool", {"name": tool})
    await connection.changed()
    assert tool not in await connection.tools()


async def test_stdio_serves_alone(tmp_path, mode):
    with (tmp_path / "stdio.log").open("w") as log:
        async with connect_stdio(tmp_path / "data", mode, log) as connection:
            await life_over_stdio(connection)


async def test_stdio_serves_beside_a_running_server(first, folder, tmp_path, mode):
    tool = free_name("owned")
    first.create(tool, HELLO)
    with (tmp_path / "stdio.log").open("w") as log:
        async with connect_stdio(folder / "data", mode, log) as connection:
            await life_over_stdio(connection)
            # `local` is another principal than `owner`: being listed to others is reach, which nobody approved.
            assert tool not in await connection.tools()
            taken = await connection.call("omniforge_create_tool", {"name": tool, "code": HELLO})
            assert taken.is_error and "taken" in taken.text
    assert first.call(tool, {"name": "Ada"}).text == "Hello Ada"


async def test_two_clients_of_stdio_hear_of_each_others_changes(tmp_path, mode):
    tool = free_name("local")
    with (tmp_path / "stdio.log").open("w") as log:
        async with (
            connect_stdio(tmp_path / "data", mode, log) as one,
            connect_stdio(tmp_path / "data", mode, log) as two,
        ):
            await one.call("omniforge_create_tool", {"name": tool, "code": HELLO})
            await two.changed(within=2)
            assert (await two.call(tool, {"name": "Ada"})).text == "Hello Ada"


async def test_stdio_with_the_scope_call_can_not_save(tmp_path, mode):
    with (tmp_path / "stdio.log").open("w") as log:
        async with connect_stdio(tmp_path / "data", mode, log, "--scope", "call") as connection:
            listed = await connection.tools()
            assert "omniforge_create_tool" not in listed and "omniforge_call_tool" in listed


INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}
MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
LEGACY_LINES = [
    {"id": 1, "method": "initialize", "params": INITIALIZE},
    {"method": "notifications/initialized"},
    {"id": 2, "method": "ping"},
]
MODERN_LINES = [
    {"id": 1, "method": "server/discover", "params": {"_meta": MODERN}},
    {"id": 2, "method": "tools/list", "params": {"_meta": MODERN}},
    {"id": 3, "method": "subscriptions/listen", "params": {"_meta": MODERN, "notifications": {"toolsListChanged": True}}},
]


@pytest.mark.parametrize("lines", [LEGACY_LINES, MODERN_LINES], ids=["legacy", "modern"])
def test_stdio_writes_frames_alone_and_ends_with_its_input(tmp_path, lines):
    command = [str(program()), "stdio", "--data-dir", str(tmp_path / "data")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, env=environment(), **pipes) as process:
        frames = []
        for line in lines:
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **line}) + "\n")
            process.stdin.flush()
            if "id" in line:
                frames.append(json.loads(process.stdout.readline()))
        # Clients wait 2 s after they closed the input, then they kill.
        process.stdin.close()
        assert process.wait(timeout=2) == 0, process.stderr.read()
        frames += [json.loads(line) for line in process.stdout]
    assert all(frame["jsonrpc"] == "2.0" for frame in frames)
    answers = {frame["id"]: frame["result"] for frame in frames if "result" in frame}
    if lines is LEGACY_LINES:
        assert answers[1]["protocolVersion"] == "2025-06-18" and answers[2] == {}
    else:
        assert "2026-07-28" in answers[1]["supportedVersions"] and answers[2]["resultType"] == "complete"


@pytest.mark.parametrize("lines", [LEGACY_LINES, MODERN_LINES], ids=["legacy", "modern"])
def test_stdio_answers_what_was_asked_before_its_input_ended(tmp_path, lines):
    command = [str(program()), "stdio", "--data-dir", str(tmp_path / "data")]
    sent = "".join(json.dumps({"jsonrpc": "2.0", **line}) + "\n" for line in lines if line.get("id") != 3)
    done = subprocess.run(command, input=sent, capture_output=True, text=True, env=environment(), timeout=30, check=False)
    assert done.returncode == 0, done.stderr
    assert {json.loads(line)["id"] for line in done.stdout.splitlines()} == {1, 2}
