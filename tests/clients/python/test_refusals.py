"""Whatever is wrong with a save or a call gets an error that says where and what would be right, and nothing is saved."""

import json

import pytest

from harness import Result, answer, eventually, free_name, run_program
from wrong_saves import GOOD, NAMES, REQUIREMENTS, SAVES


def refused(server, arguments):
    """The text of a save that must fail; nothing may be saved by it."""
    arguments = {"name": free_name("wrong"), **arguments}
    before = saved(server)
    reply = server.rpc("tools/call", {"name": "omniforge_create_tool", "arguments": arguments})
    assert "result" in reply, reply
    result = Result.read(reply["result"])
    assert result.is_error, result.text
    assert saved(server) == before
    return result.text


def saved(server):
    """Every saved tool with its versions, also those that are switched off."""
    found = server.call("omniforge_list_tools", {"limit": 200}).structured
    return found["total"], [(tool["name"], tool["versions"]["latest"]) for tool in found["tools"]]


@pytest.mark.parametrize("name", NAMES, ids=[name[:24].encode("unicode_escape").decode() or "empty" for name in NAMES])
def test_a_wrong_name_is_refused(server, name):
    assert NAMES[name] in refused(server, {"name": name, "code": GOOD})


@pytest.mark.parametrize("case", SAVES)
def test_a_wrong_save_is_refused(server, case):
    fields, words = SAVES[case]
    text = refused(server, fields)
    for word in words:
        assert word in text, text


def test_what_is_asked_for_is_kept_in_its_normal_form(server):
    tool = free_name("asking")
    hosts = ["API.Example.org:443", "api.example.org:443", "*.Bücher.example", "[2001:DB8::0:1]:8443"]
    server.create(tool, GOOD, network=hosts, secrets=["API_KEY", "API_KEY"], calls=["other"], tags=["a", "a"])
    shown = server.call("omniforge_get_tool", {"name": tool}).structured
    assert shown["grants"] == {
        "network": ["api.example.org:443", "*.xn--bcher-kva.example", "[2001:db8::1]:8443"],
        "secrets": ["API_KEY"],
        "calls": ["other"],
    }
    assert shown["tags"] == ["a"] and shown["status"].startswith("needs approval")
    for given, kept in [("full", ["full"]), ("none", [])]:
        server.create(tool, GOOD, network=given, replace=True)
        assert server.call("omniforge_get_tool", {"name": tool}).structured["grants"]["network"] == kept


@pytest.mark.parametrize("case", REQUIREMENTS)
def test_a_wrong_requirement_is_refused(server, case):
    text = refused(server, {"code": GOOD, "dependencies": ["six", REQUIREMENTS[case]]})
    assert "dependencies" in text
    assert REQUIREMENTS[case].split("\n")[0][:20] in text


@pytest.mark.parametrize("requirement", ["six @ https://packages.example.org/six.whl", "--index-url https://packages.example.org"])
def test_a_wrong_requirement_inside_the_code_is_refused(server, requirement):
    code = f'# /// script\n# dependencies = ["{requirement}"]\n# ///\n{GOOD}'
    assert "dependencies" in refused(server, {"code": code})


@pytest.mark.parametrize(
    ("block", "words"),
    [
        ('# dependencies = ["six"', ["script"]),
        ('# dependencies = "six"', ["dependencies"]),
        ('# requires-python = ">=99"', ["requires-python", ">=99"]),
        ('# requires-python = "newest"', ["requires-python"]),
    ],
)
def test_a_wrong_script_block_is_refused(server, block, words):
    text = refused(server, {"code": f"# /// script\n{block}\n# ///\n{GOOD}"})
    for word in words:
        assert word in text, text


def test_too_many_dependencies_are_refused(server):
    text = refused(server, {"code": GOOD, "dependencies": [f"p{n}" for n in range(65)]})
    assert "`dependencies`" in text and "64" in text


def test_a_version_that_does_not_exist_gives_the_resolvers_own_words(server):
    text = refused(server, {"code": GOOD, "dependencies": ["six==99.99.99"]})
    assert text.startswith("[install]") and "six" in text and "99.99.99" in text


