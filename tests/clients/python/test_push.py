"""`omniforge tool push`: folders become tools, on a running server and without one."""

import json

import pytest

from harness import eventually, free_name, run_program, running

SCHEMA = {"type": "object", "properties": {"b": {"type": "number"}, "a": {"type": "number"}}, "required": ["a"]}


def write(folder, manifest, **files):
    """A tool folder; `main_py` is the file main.py."""
    folder.mkdir(parents=True)
    (folder / "tool.toml").write_text(manifest)
    for name, text in files.items():
        (folder / ".".join(name.rsplit("_", 1))).write_text(text)


def push(folder, *options):
    """The command's end."""
    return run_program("tool", "push", str(folder), *options)


@pytest.fixture
def names():
    return [free_name("pushed") for _ in range(3)]


def test_a_tree_of_folders_becomes_tools(server, tmp_path, names):
    hello, sums, shell = names
    write(tmp_path / "a" / hello, 'title = "Greeting"\ntags = ["polite"]\n', main_py="def main(name: str) -> str:\n    return f'Hello {name}'\n")
    write(
        tmp_path / "b" / "any",
        f'name = "{sums}"\nlanguage = "javascript"\ninput_schema_file = "schema.json"\n',
        main_js="export default ({ a, b }) => ({ sum: a + b });\n",
        schema_json=json.dumps(SCHEMA),
    )
    write(tmp_path / "b" / shell, "language = 'bash'\ncode_file = 'run.sh'\n", run_sh='echo "Hi $ARG_NAME"\n')
    done = push(tmp_path, "--url", server.url, "--token", server.token)
    assert done.returncode == 0, done.stderr
    listed = server.tools()
    assert listed[hello]["title"] == "Greeting"
    assert json.dumps(listed[sums]["inputSchema"]) == json.dumps(SCHEMA)
    assert server.call(hello, {"name": "Ada"}).text == "Hello Ada"
    assert server.call(sums, {"a": 1, "b": 2}).structured == {"sum": 3}
    assert server.call(shell, {"name": "Ada"}).text == "Hi Ada"

    again = push(tmp_path / "a", "--url", server.mcp, "--token", server.token, "--json")
    assert again.returncode == 0, again.stderr
    (line,) = map(json.loads, again.stdout.splitlines())
    assert (line["name"], line["saved"], line["version"], line["unchanged"]) == (hello, True, 1, True)


def test_a_push_makes_versions_of_changes_alone(server, tmp_path, names):
    same, changed, off = sorted(names)
    code, manifest = "def main(b: float, a: float) -> str:\n    return 'hi'\n", 'input_schema_file = "schema.json"\n'
    for name in (same, changed, off):
        write(tmp_path / name, manifest, main_py=code, schema_json=json.dumps(SCHEMA))
    options = ("--url", server.url, "--token", server.token)
    assert push(tmp_path, *options).returncode == 0
    # Clients see the order of a schema's properties.
    turned = SCHEMA | {"properties": dict(reversed(SCHEMA["properties"].items()))}
    (tmp_path / changed / "schema.json").write_text(json.dumps(turned))
    (tmp_path / off / "tool.toml").write_text("enabled = false\n" + manifest)
    done = push(tmp_path, *options)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"Unchanged: `{same}`, version 1.", f"Saved `{changed}`, version 2.", f"Unchanged: `{off}`, version 1."]
    listed = server.tools()
    assert same in listed and off not in listed
    assert list(listed[changed]["inputSchema"]["properties"]) == ["a", "b"]
    history = server.call("omniforge_tool_history", {"name": same}).structured
    assert [version["version"] for version in history["history"]] == [1]
    replaced = server.call("omniforge_create_tool", {"name": same, "code": code, "replace": True})
    assert replaced.text.startswith(f"Saved `{same}`, version 2."), "a replacement forgets the schema that was given"
    for tool, arguments in (("create", {"code": code, "replace": True}), ("update", {"tags": []}), ("update", {})):
        reply = server.call(f"omniforge_{tool}_tool", {"name": same, **arguments})
        assert reply.text.startswith(f"Unchanged: `{same}`, version 2."), reply.text
        assert reply.raw["_meta"]["omniforge/saved"] == {"version": 2, "unchanged": True}


def test_one_wrong_folder_is_named_and_keeps_no_other_back(server, tmp_path, names):
    good, bad, last = sorted(names)
    write(tmp_path / good, "", main_py="def main() -> str:\n    return 'good'\n")
    write(tmp_path / bad, "", main_py="def main(:\n")
    write(tmp_path / last, "", main_py="def main() -> str:\n    return 'last'\n")
    done = push(tmp_path, "--url", server.url, "--token", server.token)
    assert done.returncode == 1
    assert bad in done.stderr and "line 1" in done.stderr and "1 of 3" in done.stderr
    listed = server.tools()
    assert good in listed and last in listed and bad not in listed


@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        ("name = \n", ["tool.toml", "line 1"]),
        ('code_file = "../main.py"\n', ["tool.toml", "code_file"]),
        ('input_schema_file = "none.json"\n', ["none.json"]),
        ('language = "cobol"\n', ["cobol"]),
        ('colour = "red"\n', ["colour"]),
        ('name = "not a name"\n', ["character 4"]),
    ],
)
def test_a_wrong_manifest_is_explained(server, tmp_path, manifest, words):
    write(tmp_path / free_name("wrong"), manifest, main_py="print('hi')\n")
    done = push(tmp_path, "--url", server.url, "--token", server.token)
    assert done.returncode == 1
    for word in words:
        assert word in done.stderr, done.stderr


def test_a_wrong_token_or_address_is_explained(server, tmp_path, names):
    write(tmp_path / names[0], "", main_py="print('hi')\n")
    wrong = push(tmp_path, "--url", server.url, "--token", "ofk_wrong_token")
    assert wrong.returncode == 1 and "401" in wrong.stderr
    nobody = push(tmp_path, "--url", "http://127.0.0.1:9")
    assert nobody.returncode == 1 and "127.0.0.1:9" in nobody.stderr
    empty = push(tmp_path / names[0] / "..", "--url", server.url, "--token", server.token)
    assert empty.returncode == 0, empty.stderr
    nothing = push(tmp_path.parent / "none", "--url", server.url)
    assert nothing.returncode == 1 and nothing.stderr


def test_without_a_server_the_data_directory_takes_the_tools(tmp_path, names):
    write(tmp_path / "tools" / names[0], "", main_py="def main() -> str:\n    return 'kept'\n")
    data = tmp_path / "data"
    done = push(tmp_path / "tools", "--data-dir", str(data))
    assert done.returncode == 0, done.stderr
    with running(tmp_path) as server:
        assert server.call(names[0]).text == "kept"
        # Beside a running server it works on the directory too, and the server hears of it.
        write(tmp_path / "more" / names[1], "", main_py="def main() -> str:\n    return 'more'\n")
        done = push(tmp_path / "more", "--data-dir", str(data))
        assert done.returncode == 0, done.stderr
        eventually(lambda: names[1] in server.tools(), "the server lists the tool", within=2)
