"""SIGTERM: running calls may end, streams end in order, nothing is left; a lost client is told from a cancelled call."""

import contextlib
import json
import os
import threading

import anyio
import httpx
import pytest

from harness import Server, answer, connect, eventually, free_name, marker, processes_with, running

BRIEF = """
import subprocess, sys, time

def main(word: str, seconds: float, ctx):
    print("half", flush=True)
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", word])
    ctx.progress(1)
    time.sleep(seconds)
    return "ended by itself"
"""


def start_call(server, tool, arguments):
    """Calls in a thread; what comes of it is put into the list that is returned."""
    results = []

    def call():
        try:
            results.append(server.call(tool, arguments))
        except (httpx.HTTPError, AssertionError) as error:
            results.append(error)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    return thread, results


def test_a_running_call_may_end_and_new_ones_are_refused(tmp_path):
    server, word = Server(tmp_path), marker()
    try:
        server.create("brief", BRIEF)
        thread, results = start_call(server, "brief", {"word": word, "seconds": 2})
        eventually(lambda: processes_with(word), "the run has started")
        server.process.terminate()

        def refused():
            try:
                with httpx.Client(timeout=10, trust_env=False) as http:
                    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "brief"}}
                    return http.post(server.mcp, json=body, headers=server.headers()).status_code == 503
            except httpx.HTTPError:
                return True

        eventually(refused, "new calls are refused", within=2)
        thread.join(timeout=10)
        assert results and results[0].text == "ended by itself", results
        assert server.process.wait(timeout=10) == 0
        assert not processes_with(word)
        assert os.listdir(server.data_dir / "instances") == []
    finally:
        server.kill()


@pytest.mark.parametrize(("drain", "signals"), [("1", 1), ("600", 2)], ids=["after the drain", "by a second signal"])
def test_a_call_that_does_not_end_is_killed_and_answered(tmp_path, drain, signals):
    server, word = Server(tmp_path, "--drain-seconds", drain), marker()
    try:
        server.create("brief", BRIEF)
        thread, results = start_call(server, "brief", {"word": word, "seconds": 600})
        eventually(lambda: processes_with(word), "the run has started")
        server.process.terminate()
        if signals == 2:
            eventually(lambda: "Stopping: no new calls" in server.log_end(), "the first signal was seen")
            server.process.terminate()
        assert server.process.wait(timeout=20) == 0
        thread.join(timeout=10)
        assert not thread.is_alive() and not processes_with(word)
        (answered,) = results
        assert answered.is_error and answered.text == "half\n[cancelled]"
        server.start()
        (run,) = server.call("omniforge_list_runs", {"tool": "brief"}).structured["runs"]
        assert run["status"] == "cancelled"
        assert server.stop() == 0
    finally:
        server.kill()


@pytest.mark.anyio
async def test_open_streams_end_in_order_and_do_not_hold_the_server_up(tmp_path, mode):
    with running(tmp_path) as server:
        async with connect(server, mode) as connection:
            with anyio.fail_after(5):
                status = await anyio.to_thread.run_sync(server.stop)
            assert status == 0
            if mode == "auto":
                # A graceful end of the subscription, not a broken one.
                with pytest.raises(StopAsyncIteration):
                    await connection.changed()


def stream_until_progress(server, body, headers):
    """Starts a call and drops the connection at its first progress notification."""
    with httpx.Client(timeout=30, trust_env=False) as http:
        with http.stream("POST", server.mcp, content=json.dumps(body), headers=headers) as response:
            assert response.headers["content-type"].startswith("text/event-stream"), response.read()
            for line in response.iter_lines():
                if "notifications/progress" in line:
                    return


@contextlib.contextmanager
def lost_call(server, version):
    """A call whose client is gone, in the way of that version; gives the tool's name and the marker of its processes."""
    tool, word = free_name("lost"), marker()
    server.create(tool, BRIEF)
    meta = {"progressToken": "p"}
    headers = server.headers(version=version)
    if version == "2026-07-28":
        meta |= {
            "io.modelcontextprotocol/protocolVersion": version,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        headers |= {"Mcp-Method": "tools/call", "Mcp-Name": tool}
    arguments = {"word": word, "seconds": 2 if version < "2026" else 600}
    params = {"name": tool, "arguments": arguments, "_meta": meta}
    stream_until_progress(server, {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}, headers)
    yield tool, word


def status_of(server, tool):
    """How the only run of this tool stands."""
    (run,) = server.call("omniforge_list_runs", {"tool": tool}).structured["runs"]
    return run["status"]


def test_a_closed_stream_is_a_cancellation_in_the_modern_era(server):
    with lost_call(server, "2026-07-28") as (tool, word):
        eventually(lambda: not processes_with(word), "the run is dead", within=4)
        eventually(lambda: status_of(server, tool) == "cancelled", "the run is marked", within=4)


def test_a_closed_stream_cancels_nothing_before(server):
    with lost_call(server, "2025-11-25") as (tool, word):
        eventually(lambda: status_of(server, tool) != "running", "the run has ended", within=10)
        assert status_of(server, tool) == "ok" and not processes_with(word)


def test_a_second_cancel_and_a_late_one_are_harmless(server):
    server.create("quick", "def main() -> str:\n    return 'quick'\n")
    assert server.call("quick").text == "quick"
    for request in [1, "x", 99]:
        body = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request}}
        assert server.post(json.dumps(body)).status_code == 202
    assert answer(server.post('{"jsonrpc":"2.0","id":5,"method":"ping"}'))["result"] == {}
