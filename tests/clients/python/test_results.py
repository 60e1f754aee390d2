"""Everything a result can hold comes from a script to the official client, as far as the client's version knows it."""

import pytest

from harness import answer, connect, free_name

pytestmark = pytest.mark.anyio

PNG = "iVBORw0KGgo="
PYTHON = """
from omniforge import Audio, EmbeddedResource, Image, ResourceLink, Result, Text

SAID = {"annotations": {"audience": ["user"], "priority": 0.5, "lastModified": "2026-01-02T03:04:05Z"}, "meta": {"com.example/a": [1]}}

def main():
    return Result(
        [
            Text("a text", **SAID),
            Image("iVBORw0KGgo=", **SAID),
            Audio("UklGRg==", "audio/wav", **SAID),
            ResourceLink("https://example.org/report.pdf", title="Report", size=3, mime_type="application/pdf", **SAID),
            EmbeddedResource("note://1", text="embedded", mime_type="text/plain", **SAID),
            EmbeddedResource("note://2", blob=b"\\x00\\x01", **SAID),
            "plain",
            {"n": 1},
        ],
        structured={"n": 1},
        meta={"com.example/cost": 0.25},
    )
"""
JAVASCRIPT = """
import { Audio, EmbeddedResource, Image, ResourceLink, Result, Text } from "omniforge";

const said = { annotations: { audience: ["user"], priority: 0.5, lastModified: new Date("2026-01-02T03:04:05Z") }, meta: { "com.example/a": [1] } };

export default () => new Result({
  content: [
    new Text("a text", said),
    new Image("iVBORw0KGgo=", said),
    new Audio("UklGRg==", { mimeType: "audio/wav", ...said }),
    new ResourceLink("https://example.org/report.pdf", { title: "Report", size: 3, mimeType: "application/pdf", ...said }),
    new EmbeddedResource("note://1", { text: "embedded", mimeType: "text/plain", ...said }),
    new EmbeddedResource("note://2", { blob: Uint8Array.of(0, 1), ...said }),
    "plain",
    { n: 1 },
  ],
  structured: { n: 1 },
  meta: { "com.example/cost": 0.25 },
});
"""
RICH = [("python", PYTHON), ("javascript", JAVASCRIPT)]


@pytest.mark.parametrize(("language", "code"), RICH, ids=["python", "javascript"])
async def test_every_kind_of_content_arrives_with_what_is_said_about_it(server, mode, language, code):
    tool = free_name("rich")
    server.create(tool, code, language=language)
    async with connect(server, mode) as connection:
        result = (await connection.call(tool)).raw
    assert result["structuredContent"] == {"n": 1} and not result.get("isError")
    assert result["_meta"]["com.example/cost"] == 0.25
    *blocks, plain, value = result["content"]
    assert (plain, value) == ({"type": "text", "text": "plain"}, {"type": "text", "text": '{"n":1}'})
    for block in blocks:
        annotations = block.pop("annotations")
        assert annotations.pop("lastModified").startswith("2026-01-02T03:04:05")
        assert annotations == {"audience": ["user"], "priority": 0.5}
        assert block.pop("_meta") == {"com.example/a": [1]}
    assert blocks == [
        {"type": "text", "text": "a text"},
        {"type": "image", "data": PNG, "mimeType": "image/png"},
        {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"},
        {
            "type": "resource_link",
            "uri": "https://example.org/report.pdf",
            "name": "report.pdf",
            "title": "Report",
            "mimeType": "application/pdf",
            "size": 3,
        },
        {"type": "resource", "resource": {"uri": "note://1", "mimeType": "text/plain", "text": "embedded"}},
        {"type": "resource", "resource": {"uri": "note://2", "blob": "AAE="}},
    ]


def in_version(server, version, tool):
    """The result as a client of that version gets it."""
    body = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"%s"}}' % tool
    return answer(server.http.post("/mcp", content=body, headers=server.headers(version=version)))["result"]


