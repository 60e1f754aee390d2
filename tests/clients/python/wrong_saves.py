"""Saves that must be refused, and the words that each refusal must hold."""

GOOD = "def main(a: int = 1) -> int:\n    return a\n"
SCRIPT = "print('hi')\n"


def nested(levels):
    """A schema of that many levels."""
    schema = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def doubling(count):
    """Definitions that each name the next one twice."""
    definitions = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(count)}
    definitions[f"d{count}"] = {"type": "string"}
    return {"type": "object", "$defs": definitions, "properties": {"a": {"$ref": "#/$defs/d0"}}}


def with_schema(schema, **more):
    """A save with this input schema."""
    return {"code": SCRIPT, "input_schema": schema, **more}


def of(**property_):
    """A schema with one property."""
    return {"type": "object", "properties": {"a": property_}}


NAMES = {
    "": "empty",
    "1abc": "`1`",
    "_abc": "`_`",
    "a b": "character 2",
    "naïve": "character 3",
    "a.b": "character 2",
    "a/../b": "character 2",
    "a\u0000b": "character 2",
    "a" * 65: "at most 64",
    "omniforge_create_tool": "reserved",
    "omniforge_mine": "reserved",
    "Omniforge-mine": "reserved",
    "get_job_result": "reserved",
}
# What is given besides the name; the words that the error must hold.
SAVES = {
    "no code": ({}, ["code"]),
    "empty code": ({"code": " \n"}, ["`code`", "empty"]),
    "a NUL in the code": ({"code": "a = 1\nb = '\0'\n"}, ["`code`", "line 2", "NUL"]),
    "too much code": ({"code": "#" * (1 << 20) + "\n\n"}, ["`code`", "1048576"]),
    "Python that does not parse": ({"code": "import os\n\ndef main(a:\n    return 1\n"}, ["`code`", "line 3"]),
    "Python with bad indentation": ({"code": "def main(a):\nreturn a\n"}, ["`code`", "line 2"]),
    "Python with a return outside": ({"code": "x = 1\nreturn x\n"}, ["`code`", "line 2"]),
    "Python with *args": ({"code": "def main(*args):\n    return 1\n"}, ["`code`", "*args"]),
    "JavaScript that does not parse": ({"code": "const a = 1;\nfunction (", "language": "javascript"}, ["`code`", "line 2"]),
    "Bash that does not parse": ({"code": "echo a\nif true; then\n", "language": "bash"}, ["`code`", "line"]),
    "an unknown language": ({"code": GOOD, "language": "cobol"}, ["language"]),
    "an unknown field": ({"code": GOOD, "colour": "red"}, ["colour"]),
    "code that is no text": ({"code": ["a"]}, ["/code"]),
    "a schema that is a list": (with_schema([]), ["input_schema"]),
    "a schema that is a text": (with_schema("object"), ["input_schema"]),
    "a schema that is no object's": (with_schema({"type": "array"}), ["input_schema", '"type": "object"', "array"]),
    "a schema without a type": (with_schema({}), ["input_schema", '"type": "object"']),
    "an unknown type": (with_schema(of(type="numbr")), ["input_schema", "/properties/a/type", "numbr"]),
    "a wrong keyword": (with_schema(of(type="string", minLength=-1)), ["input_schema", "/properties/a/minLength"]),
    "required that is no list": (with_schema({"type": "object", "required": "a"}), ["input_schema", "/required"]),
    "a pattern that is none": (with_schema(of(type="string", pattern="(")), ["input_schema", "pattern"]),
    "look-around": (with_schema(of(type="string", pattern="(?=a)b")), ["input_schema", "pattern", "look-around"]),
    "a back-reference": (with_schema(of(type="string", pattern=r"(a)\1")), ["input_schema", "pattern"]),
    "an old dialect": (
        with_schema({"$schema": "http://json-schema.org/draft-04/schema#", "type": "object"}),
        ["input_schema", "/$schema", "2020-12"],
    ),
    "a reference to another document": (
        with_schema({"type": "object", "properties": {"a": {"$ref": "https://schemas.example.org/a.json"}}}),
        ["input_schema", "$ref"],
    ),
    "a reference to a file": (with_schema(of(**{"$ref": "file:///etc/passwd"})), ["input_schema", "$ref"]),
    "a reference to nothing": (with_schema(of(**{"$ref": "#/$defs/none"})), ["input_schema", "$ref"]),
    "a schema too large": (with_schema(of(type="string", description="x" * (256 << 10))), ["input_schema", "262144"]),
    "a schema too deep": (with_schema(nested(61)), ["input_schema", "60"]),
    "a schema too costly": (with_schema(doubling(25)), ["input_schema"]),
    "a wrong output schema": (
        {"code": SCRIPT, "output_schema": {"type": "object", "properties": {"a": {"type": "numbr"}}}},
        ["output_schema", "/properties/a/type"],
    ),
    "a name for a header that is none": (
        with_schema(of(type="string", **{"x-mcp-header": "not a token"})),
        ["input_schema", "x-mcp-header"],
    ),
    "a header for a list": (with_schema(of(type="array", **{"x-mcp-header": "List"})), ["input_schema", "x-mcp-header"]),
    "a header for a number": (
        with_schema(of(type="number", **{"x-mcp-header": "Amount"})),
        ["input_schema", "/properties/a/x-mcp-header", "integer"],
    ),
    "a header inside a list": (
        with_schema(of(type="array", items={"type": "string", "x-mcp-header": "Item"})),
        ["/properties/a/items/x-mcp-header"],
    ),
    "a header twice": (
        with_schema(
            {"type": "object", "properties": {name: {"type": "string", "x-mcp-header": name} for name in ["region", "Region"]}}
        ),
        ["/properties/Region/x-mcp-header", "/properties/region/x-mcp-header"],
    ),
    "no time": ({"code": GOOD, "timeout_seconds": 0}, ["timeout_seconds"]),
    "a negative time": ({"code": GOOD, "timeout_seconds": -1}, ["timeout_seconds"]),
    "too much time": ({"code": GOOD, "timeout_seconds": 1e9}, ["`timeout_seconds`"]),
    "too little memory": ({"code": GOOD, "memory_mb": 1}, ["memory_mb"]),
    "too much memory": ({"code": GOOD, "memory_mb": 1 << 30}, ["`memory_mb`"]),
    "a long description": ({"code": GOOD, "description": "x" * 4097}, ["`description`", "4096"]),
    "a long title": ({"code": GOOD, "title": "x" * 201}, ["`title`", "200"]),
    "an empty tag": ({"code": GOOD, "tags": [""]}, ["`tags`"]),
    "a hint that is no boolean": ({"code": GOOD, "annotations": {"readOnlyHint": "yes"}}, ["`annotations`", "readOnlyHint"]),
    "an icon without a source": ({"code": GOOD, "icons": [{}]}, ["`icons`", "src"]),
    "a script for an icon": ({"code": GOOD, "icons": [{"src": "javascript:alert(1)"}]}, ["`icons`"]),
    "an unknown mode": ({"code": GOOD, "mode": "soon"}, ["mode"]),
    "a host that is none": ({"code": GOOD, "network": ["not a host"]}, ["`network`", "not a host"]),
    "a URL for a host": ({"code": GOOD, "network": ["https://a.example.org/x"]}, ["`network`", "`a.example.org:443`"]),
    "a port that is none": ({"code": GOOD, "network": ["a.example.org:70000"]}, ["`network`", "`a.example.org:70000`", "65535"]),
    "a wildcard inside": ({"code": GOOD, "network": ["a.*.example.org"]}, ["`network`", "`*.example.org`"]),
    "every host and one more": ({"code": GOOD, "network": ["full", "a.example.org"]}, ["`network`", "`full`", "by itself"]),
    "a secret that can be no variable": ({"code": GOOD, "secrets": ["API KEY"]}, ["`secrets`", "`API KEY`"]),
    "a secret in the way of the program": ({"code": GOOD, "secrets": ["LD_PRELOAD"]}, ["`secrets`", "`LD_PRELOAD`", "reserved"]),
    "a call of no tool": ({"code": GOOD, "calls": ["a tool"]}, ["`calls`", "`a tool`", "character 2"]),
    "a call of a built-in": ({"code": GOOD, "calls": ["omniforge_call_tool"]}, ["`calls`", "reserved"]),
    "an icon that is text": ({"code": GOOD, "icons": [{"src": "data:text/html;base64,PGI+"}]}, ["`icons`", "/0/src"]),
    "an icon of a wrong size": ({"code": GOOD, "icons": [{"src": "https://a.example/i.png", "sizes": ["big"]}]}, ["/0/sizes", "48x48"]),
    "a reserved key": ({"code": GOOD, "meta": {"io.modelcontextprotocol/a": 1}}, ["`meta`", "reserved"]),
    "a key that is none": ({"code": GOOD, "meta": {"9a/b": 1}}, ["`meta`", "`9a/b`", "prefix"]),
}
REQUIREMENTS = {
    "an option": "--index-url https://packages.example.org/simple",
    "a short option": "-r requirements.txt",
    "an editable path": "-e .",
    "a URL": "six @ https://packages.example.org/six.whl",
    "a repository": "git+https://git.example.org/six.git",
    "a path": "./six",
    "an absolute path": "/etc/passwd",
    "a file URL": "six @ file:///tmp/six.whl",
    "a shell": "six; touch /tmp/pwned",
    "a substitution": "$(touch /tmp/pwned)",
    "a second line": "six\n--index-url=https://packages.example.org",
    "no name": ">=1.0",
    "a wrong version": "six>=not.a.version!",
    "nothing": "",
}
