"""The names of a module, as far as its syntax tells: imports, classes, constants and type aliases."""

import ast
import builtins

_SAME = {"typing_extensions": "typing", "collections.abc": "typing"}
_STAR_MODULES = ("typing", "typing_extensions", "datetime", "decimal", "uuid", "enum", "dataclasses", "pydantic", "omniforge")


class Scope:
    """What stands behind the names of a module."""

    def __init__(self, tree):
        self.imports = {}
        self.stars = []
        self.classes = {}
        self.assigned = {}
        self._read(tree.body)

    def _read(self, body):
        for node in body:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    whole = alias.name if alias.asname else alias.name.split(".")[0]
                    self._bind(self.imports, alias.asname or whole, whole)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                self._read_from(node)
            elif isinstance(node, ast.ClassDef):
                self._bind(self.classes, node.name, node)
            elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                self._bind(self.assigned, node.targets[0].id, node.value)
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
                self._bind(self.assigned, node.target.id, node.value)
            elif type(node).__name__ == "TypeAlias":
                self._bind(self.assigned, node.name.id, node.value)
            for part in ("body", "orelse", "finalbody"):
                if isinstance(node, (ast.If, ast.Try, ast.With)):
                    self._read(getattr(node, part, []))
            for handler in getattr(node, "handlers", []):
                self._read_missing(handler.body)

    def _read_missing(self, body):
        """What an `except ImportError` branch binds counts only where the name isn't bound yet."""
        other = Scope(ast.Module(body=body, type_ignores=[]))
        for mine, theirs in ((self.imports, other.imports), (self.classes, other.classes), (self.assigned, other.assigned)):
            for name, value in theirs.items():
                if not self._knows(name):
                    mine[name] = value

    def _read_from(self, node):
        for alias in node.names:
            if alias.name == "*":
                self.stars.append(node.module)
            else:
                self._bind(self.imports, alias.asname or alias.name, "%s.%s" % (node.module, alias.name))

    def _knows(self, name):
        return name in self.imports or name in self.classes or name in self.assigned

    def _bind(self, table, name, value):
        for other in (self.imports, self.classes, self.assigned):
            other.pop(name, None)
        table[name] = value

    def dotted(self, node):
        """The full name of what an expression names, such as `typing.Optional` or `int`; None for anything else."""
        parts = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return None
        base = self._base(node.id)
        if base is None:
            return None
        whole = ".".join([base, *reversed(parts)])
        module, _, last = whole.rpartition(".")
        return "%s.%s" % (_SAME.get(module, module), last) if module else last

    def _base(self, name):
        if name in self.imports:
            return self.imports[name]
        if name in self.classes or name in self.assigned:
            return None
        if hasattr(builtins, name):
            return name
        for module in self.stars:
            if module in _STAR_MODULES:
                return "%s.%s" % (module, name)
        return None

    def class_of(self, node):
        """The module's own class that an expression names."""
        return self.classes.get(node.id) if isinstance(node, ast.Name) else None
