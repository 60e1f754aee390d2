"""Tools with packages of their own: installed as they ask, side by side, once for all who ask the same."""

import contextlib
import fcntl
import json
import os
import shutil
import sqlite3
import threading
import time

import anyio
import pytest

from harness import connect, eventually, free_name, running

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


def test_httpx_works(server):
    tool = free_name("fetch")
    code = """
import httpx

async def main(name: str) -> dict:
    answer = lambda request: httpx.Response(200, json={"hello": request.url.params["name"]})
    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
        answered = await client.get("https://example.org/hello", params={"name": name})
        refused = None
        try:
            async with httpx.AsyncClient(trust_env=False, timeout=5) as real:
                await real.get("https://example.org/")
        except httpx.ConnectError as error:
            refused = type(error).__name__
        return answered.json() | {"network": refused}
"""
    reply = server.create(tool, code, dependencies=["httpx>=0.27,<1"])
    assert "Dependencies: httpx>=0.27,<1" in reply.text
    # The packages come from the network, and the tool still has none.
    assert server.call(tool, {"name": "Ada"}).structured == {"hello": "Ada", "network": "ConnectError"}


def test_numpy_works(server):
    tool = free_name("solve")
    code = """
import numpy as np

def main(matrix: list[list[float]], right: list[float]) -> list[float]:
    return np.linalg.solve(np.array(matrix), np.array(right)).round(6).tolist()
"""
    server.create(tool, code, dependencies=["numpy"])
    for _ in range(2):
        assert json.loads(server.call(tool, {"matrix": [[2, 1], [1, 3]], "right": [3, 5]}).text) == [0.8, 1.4]


