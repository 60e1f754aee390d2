"""The example that the product comes from, to the letter."""

import json

import pytest

from harness import answer, connect

CODE = '''
"""Add UK VAT to a net amount."""
import json
import sys
from decimal import Decimal

net = Decimal(str(json.load(sys.stdin)["net"]))
rate = Decimal("20")
vat = (net * rate / 100).quantize(Decimal("0.01"))
print(json.dumps({"net": str(net), "rate": str(rate), "vat": str(vat), "gross": str(net + vat)}))
'''
SCHEMA = {
    "type": "object",
    "properties": {"net": {"type": "number"}},
    "required": ["net"],
    "additionalProperties": False,
}
TEXT = '{"net": "10", "rate": "20", "vat": "2.00", "gross": "12.00"}'


@pytest.fixture(scope="module", autouse=True)
def saved(server):
    """The tool, saved as a model saves it."""
    server.create("add_vat", CODE, description="Add UK VAT to a net amount.", input_schema=SCHEMA)


def post(server, body, **headers):
    """Posts with the credential alone, as the page's clients do."""
    given = {"Authorization": f"Bearer {server.token}", "Content-Type": "application/json"} | headers
    return server.http.post("/mcp", content=body, headers=given)


def test_it_is_listed_after_the_built_ins_with_its_schema_verbatim(server):
    response = post(server, '{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}')
    assert response.status_code == 200
    message = answer(response)
    assert (message["jsonrpc"], message["id"]) == ("2.0", 2)
    listed = message["result"]["tools"]
    names = [tool["name"] for tool in listed]
    assert names[:2] == ["omniforge_instructions", "omniforge_create_tool"]
    tool = listed[names.index("add_vat")]
    assert tool["description"] == "Add UK VAT to a net amount."
    assert json.dumps(tool["inputSchema"]) == json.dumps(SCHEMA)
    assert names.index("add_vat") > max(number for number, name in enumerate(names) if name.startswith("omniforge_"))


@pytest.mark.parametrize("accept", [None, "*/*", "application/json", "application/json, text/event-stream"])
@pytest.mark.parametrize("version", [None, "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_it_is_called_over_json_rpc(server, accept, version):
    headers = {"Accept": accept} if accept else {}
    headers |= {"MCP-Protocol-Version": version} if version else {}
    body = '{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"add_vat","arguments":{"net":10}}}'
    response = post(server, body, **headers)
    assert response.status_code == 200
    message = answer(response)
    assert (message["jsonrpc"], message["id"]) == ("2.0", 3)
    assert message["result"]["content"] == [{"type": "text", "text": TEXT}]
    assert message["result"]["isError"] is False
    assert "structuredContent" not in message["result"]


@pytest.mark.anyio
async def test_the_official_client_gets_the_same(server, mode):
    async with connect(server, mode) as connection:
        assert (await connection.tools())["add_vat"].input_schema == SCHEMA
        result = await connection.call("add_vat", {"net": 10})
        assert (result.text, result.is_error) == (TEXT, False)


def test_the_text_of_a_result_is_the_contract_of_the_original(server):
    code = """
case "$ARG_WHAT" in
  nothing) ;;
  warn) echo out; echo careful >&2 ;;
  fail) echo out; echo bad >&2; exit 3 ;;
  kill) echo out; kill -9 $$ ;;
esac
"""
    server.create("endings", code, language="bash")
    for what, text, is_error in [
        ("nothing", "(no output)", False),
        ("warn", "out\n[stderr] careful", False),
        ("fail", "out\n[stderr] bad\n[exit 3]", True),
        ("kill", "out\n[exit -9]", True),
    ]:
        result = server.call("endings", {"what": what})
        assert (what, result.text, result.is_error) == (what, text, is_error)


def test_a_run_past_its_time_ends_with_the_word_timeout(server):
    server.create("slow", "echo begin; sleep 600", language="bash", timeout_seconds=1)
    result = server.call("slow")
    assert (result.text, result.is_error) == ("begin\n[timeout]", True)
