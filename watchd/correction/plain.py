"""Operations on plain values: operators, comparisons, methods and built-in functions, all of bounded cost.

`NotImplemented` stands for "not known"; a Python error that the operation would raise is raised as `PlainError`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from watchd.correction.values import Value, known

_BITS = 256
_LONGEST = 4096


class PlainError(Exception):
    """What the operation would raise: the name of the exception's type."""


_OPERATORS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
    ast.BitOr: lambda a, b: a | b,
    ast.BitAnd: lambda a, b: a & b,
}
_COMPARED: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b,
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}


def operate(kind: type[ast.operator], left: Value, right: Value) -> Value:
    """`left kind right`. Raises PlainError."""
    run = _OPERATORS.get(kind)
    if run is None or not _small(left, right) or (kind is ast.Mod and isinstance(left, str)):
        return NotImplemented
    if kind is ast.Mult and not all(isinstance(v, int | float) for v in (left, right)):
        return NotImplemented
    return _tried(run, left, right)


def compare(kind: type[ast.cmpop], left: Value, right: Value) -> Value:
    """`left kind right`, for values that are known. Raises PlainError."""
    run = _COMPARED.get(kind)
    return NotImplemented if run is None else _tried(run, left, right)


def _small(*values: Value) -> bool:
    for value in values:
        if isinstance(value, int) and value.bit_length() > _BITS:
            return False
        if isinstance(value, str | list | tuple) and len(value) > _LONGEST:
            return False
    return True


def _tried(run: Callable[..., Any], *values: Any) -> Value:
    try:
        found: Value = run(*values)
    except (TypeError, ValueError, ZeroDivisionError, KeyError, IndexError, AttributeError, OverflowError) as error:
        raise PlainError(type(error).__name__) from None
    return found


_TEXT = frozenset(
    [
        "startswith",
        "endswith",
        "lower",
        "upper",
        "strip",
        "lstrip",
        "rstrip",
        "split",
        "rsplit",
        "partition",
        "rpartition",
        "replace",
        "isdigit",
        "isnumeric",
        "isidentifier",
        "removeprefix",
        "removesuffix",
        "title",
        "capitalize",
        "count",
        "find",
        "casefold",
        "join",
    ]
)
_MAPPING = frozenset(("get", "keys", "values", "items", "copy"))
_SEQUENCE = frozenset(("index", "count", "copy"))
_SETS = frozenset(("issubset", "issuperset", "union", "intersection", "difference", "isdisjoint"))


def method(on: Value, name: str, args: Sequence[Value]) -> Value:
    """The result of a method of a plain value. Raises PlainError; an attribute that there is not is an error too."""
    allowed = (
        (str, _TEXT), (dict, _MAPPING), (list, _SEQUENCE), (tuple, _SEQUENCE), (set, _SETS), (frozenset, _SETS),
    )  # fmt: skip
    if on is None:
        raise PlainError("AttributeError")
    for kind, names in allowed:
        if isinstance(on, kind) and name in names:
            whole = name in ("get", "keys", "values", "items", "copy") or all(map(known, args))
            if not whole or not _small(on, *args):
                return NotImplemented
            found = _tried(getattr(on, name), *args)
            return list(found) if name in ("keys", "values", "items") else found  # type: ignore[call-overload]
    return NotImplemented


def _count(values: Sequence[Value]) -> Value:
    (one,) = values
    return len(one)  # type: ignore[arg-type]


def _range(values: Sequence[Value]) -> Value:
    made = range(*values)  # type: ignore[call-overload]
    return made if len(made) <= _LONGEST else NotImplemented


FUNCTIONS: Mapping[str, Callable[[Sequence[Any]], Value]] = {
    "len": _count,
    "abs": lambda v: abs(v[0]),
    "int": lambda v: int(*v),
    "float": lambda v: float(*v),
    "str": lambda v: str(*v),
    "bool": lambda v: bool(*v),
    "min": lambda v: min(*v),
    "max": lambda v: max(*v),
    "sum": lambda v: sum(*v),
    "sorted": lambda v: sorted(*v),
    "list": lambda v: list(*v),
    "tuple": lambda v: tuple(*v),
    "set": lambda v: set(*v),
    "frozenset": lambda v: frozenset(*v),
    "dict": lambda v: dict(*v),
    "range": _range,
    "divmod": lambda v: divmod(v[0], v[1]),
    "round": lambda v: round(*v),
    "zip": lambda v: list(zip(*v, strict=False)),
    "enumerate": lambda v: list(enumerate(*v)),
    "reversed": lambda v: list(reversed(*v)),
    "repr": lambda v: repr(*v),
    "math.ceil": lambda v: -int(-v[0] // 1),
    "math.floor": lambda v: int(v[0] // 1),
}


def call(name: str, args: Sequence[Value]) -> Value:
    """A built-in function on known values. Raises PlainError."""
    run = FUNCTIONS.get(name)
    if run is None or not all(map(known, args)) or not _small(*args):
        return NotImplemented
    return _tried(run, args)


_KINDS: Mapping[str, type | tuple[type, ...]] = {
    "str": str, "int": int, "float": float, "bool": bool, "list": list, "tuple": tuple, "dict": dict, "set": set,
}  # fmt: skip


def is_instance(value: Value, kinds: Sequence[str]) -> bool | None:
    """`isinstance` of a known value; None where a kind is no built-in one."""
    if not known(value):
        return None
    if any(kind not in _KINDS for kind in kinds):
        return None
    return any(isinstance(value, _KINDS[kind]) for kind in kinds)
