"""The schemas of the module's own classes: enums, dataclasses, TypedDicts, named tuples, pydantic models."""

import ast

from _omniforge.inspector import constraints, docstrings, values

_ENUMS = ("Enum", "IntEnum", "StrEnum", "Flag", "IntFlag", "ReprEnum")
_DATACLASS = ("dataclasses.dataclass", "pydantic.dataclasses.dataclass", "attr.s", "attr.attrs", "attr.dataclass")
_DATACLASS += ("attrs.define", "attrs.frozen", "attrs.mutable")
_MODELS = ("pydantic.BaseModel", "pydantic.main.BaseModel", "sqlmodel.SQLModel", "pydantic_settings.BaseSettings")


def kind(node, scope, depth=0):
    """`enum`, `dataclass`, `typed_dict`, `named_tuple`, `model`; None for any other class."""
    for decorator in node.decorator_list:
        if scope.dotted(decorator.func if isinstance(decorator, ast.Call) else decorator) in _DATACLASS:
            return "dataclass"
    for base in _bases(node):
        name = scope.dotted(base)
        if name and name.startswith("enum.") and name[5:] in _ENUMS:
            return "enum"
        if name == "typing.TypedDict":
            return "typed_dict"
        if name == "typing.NamedTuple":
            return "named_tuple"
        if name in _MODELS:
            return "model"
        own = scope.class_of(base)
        if own is not None and own is not node and depth < 20:
            inherited = kind(own, scope, depth + 1)
            if inherited is not None:
                return inherited
    return None


def schema(node, what, schemas):
    """The schema of a class of that kind."""
    if what == "enum":
        return _enum(node, schemas)
    described = {}
    text = docstrings.first_paragraph(ast.get_docstring(node))
    if text:
        described["description"] = text
    fields = _fields(node, what, schemas, 0)
    if what == "named_tuple":
        items = [field for field, _ in fields.values()]
        least = sum(required for _, required in fields.values())
        return {"type": "array", **described, "prefixItems": items, "minItems": least, "maxItems": len(items)}
    closed = what == "dataclass" or _forbids_extra(node, schemas.scope)
    return _object(described, fields, closed)


def _object(described, fields, closed):
    made = {"type": "object", **described, "properties": {name: field for name, (field, _) in fields.items()}}
    required = [name for name, (_, needed) in fields.items() if needed]
    if required:
        made["required"] = required
    if closed:
        made["additionalProperties"] = False
    return made


def _bases(node):
    return [base.value if isinstance(base, ast.Subscript) else base for base in node.bases]


def _fields(node, what, schemas, depth):
    """Of each field: its schema, and whether it must be given. Inherited ones first."""
    fields = {}
    for base in reversed(_bases(node)):
        own = schemas.scope.class_of(base)
        if own is not None and own is not node and depth < 20:
            fields.update(_fields(own, what, schemas, depth + 1))
    texts = docstrings.parameters(ast.get_docstring(node))
    total = not any(word.arg == "total" and getattr(word.value, "value", True) is False for word in node.keywords)
    for index, item in enumerate(node.body):
        if not isinstance(item, ast.AnnAssign) or not isinstance(item.target, ast.Name):
            continue
        found = _field(item, what, total, schemas)
        if found is None:
            continue
        name, field, required = found
        text = _following_text(node.body, index) or texts.get(item.target.id, (None, None))[1]
        if text and "description" not in field:
            field = {**field, "description": text}
        fields[name] = (field, required)
    return fields


def _following_text(body, index):
    """The docstring after a field."""
    after = body[index + 1] if index + 1 < len(body) else None
    if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str):
        return docstrings.first_paragraph(after.value.value)
    return None


