"""The input schema from the signature and docstring of `main`, and the output schema from what it returns."""

import ast

from _omniforge.inspector import classes, constraints, docstrings, values
from _omniforge.inspector.problem import CodeError
from _omniforge.inspector.schema import Schemas, enumeration, nullable, parsed

_WORDS = {
    "string": "str",
    "text": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "array": "list",
    "object": "dict",
    "dictionary": "dict",
    "any": "object",
}


def input_schema(main, scope, warnings):
    """The schema of the arguments. Raises CodeError for a signature that can't be called by name."""
    _refuse(main)
    schemas = Schemas(scope, warnings)
    texts = docstrings.parameters(ast.get_docstring(main))
    comments = _comment_types(main)[0]
    properties, required = {}, []
    for index, (argument, default) in enumerate(_parameters(main)):
        annotation = argument.annotation or _from_comment(argument.type_comment) or comments.get(index)
        if takes_context(argument.arg, annotation, scope):
            _explain_context(argument, annotation, scope, warnings)
            continue
        kind, text = texts.get(argument.arg, (None, None))
        documented = {} if annotation is not None else _documented(kind, schemas)
        schema, default = _parameter(argument, annotation, documented, default, schemas)
        if text and "description" not in schema:
            schema = {**schema, "description": text}
        properties[argument.arg] = _ordered(classes.with_default(schema, default, scope))
        if default is constraints.NO_DEFAULT:
            required.append(argument.arg)
    made = {"type": "object", "properties": properties}
    extra = _extra(main, schemas, properties, required)
    if required:
        made["required"] = required
    made["additionalProperties"] = extra
    return schemas.with_definitions(made)


def output_schema(main, scope):
    """The schema of the result, where it is annotated as an object."""
    node = main.returns or _comment_types(main)[1]
    if node is None:
        return None
    schemas = Schemas(scope, [], output=True)
    schema = schemas.of(node)
    target = schemas.definitions.get(schema.get("$ref", "").rpartition("/")[2], schema)
    if target.get("type") != "object":
        return None
    if "$ref" in schema:
        schema = {"type": "object", **schema}
    return schemas.with_definitions(schema)


def takes_context(name, annotation, scope):
    """Whether the parameter gets the context instead of an argument."""
    if name in ("ctx", "context"):
        return True
    return annotation is not None and _is_context(annotation, scope)


def _is_context(node, scope):
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        node = parsed(node)
    if isinstance(node, ast.BinOp):
        return _is_context(node.left, scope) or _is_context(node.right, scope)
    if isinstance(node, ast.Subscript):
        if scope.dotted(node.value) in ("typing.Optional", "typing.Annotated"):
            inner = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) else node.slice
            return _is_context(inner, scope)
        node = node.value
    if isinstance(node, ast.Name) and node.id in scope.classes:
        return False
    return getattr(node, "attr", getattr(node, "id", None)) == "Context"


def _explain_context(argument, annotation, scope, warnings):
    if annotation is not None and not _is_context(annotation, scope):
        warnings.append(
            "line %d: the parameter `%s` gets the context of the call and is no argument; name an argument differently"
            % (argument.lineno, argument.arg)
        )


def _refuse(main):
    if main.args.vararg is not None:
        message = "`*%s` is refused: arguments have names; take a list parameter instead" % main.args.vararg.arg
        raise CodeError.at(main.args.vararg, message)
    waiting = list(main.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            continue
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            raise CodeError.at(node, "`main` can't be a generator: return a list, or report progress through `ctx`")
        waiting.extend(ast.iter_child_nodes(node))


def _parameters(main):
    """Each parameter that can be named, with the node of its default or NO_DEFAULT."""
    arguments = main.args
    listed = [*arguments.posonlyargs, *arguments.args]
    missing = [constraints.NO_DEFAULT] * (len(listed) - len(arguments.defaults))
    pairs = list(zip(listed, [*missing, *arguments.defaults]))
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults):
        pairs.append((argument, constraints.NO_DEFAULT if default is None else default))
    return pairs


