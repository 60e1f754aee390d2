"""The peers: other MCP servers, installed by `scripts/bench` from their registries, each with the same tool `echo` that runs
inside the server's own process."""

import contextlib
import os
import pathlib
import socket
import subprocess
import time

from .load import Target

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "peers"
PATIENCE = 30


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def _running(name, path, session, command):
    """A peer's server, until the end of the block."""
    port = _free_port()
    command = [str(port) if part == "PORT" else part for part in command]
    with open(os.devnull, "wb") as nowhere:
        process = subprocess.Popen(command, cwd=FOLDER, stdout=nowhere, stderr=nowhere)
    try:
        until = time.monotonic() + PATIENCE
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                if process.poll() is not None or time.monotonic() > until:
                    raise SystemExit(f"the peer {name} did not start: {' '.join(command)}") from None
                time.sleep(0.05)
        yield Target(name, f"http://127.0.0.1:{port}{path}", session=session)
    finally:
        process.kill()
        process.wait()


def _python():
    return os.environ["OMNIFORGE_PEERS_PYTHON"]


def fastmcp(tools=1):
    """FastMCP with that many tools."""
    return _running("FastMCP", "/mcp", True, [_python(), "fastmcp_server.py", "PORT", str(tools)])


def sdk():
    """The official Python SDK."""
    return _running("Python SDK", "/mcp", True, [_python(), "sdk_server.py", "PORT"])


def nanohub():
    """nanoHUB's server."""
    return _running("nanoHUB", "/mcp", False, [_python(), "nanohub_server.py", "PORT"])


def typescript():
    """The official TypeScript SDK on Node."""
    node = os.environ.get("OMNIFORGE_PEERS_NODE", "node")
    return _running("TypeScript SDK", "/mcp", False, [node, "typescript_server.mjs", "PORT"])
