"""Expressions of the followed source, in three values: true, false, and not known."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from watchd.correction import plain
from watchd.correction.values import (
    UNKNOWN,
    Builtin,
    Cls,
    Func,
    Method,
    Module,
    Obj,
    Unknown,
    Value,
    known,
    truth,
    unknown,
)
from watchd.correction.world import MAX_DEPTH, Compared, RaisedError, TooLongError, World

if TYPE_CHECKING:
    from watchd.correction.calls import Calls

_ITEMS = 256


class Scope:
    """Where an expression stands: its file, the local names, and the statement that an error would be reported at."""

    __slots__ = ("func", "locals", "module", "span")

    def __init__(self, module: Module, names: dict[str, Value], func: Func | None = None) -> None:
        self.module = module
        self.locals = names
        self.func = func
        self.span = (0, 0)


class Expressions:
    """Evaluates expressions in a world; what is called is followed by `calls`."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.calls: Calls
        self._run: Mapping[type[ast.AST], Callable[[ast.AST, Scope], Value]] = {
            getattr(ast, name.removeprefix("_x_")): getattr(self, name) for name in dir(self) if name.startswith("_x_")
        }

    def eval(self, node: ast.AST, scope: Scope) -> Value:
        """The value of an expression. Raises RaisedError where it surely fails, TooLongError."""
        self.world.step()
        run = self._run.get(type(node))
        if run is None:
            return UNKNOWN
        if self.world.depth > MAX_DEPTH:
            raise TooLongError
        try:
            return run(node, scope)
        except plain.PlainError as error:
            raise RaisedError(scope.module.path, *scope.span, str(error)) from None

    def fail(self, scope: Scope, kind: str) -> RaisedError:
        """The exception that the source raises at the statement of this scope."""
        return RaisedError(scope.module.path, *scope.span, kind)

    def _x_Constant(self, node: ast.Constant, scope: Scope) -> Value:  # noqa: ARG002, N802
        return node.value if not isinstance(node.value, bytes | complex) and node.value is not ... else UNKNOWN

    def _x_Name(self, node: ast.Name, scope: Scope) -> Value:  # noqa: N802
        if node.id in scope.locals:
            found = scope.locals[node.id]
            return self._quoted(node, found, scope) if self.world.facts else found
        return self.name(node.id, scope.module)

    def name(self, name: str, module: Module, depth: int = 0) -> Value:
        """What a name means at the top of a file."""
        node = module.names.get(name)
        if node is None or depth > 8:
            return Builtin(name) if name in _NAMES or node is None else UNKNOWN
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            return Func(node, module)
        if isinstance(node, ast.ClassDef):
            return Cls(node, module)
        if isinstance(node, ast.Import):
            return Builtin(next((a.name for a in node.names if name == (a.asname or a.name.partition(".")[0])), name))
        if isinstance(node, ast.ImportFrom):
            return self._imported(name, node, depth)
        if (module.path, name) in self.world.naming:
            return UNKNOWN  # a name that is given what it stood for before
        self.world.naming.add((module.path, name))
        try:
            return self.eval(node, Scope(module, {}))
        finally:
            self.world.naming.discard((module.path, name))

    def _imported(self, name: str, node: ast.ImportFrom, depth: int) -> Value:
        real = next((alias.name for alias in node.names if name == (alias.asname or alias.name)), name)
        home = node.module or ""
        found = self.world.find(f"{home}.{real}" if home else real)
        if found is not None:
            return found
        found = self.world.find(home) if home else None
        if found is not None and real in found.names:
            return self.name(real, found, depth + 1)
        return Builtin(f"{home}.{real}" if home not in ("dataclasses", "typing", "math") else real)

    def _x_Attribute(self, node: ast.Attribute, scope: Scope) -> Value:  # noqa: N802
        found = self.attribute(self.eval(node.value, scope), node.attr, scope)
        return self._quoted(node, found, scope) if self.world.facts else found

    def _quoted(self, node: ast.expr, found: Value, scope: Scope) -> Value:
        """A value that the exception's message quotes, where the source alone does not give it."""
        value = self.plain(found)
        if not isinstance(value, Unknown) or value.names & self.world.edited:
            return found
        return self.world.facts.get((scope.module.path, ast.unparse(node)), found)

    def attribute(self, on: Value, name: str, scope: Scope) -> Value:
        """`on.name`."""
        match on:
            case Obj():
                if on.arguments and scope.func is not None:
                    self.world.reads[scope.module.path, scope.func.node.name, name] = None
                if name in on.attrs:
                    return on.attrs[name]
                return self.calls.class_attribute(on.cls, name, on) if on.cls else Unknown(frozenset({name}))
            case Cls():
                return self.calls.class_attribute(on, name, None)
            case Module():
                return self.name(name, on)
            case Builtin():
                return Builtin(f"{on.name}.{name}")
            case Unknown():
                return Method(on, name)
            case _:
                return Method(on, name)

    def _x_Subscript(self, node: ast.Subscript, scope: Scope) -> Value:  # noqa: N802
        on, key = self.plain(self.eval(node.value, scope)), self.plain(self.eval(node.slice, scope))
        if on is None:
            raise self.fail(scope, "TypeError")
        if not isinstance(on, list | tuple | dict | str) or not known(key):
            return unknown(on, key)
        try:
            return on[key]  # type: ignore[index,call-overload]
        except (KeyError, IndexError, TypeError) as error:
            raise self.fail(scope, type(error).__name__) from None

    def _x_Slice(self, node: ast.Slice, scope: Scope) -> Value:  # noqa: N802
        parts = [None if p is None else self.eval(p, scope) for p in (node.lower, node.upper, node.step)]
        return slice(*parts) if all(p is None or isinstance(p, int) for p in parts) else unknown(*parts)

    def _x_BoolOp(self, node: ast.BoolOp, scope: Scope) -> Value:  # noqa: N802
        stop = isinstance(node.op, ast.Or)
        open_: list[Value] = []
        value: Value = None
        for part in node.values:
            value = self.eval(part, scope)
            found = truth(self.plain(value))
            if found is None:
                open_.append(self.plain(value))
            elif found is stop:
                # `unknown and False` is false, whatever the unknown one is.
                return value if not open_ else (stop if isinstance(value, bool) or not stop else unknown(*open_, value))
        return unknown(*open_, value) if open_ else value

    def _x_UnaryOp(self, node: ast.UnaryOp, scope: Scope) -> Value:  # noqa: N802
        value = self.plain(self.eval(node.operand, scope))
        if isinstance(node.op, ast.Not):
            found = truth(value)
            return unknown(value) if found is None else not found
        if isinstance(value, int | float) and isinstance(node.op, ast.USub):
            return -value
        return unknown(value)

    def _x_BinOp(self, node: ast.BinOp, scope: Scope) -> Value:  # noqa: N802
        left, right = self.plain(self.eval(node.left, scope)), self.plain(self.eval(node.right, scope))
        if None in (left, right) and isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.Mod | ast.FloorDiv):
            raise self.fail(scope, "TypeError")
        if not (known(left) and known(right)):
            # Every whole number is a multiple of one.
            return 0 if isinstance(node.op, ast.Mod) and right == 1 else unknown(left, right)
        if isinstance(node.op, ast.Mod | ast.FloorDiv) and isinstance(left, int) and isinstance(right, int):
            self.world.divided.append((left, right))
        found = plain.operate(type(node.op), left, right)
        return unknown(left, right) if found is NotImplemented else found

    def _x_Compare(self, node: ast.Compare, scope: Scope) -> Value:  # noqa: N802
        left = self.plain(self.eval(node.left, scope))
        open_: list[Value] = []
        for op, part in zip(node.ops, node.comparators, strict=True):
            right = self.plain(self.eval(part, scope))
            found = self._compared(node, op, left, right, scope)
            if found is False:
                return False
            if found is None:
                open_ += (left, right)
            left = right
        return unknown(*open_) if open_ else True

    def _compared(self, node: ast.Compare, op: ast.cmpop, left: Value, right: Value, scope: Scope) -> bool | None:
        if len(self.world.compared) < _ITEMS * 16:
            function = scope.func.node.name if scope.func else ""
            self.world.compared.append(Compared(scope.module.path, function, node, op, left, right))
        if isinstance(op, ast.Is | ast.IsNot):
            found = _identical(left, right)
            return found if found is None or isinstance(op, ast.Is) else not found
        if isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE) and None in (left, right):
            raise self.fail(scope, "TypeError")
        if known(left) and known(right):
            return truth(plain.compare(type(op), left, right))
        if isinstance(op, ast.Eq | ast.NotEq):
            found = _equal(left, right)
            return found if found is None or isinstance(op, ast.Eq) else not found
        return None

    def _x_IfExp(self, node: ast.IfExp, scope: Scope) -> Value:  # noqa: N802
        test = self.plain(self.eval(node.test, scope))
        found = truth(test)
        if found is not None:
            return self.eval(node.body if found else node.orelse, scope)
        return unknown(test, self.eval(node.body, scope), self.eval(node.orelse, scope))

    def _x_Tuple(self, node: ast.Tuple, scope: Scope) -> Value:  # noqa: N802
        items = self._items(node, scope)
        return UNKNOWN if items is None else tuple(items)

    def _x_List(self, node: ast.List, scope: Scope) -> Value:  # noqa: N802
        items = self._items(node, scope)
        return UNKNOWN if items is None else items

    def _x_Set(self, node: ast.Set, scope: Scope) -> Value:  # noqa: N802
        items = self._items(node, scope)
        return set(items) if items is not None and known(items) else unknown(*(items or ()))

    def _items(self, node: ast.Tuple | ast.List | ast.Set, scope: Scope) -> list[Value] | None:
        found: list[Value] = []
        for part in node.elts:
            if isinstance(part, ast.Starred):
                more = self.items(self.eval(part.value, scope))
                if more is None:
                    return None
                found += more
            else:
                found.append(self.plain(self.eval(part, scope)))
        return found

    def _x_Dict(self, node: ast.Dict, scope: Scope) -> Value:  # noqa: N802
        found: dict[Value, Value] = {}
        for key, part in zip(node.keys, node.values, strict=True):
            value = self.plain(self.eval(part, scope))
            if key is None:
                if not isinstance(value, dict):
                    return unknown(value)
                found.update(value)
                continue
            name = self.plain(self.eval(key, scope))
            if not known(name) or isinstance(name, list | dict | set):
                return UNKNOWN
            found[name] = value
        return found

    def _x_JoinedStr(self, node: ast.JoinedStr, scope: Scope) -> Value:  # noqa: N802
        parts: list[str] = []
        for part in node.values:
            value = self.plain(self.eval(part.value if isinstance(part, ast.FormattedValue) else part, scope))
            special = isinstance(part, ast.FormattedValue) and (part.format_spec is not None or part.conversion > 0)
            if special or not isinstance(value, str | int | float | bool) or len(str(value)) > _ITEMS:
                return Unknown(unknown(value).names, given=True)
            parts.append(str(value))
        return "".join(parts)

    def _x_NamedExpr(self, node: ast.NamedExpr, scope: Scope) -> Value:  # noqa: N802
        value = self.eval(node.value, scope)
        scope.locals[node.target.id] = value
        return value

    def _x_ListComp(self, node: ast.ListComp, scope: Scope) -> Value:  # noqa: N802
        return self._comprehension(node, scope)

    def _x_GeneratorExp(self, node: ast.GeneratorExp, scope: Scope) -> Value:  # noqa: N802
        return self._comprehension(node, scope)

    def _x_SetComp(self, node: ast.SetComp, scope: Scope) -> Value:  # noqa: N802
        found = self._comprehension(node, scope)
        return set(found) if isinstance(found, list) and known(found) else unknown(found)

    def _x_DictComp(self, node: ast.DictComp, scope: Scope) -> Value:  # noqa: N802
        pairs = list(self._loop(node.generators, scope, lambda inner: (
            self.plain(self.eval(node.key, inner)), self.plain(self.eval(node.value, inner)))))  # fmt: skip
        if any(not isinstance(pair, tuple) or not isinstance(pair[0], str | int) for pair in pairs):
            return unknown(*pairs)
        return dict(pairs)  # type: ignore[arg-type]

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp, scope: Scope) -> Value:
        found = list(self._loop(node.generators, scope, lambda inner: self.plain(self.eval(node.elt, inner))))
        return unknown(*found) if any(item is _OPEN for item in found) else found

    def each(self, node: ast.ListComp | ast.GeneratorExp, scope: Scope) -> list[Value]:
        """The values of a comprehension; among them something unknown where it is not known which there are."""
        return list(self._loop(node.generators, scope, lambda inner: self.plain(self.eval(node.elt, inner))))

    def _loop(self, loops: list[ast.comprehension], scope: Scope, each: Callable[[Scope], Value]) -> Iterator[Value]:
        """Each value of a comprehension; `_OPEN` where it is not known whether or how often there is one."""
        loop, *inner = loops
        items = self.items(self.plain(self.eval(loop.iter, scope)))
        if items is None or len(items) > _ITEMS:
            yield _OPEN
            yield unknown(self.plain(self.eval(loop.iter, scope)))
            return
        for item in items:
            here = Scope(scope.module, dict(scope.locals), scope.func)
            here.span = scope.span
            self.calls.assign(loop.target, item, here)
            tests = [truth(self.plain(self.eval(test, here))) for test in loop.ifs]
            if any(test is False for test in tests):
                continue
            if any(test is None for test in tests):
                yield _OPEN
            yield from self._loop(inner, here, each) if inner else (each(here),)

    def _x_Call(self, node: ast.Call, scope: Scope) -> Value:  # noqa: N802
        return self.calls.call(node, scope)

    def _x_Lambda(self, node: ast.Lambda, scope: Scope) -> Value:  # noqa: ARG002, N802
        return UNKNOWN

    def _x_Await(self, node: ast.Await, scope: Scope) -> Value:  # noqa: N802
        return self.eval(node.value, scope)

    def items(self, value: Value) -> list[Value] | None:
        """What a loop over this value runs over, or None where that is not known."""
        if isinstance(value, list | tuple | range | dict):
            return list(value)
        return sorted(value, key=repr) if isinstance(value, set | frozenset) else None

    def plain(self, value: Value) -> Value:
        """A value as it takes part in a computation: an attribute of something unknown is itself unknown."""
        if isinstance(value, Method):
            return Unknown(unknown(value.on).names | {value.name} if isinstance(value.on, Unknown) else frozenset())
        return UNKNOWN if isinstance(value, Builtin) else value


_OPEN = Unknown(given=False)
_NAMES = frozenset(
    {*plain.FUNCTIONS, "any", "all", "getattr", "hasattr", "setattr", "isinstance", "vars", "type", "print"}
)


def _identical(left: Value, right: Value) -> bool | None:
    for one, other in ((left, right), (right, left)):
        if one is None or isinstance(one, bool):
            if isinstance(other, Unknown):
                return False if other.given and one is None else None
            return other is one
    return None


def _equal(left: Value, right: Value) -> bool | None:
    """Whether two values are equal of which at least one is not wholly known."""
    for one, other in ((left, right), (right, left)):
        if one is None and isinstance(other, Unknown) and other.given:
            return False
    if isinstance(left, tuple) and isinstance(right, tuple):
        if len(left) != len(right):
            return False
        each = [_equal(a, b) if not (known(a) and known(b)) else a == b for a, b in zip(left, right, strict=True)]
        return False if False in each else (None if None in each else True)
    if isinstance(left, Obj) and isinstance(right, Obj):
        return True if left is right else None
    if (left is None and isinstance(right, Obj | Cls | Func)) or (right is None and isinstance(left, Obj | Cls | Func)):
        return False
    return None
