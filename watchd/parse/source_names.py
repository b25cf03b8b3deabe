"""The names in a condition: attributes and variables, followed through the local names that stand for them."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

_DEPTH = 8
_MOST = 32
_STEPS = 4096
"""Names that stand for names that stand for names can be many without being different."""
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
    found: dict[str, bool] = {}
    for name, attribute in islice(_walk(condition, scope, ()), _STEPS):
        found.setdefault(name, attribute)
        if len(found) == _MOST:
            break
    return tuple(found.items())


def _walk(node: ast.AST, scope: Scope, through: tuple[str, ...]) -> Iterator[tuple[str, bool]]:
    if isinstance(node, ast.Name):
        yield from _variable(node.id, scope, through)
    elif isinstance(node, ast.Attribute):
        yield from _attribute(node, scope)
    elif isinstance(node, ast.Subscript):
        yield from _item(node.value, node.slice, scope, through)
    elif isinstance(node, ast.Call):
        yield from _call(node, scope, through)
    elif isinstance(node, ast.GeneratorExp | ast.ListComp | ast.SetComp):
        yield from _comprehension(node, scope, through)
    elif not isinstance(node, ast.Lambda):
        for child in ast.iter_child_nodes(node):
            yield from _walk(child, scope, through)


def _variable(name: str, scope: Scope, through: tuple[str, ...]) -> Iterator[tuple[str, bool]]:
    value = scope.locals.get(name)
    if value is not None and name not in through and len(through) < _DEPTH:
        known = list(_walk(value, scope, (*through, name)))
        yield from known or [(name, False)]
    elif name not in _BUILTINS and name not in scope.modules:
        yield name, False


def _attribute(node: ast.Attribute, scope: Scope) -> Iterator[tuple[str, bool]]:
    """`self.x`, `args.x`, `self.args.x`: the last name of the chain."""
    root = _root(node)
    if root in scope.modules:
        return
    own = isinstance(node.value, ast.Name) and node.value.id == "self"
    yield (scope.attributes.get(node.attr, node.attr) if own else node.attr), True


def _item(value: ast.expr, key: ast.expr, scope: Scope, through: tuple[str, ...]) -> Iterator[tuple[str, bool]]:
    """`args["x"]` is `x`; `self.spec["x"]` is `spec.x`, as flags with dots name it."""
    owners = [name for name, attribute in _walk(value, scope, through) if attribute]
    if isinstance(key, ast.Constant) and isinstance(key.value, str) and key.value.isidentifier():
        yield (f"{owners[0]}.{key.value}" if owners else key.value), True
        return
    yield from _walk(value, scope, through)
    yield from _walk(key, scope, through)


def _call(node: ast.Call, scope: Scope, through: tuple[str, ...]) -> Iterator[tuple[str, bool]]:
    function, arguments = node.func, node.args
    if isinstance(function, ast.Name) and function.id in ("getattr", "hasattr") and len(arguments) > 1:
        yield from ((name, True) for name in _constants(arguments[1], scope))
        return
    if isinstance(function, ast.Attribute) and function.attr == "get" and arguments:
        yield from _item(function.value, arguments[0], scope, through)
        return
    if isinstance(function, ast.Attribute) and _root(function) not in scope.modules:
        # A method's name is no setting; what it is called on may be.
        yield from _walk(function.value, scope, through)
    for argument in (*arguments, *(keyword.value for keyword in node.keywords)):
        yield from _walk(argument, scope, through)


def _comprehension(
    node: ast.GeneratorExp | ast.ListComp | ast.SetComp, scope: Scope, through: tuple[str, ...]
) -> Iterator[tuple[str, bool]]:
    inner = dict(scope.locals)
    for loop in node.generators:
        if isinstance(loop.target, ast.Name):
            inner[loop.target.id] = loop.iter
    within = Scope(locals=inner, attributes=scope.attributes, modules=scope.modules)
    for part in (node.elt, *(test for loop in node.generators for test in loop.ifs)):
        yield from _walk(part, within, through)


def _constants(node: ast.expr, scope: Scope) -> tuple[str, ...]:
    """The strings that an expression may stand for: itself, or what a loop variable runs over."""
    if isinstance(node, ast.Name):
        node = scope.locals.get(node.id, node)
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