def _parameter(argument, annotation, documented, default, schemas):
    """Its schema, and its default (what a `Field` gives counts)."""
    known = annotation is not None or documented != {}
    schema = schemas.of(annotation) if annotation is not None else documented
    if constraints.is_field(default, schemas.scope):
        schema, default = constraints.apply(schema, [default], schemas)
    elif annotation is not None:
        inner = _annotated_default(annotation, schemas)
        default = inner if default is constraints.NO_DEFAULT else default
    if default is constraints.NO_DEFAULT:
        if not known:
            note = "line %d: the parameter `%s` has no type; any JSON value is accepted there"
            schemas.warnings.append(note % (argument.lineno, argument.arg))
        return schema, default
    if isinstance(default, ast.Constant) and default.value is None:
        return _with_notes(schema, nullable), default
    return schema if known else {**_of_value(default, schemas.scope), **schema}, default


def _with_notes(schema, change):
    """Changes the schema and keeps its description beside, not inside, the alternatives."""
    notes = {name: schema[name] for name in ("title", "description") if name in schema}
    rest = {name: item for name, item in schema.items() if name not in notes}
    return {**change(rest), **notes}


def _annotated_default(annotation, schemas):
    """The default of a `Field` inside `Annotated`."""
    if isinstance(annotation, ast.Subscript) and schemas.scope.dotted(annotation.value) == "typing.Annotated":
        if isinstance(annotation.slice, ast.Tuple):
            for item in annotation.slice.elts[1:]:
                if constraints.is_field(item, schemas.scope):
                    return constraints.field_default(item)
    return constraints.NO_DEFAULT


def _of_value(node, scope):
    """The schema of an untyped parameter, told from its default."""
    try:
        value = values.value(node, scope)
    except values.Unknown:
        return {}
    for kind, name in ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"), (list, "array"), (dict, "object")):
        if isinstance(value, kind):
            return {"type": name}
    return {}


def _extra(main, schemas, properties, required):
    """`additionalProperties`: false, or what `**kwargs` opens."""
    keywords = main.args.kwarg
    if keywords is None:
        return False
    annotation = keywords.annotation or _from_comment(keywords.type_comment)
    if annotation is None:
        return True
    if isinstance(annotation, ast.Subscript) and schemas.scope.dotted(annotation.value) == "typing.Unpack":
        unpacked = schemas.of(annotation.slice)
        properties.update(unpacked.get("properties", {}))
        required.extend(unpacked.get("required", []))
        return False
    return schemas.of(annotation) or True


def _ordered(schema):
    """The schema with its notes at the end: description, then default."""
    last = [name for name in ("description", "default") if name in schema]
    return {**{name: item for name, item in schema.items() if name not in last}, **{name: schema[name] for name in last}}


def _from_comment(comment):
    if not comment:
        return None
    return _expression(comment)


def _comment_types(main):
    """The types in a comment on the whole signature, `# type: (int, str) -> dict`: by position, and the result's."""
    if not main.type_comment:
        return {}, None
    try:
        tree = ast.parse(main.type_comment, mode="func_type")
    except SyntaxError:
        return {}, None
    listed = {index: node for index, node in enumerate(tree.argtypes)}
    if any(isinstance(node, ast.Constant) and node.value is Ellipsis for node in tree.argtypes):
        listed = {}
    return listed, tree.returns


def _documented(text, schemas):
    """The schema of a type that the docstring names, where it is one; else `{}`."""
    if not text:
        return {}
    text = text.split(", optional")[0].split(", default")[0].strip().rstrip(",")
    node = _expression(_WORDS.get(text.lower(), text).replace(" or ", " | "))
    if isinstance(node, ast.Set):
        try:
            return enumeration(values.value(node, schemas.scope))
        except values.Unknown:
            return {}
    scratch = Schemas(schemas.scope, [])
    schema = scratch.of(node) if node is not None else {}
    return {} if scratch.warnings or scratch.definitions else schema


def _expression(text):
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return None
