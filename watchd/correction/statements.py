"""Statements of the followed source: both ways are taken where a condition is not known, and what both agree on is kept."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from watchd.correction.calls import Calls
from watchd.correction.expressions import Expressions, Scope
from watchd.correction.values import UNKNOWN, Func, Obj, Unknown, Value, join, truth, unknown
from watchd.correction.world import Heap, RaisedError, World, joined

_TURNS = 64


class _ReturnError(Exception):
    def __init__(self, value: Value) -> None:
        self.value = value


class _LoopError(Exception):
    def __init__(self, *, on: bool) -> None:
        self.on = on


@dataclass(slots=True)
class _Way:
    """How a branch ended: normally, or by what it raised; and what was known then."""

    end: Exception | None
    heap: Heap
    locals: dict[str, Value]


class Statements:
    """Runs functions of the source in a world."""

    def __init__(self, world: World, arguments: Callable[[], dict[str, Value]]) -> None:
        self.world = world
        self.expressions = Expressions(world)
        self.calls = Calls(self.expressions, self.body, arguments)
        self.expressions.calls = self.calls
        self._returns: list[list[_Way]] = []
        self._run: Mapping[type[ast.stmt], Callable[[ast.stmt, Scope], None]] = {
            getattr(ast, name.removeprefix("_s_")): getattr(self, name) for name in dir(self) if name.startswith("_s_")
        }

    def body(self, func: Func, names: dict[str, Value]) -> Value:
        """The value that a function returns. Raises RaisedError where it surely fails."""
        scope = Scope(func.module, names, func)
        self._returns.append([])
        value: Value = None
        alive = True
        error: RaisedError | None = None
        try:
            self.block(func.node.body, scope)
        except _ReturnError as end:
            value = end.value
        except RaisedError as raised:
            alive, error = False, raised
        ways = self._returns.pop()
        if not alive and not ways and error is not None:
            raise error
        if error is not None:
            self.world.note(error.path, error.first, None)
        for way in ways:
            assert isinstance(way.end, _ReturnError)
            if alive:
                self.world.merge(way.heap)
                value = join(value, way.end.value)
            else:
                self.world.restore(way.heap)
                value, alive = way.end.value, True
        if any(isinstance(node, ast.Yield | ast.YieldFrom) for node in _own(func.node)):
            return UNKNOWN
        return value

    def block(self, statements: Sequence[ast.stmt], scope: Scope) -> None:
        """Run statements in order."""
        for statement in statements:
            run = self._run.get(type(statement))
            if run is not None:
                self.world.step()
                test = getattr(statement, "test", None) or getattr(statement, "iter", None)
                last = (test if test is not None else statement).end_lineno or statement.lineno
                scope.span = (statement.lineno, last)
                run(statement, scope)

    def _value(self, node: ast.AST, scope: Scope) -> Value:
        return self.expressions.plain(self._soft(node, scope))

    def _soft(self, node: ast.AST, scope: Scope) -> Value:
        """A value; unknown where an operation fails that did not fail on the host: what it was given is not known then."""
        try:
            return self.expressions.eval(node, scope)
        except RaisedError as error:
            if error.meant or self.world.trying or self.world.at_place(error):
                raise
            return UNKNOWN

    def _s_Expr(self, node: ast.Expr, scope: Scope) -> None:  # noqa: N802
        self._soft(node.value, scope)

    def _s_Assign(self, node: ast.Assign, scope: Scope) -> None:  # noqa: N802
        value = self._soft(node.value, scope)
        for target in node.targets:
            self.calls.assign(target, self._view(node.value, target, value, scope), scope)

    def _view(self, made: ast.expr, target: ast.expr, value: Value, scope: Scope) -> Value:
        """`cfg = view(args)`: where flags of the command are read of `cfg`, it stands for the arguments themselves."""
        if not isinstance(value, Unknown) or not isinstance(target, ast.Name) or scope.func is None:
            return value
        match made:
            case ast.Call(args=[ast.Name(id=name)], keywords=[]):
                held = scope.locals.get(name)
                if (
                    isinstance(held, Obj)
                    and held.arguments
                    and len(read_of(scope.func.node, target.id) & held.given) > 1
                ):
                    return held
        return value

    def _s_AnnAssign(self, node: ast.AnnAssign, scope: Scope) -> None:  # noqa: N802
        if node.value is not None:
            self.calls.assign(node.target, self._soft(node.value, scope), scope)

    def _s_AugAssign(self, node: ast.AugAssign, scope: Scope) -> None:  # noqa: N802
        made = ast.BinOp(left=_loaded(node.target), op=node.op, right=node.value)
        self.calls.assign(node.target, self._soft(ast.copy_location(made, node), scope), scope)

    def _s_Return(self, node: ast.Return, scope: Scope) -> None:  # noqa: N802
        raise _ReturnError(None if node.value is None else self._soft(node.value, scope))

    def _s_Break(self, node: ast.Break, scope: Scope) -> None:  # noqa: ARG002, N802
        raise _LoopError(on=False)

    def _s_Continue(self, node: ast.Continue, scope: Scope) -> None:  # noqa: ARG002, N802
        raise _LoopError(on=True)

    def _s_Raise(self, node: ast.Raise, scope: Scope) -> None:  # noqa: N802
        kind = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        name = kind.id if isinstance(kind, ast.Name) else getattr(kind, "attr", "")
        raise RaisedError(scope.module.path, node.lineno, node.end_lineno or node.lineno, name, meant=True)

    def _s_Assert(self, node: ast.Assert, scope: Scope) -> None:  # noqa: N802
        scope.span = (node.lineno, node.test.end_lineno or node.lineno)
        value = self._value(node.test, scope)
        found = truth(value)
        self.world.note(scope.module.path, node.lineno, found, node.test)
        if node is self.world.guard:
            self.world.refusing = value
        if found is False:
            raise RaisedError(scope.module.path, *scope.span, "AssertionError", meant=True)
        if found is None:
            self._refine(node.test, scope, holds=True)

    def _s_If(self, node: ast.If, scope: Scope) -> None:  # noqa: N802
        value = self._value(node.test, scope)
        found = truth(value)
        check = bool(node.body) and isinstance(node.body[-1], ast.Raise)
        if check:
            self.world.note(scope.module.path, node.lineno, None if found is None else not found, node.test)
        if node is self.world.guard:
            self.world.refusing = value
        if found is None:
            found = self._shown(node, value, scope)
        if found is not None:
            self.block(node.body if found else node.orelse, scope)
            return
        self._fork(node, scope)

    def _shown(self, node: ast.If, value: Value, scope: Scope) -> bool | None:
        """Which way the traceback shows that it went, where what was edited has no part in it."""
        if node is self.world.guard or (isinstance(value, Unknown) and value.names & self.world.edited):
            return None
        for frame in self.world.frames:
            if frame.path != scope.module.path or (scope.func is not None and scope.func.node.name != frame.function):
                continue
            taken = _holds(node.body, frame.line)
            if taken or _holds(node.orelse, frame.line):
                self.world.assumed.add((scope.module.path, node.lineno))
                self._refine(node.test, scope, holds=taken)
                return taken
            if _ends(node.body) and _after(scope.func, node, frame.line):
                return False  # it went on behind a branch that ends the function
        return None

    def _refine(self, test: ast.expr, scope: Scope, *, holds: bool) -> None:
        """What a condition that holds says of the names in it: `x is None`, `x == "a"`, `not x`, `a and b`."""
        match test:
            case ast.BoolOp(op=ast.And(), values=parts) if holds:
                for part in parts:
                    self._refine(part, scope, holds=True)
            case ast.BoolOp(op=ast.Or(), values=parts) if not holds:
                for part in parts:
                    self._refine(part, scope, holds=False)
            case ast.UnaryOp(op=ast.Not(), operand=part):
                self._refine(part, scope, holds=not holds)
            case ast.Compare(left=left, ops=[op], comparators=[ast.Constant(value=constant)]):
                if isinstance(op, ast.Is | ast.Eq) is holds and isinstance(op, ast.Is | ast.Eq | ast.IsNot | ast.NotEq):
                    self._learn(left, constant, scope)
                elif constant is None:
                    self._learn(left, Unknown(given=True), scope)
            case ast.Name() | ast.Attribute() if holds:
                self._learn(test, Unknown(given=True), scope)

    def _learn(self, node: ast.expr, value: Value, scope: Scope) -> None:
        before = self._value(node, scope)
        if isinstance(before, Unknown) and isinstance(node, ast.Name | ast.Attribute):
            if isinstance(value, Unknown):
                value = Unknown(before.names, given=value.given)
            self.calls.assign(node, value, scope)

    def _fork(self, node: ast.If, scope: Scope) -> None:
        heap, names = self.world.save(), dict(scope.locals)
        first = self._way(node.body, scope)
        self.world.restore(heap)
        scope.locals = dict(names)
        self._refine(node.test, scope, holds=False)
        second = self._way(node.orelse, scope)
        self._join((first, second), scope)

    def _way(self, statements: Sequence[ast.stmt], scope: Scope) -> _Way:
        end: Exception | None = None
        try:
            self.block(statements, scope)
        except (_ReturnError, _LoopError, RaisedError) as error:
            end = error
        return _Way(end, self.world.save(), scope.locals)

    def _join(self, ways: Sequence[_Way], scope: Scope) -> None:
        """Go on with what the ways agree on; what one of them raises is not sure to happen."""
        going = [way for way in ways if way.end is None]
        back = [way for way in ways if isinstance(way.end, _ReturnError)]
        if going:
            for way in ways:
                if isinstance(way.end, RaisedError):
                    self.world.note(way.end.path, way.end.first, None)
            self._returns[-1].extend(back) if self._returns else None
            self.world.restore(going[0].heap)
            scope.locals = going[0].locals
            for way in going[1:]:
                self.world.merge(way.heap)
                scope.locals = joined(scope.locals, way.locals)
            return
        if back and self._returns:
            self._returns[-1].extend(back[1:])
            self.world.restore(back[0].heap)
            for way in ways:
                if isinstance(way.end, RaisedError):
                    self.world.note(way.end.path, way.end.first, None)
            raise back[0].end  # type: ignore[misc]
        last = next((way for way in ways if isinstance(way.end, _LoopError)), ways[0])
        self.world.restore(last.heap)
        scope.locals = last.locals
        if last.end is not None:
            raise last.end

    def _s_For(self, node: ast.For, scope: Scope) -> None:  # noqa: N802
        items = self.expressions.items(self._value(node.iter, scope))
        if items is None or len(items) > _TURNS:
            self._maybe(node.body, scope, before=lambda: self.calls.assign(node.target, UNKNOWN, scope))
            return
        for item in items:
            self.calls.assign(node.target, item, scope)
            try:
                self.block(node.body, scope)
            except _LoopError as loop:
                if not loop.on:
                    return
        self.block(node.orelse, scope)

    def _s_While(self, node: ast.While, scope: Scope) -> None:  # noqa: N802
        for _ in range(_TURNS):
            found = truth(self._value(node.test, scope))
            if found is False:
                return
            if found is None:
                break
            try:
                self.block(node.body, scope)
            except _LoopError as loop:
                if not loop.on:
                    return
        self._maybe(node.body, scope)

    def _maybe(self, body: Sequence[ast.stmt], scope: Scope, *, before: Callable[[], None] | None = None) -> None:
        """A body that runs some number of times, perhaps none: what it sets is not known afterwards."""
        heap, names = self.world.save(), dict(scope.locals)
        none = _Way(None, heap, names)
        if before:
            before()
        for name in _assigned(body):
            if name in scope.locals:
                scope.locals[name] = unknown(scope.locals[name])
        once = self._way(body, scope)
        if isinstance(once.end, _LoopError):
            once.end = None
        self._join((once, none), scope)

    def _s_With(self, node: ast.With, scope: Scope) -> None:  # noqa: N802
        for item in node.items:
            value = self._value(item.context_expr, scope)
            if item.optional_vars is not None:
                self.calls.assign(item.optional_vars, unknown(value), scope)
        self.block(node.body, scope)

    def _s_Try(self, node: ast.Try, scope: Scope) -> None:  # noqa: N802
        self.world.trying += 1
        try:
            try:
                self.block(node.body, scope)
            finally:
                self.world.trying -= 1
        except RaisedError as error:
            caught = next((one for one in node.handlers if _catches(one, error.type)), None)
            if caught is None:
                raise
            if caught.name:
                scope.locals[caught.name] = UNKNOWN
            self.block(caught.body, scope)
        else:
            self.block(node.orelse, scope)
        finally:
            if node.finalbody and not _ends(node.finalbody):
                self.block(node.finalbody, scope)

    def _s_Match(self, node: ast.Match, scope: Scope) -> None:  # noqa: N802
        value = self._value(node.subject, scope)
        for case in node.cases:
            found = self._matches(case.pattern, value, scope) if case.guard is None else None
            if found is True:
                self.block(case.body, scope)
                return
            if found is None:
                self._maybe(case.body, scope)

    def _matches(self, pattern: ast.pattern, value: Value, scope: Scope) -> bool | None:
        match pattern:
            case ast.MatchValue(value=node):
                test = ast.Compare(left=ast.Constant(value=None), ops=[ast.Eq()], comparators=[node])
                held = Scope(scope.module, {**scope.locals, " ": value}, scope.func)
                test.left = ast.Name(id=" ", ctx=ast.Load())
                return truth(self._value(test, held))
            case ast.MatchSingleton(value=constant):
                return None if isinstance(value, Unknown) else value is constant
            case ast.MatchAs(pattern=None):
                return True
            case ast.MatchOr(patterns=parts):
                found = [self._matches(part, value, scope) for part in parts]
                return True if True in found else (None if None in found else False)
            case _:
                return None

    def _s_FunctionDef(self, node: ast.FunctionDef, scope: Scope) -> None:  # noqa: N802
        scope.locals[node.name] = Func(node, scope.module)


def read_of(node: ast.AST, name: str) -> set[str]:
    """The attributes that are read of a name, by themselves or with getattr."""
    found: set[str] = set()
    for part in ast.walk(node):
        match part:
            case ast.Attribute(value=ast.Name(id=own), attr=attr) if own == name:
                found.add(attr)
            case ast.Call(func=ast.Name(id="getattr"), args=[ast.Name(id=own), ast.Constant(value=str() as attr), *_]):
                if own == name:
                    found.add(attr)
    return found


def _own(function: ast.AST) -> list[ast.AST]:
    found: list[ast.AST] = []
    for child in ast.iter_child_nodes(function):
        found.append(child)
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            found += _own(child)
    return found


def _holds(body: Sequence[ast.stmt], line: int) -> bool:
    return bool(body) and body[0].lineno <= line <= (body[-1].end_lineno or body[-1].lineno)


def _ends(body: Sequence[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], ast.Return | ast.Raise | ast.Continue | ast.Break)


def _after(func: Func | None, node: ast.If, line: int) -> bool:
    if func is None or not (func.node.lineno <= line <= (func.node.end_lineno or line)):
        return False
    return line > (node.end_lineno or node.lineno) and isinstance(node.body[-1], ast.Return | ast.Raise)


def _assigned(body: Sequence[ast.stmt]) -> set[str]:
    return {
        node.id
        for statement in body
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def _catches(handler: ast.ExceptHandler, kind: str) -> bool:
    if handler.type is None:
        return True
    parts = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    names = {part.id if isinstance(part, ast.Name) else getattr(part, "attr", "") for part in parts}
    return bool(names & {kind, "Exception", "BaseException"})


def _loaded(target: ast.expr) -> ast.expr:
    match target:
        case ast.Name(id=name):
            return ast.copy_location(ast.Name(id=name, ctx=ast.Load()), target)
        case ast.Attribute(value=value, attr=attr):
            return ast.copy_location(ast.Attribute(value=value, attr=attr, ctx=ast.Load()), target)
        case ast.Subscript(value=value, slice=key):
            return ast.copy_location(ast.Subscript(value=value, slice=key, ctx=ast.Load()), target)
        case _:
            return target
