"""Following a crash through its source: from the recorded command to the check that refused it, and past it with another."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from watchd.correction import flags as flag_reader
from watchd.correction.calls import fields_of
from watchd.correction.command import Command
from watchd.correction.expressions import Scope
from watchd.correction.flags import Known
from watchd.correction.statements import Statements, read_of
from watchd.correction.values import UNKNOWN, Cls, Func, Module, Obj, Unknown, Value, known
from watchd.correction.world import Frame, RaisedError, TooLongError, World
from watchd.parse import source_names, source_tree

_NEAR = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The statement that failed: `first` to `last` are the lines at which it may be reported."""

    path: str
    first: int
    last: int
    function: str
    node: ast.stmt
    guard: ast.stmt


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What came of a run: `failed` True where it surely fails at the place, None where it may."""

    failed: bool | None
    world: World
    elsewhere: RaisedError | None = None


def modules_of(texts: Mapping[str, str], frames: Sequence[Frame]) -> dict[str, Module]:
    """The parsed files; one that does not parse is left out."""
    found: dict[str, Module] = {}
    for path, text in texts.items():
        line = next((frame.line for frame in reversed(frames) if frame.path == path), 1)
        lines = text.split("\n")
        tree = source_tree.parse(lines, min(max(1, line), len(lines)))
        if tree is None:
            continue
        if tree.shift:
            ast.increment_lineno(tree.module, tree.shift)
        found[path] = Module(path, tree.module, _names(tree.module.body))
    return found


def _names(body: Sequence[ast.stmt]) -> dict[str, ast.AST]:
    """What the top level of a file defines: functions, classes, imports, and constants by their expressions."""
    found: dict[str, ast.AST] = {}
    for node in body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found[name] = node
            case ast.Assign(targets=targets, value=value):
                names_ = (target.id for target in targets if isinstance(target, ast.Name))
                found |= {name: value for name in names_ if not isinstance(found.get(name), ast.ClassDef)}
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                found[name] = value
            case ast.Import(names=names):
                found |= {alias.asname or alias.name.partition(".")[0]: node for alias in names}
            case ast.ImportFrom(names=names):
                found |= {alias.asname or alias.name: node for alias in names}
            case ast.If(body=inner, orelse=other):
                found = {**_names(other), **_names(inner), **found}
            case ast.Try(body=inner):
                found = {**_names(inner), **found}
    return found


def frames_in(texts: Mapping[str, str], frames: Sequence[tuple[str, int, str, str | None]]) -> tuple[Frame, ...]:
    """The frames whose files are at hand, at the lines where their code stands now; those that changed are left out."""
    found: list[Frame] = []
    for path, line, function, code in frames:
        if path not in texts:
            continue
        at = _standing(texts[path].split("\n"), line, code)
        if at is not None:
            found.append(Frame(path=path, line=at, function=function))
    return tuple(found)


def _standing(lines: list[str], line: int, code: str | None) -> int | None:
    quoted = " ".join((code or "").strip().partition("\n")[0].split())
    if not quoted:
        return line if 1 <= line <= len(lines) else None
    for distance in sorted(range(-_NEAR, _NEAR + 1), key=abs):
        at = line + distance
        if 1 <= at <= len(lines) and " ".join(lines[at - 1].split()) == quoted:
            return at
    return None


def place_of(module: Module, frame: Frame) -> Place | None:
    """The innermost statement around the line of a frame."""
    found: ast.stmt | None = None
    around: list[ast.stmt] = []
    node: ast.AST | None = module.tree
    while node is not None:
        node = next(
            (
                child
                for child in ast.walk(node)
                if isinstance(child, ast.stmt) and child is not node and _around(child, frame.line)
            ),
            None,
        )
        found = node if isinstance(node, ast.stmt) else found
        around += [node] if isinstance(node, ast.stmt) else []
    if found is None or isinstance(found, ast.FunctionDef | ast.ClassDef):
        return None
    test = getattr(found, "test", None)
    last = test.end_lineno if test is not None else found.end_lineno
    return Place(
        path=module.path, first=found.lineno, last=last or found.lineno, function=frame.function, node=found,
        guard=next((one for one in reversed(around) if isinstance(one, ast.If)), found)
        if isinstance(found, ast.Raise) else found,
    )  # fmt: skip


def _around(node: ast.stmt, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def quoted_values(place: Place, message: str) -> dict[tuple[str, str], Value]:
    """What the message of the exception says of the expressions in it: `f"{self.heads} heads"` and `40 heads`."""
    raised = place.node.exc if isinstance(place.node, ast.Raise) else getattr(place.node, "msg", None)
    text = raised.args[0] if isinstance(raised, ast.Call) and raised.args else raised
    if not isinstance(text, ast.JoinedStr) or not message:
        return {}
    pattern: list[str] = []
    parts: list[ast.expr] = []
    for part in text.values:
        if isinstance(part, ast.Constant):
            pattern.append(re.escape(str(part.value)))
        elif isinstance(part, ast.FormattedValue):
            pattern.append(r"([^\n]{1,200}?)")
            parts.append(part.value)
    if len(parts) > 8:
        return {}
    match = re.fullmatch("".join(pattern), message.partition("\n")[0][:2000])
    if match is None:
        return {}
    return {(place.path, ast.unparse(part)): _typed(text_) for part, text_ in zip(parts, match.groups(), strict=True)}


def _typed(text: str) -> Value:
    if text in ("None", "True", "False"):
        return {"None": None, "True": True, "False": False}[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


class Follower:
    """Runs the functions of a traceback with the values of a command."""

    def __init__(
        self,
        modules: Mapping[str, Module],
        frames: Sequence[Frame],
        place: Place | None,
        *,
        flags: Known | None = None,
    ) -> None:
        self.modules = modules
        self.frames = frames
        if place is not None:
            self.place = place
        self.facts: Mapping[tuple[str, str], Value] = {}
        self.given: frozenset[str] = frozenset()
        """attributes that the command itself sets"""
        self.names: dict[int, dict[str, None]] = {}
        """attribute names of expressions of the place's file, by the id of their node"""
        self.imports: ast.Module | None = None
        self.defaults: dict[int, dict[str, Value]] = {}
        self.scopes: dict[int, source_names.Scope] = {}
        self.known: Known = flags or flag_reader.read(tuple(modules.values()), self.constant)

    def constant(self, node: ast.expr, module: Module) -> Value:
        """The value of an expression at the top of a file, unknown where it is not plain."""
        try:
            runner = Statements(World(modules=self.modules), dict)
            value = runner.expressions.plain(runner.expressions.eval(node, Scope(module, {})))
        except (RaisedError, TooLongError, RecursionError):
            return UNKNOWN
        return value if known(value) else UNKNOWN

    def entries(self) -> tuple[Frame, ...]:
        """The frames from which a run may begin, outermost first."""
        return tuple(frame for frame in self.frames if frame.function != "<module>")

    def run(self, entry: Frame, values: Mapping[str, Value], edited: frozenset[str] = frozenset()) -> Ran:
        """Run the function of this frame with these values of the arguments."""
        world = World(modules=self.modules, frames=self.frames, edited=edited, facts=self.facts, guard=self.place.guard,
            defaults=self.defaults, place=(self.place.path, self.place.first, self.place.last))  # fmt: skip
        runner = Statements(world, lambda: dict(values))
        runner.calls.given = self.given
        raised: RaisedError | None = None
        try:
            func = self.function(entry)
            if func is None:
                return Ran(failed=None, world=world)
            runner.body(func, self._parameters(func, runner))
        except RaisedError as error:
            raised = error
        except (TooLongError, RecursionError):
            return Ran(failed=None, world=world)
        if raised is None:
            open_ = world.checks.get((self.place.path, self._check_line()), True) is None
            return Ran(failed=None if open_ or self._maybe(world) else False, world=world)
        if world.at_place(raised):
            return Ran(failed=True, world=world)
        # An operation that fails elsewhere is as likely a mistake of this reading.
        return Ran(failed=False if raised.meant else None, world=world, elsewhere=raised if raised.meant else None)

    def _maybe(self, world: World) -> bool:
        """Whether a branch that was not surely taken failed at the place."""
        return any(
            passed is None and path == self.place.path and self.place.first <= line <= self.place.last
            for (path, line), passed in world.checks.items()
        )

    def _check_line(self) -> int:
        return self.place.first

    def function(self, frame: Frame) -> Func | None:
        """The function of a frame; where the piece of source that is at hand holds none, its statements."""
        module = self.modules.get(frame.path)
        if module is None:
            return None
        owner: Cls | None = None
        best: Func | None = None
        stack: list[tuple[ast.AST, Cls | None]] = [(module.tree, None)]
        while stack:
            node, owner = stack.pop()
            for child in ast.iter_child_nodes(node):
                if not isinstance(child, ast.stmt) or not _around(child, frame.line):
                    continue
                cls = Cls(child, module) if isinstance(child, ast.ClassDef) else owner
                if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                    best = Func(child, module, owner)
                stack.append((child, cls))
        if best is not None:
            return best if best.node.name == frame.function or not frame.function else None
        made = ast.parse("def _(self): pass").body[0]
        assert isinstance(made, ast.FunctionDef)
        made.body, made.name = module.tree.body, frame.function
        made.lineno, made.end_lineno = 1, 1 << 30
        return Func(made, module)

    def _parameters(self, func: Func, runner: Statements) -> dict[str, Value]:
        spec = func.node.args
        found: dict[str, Value] = {}
        for at, part in enumerate((*spec.posonlyargs, *spec.args, *spec.kwonlyargs)):
            name = part.arg
            if at == 0 and func.owner is not None and name == "cls":
                found[name] = func.owner
            elif at == 0 and name == "self":
                found[name] = self._self(func, runner)
            elif self._is_arguments(func.node, name, runner):
                hint = part.annotation
                cls = runner.expressions.name(hint.id, func.module) if isinstance(hint, ast.Name) else None
                own = isinstance(cls, Cls) and bool(fields_of(cls))
                found[name] = (
                    runner.calls.of_arguments(cls) if own and isinstance(cls, Cls) else runner.calls.namespace()
                )
            else:
                found[name] = Unknown(frozenset({name}))
        return found

    def _self(self, func: Func, runner: Statements) -> Obj:
        names = set(runner.calls.namespace().attrs)
        scope = func.owner.node if func.owner else func.node
        if func.owner is None:
            return runner.world.add(Obj(attrs=dict(runner.calls.namespace().attrs), arguments=True))
        if names & set(fields_of(func.owner)) or len(names & read_of(scope, "self")) >= 2:
            return runner.calls.of_arguments(func.owner)
        return runner.world.add(Obj(cls=func.owner))

    def _is_arguments(self, node: ast.AST, name: str, runner: Statements) -> bool:
        return bool(read_of(node, name) & set(runner.calls.namespace().attrs)) or (
            (name.endswith("args") or name in ("options", "opts")) and _passed(node, name)
        )


def _passed(node: ast.AST, name: str) -> bool:
    return any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node))


def imports_of(tree: ast.Module) -> ast.Module:
    """A module of the imports alone."""
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    return ast.Module(body=list(found), type_ignores=[])


def values_with(command: Command, changes: Mapping[str, Value]) -> dict[str, Value]:
    """The values of a command with some of them changed; `a.b` changes a key of `a`, None there takes it away."""
    found = dict(command.values)
    for dest, value in changes.items():
        name, *path = dest.split(".")
        if not path:
            found[name] = value
            if name in command.also:
                found[command.also[name]] = value
            continue
        held = found.get(name)
        tree: dict[str, Value] = dict(held) if isinstance(held, dict) else {}
        if value is None:
            tree.pop(path[0], None)
        else:
            tree[path[0]] = value
        found[name] = tree or None
    return found
