"""Makes plain JSON of a returned value, or says which part of it can't be: the way taken when the fast one failed."""

from _omniforge import channel
from _omniforge.failure import Refusal

_FLOAT_TEXT = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def plain(value, path="result"):
    """The value in terms of dict, list, str, int, float, bool and None; raises Refusal that names the path."""
    return _plain(value, path, set())


def readable(value, depth=0):
    """The value with a text in place of each part that JSON has no form for."""
    try:
        return plain(value)
    except Refusal:
        pass
    if depth < 20 and isinstance(value, dict):
        return {str(key): readable(item, depth + 1) for key, item in value.items()}
    if depth < 20 and isinstance(value, (list, tuple)):
        return [readable(item, depth + 1) for item in value]
    try:
        return str(value)
    except RecursionError:
        return "<%s, nested too deeply>" % type(value).__name__


def _plain(value, path, above):
    if value is None or isinstance(value, (bool, str)):
        return str.__str__(value) if isinstance(value, str) else value
    if isinstance(value, int):
        return _whole(value, path)
    if isinstance(value, float):
        return _number(value, path)
    if id(value) in above:
        raise Refusal("ValueError", "%s contains itself: a result can't have cycles" % path)
    if len(above) >= channel.DEPTH_LIMIT:
        message = "the result is nested more than %d levels deep" % channel.DEPTH_LIMIT
        raise Refusal("ValueError", message)
    above.add(id(value))
    try:
        if isinstance(value, dict) or type(value).__name__ in ("mappingproxy", "UserDict"):
            return {_key(key, path): _plain(item, _step(path, key), above) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [_plain(item, "%s[%d]" % (path, index), above) for index, item in enumerate(value)]
        return _object(value, path, above)
    finally:
        above.discard(id(value))


def _whole(value, path):
    number = int(value)
    try:
        int.__repr__(number)
    except ValueError:
        raise Refusal("ValueError", "%s is an integer of too many digits; return str() of it" % path) from None
    return number


def _number(value, path):
    text = float.__repr__(value)
    if text in _FLOAT_TEXT:
        raise Refusal("ValueError", "%s is %s, which JSON has no form for" % (path, _FLOAT_TEXT[text]))
    return float(value)


def _key(key, path):
    """A key as `json` writes it; enums, dates and UUIDs by their value besides."""
    if isinstance(key, str):
        return str.__str__(key)
    if key is None or isinstance(key, bool):
        return {None: "null", True: "true", False: "false"}[key]
    if isinstance(key, int):
        return int.__repr__(int(key))
    if isinstance(key, float):
        return float.__repr__(key)
    if _is_enum(key):
        return _key(key.value, path)
    known = _known(key)
    if known is not None:
        return str(known)
    raise Refusal("TypeError", "%s has a key that is a %s; keys must be texts" % (path, _name(key)))


def _object(value, path, above):
    if _is_enum(value):
        return _plain(value.value, path, above)
    known = _known(value)
    if known is not None:
        return known
    kind = type(value)
    if hasattr(kind, "model_dump"):
        return _plain(value.model_dump(mode="json", by_alias=True), path, above)
    fields = getattr(kind, "__dataclass_fields__", None) or getattr(kind, "__attrs_attrs__", None)
    if fields is not None:
        names = [getattr(field, "name", field) for field in fields]
        names = [name for name in names if hasattr(value, name)]
        return {name: _plain(getattr(value, name), _step(path, name), above) for name in names}
    if kind.__module__.split(".")[0] == "numpy" and hasattr(value, "tolist"):
        return _plain(value.tolist(), path, above)
    raise Refusal("TypeError", "%s is a %s, which JSON has no form for%s" % (path, _name(value), _hint(value)))


def _is_enum(value):
    return hasattr(type(value), "__members__") and hasattr(type(value), "_value2member_map_")


def _known(value):
    """The text of a date, time, Decimal, UUID or path; None for any other."""
    for kind in type(value).__mro__:
        known = "%s.%s" % (kind.__module__, kind.__name__)
        if known in ("datetime.date", "datetime.datetime", "datetime.time"):
            return value.isoformat()
        if known == "datetime.timedelta":
            return value.total_seconds()
        if known in ("decimal.Decimal", "_pydecimal.Decimal", "uuid.UUID", "pathlib.PurePath"):
            return str(value)
        if known == "pathlib._local.PurePath":
            return str(value)
    return None


def _step(path, key):
    return "%s.%s" % (path, key) if isinstance(key, str) and key.isidentifier() else "%s[%r]" % (path, key)


def _name(value):
    kind = type(value)
    return kind.__qualname__ if kind.__module__ in ("builtins", "tool") else "%s.%s" % (kind.__module__, kind.__name__)


def _hint(value):
    name = _name(value)
    if name in ("set", "frozenset", "generator", "range", "map", "filter", "zip", "dict_keys", "dict_values"):
        return "; return list(…) of it"
    if name in ("bytes", "bytearray", "memoryview"):
        return "; return its text, its base64, or an Image, Audio or EmbeddedResource of it"
    if name.startswith("pandas."):
        return "; return its .to_dict()"
    if name.startswith("omniforge."):
        return "; return it by itself or in a list"
    if name in ("coroutine", "Task", "asyncio.Task", "async_generator"):
        return "; await it first"
    return ""
