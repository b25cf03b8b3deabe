"""The names in a condition: attributes and variables, followed through the local names that stand for them."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

_MOST = 32
_BUILTINS = frozenset(dir(builtins)) | {"self", "cls"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What local names stand for at one place.

    locals      name of a local variable to the expression that it was last given
    attributes  name of an attribute of the object to the attribute that its constructor copied into it
    modules     names of imported modules: their attributes are no settings
    """

    locals: Mapping[str, ast.expr] = field(default_factory=dict)
    attributes: Mapping[str, str] = field(default_factory=dict)
    modules: frozenset[str] = frozenset()


def scope(module: ast.Module, around: Sequence[ast.AST], line: int) -> Scope:
    """What is known at a line; `around` are the nodes that enclose it, outermost first."""
    functions = [node for node in around if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    classes = [node for node in around if isinstance(node, ast.ClassDef)]
    return Scope(
        locals=_locals(functions[-1] if functions else module, line),
        attributes=_copied(classes[-1]) if classes else {},
        modules=_modules(module),
    )


def names(condition: ast.expr, scope: Scope) -> tuple[tuple[str, bool], ...]:
    """The names in a condition, in order of appearance, and whether each is an attribute (of arguments or an object)."""
    return _first(_Reader(scope).read(condition))


Names = Iterator[tuple[str, bool]]


def _first(found: Names) -> tuple[tuple[str, bool], ...]:
    """The first of these names, each once."""
    kept: dict[str, bool] = {}
    for name, attribute in found:
        kept.setdefault(name, attribute)
        if len(kept) == _MOST:
            break
    return tuple(kept.items())


class _Reader:
    """Reads names out of expressions; each local name is followed once, for names that stand for names can be many."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._known: dict[str, tuple[tuple[str, bool], ...]] = {}
        self._open: set[str] = set()
        self._loops: dict[str, ast.expr] = {}

    def read(self, node: ast.AST) -> Names:
        """The names in a node, in order."""
        match node:
            case ast.Name(id=name):
                yield from self._variable(name)
            case ast.Attribute():
                yield from self._attribute(node)
            case ast.Subscript(value=value, slice=key):
                yield from self._item(value, key)
            case ast.Call():
                yield from self._call(node)
            case ast.GeneratorExp() | ast.ListComp() | ast.SetComp():
                yield from self._comprehension(node)
            case ast.Lambda():
                return
            case _:
                for child in ast.iter_child_nodes(node):
                    yield from self.read(child)

    def _variable(self, name: str) -> Names:
        value = self._loops.get(name) or self._scope.locals.get(name)
        if value is None or name in self._open:
            if name not in _BUILTINS and name not in self._scope.modules:
                yield name, False
            return
        found = self._known.get(name) if name not in self._loops else None
        if found is None:
            self._open.add(name)
            found = _first(self.read(value)) or ((name, False),)
            self._open.discard(name)
            if name not in self._loops:
                self._known[name] = found
        yield from found

    def _attribute(self, node: ast.Attribute) -> Names:
        """`self.x`, `args.x`, `self.args.x`: the last name of the chain."""
        if _root(node) in self._scope.modules:
            return
        own = isinstance(node.value, ast.Name) and node.value.id == "self"
        yield (self._scope.attributes.get(node.attr, node.attr) if own else node.attr), True

    def _item(self, value: ast.expr, key: ast.expr) -> Names:
        """`args["x"]` is `x`; `self.spec["x"]` is `spec.x`, as flags with dots name it."""
        if _root(value) in self._scope.modules:
            return
        if isinstance(key, ast.Constant) and isinstance(key.value, str) and key.value.isidentifier():
            owner = next((name for name, attribute in self.read(value) if attribute), "")
            yield (f"{owner}.{key.value}" if owner else key.value), True
            return
        yield from self.read(value)
        yield from self.read(key)

    def _call(self, node: ast.Call) -> Names:
        match node:
            case ast.Call(func=ast.Name(id="getattr" | "hasattr"), args=[_, name, *_]):
                yield from ((text, True) for text in self._texts(name))
                return
            case ast.Call(func=ast.Attribute(value=value, attr="get"), args=[key, *_]):
                yield from self._item(value, key)
                return
            case ast.Call(func=ast.Attribute(value=value) as method) if _root(method) not in self._scope.modules:
                # A method's name is no setting; what it is called on may be.
                yield from self.read(value)
        for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
            yield from self.read(argument)

    def _comprehension(self, node: ast.GeneratorExp | ast.ListComp | ast.SetComp) -> Names:
        before = dict(self._loops)
        self._loops.update((loop.target.id, loop.iter) for loop in node.generators if isinstance(loop.target, ast.Name))
        found = _first(
            name
            for part in (node.elt, *(test for loop in node.generators for test in loop.ifs))
            for name in self.read(part)
        )
        self._loops = before
        yield from found

    def _texts(self, node: ast.expr) -> tuple[str, ...]:
        """The strings that an expression may stand for: itself, or what a loop variable runs over."""
        if isinstance(node, ast.Name):
            node = self._loops.get(node.id) or self._scope.locals.get(node.id, node)
        parts = node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else [node]
        return tuple(part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str))


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute | ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _locals(function: ast.AST, line: int) -> dict[str, ast.expr]:
    """Local names and what they were last given before the line, in the order of the source."""
    found: dict[str, ast.expr] = {}
    for node in _own(function):
        if getattr(node, "lineno", line) >= line:
            continue
        if isinstance(node, ast.Assign):
            for target in node.targets:
                found.update(_given(target, node.value))
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
            found.update(_given(node.target, node.value))
        elif isinstance(node, ast.For):
            found.update(_given(node.target, node.iter))
    return found


def _own(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function, without those of functions and classes inside it."""
    for child in ast.iter_child_nodes(function):
        yield child
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            yield from _own(child)


def _given(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple | ast.List):
        alike = isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts)
        for at, part in enumerate(target.elts):
            yield from _given(part, value.elts[at] if alike and isinstance(value, ast.Tuple | ast.List) else value)


def _copied(owner: ast.ClassDef) -> dict[str, str]:
    """What the constructor copies: `self.waiting = options.max_queued` makes `waiting` another name of `max_queued`."""
    found: dict[str, str] = {}
    for method in owner.body:
        if not (isinstance(method, ast.FunctionDef) and method.name == "__init__"):
            continue
        for node in _own(method):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute) and _root(node.value) != "self":
                for target in node.targets:
                    if isinstance(target, ast.Attribute) and _root(target) == "self":
                        found[target.attr] = node.value.attr
    return found


def _modules(module: ast.Module) -> frozenset[str]:
    found: set[str] = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Import | ast.ImportFrom):
            found |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    return frozenset(found)
