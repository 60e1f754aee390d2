"""What omp, a strict client, does and wants: its requests are sent here as it sends them."""

import concurrent.futures
import json

import pytest

from harness import Result, answer, eventually, free_name, marker, processes_with, running
from test_live import ENDLESS

CONTENT = {
    "python: audio": ("python", "from omniforge import Audio\ndef main():\n    return Audio(b'RIFF', 'audio/wav')\n", "audio"),
    "python: a link": (
        "python",
        "from omniforge import ResourceLink\ndef main():\n    return ResourceLink('https://example.org/a.csv', 'a.csv')\n",
        "resource_link",
    ),
    "python: an image": ("python", "from omniforge import Image\ndef main():\n    return Image(b'\\x89PNG', 'image/png')\n", "image"),
    "python: a list": (
        "python",
        "from omniforge import Audio, ResourceLink\n"
        "def main():\n    return [Audio(b'RIFF', 'audio/wav'), ResourceLink('https://example.org/a.csv', 'a.csv')]\n",
        "resource_link",
    ),
    "python: a resource": (
        "python",
        "from omniforge import EmbeddedResource\ndef main():\n    return EmbeddedResource('test://a', text='a')\n",
        "resource",
    ),
    "javascript: audio": (
        "javascript",
        "const { Audio } = require('omniforge');\nexports.main = () => new Audio(Buffer.from('RIFF'), 'audio/wav');\n",
        "audio",
    ),
    "javascript: a link": (
        "javascript",
        "const { ResourceLink } = require('omniforge');\n"
        "exports.main = () => [new ResourceLink('https://example.org/a.csv', 'a.csv')];\n",
        "resource_link",
    ),
    "python: nothing": ("python", "def main():\n    return None\n", "text"),
    "python: an empty list": ("python", "def main():\n    return []\n", "text"),
}


class Omp:
    """The client's HTTP transport: ids 1, 2, 3, …; the version that the server answered; the session that it gave."""

    def __init__(self, server):
        self.http, self.bearer, self.kept, self.last = server.http, f"Bearer {server.token}", {}, 0
        hello = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"roots": {"listChanged": False}},
            "clientInfo": {"name": "omp-coding-agent", "version": "1.0.0"},
        }
        opened = self.post({"method": "initialize", "params": hello, "id": self.next_id()})
        self.server = answer(opened)["result"]
        self.kept["MCP-Protocol-Version"] = self.server["protocolVersion"]
        if session := opened.headers.get("mcp-session-id"):
            self.kept["Mcp-Session-Id"] = session
        told = self.post({"method": "notifications/initialized", "params": {}})
        assert told.status_code in (200, 202)

    def next_id(self):
        self.last += 1
        return self.last

    def headers(self, accept):
        encodings = {"Accept-Encoding": "gzip, deflate, br, zstd"}
        return {"Accept": accept, "Authorization": self.bearer, **encodings, **self.kept}

    def post(self, message):
        headers = self.headers("application/json, text/event-stream") | {"Content-Type": "application/json"}
        response = self.http.post("/mcp", content=json.dumps({"jsonrpc": "2.0", **message}), headers=headers)
        assert response.is_success, response.text
        assert response.headers.get("content-encoding") is None
        return response

    def ask(self, method, params):
        reply = answer(self.post({"method": method, "params": params, "id": self.next_id()}))
        assert reply["jsonrpc"] == "2.0" and reply["id"] == self.last
        return reply

    def tools(self):
        found, params = [], {}
        while True:
            result = self.ask("tools/list", params)["result"]
            found += result["tools"]
            if not result.get("nextCursor"):
                return found
            params = {"cursor": result["nextCursor"]}

    def call(self, name, arguments=None):
        """A call; an error of the protocol is a failure, for it does not reach the model cleanly."""
        reply = self.ask("tools/call", {"name": name, "arguments": arguments or {}})
        assert "result" in reply, (name, arguments, reply)
        result = Result.read(reply["result"])
        assert result.raw["content"], "a result without content is an error to it"
        assert result.text.strip(), "what it can't show is dropped; text is always there"
        return result

    def close(self):
        return self.http.delete("/mcp", headers=self.headers("*/*"))


