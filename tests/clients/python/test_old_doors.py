"""The doors for older clients: the transport of 2024-11-05 (`GET /sse`, `POST /messages`), and `/` in place of `/mcp`."""

import contextlib
import json

import anyio
import httpx2
import pytest
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from harness import connected, eventually, free_name, marker, processes_with, running
from test_live import ENDLESS, STEPS, Watch

pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("ignore:The logging capability")]


def transport(server, token=None):
    """The client's own transport; it knows only where the stream is."""

    def http(headers=None, timeout=None, auth=None):
        return httpx2.AsyncClient(headers=headers, timeout=timeout, auth=auth, trust_env=False)

    headers = {"Authorization": f"Bearer {token or server.token}"}
    return sse_client(f"{server.url}/sse", headers=headers, timeout=30, httpx_client_factory=http)


@contextlib.asynccontextmanager
async def connect(server, mode, **options):
    """The official client over that transport, told of changes."""
    async with connected(transport(server), mode, **options) as connection:
        yield connection


def lines_of(response):
    """Event by event: its name and its data."""
    name = "message"
    for line in response.iter_lines():
        if line.startswith("event:"):
            name = line.removeprefix("event:").strip()
        elif line.startswith("data:"):
            yield name, line.removeprefix("data:").strip()


async def test_tools_are_made_listed_called_and_news_of_them_comes(server, mode):
    tool = free_name("sum")
    async with connect(server, mode) as connection:
        code = "def main(a: int, b: int) -> dict:\n    return {'sum': a + b}\n"
        saved = await connection.call("omniforge_create_tool", {"name": tool, "code": code})
        assert not saved.is_error, saved.text
        await connection.changed()
        assert tool in await connection.tools()
        result = await connection.call(tool, {"a": 2, "b": 3})
        assert (result.structured, json.loads(result.text), result.is_error) == ({"sum": 5}, {"sum": 5}, False)
        wrong = await connection.call(tool, {"a": 2})
        assert wrong.is_error and wrong.text.startswith("Arguments do not match inputSchema")
        assert (await connection.refused("no_such_tool")).error.code == -32602
        assert not (await connection.call("omniforge_delete_tool", {"name": tool})).is_error
        await connection.changed()


async def test_progress_and_logs_come_live_in_order(server):
    tool, watch = free_name("steps"), Watch()
    server.create(tool, STEPS)
    async with connect(server, "legacy", logging_callback=watch.log) as connection:
        await connection.client.set_logging_level("debug")
        result = await connection.call(tool, {"steps": 20}, progress_callback=watch.progress)
        assert (result.text, result.is_error) == ("done", False)
        with anyio.fail_after(5):
            while len(watch.logs) < 20 or len(watch.beats) < 20:
                await anyio.lowlevel.checkpoint()
        assert watch.beats == [(step, 20, f"step {step}") for step in range(1, 21)]
        assert watch.logs == [("info", {"step": step}) for step in range(1, 21)]


async def test_cancelling_kills_every_process_of_the_run(server):
    tool, word, watch = free_name("endless"), marker(), Watch()
    server.create(tool, ENDLESS)
    async with connect(server, "legacy") as connection:
        async with anyio.create_task_group() as calls:

            async def call():
                await connection.client.call_tool(tool, {"word": word}, progress_callback=watch.progress)

            calls.start_soon(call)
            with anyio.fail_after(20):
                await watch.beaten.wait()
            assert await anyio.to_thread.run_sync(lambda: eventually(lambda: processes_with(word), "children"))
            calls.cancel_scope.cancel()
        gone = lambda: eventually(lambda: not processes_with(word), "every process of the run is dead", within=4)
        await anyio.to_thread.run_sync(gone)
        assert (await connection.call("omniforge_instructions")).text


def test_a_closed_stream_ends_the_session_and_kills_its_calls(server):
    tool, word = free_name("endless"), marker()
    server.create(tool, ENDLESS)
    bearer = {"Authorization": f"Bearer {server.token}"}
    with server.http.stream("GET", "/sse", headers=bearer) as stream:
        events = lines_of(stream)
        name, endpoint = next(events)
        assert name == "endpoint" and endpoint.startswith("/messages?session_id=")
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": {"word": word}}}
        assert server.http.post(endpoint, json=call, headers=bearer).status_code == 202
        eventually(lambda: processes_with(word), "the run's children", within=20)
    eventually(lambda: not processes_with(word), "every process of the run is dead", within=4)
    assert server.http.post(endpoint, json=call, headers=bearer).status_code == 404
    runs = lambda: server.call("omniforge_list_runs", {"tool": tool}).structured["runs"]
    eventually(lambda: [run["status"] for run in runs()] == ["cancelled"], "the run is marked as cancelled")


def test_neither_door_takes_a_cookie_or_a_token_in_the_url(server):
    bearer = {"Authorization": f"Bearer {server.token}"}
    with server.http.stream("GET", "/sse", headers=bearer) as stream:
        events = lines_of(stream)
        _, endpoint = next(events)
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        for headers in [{}, {"Cookie": f"omniforge={server.token}"}, {"Authorization": "Bearer ofk_nobody_x"}]:
            assert server.http.get("/sse", headers=headers).status_code == 401
            assert server.http.post(endpoint, json=ping, headers=headers).status_code == 401
        assert server.http.get(f"/sse?token={server.token}").status_code == 401
        assert server.http.post(endpoint, json=ping, headers=bearer).status_code == 202


def test_the_end_of_the_server_ends_the_stream(tmp_path):
    with running(tmp_path) as server:
        with server.http.stream("GET", "/sse", headers={"Authorization": f"Bearer {server.token}"}) as stream:
            events = lines_of(stream)
            assert next(events)[0] == "endpoint"
            server.process.terminate()
            assert list(events) == []


async def test_the_root_is_served_like_the_endpoint(server, mode):
    tool = free_name("root")
    http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {server.token}"}, timeout=30, trust_env=False)
    async with http, connected(streamable_http_client(f"{server.url}/", http_client=http), mode) as connection:
        saved = await connection.call("omniforge_create_tool", {"name": tool, "code": "def main():\n    return 'here'\n"})
        assert not saved.is_error, saved.text
        await connection.changed()
        assert (await connection.call(tool)).text == "here"
    assert server.http.get("/").json()["endpoints"]["sse"] == f"{server.url}/sse"
    page = server.http.get("/", headers={"Accept": "text/html"})
    assert page.headers["content-type"].startswith("text/html")
