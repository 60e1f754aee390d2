"""What a script sends while it runs arrives while it runs, in order; and cancelling ends every process of it."""

import contextlib

import anyio
import pytest

from harness import connect, eventually, free_name, marker, processes_with

# That logging is deprecated from 2026-07-28 on is no news here.
pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("ignore:The logging capability")]

STEPS = """
def main(steps: int, ctx):
    for step in range(1, steps + 1):
        ctx.progress(step, steps, f"step {step}")
        ctx.info({"step": step})
    return "done"
"""
ENDLESS = """
import subprocess, sys, time

def main(word: str, ctx):
    sleeper = [sys.executable, "-c", "import time; time.sleep(600)", word]
    subprocess.Popen(sleeper)
    subprocess.Popen(sleeper, start_new_session=True)
    subprocess.Popen([sys.executable, "-c", "import os, sys\\nif os.fork() == 0:\\n  os.setsid(); os.execv(sys.argv[1], sys.argv[1:])",
                      *sleeper])
    print("begun", flush=True)
    ctx.info("started")
    beat = 0
    while True:
        beat += 1
        ctx.progress(beat, message="alive")
        time.sleep(0.02)
"""


class Watch:
    """Keeps what the client is told during a call."""

    def __init__(self):
        self.beats, self.logs = [], []
        self.beaten, self.logged = anyio.Event(), anyio.Event()

    async def progress(self, progress, total, message):
        self.beats.append((progress, total, message))
        self.beaten.set()

    async def log(self, params):
        self.logs.append((params.level, params.data))
        self.logged.set()


@contextlib.asynccontextmanager
async def watching(server, mode, level="debug"):
    """A connected client that has asked for logs, as each era does it."""
    watch = Watch()
    options = {"log_level": level} if mode == "auto" else {}
    async with connect(server, mode, logging_callback=watch.log, **options) as connection:
        if mode == "legacy":
            await connection.client.set_logging_level(level)
        yield connection, watch


async def test_progress_and_logs_arrive_in_order_and_all_of_them(server, mode):
    tool = free_name("steps")
    server.create(tool, STEPS)
    async with watching(server, mode) as (connection, watch):
        result = await connection.call(tool, {"steps": 20}, progress_callback=watch.progress)
        assert (result.text, result.is_error) == ("done", False)
        with anyio.fail_after(5):
            while len(watch.logs) < 20 or len(watch.beats) < 20:
                await anyio.lowlevel.checkpoint()
        assert watch.beats == [(step, 20, f"step {step}") for step in range(1, 21)]
        assert watch.logs == [("info", {"step": step}) for step in range(1, 21)]


async def test_a_flood_is_thinned_for_the_client_and_kept_with_the_run(server, mode):
    tool = free_name("flood")
    server.create(tool, "def main(ctx):\n    for step in range(1, 3001):\n        ctx.progress(step)\n        ctx.info(step)\n    return 'done'\n")
    async with watching(server, mode) as (connection, watch):
        assert (await connection.call(tool, {}, progress_callback=watch.progress)).text == "done"
        with anyio.fail_after(5):
            while not watch.beats or watch.beats[-1][0] != 3000:
                await anyio.lowlevel.checkpoint()
        told = [data for _, data in watch.logs if isinstance(data, int)]
        left_out = [int(data.split()[0]) for _, data in watch.logs if isinstance(data, str)]
        assert told == sorted(told) and len(told) + sum(left_out) == 3000
        assert len(told) < 3000 and len(watch.beats) < 3000
        (run,) = (await connection.call("omniforge_list_runs", {"tool": tool})).structured["runs"]
        kept = (await connection.call("omniforge_get_run", {"run_id": run["run_id"]})).structured["log"]
        assert [event["data"] for event in kept] == list(range(1, 3001))


async def test_logs_below_the_level_stay_away(server, mode):
    tool = free_name("levels")
    server.create(tool, "def main(ctx):\n    ctx.debug('low')\n    ctx.info('mid')\n    ctx.error('high')\n    return 'ok'\n")
    async with watching(server, mode, level="error") as (connection, watch):
        await connection.call(tool, {})
        with anyio.fail_after(5):
            await watch.logged.wait()
        assert watch.logs == [("error", "high")]


async def test_without_a_token_there_is_no_progress(server, mode):
    tool = free_name("silent")
    server.create(tool, STEPS)
    async with watching(server, mode) as (connection, watch):
        assert (await connection.call(tool, {"steps": 3})).text == "done"
        assert watch.beats == []


async def test_cancelling_kills_every_process_of_the_run(server, mode):
    tool, word = free_name("endless"), marker()
    server.create(tool, ENDLESS)
    async with watching(server, mode) as (connection, watch):
        async with anyio.create_task_group() as calls:

            async def call():
                await connection.client.call_tool(tool, {"word": word}, progress_callback=watch.progress)

            calls.start_soon(call)
            with anyio.fail_after(20):
                await watch.logged.wait()
                await watch.beaten.wait()
            assert len(await anyio.to_thread.run_sync(lambda: eventually(lambda: processes_with(word), "children"))) > 0
            calls.cancel_scope.cancel()
        gone = lambda: eventually(lambda: not processes_with(word), "every process of the run is dead", within=4)
        await anyio.to_thread.run_sync(gone)

        async def ended():
            runs = (await connection.call("omniforge_list_runs", {"tool": tool})).structured["runs"]
            return [run["status"] for run in runs]

        with anyio.fail_after(10):
            while await ended() != ["cancelled"]:
                await anyio.lowlevel.checkpoint()
        beats = len(watch.beats)
        assert (await connection.call("omniforge_instructions")).text
        assert len(watch.beats) == beats


async def test_a_run_is_stopped_by_its_id(server, mode):
    tool, word = free_name("endless"), marker()
    server.create(tool, ENDLESS)
    async with watching(server, mode) as (connection, watch):
        results = []
        async with anyio.create_task_group() as calls:

            async def call():
                results.append(await connection.call(tool, {"word": word}, progress_callback=watch.progress))

            calls.start_soon(call)
            with anyio.fail_after(20):
                await watch.beaten.wait()
            listed = await connection.call("omniforge_list_runs", {"tool": tool, "ending": "running"})
            (run,) = listed.structured["runs"]
            stopped = await connection.call("omniforge_cancel_run", {"run_id": run["run_id"]})
            assert not stopped.is_error, stopped.text
        assert results[0].is_error and results[0].text == "begun\n[cancelled]"
        gone = lambda: eventually(lambda: not processes_with(word), "every process of the run is dead", within=4)
        await anyio.to_thread.run_sync(gone)
        shown = (await connection.call("omniforge_get_run", {"run_id": run["run_id"]})).structured
        assert (shown["status"], shown["arguments"]) == ("cancelled", {"word": word})


async def test_nothing_of_a_finished_run_outlives_it(server, mode):
    tool, word = free_name("leaver"), marker()
    code = ENDLESS.split("    ctx.info")[0] + '    return "left"\n'
    server.create(tool, code)
    async with connect(server, mode) as connection:
        assert (await connection.call(tool, {"word": word})).text == "left"
        gone = lambda: eventually(lambda: not processes_with(word), "every process of the run is dead", within=4)
        await anyio.to_thread.run_sync(gone)
