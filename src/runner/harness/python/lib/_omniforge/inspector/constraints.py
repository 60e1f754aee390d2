"""What `Annotated` metadata, `Field(…)` and their like add to a schema."""

import ast

from _omniforge.inspector import values

_NUMBERS = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
}
_LENGTHS = {"min_length": "min", "max_length": "max", "min_items": "min", "max_items": "max"}
_TEXTS = {"pattern": "pattern", "regex": "pattern"}
_NOTES = ("title", "description", "examples", "deprecated")
# annotated_types: the class, and the keywords that its positional arguments stand for.
_CLASSES = {
    "Ge": ("ge",),
    "Gt": ("gt",),
    "Le": ("le",),
    "Lt": ("lt",),
    "MultipleOf": ("multiple_of",),
    "MinLen": ("min_length",),
    "MaxLen": ("max_length",),
    "Len": ("min_length", "max_length"),
    "Interval": (),
    "StringConstraints": (),
}

NO_DEFAULT = object()


def apply(schema, metadata, schemas):
    """The schema with the metadata, and the default that a `Field` among it gives (a node, or NO_DEFAULT)."""
    default = NO_DEFAULT
    for item in metadata:
        if isinstance(item, ast.Name) and item.id in schemas.scope.assigned:
            item = schemas.scope.assigned[item.id]
        if isinstance(item, ast.Constant) and isinstance(item.value, str):
            schema = {**schema, "description": " ".join(item.value.split())}
        elif isinstance(item, ast.Call):
            schema, given = _call(schema, item, schemas)
            default = default if given is NO_DEFAULT else given
    return schema, default


def is_field(node, scope):
    """Whether an expression is a call of pydantic's `Field` (or `dataclasses.field`)."""
    return isinstance(node, ast.Call) and _last(scope.dotted(node.func)) in ("Field", "field", "Query", "Body", "Param")


def _last(dotted):
    return dotted.rpartition(".")[2] if dotted else None


def _call(schema, call, schemas):
    name = _last(schemas.scope.dotted(call.func))
    if name in ("Doc", "doc") and call.args:
        return apply(schema, call.args[:1], schemas)
    if name in _CLASSES:
        named = [ast.keyword(arg=word, value=node) for word, node in zip(_CLASSES[name], call.args)]
        return with_keywords(schema, [*named, *call.keywords], schemas), NO_DEFAULT
    if is_field(call, schemas.scope):
        return with_keywords(schema, call.keywords, schemas), field_default(call)
    return schema, NO_DEFAULT


def field_default(call):
    """The default of a `Field` call: its node; None for a factory (there is one, unknown here); or NO_DEFAULT."""
    given = NO_DEFAULT
    if call.args:
        given = call.args[0]
    for keyword in call.keywords:
        if keyword.arg == "default":
            given = keyword.value
        elif keyword.arg == "default_factory":
            return _of_factory(keyword.value)
    if isinstance(given, ast.Constant) and given.value is Ellipsis:
        return NO_DEFAULT
    return given


def _of_factory(factory):
    if isinstance(factory, ast.Lambda):
        return factory.body
    return ast.copy_location(ast.Call(func=factory, args=[], keywords=[]), factory)


def with_keywords(schema, keywords, schemas):
    """The schema with the constraints and notes that keyword arguments name."""
    schema = dict(schema)
    for keyword in keywords:
        try:
            value = values.value(keyword.value, schemas.scope)
        except values.Unknown:
            continue
        if keyword.arg in _NOTES and value is not None:
            schema[keyword.arg] = " ".join(value.split()) if keyword.arg == "description" else value
        elif keyword.arg == "json_schema_extra" and isinstance(value, dict):
            schema.update(value)
        elif value is not None:
            schema = _constrained(schema, keyword.arg, value)
    return schema


def _constrained(schema, word, value):
    if "anyOf" in schema:
        return {**schema, "anyOf": [_constrained(member, word, value) for member in schema["anyOf"]]}
    kind = schema.get("type")
    if word in _NUMBERS and kind in ("integer", "number") and isinstance(value, (int, float)):
        return {**schema, _NUMBERS[word]: value}
    if word in _LENGTHS and isinstance(value, int):
        noun = {"string": "Length", "array": "Items", "object": "Properties"}.get(kind)
        return {**schema, _LENGTHS[word] + noun: value} if noun else schema
    if word in _TEXTS and kind == "string" and isinstance(value, str):
        return {**schema, "pattern": value}
    return schema
