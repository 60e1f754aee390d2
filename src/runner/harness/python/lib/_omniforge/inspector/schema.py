"""JSON Schema (2020-12) from type annotations, read as syntax."""

import ast

from _omniforge.inspector import classes, constraints, known, values

# So many classes are written out where they are used; from there on, and where they are recursive, by `$ref`.
_INLINE_CLASSES = 60


class Schemas:
    """Makes the schemas of one document and gathers its `$defs` and warnings."""

    def __init__(self, scope, warnings, output=False):
        self.scope = scope
        self.warnings = warnings
        self.output = output
        self.definitions = {}
        self._open = []
        self._recursive = set()
        self._aliases = []
        self._built = 0

    def of(self, node):
        """The schema of an annotation; an unknown type gives `{}` and a warning."""
        if isinstance(node, ast.Constant):
            return self._constant(node)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return self.union(_alternatives(node))
        if isinstance(node, ast.Subscript):
            return self._subscript(node)
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self._name(node)
        return self._unknown(node)

    def union(self, nodes):
        """The schema of a value that is one of several types."""
        members = []
        for node in nodes:
            schema = self.of(node)
            if schema == {}:
                return {}
            for one in schema["anyOf"] if list(schema) == ["anyOf"] else [schema]:
                if one not in members:
                    members.append(one)
        return members[0] if len(members) == 1 else {"anyOf": members}

    def with_definitions(self, schema):
        """The root schema with what its references name."""
        return {**schema, "$defs": self.definitions} if self.definitions else schema

    def _constant(self, node):
        if node.value is None:
            return {"type": "null"}
        if not isinstance(node.value, str):
            return self._unknown(node)
        inner = parsed(node)
        return self._unknown(node) if inner is None else self.of(inner)

    def _name(self, node):
        name = self.scope.dotted(node)
        if self.output and name == "decimal.Decimal":
            return {"type": "string"}
        if name in known.PLAIN:
            return dict(known.PLAIN[name])
        own = self.scope.class_of(node)
        if own is not None:
            return self._class(own, node)
        alias = self.scope.assigned.get(node.id) if isinstance(node, ast.Name) else None
        if alias is None or node.id in self._aliases:
            return self._unknown(node)
        self._aliases.append(node.id)
        try:
            return self.of(alias)
        finally:
            self._aliases.pop()

    def _class(self, node, where):
        kind = classes.kind(node, self.scope)
        if kind is None:
            return self._unknown(where)
        if node.name in self.definitions:
            return {"$ref": "#/$defs/" + node.name}
        if node.name in self._open:
            self._recursive.add(node.name)
            return {"$ref": "#/$defs/" + node.name}
        self._built += 1
        by_reference = self._built > _INLINE_CLASSES
        self._open.append(node.name)
        try:
            schema = classes.schema(node, kind, self)
        finally:
            self._open.pop()
        if by_reference or node.name in self._recursive:
            self.definitions[node.name] = schema
            return {"$ref": "#/$defs/" + node.name}
        return schema

    def _subscript(self, node):
        name = self.scope.dotted(node.value)
        inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if name == "typing.Optional":
            return self.union([*inner, ast.Constant(value=None)])
        if name == "typing.Union":
            return self.union(inner)
        if name == "typing.Literal":
            return self._literal(node, inner)
        if name == "typing.Annotated":
            schema = self.of(inner[0])
            return constraints.apply(schema, inner[1:], self)[0]
        if name in known.TRANSPARENT:
            return self.of(inner[0])
        if name in known.ARRAYS:
            return _array(self.of(inner[0]))
        if name in known.SETS:
            return {**_array(self.of(inner[0])), "uniqueItems": True}
        if name in known.TUPLES:
            return self._tuple(inner)
        if name in known.OBJECTS:
            return self._object(inner)
        own = self.scope.class_of(node.value)
        if own is not None:
            return self._class(own, node)
        return self._unknown(node)

    def _literal(self, node, inner):
        choices = []
        waiting = list(inner)
        while waiting:
            item = waiting.pop(0)
            if isinstance(item, ast.Name) and item.id in self.scope.assigned:
                item = self.scope.assigned[item.id]
            if isinstance(item, ast.Subscript) and self.scope.dotted(item.value) == "typing.Literal":
                waiting[:0] = item.slice.elts if isinstance(item.slice, ast.Tuple) else [item.slice]
                continue
            try:
                choice = values.value(item, self.scope)
            except values.Unknown:
                return self._unknown(node)
            if not any(type(choice) is type(other) and choice == other for other in choices):
                choices.append(choice)
        return enumeration(choices)

    def _tuple(self, inner):
        if len(inner) == 2 and isinstance(inner[1], ast.Constant) and inner[1].value is Ellipsis:
            return _array(self.of(inner[0]))
        if len(inner) == 1 and isinstance(inner[0], ast.Tuple):
            inner = inner[0].elts
        if not inner:
            return {"type": "array", "maxItems": 0}
        items = [self.of(item) for item in inner]
        return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}

    def _object(self, inner):
        schema = {"type": "object"}
        if len(inner) != 2:
            return schema
        keys = self.of(inner[0])
        if keys.get("type") == "integer":
            keys = {"pattern": "^-?[0-9]+$"}
        if "enum" in keys or "pattern" in keys or "format" in keys:
            schema["propertyNames"] = {name: item for name, item in keys.items() if name != "type"}
        items = self.of(inner[1])
        if items:
            schema["additionalProperties"] = items
        return schema

    def _call(self, node):
        name = self.scope.dotted(node.func)
        if name in known.MAKERS:
            schema = dict(known.MAKERS[name])
            if schema["type"] == "array" and node.args:
                schema["items"] = self.of(node.args[0])
            return constraints.with_keywords(schema, node.keywords, self)
        if name == "typing.NewType" and len(node.args) == 2:
            return self.of(node.args[1])
        if name == "typing.TypeVar":
            return self._type_variable(node)
        if name == "typing.TypedDict" and len(node.args) == 2 and isinstance(node.args[1], ast.Dict):
            return classes.functional_typed_dict(node, self)
        return classes.functional_enum(node, name, self) or self._unknown(node)

    def _type_variable(self, node):
        for keyword in node.keywords:
            if keyword.arg == "bound":
                return self.of(keyword.value)
        return self.union(node.args[1:]) if len(node.args) > 1 else {}

    def _unknown(self, node):
        line = getattr(node, "lineno", None)
        shown = ast.unparse(node)[:80]
        where = "line %d: " % line if line else ""
        note = "%sthe type `%s` has no JSON Schema; any JSON value is accepted there" % (where, shown)
        if note not in self.warnings:
            self.warnings.append(note)
        return {}


def enumeration(choices):
    """The schema of one of some values."""
    kinds = {type(choice) for choice in choices}
    schema = {"type": "string"} if kinds == {str} else {"type": "integer"} if kinds == {int} else {}
    return {**schema, "enum": choices} if choices else {}


def nullable(schema):
    """The schema that takes null as well."""
    if schema == {} or schema.get("type") == "null" or {"type": "null"} in schema.get("anyOf", ()):
        return schema
    if None in schema.get("enum", ()):
        return schema
    if list(schema) == ["anyOf"]:
        return {"anyOf": [*schema["anyOf"], {"type": "null"}]}
    return {"anyOf": [schema, {"type": "null"}]}


def parsed(constant):
    """The expression in an annotation that is written as a string; None where it is none."""
    try:
        tree = ast.parse(constant.value.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return None
    for node in ast.walk(tree):
        if hasattr(node, "lineno"):
            node.lineno = getattr(constant, "lineno", 1)
    return tree


def _array(items):
    return {"type": "array", "items": items} if items else {"type": "array"}


def _alternatives(node):
    """The members of `A | B | C`, in order, without recursion on the left side."""
    found = []
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        found.append(node.right)
        node = node.left
    found.append(node)
    return found[::-1]
