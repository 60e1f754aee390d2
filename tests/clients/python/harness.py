"""A real OmniForge server for a test, and three ways to talk to it: the official client, bare JSON-RPC, its pages.

The program is $OMNIFORGE_BIN, else target/debug/omniforge. Nothing here waits a fixed time: `eventually` polls.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import queue
import subprocess
import threading
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import anyio
import httpx
import httpx2
import mcp.types as types
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

ROOT = pathlib.Path(__file__).resolve().parents[3]
START_SECONDS = 60
STOP_SECONDS = 20
MODES = ["auto", "legacy"]
VERSIONS = {"auto": "2026-07-28", "legacy": "2025-11-25"}
BUILTINS = 19  # get_job_result comes with the first asynchronous tool


def program() -> pathlib.Path:
    """The omniforge program under test."""
    path = pathlib.Path(os.environ.get("OMNIFORGE_BIN") or ROOT / "target/debug/omniforge").absolute()
    assert os.access(path, os.X_OK), f"{path} is not there; build it with `cargo build`, or name it in OMNIFORGE_BIN"
    return path


def environment() -> dict[str, str]:
    """Our environment without OMNIFORGE_* settings, and with the checkout's own uv where there is no other."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OMNIFORGE_")}
    kept["PATH"] = os.pathsep.join([kept.get("PATH", os.defpath), str(ROOT / ".tools/bin")])
    return kept


def eventually(check: Callable[[], Any], what: str, within: float = 10.0) -> Any:
    """Polls until `check` returns something true, and returns it."""
    deadline = time.monotonic() + within
    while True:
        found = check()
        if found:
            return found
        assert time.monotonic() < deadline, f"not within {within} s: {what}"
        time.sleep(0.02)


def run_program(*arguments: str, timeout: float = 60) -> subprocess.CompletedProcess:
    """Runs the omniforge program to its end."""
    command = [str(program()), *arguments]
    return subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=timeout, check=False)


class Server:
    """A running `omniforge serve` and the directory it keeps everything in."""

    def __init__(self, folder: pathlib.Path, *options: str, name: str = "server"):
        self.data_dir = folder / "data"
        self.log = folder / f"{name}.log"
        self.options = options
        self.start()

    def start(self) -> None:
        """Starts the process and waits until it accepts connections."""
        command = [str(program()), "serve", "--listen", "127.0.0.1:0", "--ready-json", "--data-dir", str(self.data_dir)]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*command, *self.options],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment(),
            )
        lines: queue.Queue[bytes] = queue.Queue()
        threading.Thread(target=self._read, args=(self.process.stdout, lines), daemon=True).start()
        try:
            line = lines.get(timeout=START_SECONDS)
        except queue.Empty:
            self.kill()
            raise AssertionError(f"not ready within {START_SECONDS} s\n{self.log_end()}") from None
        if not line:
            raise AssertionError(f"ended at its start with status {self.process.wait()}\n{self.log_end()}")
        facts = json.loads(line)
        self.url, self.mcp, self.pid = facts["url"], facts["mcp"], facts["pid"]
        self.token, self.admin_token = facts.get("token"), facts.get("admin_token")
        self.http = httpx.Client(base_url=self.url, timeout=120, trust_env=False)

    @staticmethod
    def _read(stream: Any, lines: queue.Queue) -> None:
        """Keeps stdout empty, so that the server never waits for us."""
        for line in stream:
            lines.put(line)
        lines.put(b"")

    def log_end(self) -> str:
        """The end of the server's log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-60:])

    def stop(self) -> int:
        """Ends the server the way an operator does."""
        self.http.close()
        if self.process.poll() is None:
            self.process.terminate()
        try:
            return self.process.wait(timeout=STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"not stopped within {STOP_SECONDS} s after SIGTERM\n{self.log_end()}") from None

    def kill(self) -> None:
        """Ends the server the way a power cut does."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def headers(self, token: str | None = None, version: str | None = "2025-11-25") -> dict[str, str]:
        """The headers of a session-less JSON-RPC request."""
        headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        if version:
            headers["MCP-Protocol-Version"] = version
        if token or self.token:
            headers["Authorization"] = f"Bearer {token or self.token}"
        return headers

    def post(self, body: str | bytes, **headers: str) -> httpx.Response:
        """Posts these very bytes to the MCP endpoint."""
        return self.http.post("/mcp", content=body, headers=self.headers() | headers)

    def rpc(self, method: str, params: Any = None, token: str | None = None) -> dict[str, Any]:
        """Sends one JSON-RPC request without a session; returns the whole response message."""
        message = {"jsonrpc": "2.0", "id": 1, "method": method}
        if params is not None:
            message["params"] = params
        response = self.http.post("/mcp", content=json.dumps(message), headers=self.headers(token))
        return answer(response)

    def call(self, name: str, arguments: dict[str, Any] | None = None, token: str | None = None) -> Result:
        """Calls a tool over bare JSON-RPC."""
        reply = self.rpc("tools/call", {"name": name, "arguments": arguments or {}}, token)
        assert "result" in reply, reply
        return Result.read(reply["result"])

    def create(self, name: str, code: str, **fields: Any) -> Result:
        """Saves a tool, which must succeed."""
        reply = self.call("omniforge_create_tool", {"name": name, "code": code, **fields})
        assert not reply.is_error, reply.text
        return reply

    def tools(self, token: str | None = None) -> dict[str, dict[str, Any]]:
        """Every listed tool by name, page by page, in the list's order."""
        found: dict[str, dict[str, Any]] = {}
        params: dict[str, Any] = {}
        while True:
            result = self.rpc("tools/list", params, token)["result"]
            found |= {tool["name"]: tool for tool in result["tools"]}
            if not result.get("nextCursor"):
                return found
            params = {"cursor": result["nextCursor"]}