def test_twenty_calls_at_once_wait_for_one_build(server):
    tool, results, seen, done = free_name("waiting"), [], set(), threading.Event()
    code = VERSION.format("iniconfig").replace("__version__", "__name__")
    builds, before = server.data_dir / "environments" / "work" / "builds", environments(server)

    def watch():
        while not done.is_set():
            # The first build makes it.
            with contextlib.suppress(FileNotFoundError):
                seen.update(path.name for path in builds.iterdir())

    watching = threading.Thread(target=watch)
    watching.start()
    server.create(tool, code, dependencies=["iniconfig==2.0.0"])
    threads = [threading.Thread(target=lambda: results.append(server.call(tool).text)) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    done.set()
    watching.join()
    assert results == ["iniconfig"] * 20
    assert len(environments(server) - before) == 1
    assert len(seen) == 1, seen


def test_the_lock_pins_every_package_with_hashes(server):
    tool = free_name("locked")
    server.create(tool, "import httpx\n\ndef main():\n    pass\n", dependencies=["httpx==0.27.0"])
    with contextlib.closing(sqlite3.connect(f"file:{server.data_dir}/omniforge.db?mode=ro", uri=True)) as database:
        query = "SELECT v.definition FROM tools t JOIN tool_versions v ON v.tool = t.id WHERE t.name = ?"
        ((definition,),) = database.execute(query, (tool,)).fetchall()
    pins = json.loads(definition)["lock"]["lock"].replace("\\\n", "").splitlines()
    assert {pin.split("==")[0] for pin in pins} >= {"anyio", "certifi", "h11", "httpcore", "httpx", "idna", "sniffio"}
    for pin in pins:
        name, *hashes = pin.split("--hash=")
        assert "==" in name and hashes and all(len(hash_.strip()) == len("sha256:") + 64 for hash_ in hashes), pin


@pytest.mark.parametrize(
    ("dependencies", "words"),
    [
        (["omniforge-there-is-no-such-package"], "omniforge-there-is-no-such-package was not found in the package registry"),
        (["httpx==0.27.0", "httpcore<1"], "httpx==0.27.0 depends on httpcore==1.*"),
        (["docopt==0.6.2"], "hint: Wheels are required for `docopt`"),
    ],
)
def test_the_resolver_says_why_in_its_own_words_and_nothing_is_saved(server, dependencies, words):
    tool = free_name("unresolved")
    reply = server.call("omniforge_create_tool", {"name": tool, "code": "def main():\n    pass\n", "dependencies": dependencies})
    assert reply.is_error and reply.text.startswith("[install] ") and words in reply.text
    assert reply.text.endswith("Nothing was saved.")
    assert tool not in server.tools() and server.call("omniforge_get_tool", {"name": tool}).is_error


@pytest.mark.parametrize(
    "requirement",
    [
        "six; touch {mark}",
        "six && touch {mark}",
        "$(touch {mark})",
        "`touch {mark}`",
        "six\ntouch {mark}",
        "six | touch {mark}",
        "--index-url=https://evil.example/simple",
        "-r {mark}",
        "-e .",
        "--config-settings=x six",
        "six --find-links {mark}",
        "six @ file://{mark}",
        "six @ git+https://evil.example/six",
        "git+ssh://evil.example/six",
        "../six",
        "{mark}",
        "six==1.16.0 --hash=sha256:00",
        "six # comment",
        "six\0",
    ],
)
@pytest.mark.parametrize("place", ["field", "block"])
def test_a_requirement_is_no_command_option_url_or_path(server, tmp_path, requirement, place):
    tool, mark = free_name("hostile"), tmp_path / "mark"
    requirement = requirement.replace("{mark}", str(mark))
    code, fields = "def main():\n    pass\n", {"dependencies": [requirement]}
    if place == "block":
        escaped = json.dumps(requirement).replace("\\u0000", "\\u0001")
        code, fields = f"# /// script\n# dependencies = [{escaped}]\n# ///\n{code}", {}
    reply = server.call("omniforge_create_tool", {"name": tool, "code": code, **fields})
    assert reply.is_error and "requirement 0" in reply.text and "\n" not in reply.text, reply.text
    assert tool not in server.tools() and not mark.exists()


def test_what_was_installed_once_works_without_a_network(tmp_path):
    tool, other = free_name("offline"), free_name("offline")
    with running(tmp_path) as server:
        server.create(tool, VERSION.format("six"), dependencies=["six==1.16.0"])
        assert server.call(tool).text == "1.16.0"
        (name,) = environments(server)
        shutil.rmtree(server.data_dir / "environments" / name)
    with running(tmp_path, "--offline", "true", name="offline") as server:
        assert server.call(tool).text == "1.16.0"
        server.create(other, VERSION.format("six"), dependencies=["six==1.16.0"])
        assert server.call(other).text == "1.16.0"
        unknown = {"name": free_name("offline"), "code": VERSION.format("idna"), "dependencies": ["idna"]}
        refused = server.call("omniforge_create_tool", unknown)
        assert refused.is_error and "network was disabled" in refused.text, refused.text


def test_over_the_ceiling_even_needed_environments_go_and_come_back(tmp_path):
    tool, used = free_name("large"), free_name("used")
    with running(tmp_path) as server:
        server.create(tool, VERSION.format("pygments"), dependencies=["pygments==2.19.2"])
        assert server.call(tool).text == "2.19.2"
        (large,) = environments(server)
        server.create(used, VERSION.format("six"), dependencies=["six==1.16.0"])
        assert server.call(used).text == "1.16.0"
        (recent,) = environments(server) - {large}
        long_ago = time.time() - 86400
        os.utime(server.data_dir / "environments" / large, (long_ago, long_ago))
    with running(tmp_path, "--environments-max-mb", "1", name="tight") as server:
        eventually(lambda: environments(server) == {recent}, "the one that was used least recently goes", within=60)
        assert server.call(used).text == "1.16.0"
        assert server.call(tool).text == "2.19.2"


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
async def test_a_call_that_waits_for_its_environment_says_so(tmp_path, mode):
    # An interpreter that waits for calls would answer without the environment that this takes away.
    with running(tmp_path, "--warm", "off") as server:
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
