"""The schemas of types from the standard library and pydantic, by full name."""


def _text(**more):
    return {"type": "string", **more}


_ARRAY = {"type": "array"}
_SET = {"type": "array", "uniqueItems": True}
_OBJECT = {"type": "object"}

PLAIN = {
    "str": _text(),
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "None": {"type": "null"},
    "types.NoneType": {"type": "null"},
    "bytes": _text(contentEncoding="base64"),
    "bytearray": _text(contentEncoding="base64"),
    "object": {},
    "typing.Any": {},
    "typing.Text": _text(),
    "typing.LiteralString": _text(),
    "typing.AnyStr": _text(),
    "numbers.Number": {"type": "number"},
    "numbers.Real": {"type": "number"},
    "numbers.Integral": {"type": "integer"},
    "datetime.datetime": _text(format="date-time"),
    "datetime.date": _text(format="date"),
    "datetime.time": _text(format="time"),
    "datetime.timedelta": {"type": "number"},
    "uuid.UUID": _text(format="uuid"),
    "decimal.Decimal": {"type": "number"},
    "pathlib.Path": _text(),
    "pathlib.PurePath": _text(),
    "pathlib.PurePosixPath": _text(),
    "pathlib.PosixPath": _text(),
    "pydantic.EmailStr": _text(format="email"),
    "pydantic.AnyUrl": _text(format="uri"),
    "pydantic.AnyHttpUrl": _text(format="uri"),
    "pydantic.HttpUrl": _text(format="uri"),
    "pydantic.SecretStr": _text(),
    "pydantic.StrictStr": _text(),
    "pydantic.StrictInt": {"type": "integer"},
    "pydantic.StrictFloat": {"type": "number"},
    "pydantic.StrictBool": {"type": "boolean"},
    "pydantic.PositiveInt": {"type": "integer", "exclusiveMinimum": 0},
    "pydantic.NonNegativeInt": {"type": "integer", "minimum": 0},
    "pydantic.NegativeInt": {"type": "integer", "exclusiveMaximum": 0},
    "pydantic.NonPositiveInt": {"type": "integer", "maximum": 0},
    "pydantic.PositiveFloat": {"type": "number", "exclusiveMinimum": 0},
    "pydantic.NonNegativeFloat": {"type": "number", "minimum": 0},
    "pydantic.NegativeFloat": {"type": "number", "exclusiveMaximum": 0},
    "pydantic.NonPositiveFloat": {"type": "number", "maximum": 0},
    "pydantic.FutureDate": _text(format="date"),
    "pydantic.PastDate": _text(format="date"),
    "pydantic.AwareDatetime": _text(format="date-time"),
    "pydantic.NaiveDatetime": _text(format="date-time"),
    "pydantic.JsonValue": {},
    **{"pydantic.UUID%d" % version: _text(format="uuid") for version in (1, 3, 4, 5)},
    **dict.fromkeys(("list", "tuple"), _ARRAY),
    **dict.fromkeys(("set", "frozenset"), _SET),
    "dict": _OBJECT,
}

ARRAYS = ("list", "typing.List", "typing.Sequence", "typing.MutableSequence", "typing.Iterable", "typing.Collection")
ARRAYS += ("collections.deque", "typing.Deque")
TUPLES = ("tuple", "typing.Tuple")
SETS = ("set", "frozenset", "typing.Set", "typing.FrozenSet", "typing.AbstractSet", "typing.MutableSet")
OBJECTS = ("dict", "typing.Dict", "typing.Mapping", "typing.MutableMapping", "collections.defaultdict")
OBJECTS += ("collections.OrderedDict", "typing.DefaultDict", "typing.OrderedDict")
TRANSPARENT = ("typing.Required", "typing.NotRequired", "typing.ReadOnly", "typing.Final", "typing.ClassVar")
TRANSPARENT += ("dataclasses.InitVar",)

for _names, _schema in ((ARRAYS + TUPLES, _ARRAY), (SETS, _SET), (OBJECTS, _OBJECT)):
    PLAIN.update(dict.fromkeys(_names, _schema))

# Functions of pydantic that make a constrained type.
MAKERS = {
    "pydantic.conint": {"type": "integer"},
    "pydantic.confloat": {"type": "number"},
    "pydantic.condecimal": {"type": "number"},
    "pydantic.constr": {"type": "string"},
    "pydantic.conlist": {"type": "array"},
    "pydantic.conset": {"type": "array", "uniqueItems": True},
}
