"""Gives arguments the types of their annotations: what JSON has no form for, such as dates, enums and dataclasses."""

import sys

from _omniforge import channel, driver
from _omniforge.failure import Refusal


def call(main, function, arguments):
    """Calls `main` with converted arguments, and the context where it takes it."""
    if "decimal" in sys.modules:  # A tool that wants Decimal has imported it.
        arguments = channel.decode(driver.request_text, keep_number_text=True)["arguments"]
    names, positional_only, defaults = _parameters(function)
    annotations = driver._annotations(function)
    scope = getattr(function, "__globals__", {})
    given = {}
    for name, value in arguments.items():
        annotation = annotations.get(name, annotations.get(_variable_keywords(function)))
        given[name] = convert(resolve(annotation, scope), value, "argument `%s`" % name)
    for name in names:
        if driver.takes_context(name, annotations.get(name)):
            given[name] = driver._context()
        elif name not in given and type(defaults.get(name)).__name__ == "FieldInfo":
            _use_field_default(given, name, defaults[name])
    positional = []
    for name in positional_only:
        if name not in given and name not in defaults:
            break
        positional.append(given.pop(name) if name in given else defaults[name])
    return main(*positional, **given)


def _parameters(function):
    """The names that can be given, those among them that have no keyword, and the defaults."""
    code = getattr(function, "__code__", None)
    if code is None:
        return _inspected_parameters(function)
    count = code.co_argcount
    names = code.co_varnames[: count + code.co_kwonlyargcount]
    values = getattr(function, "__defaults__", None) or ()
    defaults = dict(zip(names[count - len(values) : count], values))
    defaults.update(getattr(function, "__kwdefaults__", None) or {})
    return names, names[: code.co_posonlyargcount], defaults


def _inspected_parameters(function):
    import inspect

    if not callable(function):
        raise Refusal("TypeError", "`main` is a %s, not a function" % type(function).__name__)
    parameters = inspect.signature(function).parameters.values()
    only = [one.name for one in parameters if one.kind is one.POSITIONAL_ONLY]
    defaults = {one.name: one.default for one in parameters if one.default is not one.empty}
    return [one.name for one in parameters], only, defaults


def _variable_keywords(function):
    code = getattr(function, "__code__", None)
    if code is None or not code.co_flags & 8:
        return None
    return code.co_varnames[code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4)]


def _use_field_default(given, name, field):
    if field.is_required():
        raise Refusal("TypeError", "argument `%s` is missing" % name)
    given[name] = field.get_default(call_default_factory=True)


def resolve(annotation, scope):
    """The type that an annotation stands for; None where it can't be told."""
    if annotation is None or (not isinstance(annotation, str) and "typing" not in sys.modules):
        return annotation
    import typing
    from types import SimpleNamespace

    holder = SimpleNamespace(__annotations__={"it": annotation})
    try:
        return typing.get_type_hints(holder, scope, scope, include_extras=True)["it"]
    except Exception:  # A name that only a type checker knows: the value stays as it came.
        return None


def convert(kind, value, path):
    """`value` as `kind`; raises Refusal where it can't be."""
    kind = _unwrapped(kind)
    origin = getattr(kind, "__origin__", None)
    name = str(origin) if origin is not None else ""
    if name == "typing.Union" or type(kind).__name__ == "UnionType":
        return _union(kind.__args__, value, path)
    if name == "typing.Literal":
        return _literal(kind.__args__, value)
    if isinstance(origin, type):
        return _collection(origin, kind.__args__, value, path)
    if not isinstance(kind, type) or value is None:
        return _stripped(value)
    try:
        return _instance(kind, value, path)
    except Refusal:
        raise
    except Exception as error:
        raise Refusal("ValueError", "%s is no %s: %s" % (path, kind.__name__, error)) from None


def _unwrapped(kind):
    """The type inside Annotated, Required, NewType, a `type` alias or a bounded type variable."""
    for _ in range(32):
        if hasattr(kind, "__metadata__"):
            kind = kind.__origin__
        elif str(getattr(kind, "__origin__", "")).rpartition(".")[2] in ("Required", "NotRequired", "ReadOnly"):
            kind = kind.__args__[0]
        elif hasattr(kind, "__supertype__"):
            kind = kind.__supertype__
        elif type(kind).__name__ == "TypeAliasType":
            kind = kind.__value__
        elif type(kind).__name__ == "TypeVar":
            kind = kind.__bound__
        else:
            break
    return kind


def _union(kinds, value, path):
    if value is None and type(None) in kinds:
        return None
    problem = None
    for kind in kinds:
        plain = kind in (str, int, float, bool, list, dict)
        if plain and not (type(value) is kind or (kind is float and isinstance(value, (int, float)))):
            continue
        if kind is type(None):
            continue
        try:
            return convert(kind, value, path)
        except Refusal as error:
            problem = error
    if problem is not None:
        raise problem
    return _stripped(value)


def _literal(choices, value):
    for choice in choices:
        if getattr(choice, "value", choice) == value and hasattr(choice, "name"):
            return choice
    return _stripped(value)


_LISTS = ("list", "Sequence", "MutableSequence", "Iterable", "Collection", "deque")
_MAPPINGS = ("dict", "Mapping", "MutableMapping", "defaultdict", "OrderedDict")
_SETS = {"set": set, "Set": frozenset, "MutableSet": set, "frozenset": frozenset}