@dataclasses.dataclass
class Result:
    """A `tools/call` result."""

    text: str
    is_error: bool
    structured: Any
    raw: dict[str, Any]

    @classmethod
    def read(cls, result: dict[str, Any]) -> Result:
        """From the wire's JSON."""
        texts = [block["text"] for block in result["content"] if block["type"] == "text"]
        return cls("\n".join(texts), result.get("isError", False), result.get("structuredContent"), result)

    @classmethod
    def of(cls, result: types.CallToolResult) -> Result:
        """From the client's object."""
        return cls.read(result.model_dump(by_alias=True, mode="json", exclude_none=True))


def answer(response: httpx.Response) -> dict[str, Any]:
    """The JSON-RPC response in a body of plain JSON or of server-sent events."""
    if not response.headers.get("content-type", "").startswith("text/event-stream"):
        return response.json()
    data = [line.removeprefix("data:") for line in response.text.splitlines() if line.startswith("data:")]
    messages = [json.loads(text) for text in data if text.strip()]
    return next(message for message in messages if "result" in message or "error" in message)


class Connection:
    """The official client, connected; `changed` waits for the next change of the tool list."""

    def __init__(self, client: Client, changes: Any):
        self.client = client
        self._changes = changes

    async def changed(self, within: float = 5.0) -> None:
        """Waits for one notification that the tool list has changed."""
        with anyio.fail_after(within):
            await self._changes()

    async def tools(self) -> dict[str, types.Tool]:
        """The list as this client reads it, every page."""
        found: dict[str, types.Tool] = {}
        cursor = None
        while True:
            page = await self.client.list_tools(cursor=cursor)
            found |= {tool.name: tool for tool in page.tools}
            cursor = page.next_cursor
            if not cursor:
                return found

    async def call(self, name: str, arguments: dict[str, Any] | None = None, **options: Any) -> Result:
        """Calls a tool."""
        return Result.of(await self.client.call_tool(name, arguments or {}, **options))

    async def refused(self, name: str, arguments: dict[str, Any] | None = None) -> MCPError:
        """Calls a tool that the protocol refuses."""
        try:
            result = await self.client.call_tool(name, arguments or {})
        except MCPError as error:
            return error
        raise AssertionError(f"the call was served: {result}")


@contextlib.asynccontextmanager
async def connect(server: Server, mode: str, token: str | None = None, **options: Any) -> AsyncIterator[Connection]:
    """The official client over HTTP, in `auto` or `legacy` mode, already told of changes."""
    stream_open = anyio.Event()

    async def opened(response: httpx2.Response) -> None:
        if response.request.method == "GET" and response.status_code == 200:
            stream_open.set()

    http = httpx2.AsyncClient(
        headers={"Authorization": f"Bearer {token or server.token}"},
        timeout=httpx2.Timeout(30, read=120),
        event_hooks={"response": [opened]},
        trust_env=False,
    )
    async with http, connected(streamable_http_client(server.mcp, http_client=http), mode, **options) as connection:
        if mode == "legacy":
            with anyio.fail_after(10):
                await stream_open.wait()
        yield connection


@contextlib.asynccontextmanager
async def connect_stdio(
    data_dir: pathlib.Path, mode: str, log: Any, *arguments: str, **options: Any
) -> AsyncIterator[Connection]:
    """The official client with a server of its own on standard input and output."""
    command = StdioServerParameters(
        command=str(program()),
        args=["stdio", "--data-dir", str(data_dir), *arguments],
        env=environment(),
    )
    async with connected(stdio_client(command, errlog=log), mode, **options) as connection:
        yield connection


@contextlib.asynccontextmanager
async def connected(transport: Any, mode: str, **options: Any) -> AsyncIterator[Connection]:
    """Connects in that mode and subscribes to changes of the tool list, as each era does it."""
    send, receive = anyio.create_memory_object_stream[None](1000)

    async def message(notification: Any) -> None:
        if isinstance(notification, types.ToolListChangedNotification):
            await send.send(None)

    # Raised once the client is closed: its task groups would wrap the failure of a test in groups of groups.
    failure = None
    async with contextlib.AsyncExitStack() as stack:
        client = await stack.enter_async_context(Client(transport, mode=mode, message_handler=message, **options))
        assert client.protocol_version == VERSIONS[mode]
        assert client.server_info and client.server_info.name == "omniforge-mcp"
        changes = receive.receive
        if mode != "legacy":
            subscription = await stack.enter_async_context(client.listen(tools_list_changed=True))
            assert subscription.honored.tools_list_changed
            changes = subscription.__anext__
        try:
            yield Connection(client, changes)
        except Exception as error:  # noqa: BLE001
            failure = error
    if failure:
        raise failure


def marker() -> str:
    """A word that no other process has in its command line."""
    return f"omniforge-test-{uuid.uuid4().hex}"


def processes_with(word: str) -> set[int]:
    """The processes that carry this word in their command line."""
    found = set()
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if word.encode() in (entry / "cmdline").read_bytes():
                    found.add(int(entry.name))
    return found


def free_name(prefix: str = "tool") -> str:
    """A tool name that no other test uses."""
    return f"{prefix}_{uuid.uuid4().hex[:8]}"


@contextlib.contextmanager
def running(folder: pathlib.Path, *options: str, name: str = "server") -> Iterator[Server]:
    """A server for as long as the block lasts; it must stop by itself."""
    server = Server(folder, *options, name=name)
    try:
        yield server
        status = server.stop()
        assert status == 0, f"stopped with status {status}\n{server.log_end()}"
    finally:
        server.kill()