@pytest.fixture
def omp(server):
    client = Omp(server)
    yield client
    assert client.close().is_success


def test_its_handshake_lists_and_goodbye(server, omp):
    assert omp.server["protocolVersion"] == "2025-11-25" and omp.kept["Mcp-Session-Id"]
    # It asks for what has a capability, and for nothing else.
    for method, capability in [("resources/list", "resources"), ("prompts/list", "prompts")]:
        if capability in omp.server["capabilities"]:
            assert "result" in omp.ask(method, {})
    tools = omp.tools()
    assert tools and all(tool["description"].strip() and tool["inputSchema"]["type"] == "object" for tool in tools)
    # It mounts under folded names, and drops one of two that fold alike.
    names = ["".join(c if c.isascii() and c.isalnum() else "_" for c in tool["name"].lower()) for tool in tools]
    assert len(set(names)) == len(names)


def test_the_stream_answers_at_once_stays_open_and_brings_news(server, omp):
    with server.http.stream("GET", "/mcp", headers=omp.headers("text/event-stream")) as stream:
        # Its headers are here before there is anything to say.
        assert (stream.status_code, stream.headers["content-type"]) == (200, "text/event-stream")
        tool = free_name("news")
        server.create(tool, "def main():\n    return 'new'\n")
        lines = stream.iter_lines()
        assert any("notifications/tools/list_changed" in line for line in lines)
        assert tool in [listed["name"] for listed in omp.tools()]
        assert omp.call(tool).text == "new"


def test_a_lost_session_is_a_404_and_it_begins_anew(server, omp):
    assert omp.close().is_success
    headers = omp.headers("application/json, text/event-stream")
    ping = {"jsonrpc": "2.0", "id": 9, "method": "ping"}
    assert server.http.post("/mcp", json=ping, headers=headers).status_code == 404
    assert server.http.get("/mcp", headers=headers).status_code == 404
    omp.__init__(server)
    assert omp.ask("ping", {})["result"] == {}


def test_without_a_token_it_learns_that_a_static_one_is_wanted(server):
    refused = server.http.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "ping"})
    assert refused.status_code == 401 and refused.headers["www-authenticate"] == 'Bearer realm="omniforge"'
    assert "bearer token" in refused.json()["detail"] and "no Authorization header arrived" in refused.json()["detail"]
    for probe in ["oauth-protected-resource/mcp", "oauth-protected-resource", "oauth-authorization-server", "openid-configuration"]:
        found = server.http.get(f"/.well-known/{probe}", headers={"Accept": "*/*"})
        assert found.status_code == 404 and found.headers["content-type"] == "application/problem+json", probe


@pytest.mark.parametrize("case", CONTENT)
def test_text_stands_beside_whatever_it_can_not_show(server, omp, case):
    language, code, kind = CONTENT[case]
    tool = free_name("content")
    server.create(tool, code, language=language)
    result = omp.call(tool)
    assert not result.is_error, result.text
    kinds = [block["type"] for block in result.raw["content"]]
    assert "text" in kinds and kind in kinds


def test_the_text_is_the_structured_value(server, omp):
    tool = free_name("structured")
    server.create(tool, "def main() -> dict:\n    return {'a': [1, 2.5, None], 'ü': 'x'}\n")
    result = omp.call(tool)
    # Otherwise it shows the value twice.
    assert json.loads(result.text) == result.structured == {"a": [1, 2.5, None], "ü": "x"}


def test_optional_arguments_that_it_drops_may_be_missing(server, omp):
    tool = free_name("optional")
    server.create(tool, "def main(word: str = '', more: dict = {}) -> str:\n    return f'{word}|{more}'\n")
    assert omp.call(tool, {}).text == "|{}"


def test_names_that_it_folds_together_are_warned_of(server, omp):
    first = free_name("fold")
    server.create(first, "def main():\n    return 1\n")
    twin = first.replace("_", "-").upper()
    saved = omp.call("omniforge_create_tool", {"name": twin, "code": "def main():\n    return 2\n"})
    assert not saved.is_error and first in saved.text and "mount" in saved.text
    assert not omp.call("omniforge_delete_tool", {"name": twin}).is_error