def _collection(origin, inner, value, path):
    name = origin.__name__
    if name == "tuple" and isinstance(value, list):
        return _tuple(inner, value, path)
    if name in _MAPPINGS and isinstance(value, dict) and len(inner) == 2:
        made = {
            convert(inner[0], _key(inner[0], key), "a key of " + path): convert(inner[1], item, "%s[%r]" % (path, key))
            for key, item in value.items()
        }
        return made if name in ("dict", "Mapping", "MutableMapping") else _made(origin, made)
    if (name in _LISTS or name in _SETS) and isinstance(value, list) and len(inner) == 1:
        items = [convert(inner[0], item, "%s[%d]" % (path, index)) for index, item in enumerate(value)]
        return _set(_SETS[name], items, path) if name in _SETS else origin(items) if name == "deque" else items
    if isinstance(origin, type) and hasattr(origin, "model_validate"):
        return origin.model_validate(_stripped(value))
    return _stripped(value)


def _made(origin, items):
    if origin.__name__ == "defaultdict":
        return origin(None, items)
    return origin(items)


def _key(kind, key):
    """JSON's keys are texts; a key annotated as a number is read as one."""
    if kind in (int, float):
        try:
            return kind(key)
        except ValueError:
            raise Refusal("ValueError", "the key %r is no %s" % (key, kind.__name__)) from None
    return key


def _tuple(inner, value, path):
    if len(inner) == 2 and inner[1] is Ellipsis:
        inner = (inner[0],) * len(value)
    inner = () if inner == ((),) else inner
    if len(inner) != len(value):
        raise Refusal("ValueError", "%s must have %d items, not %d" % (path, len(inner), len(value)))
    return tuple(convert(kind, item, "%s[%d]" % (path, index)) for index, (kind, item) in enumerate(zip(inner, value)))


def _set(kind, items, path):
    try:
        return kind(items)
    except TypeError as error:
        raise Refusal("ValueError", "%s can't be a set: %s" % (path, error)) from None


def _instance(kind, value, path):
    if kind is int:
        return driver.whole(float(value)) if isinstance(value, float) else value
    if hasattr(kind, "__members__") and hasattr(kind, "_value2member_map_"):
        return _enum(kind, _stripped(value), path)
    if hasattr(kind, "model_validate"):
        return kind.model_validate(_stripped(value))
    if hasattr(kind, "__dataclass_fields__"):
        return _dataclass(kind, value, path)
    if hasattr(kind, "__total__") and isinstance(value, dict):
        hints = _hints(kind)
        return {key: convert(hints.get(key), item, "%s.%s" % (path, key)) for key, item in value.items()}
    if issubclass(kind, tuple):
        return _named_tuple(kind, value, path) if hasattr(kind, "_fields") else tuple(_stripped(value))
    if kind in (set, frozenset) and isinstance(value, list):
        return _set(kind, _stripped(value), path)
    return _from_text(kind, value)


def _from_text(kind, value):
    known = "%s.%s" % (kind.__module__, kind.__name__)
    if known in ("decimal.Decimal", "_decimal.Decimal", "_pydecimal.Decimal"):
        return kind(getattr(value, "text", None) or (value if type(value) in (int, str) else repr(value)))
    if known in ("datetime.date", "datetime.datetime", "datetime.time") and isinstance(value, str):
        text = value[:-1] + "+00:00" if value[-1:] in ("Z", "z") and known != "datetime.date" else value
        return kind.fromisoformat(text)
    if known == "datetime.timedelta":
        return kind(seconds=float(value))
    if known == "uuid.UUID" or known.split(".")[0] == "pathlib":
        return kind(value)
    if kind in (bytes, bytearray):
        import binascii

        return kind(binascii.a2b_base64(value))
    return _stripped(value)


def _enum(kind, value, path):
    try:
        return kind(value)
    except ValueError:
        if isinstance(value, str) and value in kind.__members__:
            return kind[value]
        choices = ", ".join(repr(member.value) for member in kind)
        raise Refusal("ValueError", "%s must be one of %s, not %r" % (path, choices, value)) from None


def _hints(kind):
    hints = {}
    for base in reversed(kind.__mro__):
        scope = getattr(sys.modules.get(base.__module__), "__dict__", {})
        if base is object or not hasattr(base, "__annotations__"):
            continue
        for name, annotation in driver._annotations(base).items():
            hints[name] = resolve(annotation, scope)
    return hints


def _dataclass(kind, value, path):
    if not isinstance(value, dict):
        raise Refusal("ValueError", "%s must be an object (%s)" % (path, kind.__name__))
    fields = [name for name, field in kind.__dataclass_fields__.items() if field.init]
    for key in value:
        if key not in fields:
            raise Refusal("ValueError", "%s has no field %r (%s has %s)" % (path, key, kind.__name__, ", ".join(fields)))
    hints = _hints(kind)
    made = {key: convert(_init_type(hints.get(key)), item, "%s.%s" % (path, key)) for key, item in value.items()}
    return kind(**made)


def _init_type(kind):
    return kind.type if type(kind).__name__ == "InitVar" else kind


def _named_tuple(kind, value, path):
    hints = _hints(kind)
    if isinstance(value, dict):
        return kind(**{key: convert(hints.get(key), item, "%s.%s" % (path, key)) for key, item in value.items()})
    return kind(*(convert(hints.get(name), item, "%s.%s" % (path, name)) for name, item in zip(kind._fields, value)))


def _stripped(value):
    """The value with plain floats, as `json.loads` gives it."""
    if isinstance(value, float):
        return float(value)
    if isinstance(value, list):
        return [_stripped(item) for item in value]
    if isinstance(value, dict):
        return {key: _stripped(item) for key, item in value.items()}
    return value
