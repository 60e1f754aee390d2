"""kill -9 at many moments: after the next start nothing is half-written, looks alive, still runs or lies about.

Each round starts the server on the same directory, checks what the kill before left, loads the server with saves, runs
and environment builds at once, and kills it at another moment of that load. The whole takes about a minute.
"""

import contextlib
import os
import pathlib
import re
import threading
import time

import httpx
import pytest

from harness import Server, eventually, marker, processes_with, program

SECONDS = 60
MOST_ROUNDS = 24
SAVERS = 2
SLEEPER = """
import subprocess, sys, time

def main(word: str, ctx):
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", word], start_new_session=True)
    while True:
        ctx.progress(1)
        open("scratch", "w").write("x" * 1000)
        time.sleep(0.01)
"""
BUILDS = ["six==1.16.0", "six==1.17.0", "iniconfig==2.0.0", "iniconfig==2.1.0", "idna==3.10", "idna==3.9", "packaging==24.2",
          "packaging==25.0", "pluggy==1.5.0", "pluggy==1.6.0", "certifi==2025.1.31", "certifi==2025.4.26"]
UNFINISHED = re.compile(r"(^|[._-])(tmp|temp|partial|staging|building|incomplete|new)([._-]|$)", re.IGNORECASE)


class Load:
    """Saves, runs and builds until the server dies; remembers which saves were acknowledged."""

    def __init__(self, word):
        self.word, self.round = word, 0
        self.acknowledged = {f"kept_{number}": 0 for number in range(SAVERS)}
        self.saves = self.runs = self.builds = 0
        self.failures: list[BaseException] = []

    def start(self, server):
        """Starts this round's threads."""
        self.round += 1
        work = [lambda name=name: self.save(server, name) for name in self.acknowledged]
        work += [lambda: self.run(server)] * 2 + [lambda: self.build(server)]
        self.threads = [threading.Thread(target=self.until_death, args=(task,)) for task in work]
        for thread in self.threads:
            thread.start()

    def join(self):
        """Waits for the threads, which end with the server."""
        for thread in self.threads:
            thread.join(timeout=30)
            assert not thread.is_alive(), "a request hangs although the server is dead"
        assert not self.failures, self.failures[0]

    def until_death(self, task):
        """Repeats the task until the connection breaks."""
        with contextlib.suppress(httpx.HTTPError):
            while not self.failures:
                try:
                    task()
                except AssertionError as error:
                    self.failures.append(error)

    def save(self, server, name):
        """Saves the next version; every field carries its number."""
        number = self.acknowledged[name] + 1
        reply = server.call("omniforge_create_tool", {"name": name, "replace": True, **fields(number)})
        assert not reply.is_error, reply.text
        self.acknowledged[name] = number
        self.saves += 1

    def run(self, server):
        """A run that only death ends."""
        self.runs += 1
        server.call("sleeper", {"word": self.word})

    def build(self, server):
        """A tool with an environment that wasn't built before."""
        if self.builds == len(BUILDS):
            time.sleep(0.05)
            server.rpc("ping")
            return
        requirement = BUILDS[self.builds]
        self.builds += 1
        code = "def main():\n    return 'built'\n"
        arguments = {"name": f"built_{self.builds}", "code": code, "dependencies": [requirement], "replace": True}
        reply = server.call("omniforge_create_tool", arguments)
        assert not reply.is_error, reply.text
        called = server.call(f"built_{self.builds}")
        assert called.text == "built", called.text


def fields(number):
    """A version whose every field carries its number; long, so that it is no single page of the database."""
    code = f"def main() -> str:\n    return 'number {number}'\n" + f"# {number}\n" * 2000
    return {"code": code, "title": f"number {number}", "description": f"number {number}", "tags": [f"n{number}"]}


def pids():
    """Every process of the machine."""
    return {int(entry.name) for entry in pathlib.Path("/proc").iterdir() if entry.name.isdigit()}


def parents():
    """The parent of every process."""
    found = {}
    for pid in pids():
        with contextlib.suppress(OSError):
            found[pid] = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return found


def is_ours(pid):
    """Whether it is our program, or lives in a sandbox."""
    with contextlib.suppress(OSError):
        executable = os.readlink(f"/proc/{pid}/exe").removesuffix(" (deleted)")
        return executable == str(program().resolve()) or os.readlink(f"/proc/{pid}/ns/pid") != os.readlink("/proc/self/ns/pid")
    return False


def left_behind(before, server_pid):
    """Processes of earlier rounds: ours, and no descendants of the server that runs now."""
    family, tree = {server_pid}, parents()
    while grown := {pid for pid, parent in tree.items() if parent in family} - family:
        family |= grown
    return {pid for pid in set(tree) - family - before if is_ours(pid)}


