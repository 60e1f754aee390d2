"""Values that can be told from syntax alone: literals, simple arithmetic, module constants, members of enums."""

import ast
import math
import operator

_OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
}
_EMPTY = {"list": [], "tuple": [], "set": [], "frozenset": [], "dict": {}, "str": "", "int": 0, "float": 0.0, "bool": False}


class Unknown(Exception):
    """The value can't be told without running the code."""


def value(node, scope, depth=0):
    """The JSON value of an expression; raises Unknown."""
    if depth > 40:
        raise Unknown
    if isinstance(node, ast.Constant):
        return _constant(node.value)
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        return [value(item, scope, depth + 1) for item in node.elts]
    if isinstance(node, ast.Dict):
        return _dict(node, scope, depth)
    if isinstance(node, ast.UnaryOp):
        return _unary(node, scope, depth)
    if isinstance(node, ast.BinOp):
        return _binary(node, scope, depth)
    if isinstance(node, ast.Name) and node.id in scope.assigned:
        return value(scope.assigned[node.id], scope, depth + 1)
    if isinstance(node, ast.Attribute):
        return _member(node, scope)
    if isinstance(node, ast.Call):
        return _call(node, scope, depth)
    raise Unknown


def _constant(constant):
    if isinstance(constant, float) and not math.isfinite(constant):
        raise Unknown
    if constant is None or isinstance(constant, (str, int, float)):
        return constant
    raise Unknown


def _dict(node, scope, depth):
    made = {}
    for key, item in zip(node.keys, node.values):
        name = value(key, scope, depth + 1) if key is not None else None
        if not isinstance(name, (str, int)) or isinstance(name, bool):
            raise Unknown
        made[str(name)] = value(item, scope, depth + 1)
    return made


def _unary(node, scope, depth):
    inner = value(node.operand, scope, depth + 1)
    if isinstance(node.op, ast.Not):
        return not inner
    if isinstance(inner, bool) or not isinstance(inner, (int, float)):
        raise Unknown
    if isinstance(node.op, ast.USub):
        return -inner
    if isinstance(node.op, ast.UAdd):
        return inner
    raise Unknown


def _binary(node, scope, depth):
    left, right = value(node.left, scope, depth + 1), value(node.right, scope, depth + 1)
    if isinstance(left, str) and isinstance(right, str) and isinstance(node.op, ast.Add):
        return left + right
    numbers = all(isinstance(side, (int, float)) and abs(side) < 2**63 for side in (left, right))
    if not numbers or type(node.op) not in _OPERATORS or (isinstance(node.op, (ast.Pow, ast.LShift)) and not 0 <= right <= 64):
        raise Unknown
    try:
        return _constant(_OPERATORS[type(node.op)](left, right))
    except (ArithmeticError, TypeError, ValueError):
        raise Unknown from None


def _member(node, scope):
    from _omniforge.inspector import classes

    if isinstance(node.value, ast.Attribute) and node.attr in ("value", "name"):
        if node.attr == "name":
            return node.value.attr
        return _member(node.value, scope)
    owner = scope.class_of(node.value)
    if owner is not None and classes.kind(owner, scope) == "enum":
        members = classes.members(owner, scope)
        if node.attr in members:
            return members[node.attr]
    raise Unknown


def _call(node, scope, depth):
    name = scope.dotted(node.func)
    if not node.args and not node.keywords and name in _EMPTY:
        return _EMPTY[name]
    if len(node.args) != 1 or node.keywords:
        raise Unknown
    inner = value(node.args[0], scope, depth + 1)
    if name == "decimal.Decimal" and isinstance(inner, (str, int, float)):
        try:
            return _constant(float(inner))
        except ValueError:
            raise Unknown from None
    if name in ("pathlib.Path", "pathlib.PurePath", "uuid.UUID", "str") and isinstance(inner, str):
        return inner
    if name in ("list", "tuple", "set", "frozenset") and isinstance(inner, list):
        return inner
    raise Unknown