def test_an_existing_tool_is_not_overwritten_by_accident(server):
    server.create("taken", GOOD)
    text = refused(server, {"name": "taken", "code": GOOD})
    assert "replace" in text and "exists" in text
    server.call("omniforge_delete_tool", {"name": "taken"})


def test_a_failed_update_or_rollback_leaves_the_tool_as_it_was(server):
    server.create("kept", GOOD)
    before = server.call("omniforge_get_tool", {"name": "kept"}).structured
    for tool, arguments, word in [
        ("omniforge_update_tool", {"name": "kept", "code": "def main(:\n"}, "line 1"),
        ("omniforge_update_tool", {"name": "kept", "input_schema": {"type": "array"}}, "input_schema"),
        ("omniforge_update_tool", {"name": "kept", "dependencies": ["-e ."]}, "dependencies"),
        ("omniforge_update_tool", {"name": "missing", "code": GOOD}, "missing"),
        ("omniforge_rollback_tool", {"name": "kept", "version": 7}, "version 7"),
        ("omniforge_rollback_tool", {"name": "kept", "version": 0}, "/version"),
        ("omniforge_delete_tool", {"name": "missing"}, "missing"),
        ("omniforge_set_enabled", {"name": "kept"}, "enabled"),
    ]:
        result = server.call(tool, arguments)
        assert result.is_error and word in result.text, (tool, arguments, result.text)
    assert server.call("omniforge_get_tool", {"name": "kept"}).structured == before
    assert server.call("kept", {"a": 4}).text == "4"


@pytest.fixture(scope="module")
def strict(server):
    """A tool with a closed schema that would say so if it ran."""
    schema = {
        "type": "object",
        "properties": {
            "count": {"type": "integer", "minimum": 1},
            "unit": {"enum": ["m", "km"]},
            "when": {"type": "string", "format": "date"},
            "inner": {"type": "object", "properties": {"list": {"type": "array", "items": {"type": "number"}}}},
        },
        "required": ["count"],
        "additionalProperties": False,
    }
    server.create("strict", "print('it ran')\n", input_schema=schema)
    return "strict"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, ["count", "required"]),
        ({"count": 0}, ["`/count`", "minimum"]),
        ({"count": "ten"}, ["`/count`", "expected integer", "got string"]),
        ({"count": "10 "}, ["`/count`", "got string"]),
        ({"count": 1.5}, ["`/count`", "integer"]),
        ({"count": None}, ["`/count`", "got null"]),
        ({"count": 1, "unit": "mile"}, ["`/unit`", "km"]),
        ({"count": 1, "when": "tomorrow"}, ["`/when`", "date"]),
        ({"count": 1, "inner": {"list": [1, "x"]}}, ["`/inner/list/1`", "number"]),
        ({"count": 1, "other": True}, ["other"]),
    ],
)
def test_wrong_arguments_never_start_the_script(server, strict, arguments, words):
    result = server.call(strict, arguments)
    assert result.is_error and result.text.startswith("Arguments do not match inputSchema")
    assert "it ran" not in result.text
    for word in words:
        assert word in result.text, result.text


def test_the_json_of_a_wanted_type_in_a_string_is_taken(server, strict):
    assert server.call(strict, {"count": "10"}).text == "it ran"


@pytest.mark.parametrize("arguments", ["null", "[]", '"{}"', "1", "true"])
def test_arguments_that_are_no_object_are_an_invalid_request(server, strict, arguments):
    body = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"strict","arguments":%s}}' % arguments
    assert answer(server.post(body))["error"]["code"] == -32602


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ("", 400, -32700),
        ("{", 400, -32700),
        ('{"jsonrpc":"2.0","id":1,"method":"ping"}x', 400, -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', 400, -32700),
        ("[" * 100_000, 400, -32700),
        ("1", 400, -32600),
        ("[]", 400, -32600),
        ('[{"jsonrpc":"2.0","id":1,"method":"ping"}]', 400, -32600),
        ('{"id":1,"method":"ping"}', 400, -32600),
        ('{"jsonrpc":"1.0","id":1,"method":"ping"}', 400, -32600),
        ('{"jsonrpc":"2.0","id":1}', 400, -32600),
        ('{"jsonrpc":"2.0","id":{},"method":"ping"}', 400, -32600),
    ],
)
def test_a_wrong_body_is_refused(server, body, status, code):
    response = server.post(body)
    assert (response.status_code, response.json()["error"]["code"]) == (status, code), response.text


