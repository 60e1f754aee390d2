"""Tools with packages of their own: installed as they ask, side by side, once for all who ask the same."""

import contextlib
import fcntl
import json
import shutil
import threading

import anyio
import pytest

from harness import connect, eventually, free_name

VERSION = "import {0}\n\ndef main() -> str:\n    return {0}.__version__\n"


def environments(server):
    """The environments that are there, by name."""
    return {path.name for path in (server.data_dir / "environments").iterdir() if len(path.name) == 64}


@contextlib.contextmanager
def building(server, name):
    """For as long as the block lasts, the environment isn't there, and looks as if another process were building it."""
    with (server.data_dir / "environments" / "locks" / name).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(server.data_dir / "environments" / name)
        yield


def test_two_versions_of_a_package_work_side_by_side(server):
    old, new = free_name("old"), free_name("new")
    server.create(old, VERSION.format("six"), dependencies=["six==1.16.0"])
    server.create(new, VERSION.format("six"), dependencies=["six==1.17.0"])
    for _ in range(2):
        assert server.call(old).text == "1.16.0"
        assert server.call(new).text == "1.17.0"


def test_a_script_block_names_the_packages_too(server):
    tool = free_name("block")
    code = '# /// script\n# requires-python = ">=3.9"\n# dependencies = ["six==1.16.0"]\n# ///\n' + VERSION.format("six")
    reply = server.create(tool, code)
    assert "six==1.16.0" in reply.text
    assert server.call(tool).text == "1.16.0"


def test_a_package_with_compiled_code_works(server):
    tool = free_name("compiled")
    code = "import markupsafe\nfrom markupsafe import _speedups\n\ndef main(text: str) -> str:\n    return str(markupsafe.escape(text))\n"
    server.create(tool, code, dependencies=["markupsafe==3.0.2"])
    assert server.call(tool, {"text": "<a>"}).text == "&lt;a&gt;"


def test_a_tool_without_packages_sees_none(server):
    server.create(free_name("with"), VERSION.format("six"), dependencies=["six==1.16.0"])
    tool = free_name("without")
    server.create(tool, VERSION.format("six"))
    result = server.call(tool)
    assert result.is_error and "ModuleNotFoundError" in result.text


def test_many_calls_at_once_wait_for_one_environment(server):
    tool, results = free_name("waiting"), []
    server.create(tool, VERSION.format("iniconfig").replace("__version__", "__name__"), dependencies=["iniconfig==2.0.0"])
    threads = [threading.Thread(target=lambda: results.append(server.call(tool).text)) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert results == ["iniconfig"] * 12


@pytest.mark.anyio
async def test_the_status_says_when_an_environment_is_ready(server, mode):
    tool = free_name("status")
    async with connect(server, mode) as connection:
        arguments = {"name": tool, "code": VERSION.format("six"), "dependencies": ["six==1.17.0"]}
        saved = await connection.call("omniforge_create_tool", arguments)
        assert not saved.is_error, saved.text
        assert (await connection.call(tool)).text == "1.17.0"
        shown = (await connection.call("omniforge_get_tool", {"name": tool})).structured
        assert (shown["status"], shown["dependencies"]) == ("ready", ["six==1.17.0"])


def test_an_environment_is_read_only_and_private(server):
    tool = free_name("readonly")
    code = """
import json, os, six

def main():
    place = os.path.dirname(six.__file__)
    try:
        open(os.path.join(place, "added.py"), "w").close()
        return {"written": True}
    except OSError as error:
        return {"written": False, "error": type(error).__name__}
"""
    server.create(tool, code, dependencies=["six==1.16.0"])
    assert json.loads(server.call(tool).text)["written"] is False


def test_a_failed_change_of_packages_keeps_the_tool_serving(server):
    tool = free_name("kept")
    server.create(tool, VERSION.format("six"), dependencies=["six==1.16.0"])
    assert server.call(tool).text == "1.16.0"
    changed = server.call("omniforge_update_tool", {"name": tool, "dependencies": ["six==99.99.99"]})
    assert changed.is_error and "99.99.99" in changed.text
    eventually(lambda: server.call(tool).text == "1.16.0", "the version before serves")


@pytest.mark.anyio
async def test_a_call_that_waits_for_its_environment_says_so(server, mode):
    tool, before, beats, enough = free_name("told"), environments(server), [], anyio.Event()
    version = "1.14.0" if mode == "auto" else "1.15.0"
    code = "import six\n\ndef main(ctx):\n    ctx.progress(1, 2, 'half')\n    return six.__version__\n"
    server.create(tool, code, dependencies=[f"six=={version}"])
    assert server.call(tool).text == version
    (name,) = environments(server) - before

    async def heard(progress, total, message):
        beats.append((progress, total, message))
        if len(beats) == 2:
            enough.set()

    results = []

    async def call(connection):
        results.append(await connection.call(tool, progress_callback=heard))

    async with connect(server, mode) as connection, anyio.create_task_group() as tasks:
        with building(server, name):
            tasks.start_soon(call, connection)
            with anyio.fail_after(30):
                await enough.wait()
            assert not results
    assert results[0].text == version
    assert [message for *_, message in beats][:2] == [
        "waiting to install the dependencies",
        "waiting to install the dependencies (5 s)",
    ]
    assert beats[-1] == (1, 2, "half")
    assert [progress for progress, *_ in beats] == sorted({progress for progress, *_ in beats})
