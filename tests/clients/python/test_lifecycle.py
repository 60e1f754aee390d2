"""A tool's whole life through the official client, in both eras, each change announced and then seen."""

import pytest

from harness import BUILTINS, connect, free_name

pytestmark = pytest.mark.anyio

HELLO = """
def main(name: str, times: int = 1) -> str:
    '''Greets somebody.

    Args:
        name: Who is greeted.
    '''
    return ", ".join(["Hello"] * times) + f" {name}"
"""
GOODBYE = HELLO.replace("Hello", "Goodbye")


async def test_a_tool_is_created_called_changed_and_deleted(server, mode):
    tool = free_name("greet")
    async with connect(server, mode) as connection:
        builtins = list(await connection.tools())[:BUILTINS]
        assert builtins[:2] == ["omniforge_instructions", "omniforge_create_tool"]

        saved = await connection.call("omniforge_create_tool", {"name": tool, "code": HELLO, "title": "Greeting"})
        assert not saved.is_error and f"Created `{tool}`, version 1" in saved.text
        await connection.changed()
        listed = await connection.tools()
        assert list(listed)[: BUILTINS + 1] == [*builtins, tool]
        assert listed[tool].title == "Greeting"
        assert listed[tool].description.startswith("Greets somebody.")
        assert listed[tool].input_schema == {
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "Who is greeted."},
                "times": {"type": "integer", "default": 1},
            },
            "required": ["name"],
            "additionalProperties": False,
        }
        annotations = listed[tool].annotations
        assert (annotations.read_only_hint, annotations.destructive_hint) == (True, False)
        assert (annotations.idempotent_hint, annotations.open_world_hint) == (False, False)
        assert (await connection.call(tool, {"name": "Ada"})).text == "Hello Ada"

        saved = await connection.call("omniforge_update_tool", {"name": tool, "code": GOODBYE})
        assert not saved.is_error and f"Saved `{tool}`, version 2" in saved.text
        await connection.changed()
        listed = await connection.tools()
        assert listed[tool].title == "Greeting"
        assert (await connection.call(tool, {"name": "Ada", "times": 2})).text == "Goodbye, Goodbye Ada"

        rolled = await connection.call("omniforge_rollback_tool", {"name": tool, "version": 1})
        assert not rolled.is_error and "version 3" in rolled.text
        await connection.changed()
        assert tool in await connection.tools()
        assert (await connection.call(tool, {"name": "Ada"})).text == "Hello Ada"

        off = await connection.call("omniforge_set_enabled", {"name": tool, "enabled": False})
        assert not off.is_error
        await connection.changed()
        assert tool not in await connection.tools()
        assert (await connection.refused(tool, {"name": "Ada"})).code == -32602

        on = await connection.call("omniforge_set_enabled", {"name": tool, "enabled": True})
        assert not on.is_error
        await connection.changed()
        assert tool in await connection.tools()
        assert (await connection.call(tool, {"name": "Ada"})).text == "Hello Ada"

        gone = await connection.call("omniforge_delete_tool", {"name": tool})
        assert not gone.is_error
        await connection.changed()
        assert tool not in await connection.tools()
        assert (await connection.refused(tool, {"name": "Ada"})).code == -32602
        assert (await connection.call("omniforge_get_tool", {"name": tool})).is_error


async def test_the_authoring_tools_show_what_was_saved(server, mode):
    tool = free_name("shown")
    async with connect(server, mode) as connection:
        for version, code in enumerate([HELLO, GOODBYE], start=1):
            saved = await connection.call(
                "omniforge_create_tool",
                {"name": tool, "code": code, "tags": ["polite"], "replace": version > 1},
            )
            assert not saved.is_error, saved.text
        shown = (await connection.call("omniforge_get_tool", {"name": tool})).structured
        assert (shown["code"], shown["version"], shown["status"], shown["enabled"]) == (GOODBYE, 2, "ready", True)
        first = (await connection.call("omniforge_get_tool", {"name": tool, "version": 1})).structured
        assert first["code"] == HELLO

        history = (await connection.call("omniforge_tool_history", {"name": tool})).structured["history"]
        assert [entry["version"] for entry in history] == [2, 1]
        difference = await connection.call("omniforge_tool_history", {"name": tool, "from": 1, "to": 2})
        assert '-    return ", ".join(["Hello"] * times)' in difference.text
        assert '+    return ", ".join(["Goodbye"] * times)' in difference.text

        found = (await connection.call("omniforge_list_tools", {"query": tool, "tag": "polite"})).structured
        assert [entry["name"] for entry in found["tools"]] == [tool]
        await connection.call("omniforge_set_enabled", {"name": tool, "enabled": False})
        found = (await connection.call("omniforge_list_tools", {"query": tool})).structured["tools"]
        assert [(entry["name"], entry["enabled"]) for entry in found] == [(tool, False)]


async def test_the_instructions_are_enough_to_write_a_tool(server, mode):
    async with connect(server, mode) as connection:
        guide = await connection.call("omniforge_instructions")
        for word in ["def main", "stdin", "ctx.progress", "ToolError", "dependencies", "python", "bash"]:
            assert word in guide.text, word


async def test_unsaved_code_is_tried_once_and_a_frozen_list_is_no_obstacle(server, mode):
    tool = free_name("frozen")
    async with connect(server, mode) as connection:
        tried = await connection.call("omniforge_test_tool", {"code": HELLO, "arguments": {"name": "Ada"}})
        assert not tried.is_error and tried.text.startswith("Hello Ada")
        assert '"ending"' in tried.text
        await connection.call("omniforge_create_tool", {"name": tool, "code": HELLO})
        called = await connection.call("omniforge_call_tool", {"name": tool, "arguments": {"name": "Bo"}})
        assert called.text == "Hello Bo" and not called.is_error
        wrong = await connection.call("omniforge_call_tool", {"name": tool, "arguments": {}})
        assert wrong.is_error and wrong.text.startswith("Arguments do not match inputSchema")
        unknown = await connection.call("omniforge_call_tool", {"name": tool + "x"})
        assert unknown.is_error and tool in unknown.text


async def test_what_was_updated_last_comes_first_and_a_run_is_no_update(server, mode):
    first, second = free_name("first"), free_name("second")
    async with connect(server, mode) as connection:
        for tool in [first, second]:
            await connection.call("omniforge_create_tool", {"name": tool, "code": HELLO})
            await connection.changed()
        await connection.call(first, {"name": "Ada"})
        assert list(await connection.tools())[BUILTINS : BUILTINS + 2] == [second, first]
        await connection.call("omniforge_update_tool", {"name": first, "code": GOODBYE})
        await connection.changed()
        assert list(await connection.tools())[BUILTINS : BUILTINS + 2] == [first, second]


async def test_pages_of_a_long_list_hold_every_tool_once(server, mode):
    prefix = free_name("many")
    names = {f"{prefix}_{number}" for number in range(130)}
    for name in sorted(names):
        server.create(name, "echo hi", language="bash")
    async with connect(server, mode) as connection:
        listed = [name for name in await connection.tools() if name.startswith(prefix)]
        assert len(listed) == len(names) and set(listed) == names
