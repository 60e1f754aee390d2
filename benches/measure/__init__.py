"""What the benches share: a lean client, bare processes, and figures that are printed and held against their promises."""

import http.client
import json
import os
import pathlib
import shutil
import subprocess
import time
import urllib.parse

from .figures import REFERENCE_START, Figures, quantile  # noqa: F401

# Rounds of what is quick to measure; fewer for a first look.
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "200"))


class Server:
    """A server, by default the one that `scripts/with-server` started, over one kept-alive connection."""

    def __init__(self, url=None, token=None):
        address = urllib.parse.urlsplit(url or os.environ["OMNIFORGE_URL"])
        self._connection = http.client.HTTPConnection(address.hostname, address.port, timeout=120)
        self._connection.connect()
        # Else the request's head waits for its body.
        self._connection.sock.setsockopt(6, 1, 1)
        self._headers = {
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
            "MCP-Protocol-Version": "2025-11-25",
            "Authorization": "Bearer " + (token or os.environ["OMNIFORGE_TOKEN"]),
        }

    def call(self, tool, **arguments):
        """Calls a tool: the result, and the milliseconds from the request to the whole reply."""
        return self.ask("tools/call", name=tool, arguments=arguments)

    def ask(self, method, **params):
        """Asks for something: the result, and the milliseconds from the request to the whole reply."""
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        body = json.dumps(message).encode()
        started = time.perf_counter()
        self._connection.request("POST", "/mcp", body, self._headers)
        reply = self._connection.getresponse().read().decode()
        took = (time.perf_counter() - started) * 1000
        for line in reversed(reply.splitlines()):
            if line.startswith("data: {") or line.startswith("{"):
                reply = line.removeprefix("data: ")
                break
        answer = json.loads(reply)
        if "result" not in answer:
            raise SystemExit(f"{method} of {params.get('name', 'nothing')} failed: {answer}")
        return answer["result"], took

    def save(self, name, code, **fields):
        """Saves a tool; ends the bench when that is refused."""
        result, _ = self.call("omniforge_create_tool", name=name, code=code, **fields)
        if result.get("isError"):
            raise SystemExit(f"the tool {name} was refused: {result['content'][0]['text']}")


def text_of(result):
    """The first text of a result."""
    return result["content"][0]["text"]


def interpreter(program):
    """The real interpreter behind `program`, as the server finds it: past links, shims and virtual environments."""
    ask = {
        "python3": ["-c", "import os, sys; print(os.path.realpath(getattr(sys, '_base_executable', sys.executable)))"],
        "node": ["-p", "require('fs').realpathSync(process.execPath)"],
    }[program]
    own = str(pathlib.Path(os.environ["OMNIFORGE_BIN"]).resolve().parent)
    path = os.pathsep.join(part for part in os.get_exec_path() if part != own)
    found = shutil.which(program, path=path)
    return found and subprocess.run([found, *ask], capture_output=True, text=True, check=True).stdout.strip()


def spawn(*command):
    """The milliseconds that a bare process takes from its start to its end."""
    started = time.perf_counter()
    process = os.posix_spawn(command[0], command, {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"})
    _, status = os.waitpid(process, 0)
    took = (time.perf_counter() - started) * 1000
    if status != 0:
        raise SystemExit(f"{command} ended with status {status}")
    return took