WRONG = [{}, {"no_such_field": 1}, {"name": 5, "code": [], "run_id": {}, "tool": 7, "arguments": 3, "query": [], "limit": "x"}]
ABSENT = {
    "name": "no_such_tool",
    "tool": "no_such_tool",
    "run_id": "00000000-0000-7000-8000-000000000000",
    "job_id": "00000000-0000-7000-8000-000000000000",
    "version": 99,
    "to_version": 99,
    "enabled": True,
    "arguments": {},
}


def test_whatever_a_model_does_wrong_with_a_built_in_reaches_it_as_text(server, omp):
    refused = []
    for tool in omp.tools():
        if not tool["name"].startswith("omniforge_"):
            continue
        known = tool["inputSchema"].get("properties", {})
        absent = {field: value for field, value in ABSENT.items() if field in known}
        for arguments in [*WRONG, absent]:
            if omp.call(tool["name"], arguments).is_error:
                refused.append(tool["name"])
    # Most have something to refuse; were nothing refused, the calls above would have proved nothing.
    assert len(set(refused)) >= 12, refused


FAILURES = {
    "wrong arguments": ("def main(a: int):\n    return a\n", {"a": "x"}, "Arguments do not match inputSchema"),
    "an exception": ("def main():\n    raise ValueError('bad luck')\n", {}, "ValueError: bad luck"),
    "a tool error": ("from omniforge import ToolError\ndef main():\n    raise ToolError('mend me')\n", {}, "mend me"),
    "an exit status": ("import sys\nprint('half')\nsys.exit(3)\n", {}, "[exit 3]"),
    "a wrong result": ("def main() -> dict:\n    return float('nan')\n", {}, ""),
    "too much memory": ("def main():\n    return len(bytearray(1 << 31))\n", {}, ""),
}


@pytest.mark.parametrize("case", FAILURES)
def test_whatever_goes_wrong_in_a_tool_reaches_the_model_as_text(server, omp, case):
    code, arguments, words = FAILURES[case]
    tool = free_name("failing")
    server.create(tool, code)
    result = omp.call(tool, arguments)
    assert result.is_error and words in result.text


def test_time_that_ran_out_reaches_the_model_as_text(server, omp):
    tool = free_name("slow")
    server.create(tool, "import time\ndef main():\n    time.sleep(60)\n", timeout_seconds=1)
    result = omp.call(tool)
    assert result.is_error and "[timeout]" in result.text


def test_what_waits_for_approval_and_what_is_switched_off_are_explained(server, omp):
    tool = free_name("reach")
    saved = omp.call("omniforge_create_tool", {"name": tool, "code": "def main():\n    return 1\n", "network": ["example.org"]})
    assert not saved.is_error and "approv" in saved.text
    called = omp.call("omniforge_call_tool", {"name": tool, "arguments": {}})
    assert called.is_error and called.text.strip()
    # A name that is not served is an unknown tool by the specification; the built-in says it as text.
    assert omp.call("omniforge_call_tool", {"name": "no_such_tool", "arguments": {}}).is_error


def test_a_full_server_says_so_as_text(tmp_path):
    with running(tmp_path, "--slots", "1", "--queue", "0") as server, concurrent.futures.ThreadPoolExecutor() as threads:
        omp, tool, word = Omp(server), free_name("endless"), marker()
        server.create(tool, ENDLESS)
        server.create("quick", "def main():\n    return 'quick'\n")
        busy = threads.submit(server.call, tool, {"word": word})
        eventually(lambda: processes_with(word), "the first run")
        refused = omp.call("quick")
        assert refused.is_error and refused.text.strip()
        (run,) = server.call("omniforge_list_runs", {"tool": tool, "ending": "running"}).structured["runs"]
        server.call("omniforge_cancel_run", {"run_id": run["run_id"]})
        concurrent.futures.wait([busy])
        eventually(lambda: not processes_with(word), "the first run's end")
        assert omp.call("quick").text == "quick"
