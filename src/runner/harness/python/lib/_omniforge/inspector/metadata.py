"""Reads the metadata block of a script (https://peps.python.org/pep-0723/): dependencies and requires-python."""

import ast
import re

from _omniforge.inspector.problem import CodeError

_START = re.compile(r"^# /// ([a-zA-Z0-9-]+)$")


class Metadata:
    """What the block says; empty without one."""

    def __init__(self):
        self.dependencies = []
        self.requires_python = None


def read(code):
    """The metadata of the code; raises CodeError where the block is malformed."""
    found = Metadata()
    block = None
    for kind, start, lines in _blocks(code.splitlines()):
        if kind != "script":
            continue
        if block is not None:
            raise CodeError("there are two `# /// script` blocks (the first on line %d); keep one" % block[0], start, 1)
        block = (start, lines)
    if block is None:
        return found
    start, lines = block
    table = _table(lines, start)
    found.dependencies = _dependencies(table.get("dependencies", []), lines, start)
    requires = table.get("requires-python")
    if requires is not None and not isinstance(requires, str):
        raise CodeError(
            '`requires-python` must be a string such as ">=3.11"', _line_of("requires-python", lines, start), 1
        )
    found.requires_python = requires
    return found


def _blocks(lines):
    """Each block: its kind, the number of its first line, and the lines inside without their `# `."""
    index = 0
    while index < len(lines):
        opening = _START.match(lines[index])
        if not opening:
            index += 1
            continue
        # The block reaches to the last `# ///` of the run of comment lines.
        end = index + 1
        while end < len(lines) and (lines[end] == "#" or lines[end].startswith("# ")):
            end += 1
        closing = [at for at in range(index + 1, end) if lines[at] == "# ///"]
        if not closing:
            message = "the block that begins here isn't closed by a line `# ///`"
            line = end + 1 if end < len(lines) and lines[end].startswith("#") else index + 1
            if line != index + 1:
                message = "a line of the metadata block must be `#`, or begin with `# `"
            raise CodeError(message, line, 1)
        yield opening.group(1), index + 1, [line[2:] for line in lines[index + 1 : closing[-1]]]
        index = closing[-1] + 1


def _table(lines, start):
    try:
        import tomllib
    except ImportError:  # Before Python 3.11.
        return _simple_table(lines, start)
    try:
        return tomllib.loads("\n".join(lines))
    except tomllib.TOMLDecodeError as error:
        where = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        line, column = (start + int(where.group(1)), int(where.group(2)) + 2) if where else (start, 1)
        message = re.sub(r" \(at .*\)$", "", str(error))
        raise CodeError("the metadata block (`# /// script`) is no TOML: " + message, line, column) from None


def _simple_table(lines, start):
    """The two keys that matter, read without a TOML parser: a string, or an array of strings."""
    table = {}
    text = "\n".join(lines)
    text = re.split(r"(?m)^\s*\[(?=[A-Za-z\"'])[^\n]*\]\s*$", text)[0]  # Up to the first table.
    for key in ("dependencies", "requires-python"):
        found = list(re.finditer(r"(?m)^\s*%s\s*=\s*" % re.escape(key), text))
        if not found:
            continue
        line = start + 1 + text.count("\n", 0, found[0].start())
        if len(found) > 1:
            raise CodeError("`%s` stands twice in the metadata block" % key, line, 1)
        rest = text[found[0].end() :]
        value = re.match(r"""\[(?:[^\]"'#]|#[^\n]*|"[^"\n]*"|'[^'\n]*')*\]|"[^"\n]*"|'[^'\n]*'""", rest)
        if not value:
            raise CodeError("the metadata block (`# /// script`) is no TOML: the value of `%s` can't be read" % key, line, 1)
        try:
            table[key] = ast.literal_eval(value.group(0))
        except (ValueError, SyntaxError):
            raise CodeError("the metadata block (`# /// script`) is no TOML: the value of `%s` can't be read" % key, line, 1) from None
    return table


def _dependencies(value, lines, start):
    line = _line_of("dependencies", lines, start)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise CodeError('`dependencies` must be an array of strings such as ["httpx>=0.27"]', line, 1)
    for item in value:
        if not item.strip():
            raise CodeError("`dependencies` holds an empty string", line, 1)
    return [item.strip() for item in value]


def _line_of(key, lines, start):
    for index, line in enumerate(lines):
        if line.lstrip().startswith(key):
            return start + 1 + index
    return start