def unfinished(data_dir):
    """What has the name of something temporary or half-built, but for the package manager's own cache."""
    found = []
    for folder, folders, files in os.walk(data_dir):
        folders[:] = [name for name in folders if name not in {"cache", "site-packages"}]
        found += [os.path.join(folder, name) for name in folders + files if UNFINISHED.search(name)]
    return found


def strangers_in_tmp(known):
    """New things of the program's outside the data directory; what other tests make there is none."""
    entries = {entry for folder in ["/tmp", "/dev/shm", "/run"] for entry in listed(folder)}
    ours = re.compile("omniforge(?!-(test|conformance)-)", re.IGNORECASE)
    return {entry for entry in entries if ours.search(entry)} - known


def listed(folder):
    """Full paths of a directory's entries."""
    with contextlib.suppress(OSError):
        return [os.path.join(folder, name) for name in os.listdir(folder)]
    return []


def check_tools(server, load):
    """Every acknowledged save is there, whole, and serves."""
    for name, acknowledged in load.acknowledged.items():
        if not acknowledged:
            continue
        versions = server.call("omniforge_tool_history", {"name": name}).structured["history"]
        numbers = [entry["version"] for entry in versions]
        latest = numbers[0]
        assert latest in (acknowledged, acknowledged + 1), (name, latest, acknowledged)
        assert numbers == list(range(latest, 0, -1))
        shown = server.call("omniforge_get_tool", {"name": name}).structured
        assert {key: shown[key] for key in fields(latest)} == fields(latest)
        assert shown["versions"] == {"serving": latest, "latest": latest}
        assert server.call(name).text == f"number {latest}"
        load.acknowledged[name] = latest


def check_clean(server, load, before):
    """Nothing of the killed server is left."""
    alive = server.call("omniforge_list_runs", {"ending": "running", "limit": 200}, server.admin_token).structured["runs"]
    assert alive == []
    eventually(lambda: not processes_with(load.word), "scripts of the killed server are dead", within=5)
    eventually(lambda: not left_behind(before, server.pid), "processes of the killed server are dead", within=5)
    instances = {name.removesuffix(".lock") for name in os.listdir(server.data_dir / "instances")}
    assert len(instances) == 1, instances
    assert unfinished(server.data_dir) == []


@pytest.mark.skipif(not pathlib.Path("/proc/self/stat").exists(), reason="needs /proc")
def test_kill_minus_nine_at_any_moment_leaves_nothing_half_done(tmp_path):
    before, load = pids(), Load(marker())
    known, seen_alive = strangers_in_tmp(set()), 0
    server = Server(tmp_path)
    deadline = time.monotonic() + SECONDS
    try:
        server.create("sleeper", SLEEPER)
        while load.round < MOST_ROUNDS and time.monotonic() < deadline:
            load.start(server)
            # The golden ratio spreads the moments evenly, however many rounds there are.
            moment = 0.01 + (load.round * 0.618034) % 1 * 1.2
            time.sleep(moment)
            seen_alive += bool(processes_with(load.word))
            server.kill()
            load.join()
            server.start()
            check_clean(server, load, before)
            check_tools(server, load)
        runs = server.call("omniforge_list_runs", {"tool": "sleeper", "limit": 200}).structured["runs"]
        assert {run["status"] for run in runs} <= {"interrupted"}
        assert load.round >= 5 and load.saves > load.round and seen_alive >= load.round / 3, (vars(load), seen_alive)
        for number in range(1, load.builds + 1):
            if f"built_{number}" in server.tools():
                built = server.call(f"built_{number}")
                assert built.text == "built", built.text
        assert server.stop() == 0, server.log_end()
        assert os.listdir(server.data_dir / "instances") == []
        assert unfinished(server.data_dir) == []
        eventually(lambda: not left_behind(before, 0), "every process is gone", within=5)
        assert strangers_in_tmp(known) == set()
    finally:
        server.kill()


def test_servers_that_start_at_once_on_a_fresh_directory_all_serve(tmp_path):
    servers, failures = [], []

    def start(number):
        try:
            servers.append(Server(tmp_path, name=f"server{number}"))
        except AssertionError as error:
            failures.append(error)

    threads = [threading.Thread(target=start, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    try:
        assert not failures, failures[0]
        servers[0].create("hello", "def main() -> str:\n    return 'hello'\n")
        for server in servers:
            eventually(lambda server=server: "hello" in server.tools(), "every server lists the tool", within=3)
            assert server.call("hello").text == "hello"
    finally:
        for server in servers:
            server.stop()
    assert os.listdir(tmp_path / "data" / "instances") == []