async def test_older_versions_get_what_they_know(server):
    tool = free_name("rich")
    server.create(tool, PYTHON)
    kinds = {version: [block["type"] for block in in_version(server, version, tool)["content"]] for version in
             ["2024-11-05", "2025-03-26", "2025-06-18"]}
    assert kinds["2024-11-05"] == ["text", "image", "text", "text", "resource", "resource", "text", "text"]
    assert kinds["2025-03-26"] == ["text", "image", "audio", "text", "resource", "resource", "text", "text"]
    assert kinds["2025-06-18"] == ["text", "image", "audio", "resource_link", "resource", "resource", "text", "text"]
    old = in_version(server, "2024-11-05", tool)
    assert "structuredContent" not in old
    assert old["content"][0]["annotations"] == {"audience": ["user"], "priority": 0.5} and "_meta" not in old["content"][0]


@pytest.mark.parametrize("value", ["[1, {'a': 2}]", "7", "True", "1.5", "{'a': [None]}"])
async def test_a_structured_value_may_be_any_json_where_the_version_allows_it(server, mode, value):
    tool = free_name("any")
    server.create(tool, f"def main():\n    return {value}\n")
    async with connect(server, mode) as connection:
        result = await connection.call(tool)
    value = eval(value)  # noqa: S307
    assert not result.is_error and eval(result.text, {"true": True, "null": None}) == value  # noqa: S307
    assert result.structured == (value if mode == "auto" or isinstance(value, dict) else None)


async def test_a_value_of_any_type_is_held_against_its_schema(server, mode):
    tool, schema = free_name("list"), {"type": "array", "items": {"type": "integer"}}
    server.create(tool, "def main(good: bool):\n    return [1, 2 if good else 'two']\n", output_schema=schema)
    async with connect(server, mode) as connection:
        listed = (await connection.tools())[tool]
        assert listed.output_schema == (schema if mode == "auto" else None)
        good = await connection.call(tool, {"good": True})
        assert (good.text, good.is_error) == ("[1,2]", False)
        assert good.structured == ([1, 2] if mode == "auto" else None)
        bad = await connection.call(tool, {"good": False})
        assert bad.is_error and "`/1`" in bad.text and "integer" in bad.text


async def test_content_without_its_value_breaks_no_strict_client(server, mode):
    tool, schema = free_name("bare"), {"type": "object", "required": ["n"]}
    code = "from omniforge import Result, Text\n\ndef main(whole: bool):\n    return Result('text', {'n': 1}) if whole else Text('text')\n"
    server.create(tool, code, output_schema=schema)
    async with connect(server, mode) as connection:
        whole = await connection.call(tool, {"whole": True})
        assert (whole.text, whole.structured, whole.is_error) == ("text", {"n": 1}, False)
        bare = await connection.call(tool, {"whole": False})
        assert bare.is_error and "Result(content, structured=" in bare.text


async def test_title_icons_annotations_and_meta_are_listed(server, mode):
    tool = free_name("listed")
    icons = [{"src": f"data:image/png;base64,{PNG}", "mimeType": "image/png", "sizes": ["48x48"], "theme": "dark"}]
    server.create(
        tool,
        "def main():\n    return 1\n",
        title="A title",
        icons=icons,
        annotations={"title": "Another title", "idempotentHint": True},
        meta={"com.example/a": {"b": 1}},
        tags=["one"],
    )
    async with connect(server, mode) as connection:
        listed = (await connection.tools())[tool].model_dump(by_alias=True, mode="json", exclude_none=True)
    assert listed["title"] == "A title" and listed["icons"] == icons
    assert listed["annotations"]["title"] == "Another title" and listed["annotations"]["idempotentHint"] is True
    assert listed["_meta"] == {"com.example/a": {"b": 1}, "omniforge/tags": ["one"]}


async def test_the_list_says_how_each_tool_stands(server):
    ready, waiting, off = free_name("stands"), free_name("stands"), free_name("stands")
    server.create(ready, "def main():\n    return 1\n")
    server.create(waiting, "def main():\n    return 1\n", network="full")
    server.create(off, "def main():\n    return 1\n", enabled=False)
    found = server.call("omniforge_list_tools", {"query": "stands"}).structured["tools"]
    assert {tool["name"]: tool["status"] for tool in found} == {ready: "ready", waiting: "needs approval", off: "off"}