def test_wrong_requests_get_the_codes_of_the_specification(server, strict):
    for method, params, code, word in [
        ("no/such", {}, -32601, "no/such"),
        ("tools/call", {}, -32602, "name"),
        ("tools/call", {"arguments": {}}, -32602, "name"),
        ("tools/call", {"name": "strikt", "arguments": {}}, -32602, "strict"),
        ("tools/list", {"cursor": "no-such-cursor"}, -32602, "cursor"),
    ]:
        error = server.rpc(method, params)["error"]
        assert error["code"] == code and word in error["message"], (method, params, error)


def test_what_a_client_does_wrong_is_no_warning_in_the_log(server):
    opening = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    server.create("brief", "import time\ndef main(ctx):\n    ctx.progress(1)\n    time.sleep(1)\n")
    opened = server.post(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": opening}))
    session = {"Mcp-Session-Id": opened.headers["mcp-session-id"]}
    for headers in [{}, session]:
        for method, params in [
            ("no/such", {}),
            ("resources/read", {"uri": "no://such"}),
            ("tools/call", {"name": "no_such"}),
            ("tools/list", {"cursor": "no-such"}),
        ]:
            body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            assert "error" in answer(server.post(json.dumps(body), **headers))
        params = {"name": "brief", "_meta": {"progressToken": 1}}
        body = json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params})
        with server.http.stream("POST", "/mcp", content=body, headers=server.headers() | headers) as left:
            assert any("progress" in line for line in left.iter_lines())
    listen = server.headers() | session | {"Last-Event-ID": "no-such"}
    with server.http.stream("GET", "/mcp", headers=listen) as stream:
        assert stream.status_code == 200
    ended = lambda: server.call("omniforge_list_runs", {"tool": "brief", "ending": "running"}).structured["runs"] == []
    eventually(ended, "the runs whose clients left have ended")
    assert server.http.delete("/mcp", headers=server.headers() | session).status_code == 204
    log = server.log.read_text(errors="replace").splitlines()
    assert [line for line in log if '"target":"rmcp' in line] == []


def test_a_body_over_the_limit_is_refused(server):
    big = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"strict","arguments":{"a":"%s"}}}'
    assert server.post(big % ("x" * (17 << 20))).status_code == 413


def test_who_may_not_is_told_why(server):
    body = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
    headers = server.headers()
    for token in [None, "Bearer", "Bearer ofk_wrong_token", "Basic dXNlcjpwYXNz", server.token]:
        given = {key: value for key, value in headers.items() if key != "Authorization"}
        given |= {"Authorization": token} if token else {}
        response = server.http.post("/mcp", content=body, headers=given)
        assert response.status_code == 401, token
        assert response.headers["www-authenticate"].startswith('Bearer realm="omniforge"')
        assert "bearer" in response.text.lower()
    refused_host = server.http.post("/mcp", content=body, headers={"Host": "evil.example.org", "Origin": "https://evil.example.org"} | headers)
    assert refused_host.status_code == 403 and "allowed_" in refused_host.text
    refused_origin = server.http.post("/mcp", content=body, headers={"Origin": "https://evil.example.org"} | headers)
    assert refused_origin.status_code == 403 and "allowed_origins" in refused_origin.text


def test_a_caller_without_the_author_scope_neither_sees_nor_saves(server):
    token, tool = make_token(server, "call"), free_name("wrong")
    assert "omniforge_create_tool" not in server.tools(token)
    reply = server.rpc("tools/call", {"name": "omniforge_create_tool", "arguments": {"name": tool, "code": GOOD}}, token)
    text = reply["error"]["message"] if "error" in reply else reply["result"]["content"][0]["text"]
    assert "error" in reply or reply["result"]["isError"]
    assert "author" in text or "nknown tool" in text
    assert tool not in server.tools()


def make_token(server, scope):
    """A new token of the server's owner, made beside the running server."""
    done = run_program("token", "create", "--name", scope, "--scope", scope, "--data-dir", str(server.data_dir))
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
