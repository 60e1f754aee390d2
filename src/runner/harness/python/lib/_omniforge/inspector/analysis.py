"""The steps of an inspection: parse, tell the style, read the metadata block, infer the schemas."""

import ast
import sys
import warnings

from _omniforge.inspector import docstrings, leading, metadata, signature
from _omniforge.inspector.problem import CodeError
from _omniforge.inspector.scope import Scope

_RUNS_ITS_ARGUMENT = ("run", "run_sync", "run_until_complete", "Typer", "serve")


def inspect(code):
    """The `inspected` answer; raises CodeError."""
    tree, notes = _parse(code)
    block = metadata.read(code)
    main = _last_main(tree)
    reason = _script_reason(tree, main)
    answer = {
        "type": "inspected",
        "style": "script" if reason else "function",
        "input_schema": None,
        "output_schema": None,
        "description": docstrings.first_paragraph(ast.get_docstring(tree)),
        "dependencies": block.dependencies,
        "requires_python": block.requires_python,
        "imports": _imports(tree),
        "third_party": [],
        "preload": leading.imports(tree),
        "warnings": notes,
    }
    known = getattr(sys, "stdlib_module_names", None)
    if known is not None:
        answer["third_party"] = [name for name in answer["imports"] if name not in known and name != "omniforge"]
    if reason:
        if main is not None:
            notes.append(reason)
        return answer
    own = docstrings.first_paragraph(ast.get_docstring(main))
    answer["description"] = own or answer["description"]
    scope = Scope(tree)
    answer["input_schema"] = signature.input_schema(main, scope, notes)
    answer["output_schema"] = signature.output_schema(main, scope)
    return answer


def _parse(code):
    """The tree of the code (with its type comments, where they parse) and what the compiler warns of."""
    if "\0" in code:
        before = code[: code.index("\0")]
        raise CodeError("the code holds a null byte", before.count("\n") + 1, len(before) - before.rfind("\n"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            compile(code, "/tool/main.py", "exec", 0, True)
            tree = ast.parse(code)
        except SyntaxError as error:
            column = error.offset if error.offset and error.offset > 0 else None
            raise CodeError(error.msg, error.lineno or 1, column) from None
        except ValueError as error:
            raise CodeError(str(error), 1, 1) from None
        if "# type:" in code:
            try:
                tree = ast.parse(code, type_comments=True)
            except SyntaxError:
                pass  # A comment that only looks like one.
    notes = ["line %d: %s" % (one.lineno, one.message) for one in caught]
    return tree, list(dict.fromkeys(notes))


def _last_main(tree):
    main = None
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == "main":
            main = node
    return main


def _script_reason(tree, main):
    """Why the code runs as a script; None where `main` is called."""
    if main is None:
        return "no function `main`"
    for node in tree.body:
        if isinstance(node, ast.If) and _is_guard(node.test):
            return (
                "line %d: the `__main__` guard makes this a script; without it, `main` gets the arguments" % node.lineno
            )
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            call = _call_of_main(node)
            if call is not None:
                return (
                    "line %d: this call of `main` makes this a script; without it, `main` gets the arguments"
                    % call.lineno
                )
    return None


def _is_guard(test):
    return any(isinstance(node, ast.Name) and node.id == "__name__" for node in ast.walk(test)) and any(
        isinstance(node, ast.Constant) and node.value == "__main__" for node in ast.walk(test)
    )


def _call_of_main(statement):
    """A call of `main` that runs when the module does."""
    waiting = [statement]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            continue
        if isinstance(node, ast.Call):
            if _is_main(node.func):
                return node
            runs = getattr(node.func, "attr", getattr(node.func, "id", None)) in _RUNS_ITS_ARGUMENT
            if runs and any(_is_main(argument) for argument in node.args):
                return node
        waiting.extend(ast.iter_child_nodes(node))
    return None


def _is_main(node):
    return isinstance(node, ast.Name) and node.id == "main"


def _imports(tree):
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            names.add(node.module.split(".")[0])
    names.discard("__future__")
    return sorted(names)