def _field(item, what, total, schemas):
    """Name, schema and need of one annotated field; None where it is no field."""
    name, scope = item.target.id, schemas.scope
    wrapper = scope.dotted(item.annotation.value) if isinstance(item.annotation, ast.Subscript) else None
    if wrapper == "typing.ClassVar" or scope.dotted(item.annotation) in ("typing.ClassVar", "dataclasses.KW_ONLY"):
        return None
    if what == "model" and (name.startswith("_") or name == "model_config"):
        return None
    field = schemas.of(item.annotation)
    if what == "typed_dict":
        required = wrapper == "typing.Required" or (total and wrapper != "typing.NotRequired")
        return name, field, required
    default = constraints.NO_DEFAULT if item.value is None else item.value
    if constraints.is_field(item.value, scope):
        words = {word.arg: word.value for word in item.value.keywords}
        if getattr(words.get("init"), "value", True) is False:
            return None
        alias = words.get("alias") or words.get("validation_alias")
        if isinstance(alias, ast.Constant) and isinstance(alias.value, str) and what == "model":
            name = alias.value
        field, default = constraints.apply(field, [item.value], schemas)
    return name, with_default(field, default, scope), default is constraints.NO_DEFAULT


def with_default(field, default, scope):
    """The schema with its default, where that can be told."""
    if default is constraints.NO_DEFAULT:
        return field
    try:
        return {**field, "default": values.value(default, scope)}
    except values.Unknown:
        return field


def _forbids_extra(node, scope):
    for item in node.body:
        if isinstance(item, ast.Assign) and getattr(item.targets[0], "id", None) == "model_config":
            if isinstance(item.value, ast.Call):
                return any(word.arg == "extra" and getattr(word.value, "value", 0) == "forbid" for word in item.value.keywords)
            try:
                return values.value(item.value, scope).get("extra") == "forbid"
            except values.Unknown:
                return False
    return any(word.arg == "extra" and getattr(word.value, "value", 0) == "forbid" for word in node.keywords)


def _enum(node, schemas):
    found = members(node, schemas.scope)
    bases = " ".join(str(schemas.scope.dotted(base)) for base in _bases(node))
    if "Flag" in bases:
        return {"type": "integer"}
    if not found or any(value is values.Unknown for value in found.values()):
        return schemas._unknown(ast.copy_location(ast.Name(id=node.name), node))
    from _omniforge.inspector.schema import enumeration

    choices = []
    for value in found.values():
        if value not in choices:
            choices.append(value)
    return enumeration(choices)


def members(node, scope):
    """The values of an enum's members; `values.Unknown` for one that can't be told."""
    found = {}
    texts = any(scope.dotted(base) == "enum.StrEnum" for base in _bases(node))
    for item in node.body:
        if not isinstance(item, ast.Assign) or len(item.targets) != 1 or not isinstance(item.targets[0], ast.Name):
            continue
        name = item.targets[0].id
        if name.startswith("_"):
            continue
        if isinstance(item.value, ast.Call) and scope.dotted(item.value.func) == "enum.auto":
            numbers = [value for value in found.values() if isinstance(value, int)]
            found[name] = name.lower() if texts else max(numbers, default=0) + 1
            continue
        try:
            found[name] = _member_value(item.value, found, scope)
        except values.Unknown:
            found[name] = values.Unknown
    return found


def _member_value(node, found, scope):
    if isinstance(node, ast.Name) and node.id in found:
        return found[node.id]
    return values.value(node, scope)


def functional_typed_dict(call, schemas):
    """The schema of `TypedDict("Name", {"field": type})`."""
    total = not any(word.arg == "total" and getattr(word.value, "value", True) is False for word in call.keywords)
    fields = {}
    for key, node in zip(call.args[1].keys, call.args[1].values):
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            wrapper = schemas.scope.dotted(node.value) if isinstance(node, ast.Subscript) else None
            required = wrapper == "typing.Required" or (total and wrapper != "typing.NotRequired")
            fields[key.value] = (schemas.of(node), required)
    return _object({}, fields, False)


def functional_enum(call, name, schemas):
    """The schema of `Enum("Name", …)`; None where the call is no such thing."""
    if not name or not name.startswith("enum.") or name[5:] not in _ENUMS or len(call.args) != 2:
        return None
    from _omniforge.inspector.schema import enumeration

    try:
        given = values.value(call.args[1], schemas.scope)
    except values.Unknown:
        return None
    if isinstance(given, str):
        given = given.replace(",", " ").split()
    if isinstance(given, dict):
        return enumeration(list(given.values()))
    if given and all(isinstance(pair, list) and len(pair) == 2 for pair in given):
        return enumeration([pair[1] for pair in given])
    return enumeration([one.lower() for one in given] if name == "enum.StrEnum" else list(range(1, len(given) + 1)))
