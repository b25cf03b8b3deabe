"""What an expression of a stranger's source may stand for: a value, or something that is not known.

Plain Python values stand for themselves. Containers are never changed in place: what changes them makes a new one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field

Value = object
"""None, bool, int, float, str, list, tuple, dict, set, range, or one of the classes below."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value that is not known.

    names  attributes of the arguments that it may depend on
    given  True where it is surely not None, and not empty
    """

    names: frozenset[str] = frozenset()
    given: bool = False


UNKNOWN = Unknown()


@dataclass(eq=False, slots=True)
class Obj:
    """An object: its attributes as far as they are known. `arguments` where it holds what the launch command says."""

    cls: Cls | None = None
    attrs: dict[str, Value] = field(default_factory=dict)
    arguments: bool = False
    given: frozenset[str] = frozenset()
    """attributes that the command itself sets"""


@dataclass(eq=False, slots=True)
class Module:
    """A parsed file: what its top level defines."""

    path: str
    tree: ast.Module
    names: dict[str, ast.AST] = field(default_factory=dict)
    fields: dict[int, dict[str, ast.expr | None]] = field(default_factory=dict)
    """of classes by the id of their node, once they have been read; likewise their methods"""
    methods: dict[int, dict[str, ast.FunctionDef | ast.AsyncFunctionDef]] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Cls:
    """A class of a parsed file."""

    node: ast.ClassDef
    module: Module


@dataclass(eq=False, slots=True)
class Func:
    """A function of a parsed file; `owner` is the class that holds it, `bound` the object it is called on."""

    node: ast.FunctionDef | ast.AsyncFunctionDef
    module: Module
    owner: Cls | None = None
    bound: Value | None = None


@dataclass(frozen=True, slots=True)
class Method:
    """A method of a plain value, or of something unknown."""

    on: Value
    name: str


@dataclass(frozen=True, slots=True)
class Builtin:
    """A function that Python itself has, or a name of a module that is not at hand (`os.path`)."""

    name: str


def truth(value: Value) -> bool | None:
    """Whether a value counts as true, or None where that is not known."""
    if isinstance(value, Unknown):
        return True if value.given else None
    if isinstance(value, Obj | Cls | Func | Method | Builtin | Module):
        return True
    return bool(value)


def known(value: Value) -> bool:
    """Whether this is a plain value without anything unknown in it."""
    if isinstance(value, tuple | list | set | frozenset):
        return all(known(item) for item in value)
    if isinstance(value, dict):
        return all(known(item) for item in value.values())
    return not isinstance(value, Unknown | Obj | Cls | Func | Method | Builtin | Module)


def depends(values: Iterable[Value]) -> frozenset[str]:
    """The attributes on which the unknown ones among these values may depend."""
    found: set[str] = set()
    for value in values:
        if isinstance(value, Unknown):
            found |= value.names
        elif isinstance(value, tuple | list | set | frozenset):
            found |= depends(value)
        elif isinstance(value, dict):
            found |= depends(value.values())
    return frozenset(found)


def unknown(*values: Value) -> Unknown:
    """Something unknown that depends on what these depend on."""
    return Unknown(depends(values))


def same(one: Value, other: Value) -> bool:
    """Whether two values are one: of the same type and equal, or the same object."""
    if one is other:
        return True
    if isinstance(one, Obj | Cls | Func | Module) or type(one) is not type(other):
        return False
    return bool(one == other)


def join(one: Value, other: Value) -> Value:
    """What is known of a value that is one or the other."""
    if same(one, other):
        return one
    both_given = all(isinstance(v, Unknown) and v.given for v in (one, other))
    return Unknown(depends((one, other)), given=both_given)
