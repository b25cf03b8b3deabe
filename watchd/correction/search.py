"""The fewest edits of a command that make its failing check pass, the ones that keep what the user asked for first."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from watchd.correction import command as commands
from watchd.correction.command import Change, Command
from watchd.correction.flags import Flag
from watchd.correction.follow import Follower, Ran, imports_of, values_with
from watchd.correction.values import Unknown, Value, known
from watchd.correction.world import Frame
from watchd.parse import source_names

MAX_RUNS = 360
MAX_STEPS = 6_000_000
"""Nodes that all runs of one search may look at together."""
_POOL = 14
_CHOICES = 16
_NUMBERS = 48


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A set of edits that passes, and how many of the checks that it was put to could be told and passed."""

    changes: tuple[Change, ...]
    passed: int
    evaluated: int


@dataclass(slots=True)
class Search:
    """One search: `near` is the innermost frame from which the failure can be shown, `far` the outermost."""

    follower: Follower
    command: Command
    near: Frame
    far: Frame
    recorded: Ran
    own: tuple[str, ...]
    """attributes in the condition of the check, in order"""
    around: tuple[str, ...]
    """attributes in the conditions that lead to it"""
    runs: int = 0
    steps: int = 0
    opened: dict[tuple[Change, ...], bool] = field(default_factory=dict)
    """for sets of edits that pass, whether a check behind depends on what they set and could not be told"""

    def best(self) -> Found | None:
        """The best set of edits, or None where none was found within the limits."""
        singles = [change for dest in (*self.own, *self.around) for change in self.changes_of(dest)]
        passing: list[tuple[Change, ...]] = [(change,) for change in singles if self.passes((change,), self.near)]
        if not any(self._keeps(found) for found in passing):
            passing += self._larger(singles, passing)
        for changes in sorted(passing, key=self.rank)[:24]:
            derived = self.with_values(changes)
            found = self.checked(derived)
            if found is not None:
                return found
        return None

    def _keeps(self, changes: tuple[Change, ...]) -> bool:
        """Whether these edits leave the features that the user switched on."""
        return all(change.dest in self.own or change.action == "add" for change in changes)

    def _larger(self, singles: Sequence[Change], smaller: Sequence[tuple[Change, ...]]) -> Iterator[tuple[Change, ...]]:
        done = {change for found in smaller for change in found}
        pool = [
            change for change in singles if change not in done and (change.action != "set" or change.dest in self.own)
        ]
        pool = sorted(pool, key=lambda change: (change.dest not in self.own, change.action != "drop"))[:_POOL]
        kept: list[set[Change]] = []
        for size in (2, 3):
            for changes in itertools.combinations(pool, size):
                if len({change.dest for change in changes}) < size or any(one <= set(changes) for one in kept):
                    continue
                if self.passes(changes, self.near):
                    kept.append(set(changes))
                    yield changes
            if kept:
                return

    def passes(self, changes: Sequence[Change], entry: Frame) -> bool:
        """Whether the check surely passes with these edits, and nothing else surely fails."""
        ran = self.run(changes, entry)
        if ran is None or ran.failed is not False or ran.elsewhere is not None:
            return False
        if not any(isinstance(change.value, Unknown) for change in changes):
            self.opened[tuple(changes)] = self._touches(ran, changes)
        return True

    def _touches(self, ran: Ran, changes: Sequence[Change]) -> bool:
        """Whether a check that could not be told reads what these edits set."""
        dests = {change.dest for change in changes}
        return any(
            dests & names_in(test, self.follower).keys() for (path, _), test in ran.world.open.items()
            if path == self.follower.place.path and test is not getattr(self.follower.place.guard, "test", None)
        )  # fmt: skip

    def run(self, changes: Sequence[Change], entry: Frame) -> Ran | None:
        """A run with these edits; None where the limits of the search are spent."""
        if self.runs >= MAX_RUNS or self.steps >= MAX_STEPS:
            return None
        self.runs += 1
        values = values_with(self.command, {change.dest: change.value for change in changes})
        edited = frozenset(change.dest.partition(".")[0] for change in changes)
        ran = self.follower.run(entry, values, edited)
        self.steps += ran.world.steps
        return ran

    def checked(self, changes: tuple[Change, ...]) -> Found | None:
        """These edits put to every check that can be reached; None where one of them fails."""
        ran = self.run(changes, self.far)
        if ran is None or ran.failed is not False or ran.elsewhere is not None:
            return None
        told = [passed for passed in ran.world.checks.values() if passed is not None]
        return Found(changes=changes, passed=sum(told), evaluated=len(told))

    def rank(self, changes: tuple[Change, ...]) -> tuple[object, ...]:
        """The better ones first: what the user asked for is kept, then fewer, then added before dropped."""
        mode = sum(change.dest not in self.own and change.action != "add" for change in changes)
        return (mode > 0, self.opened.get(changes, False), len(changes), max(self._kind(change) for change in changes), *(
            (*self._distance(change), self._order(change)) for change in changes))  # fmt: skip

    def _kind(self, change: Change) -> int:
        if change.action == "add":
            if change.flag.lstrip("-").startswith(("disable", "no-", "no_")):
                return 5
            return 3 if change.basis == "suggestion" else 0
        if change.action == "set":
            return 1 if isinstance(change.value, int | float) else 2
        return 4

    def _order(self, change: Change) -> int:
        names = (*self.own, *self.around)
        if change.action == "drop":
            # Of two that exclude each other, the one that was typed later goes.
            given = self.command.of(change.dest)
            return -given.words[0] if given else 0
        return names.index(change.dest) if change.dest in names else len(names)

    def _distance(self, change: Change) -> tuple[float, bool]:
        before = values_of(self.command, change.dest)
        if isinstance(before, int | float) and isinstance(change.value, int | float):
            return abs(change.value - before), change.value > before
        return 0, False

    def changes_of(self, dest: str) -> Iterator[Change]:
        """Every edit of one attribute that may be worth a try."""
        given = self.command.of(dest)
        flag = given.flag if given else self._flag(dest)
        if flag is None:
            return
        value = values_of(self.command, dest)
        shown = given.typed if given else flag.shown
        read = self.follower.known.read
        if given is not None and not flag.required and (known(flag.default) or "." in dest or not read):
            yield Change(dest=dest, flag=shown, text=None, value=None if "." in dest else self._default(flag, dest),
                action="drop", basis="proven" if read else "suggestion")  # fmt: skip
        if flag.kind != "value" and "." not in dest:
            if given is None and value is not (flag.kind != "off") and known(value):
                yield Change(dest=dest, flag=shown, text="", value=flag.kind != "off", action="add")
            return
        action = "set" if given else "add"
        for text, new in self._values(dest, flag, value):
            basis = "proven" if read else "suggestion"
            yield Change(dest=dest, flag=shown, text=text, value=new, action=action, basis=basis)
        if given is None and (value is None or not known(value)) and (read or self._asked_for(dest)):
            yield Change(dest=dest, flag=shown, text=placeholder(flag), action="add", basis="suggestion",
                value=Unknown(frozenset({dest}), given=True))  # fmt: skip

    def _asked_for(self, dest: str) -> bool:
        """Whether the source asks if this attribute is None: then it may be given."""
        return any(
            isinstance(one.op, ast.Is | ast.IsNot | ast.Eq) and None in (one.left, one.right)
            and dest in names_in(one.node, self.follower)
            for one in self.recorded.world.compared if one.path == self.follower.place.path
        )  # fmt: skip

    def _default(self, flag: Flag, dest: str) -> Value:
        if known(flag.default):
            return flag.default
        # No parser was read: without the flag the attribute is what its class says, as a rule None.
        return None if not self.follower.known.read else Unknown(frozenset({dest}))

    def _flag(self, dest: str) -> Flag | None:
        found = self.follower.known.by_dest.get(dest)
        if found is not None or self.follower.known.read or "." in dest:
            return found
        return Flag(names=("--" + dest.strip("_").replace("_", "-"),), dest=dest)

    def _values(self, dest: str, flag: Flag, value: Value) -> Iterator[tuple[str, Value]]:
        """Values other than this one: allowed choices, constants that stand beside it, numbers near it."""
        if flag.choices is not None and "." not in dest and len(flag.choices) <= _CHOICES:
            for choice in flag.choices:
                if choice != value and isinstance(choice, str | int | float):
                    yield str(choice), choice
            return
        if isinstance(value, str) or flag.type == "str":
            for text in self._beside(dest):
                if text != value:
                    yield text, text
        elif isinstance(value, int) and not isinstance(value, bool):
            yield from ((str(number), number) for number in self._numbers(value))
        elif isinstance(value, Unknown) and flag.type == "int":
            yield from ((str(number), number) for number in self._met())

    def _beside(self, dest: str) -> Iterator[str]:
        """Texts to which the source compares the attribute."""
        seen: dict[str, None] = {}
        for one in self.recorded.world.compared:
            if one.function == self.follower.place.function and dest in names_in(one.node, self.follower):
                for node in ast.walk(one.node):
                    if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value:
                        seen[node.value] = None
                for side in (one.left, one.right):
                    if isinstance(side, tuple | list | set) and len(side) <= _CHOICES:
                        seen |= dict.fromkeys(item for item in side if isinstance(item, str))
        yield from list(seen)[:_CHOICES]

    def _met(self) -> list[int]:
        """Numbers that the attribute was compared with."""
        sides = (s for one in self.recorded.world.compared if one.function == self.follower.place.function
            for s in (one.left, one.right))  # fmt: skip
        return sorted({side for side in sides if isinstance(side, int) and not isinstance(side, bool)}, reverse=True)[
            :8
        ]

    def _numbers(self, value: int) -> Iterator[int]:
        """Numbers to try: the bounds and multiples that the run met, and those close by; the nearest first."""
        pool: set[int] = set(range(max(0, value - 4), value + 5))
        for one in self.recorded.world.compared:
            if one.function == self.follower.place.function:
                for side in (one.left, one.right):
                    if isinstance(side, int) and not isinstance(side, bool):
                        pool |= {side - 1, side, side + 1}
        for left, right in self.recorded.world.divided:
            if right > 1:
                floor = value // right * right
                pool |= {floor, floor + right}
            if 0 < left <= 65_536 and right == value:
                pool |= {n for n in range(1, min(left, 4 * value) + 1) if left % n == 0}
        if 0 < value <= 32:
            pool |= set(range(1, 2 * value + 1))
        near = sorted((n for n in pool if n != value and n >= min(0, value)), key=lambda n: (abs(n - value), n > value))
        yield from near[:_NUMBERS]

    def with_values(self, changes: tuple[Change, ...]) -> tuple[Change, ...]:
        """The same edits, a placeholder replaced where an equality or a bound in the source gives the value."""
        found = list(changes)
        for at, change in enumerate(changes):
            if isinstance(change.value, Unknown) and change.action == "add" and change.text:
                flag = self._flag(change.dest)
                value = self._derive(tuple(found), at, flag) if flag is not None and flag.type != "str" else None
                if value is not None:
                    number, basis = value
                    found[at] = Change(dest=change.dest, flag=change.flag, text=str(number), value=number,
                        action="add", basis=basis if self.follower.known.read else "suggestion")  # fmt: skip
        return tuple(found)

    def _derive(self, changes: tuple[Change, ...], at: int, flag: Flag) -> tuple[int, str] | None:
        """A number for which the comparisons with it hold: forced where an equality asks for it."""
        ran = self.run(changes, self.near)
        if ran is None or flag.type not in ("int", "", commands.GUESSED):
            return None
        spoken = [
            one
            for one in ran.world.compared
            if isinstance(one.op, ast.Eq | ast.NotEq | ast.Lt | ast.LtE | ast.Gt | ast.GtE)
            and one.path == self.follower.place.path
            and change_names(changes[at]) & names_in(one.node, self.follower).keys()
        ]
        pool = {
            side + step
            for one in spoken
            for side in (one.left, one.right)
            if isinstance(side, int) and not isinstance(side, bool)
            for step in (-1, 0, 1)
        }
        pool |= {n for n in self._known_numbers() if spoken}
        nodes = {id(one.node) for one in spoken}
        equal = {id(one.node) for one in spoken if isinstance(one.op, ast.Eq | ast.NotEq)}
        best: tuple[int, int, int] | None = None
        for number in sorted(n for n in pool if n > 0)[:_NUMBERS]:
            score = self._satisfied(changes, at, number, nodes, equal)
            if score is not None and (best is None or score > best[:2]):
                best = (*score, number)
        if best is None or best[:2] <= (0, 0):
            return None
        return best[2], "derived" if best[0] > 0 else "suggestion"

    def _known_numbers(self) -> set[int]:
        held = [
            value for value in self.command.values.values() if isinstance(value, int) and not isinstance(value, bool)
        ]
        given = [g.value for g in self.command.given if isinstance(g.value, int) and not isinstance(g.value, bool)]
        return {number + step for number in (given or held) for step in (-1, 0, 1)}

    def _satisfied(
        self, changes: tuple[Change, ...], at: int, number: int, nodes: set[int], equal: set[int]
    ) -> tuple[int, int] | None:
        """How many equalities and how many other comparisons with this number hold; None where a check fails."""
        own = changes[at]
        tried = [*changes]
        tried[at] = Change(dest=own.dest, flag=own.flag, text=str(number), value=number, action="add")
        ran = self.run(tried, self.near)
        if ran is None or ran.failed is not False or ran.elsewhere is not None:
            return None
        forced = others = 0
        for one in ran.world.compared:
            if id(one.node) not in nodes or not (isinstance(one.left, int) and isinstance(one.right, int)):
                continue
            if id(one.node) in equal:
                if isinstance(one.left, bool) or _constant_side(one.node):
                    continue
                forced += 1 if one.left == one.right else -1
            else:
                others += 2 if one.left == one.right else abs(one.left - one.right) <= 1
        return forced, others


def _constant_side(node: ast.Compare) -> bool:
    """Whether one side is a plain number: `x == 1` asks whether, it does not ask for."""
    return any(isinstance(part, ast.Constant) for part in (node.left, *node.comparators))


def change_names(change: Change) -> set[str]:
    """The attributes that an edit touches."""
    return {change.dest, change.dest.rpartition(".")[2]}


def values_of(command: Command, dest: str) -> Value:
    """The value of an attribute, or of a key of one (`a.b`); None where there is none."""
    name, *path = dest.split(".")
    value = command.values.get(name)
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def names_in(node: ast.AST, follower: Follower) -> dict[str, None]:
    """Attribute names in an expression, local names followed."""
    found = follower.names.get(id(node))
    if found is None:
        module = follower.modules[follower.place.path]
        line = getattr(node, "lineno", follower.place.first)
        around = path_to(module.tree, line)
        if follower.imports is None:
            follower.imports = imports_of(module.tree)
        inside = any(isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) for one in around)
        scope = follower.scopes.get(line) or source_names.scope(
            follower.imports if inside else module.tree, around, line
        )
        follower.scopes[line] = scope
        assert isinstance(node, ast.expr)
        found = {name: None for name, attribute in source_names.names(node, scope) if attribute}
        follower.names[id(node)] = found
    return found


def path_to(tree: ast.AST, line: int) -> list[ast.AST]:
    """The nodes that enclose a line, outermost first."""
    found: list[ast.AST] = [tree]
    while True:
        inner = next(
            (
                child
                for child in ast.iter_child_nodes(found[-1])
                if isinstance(child, ast.stmt | ast.ExceptHandler) and child.lineno <= line <= (child.end_lineno or 0)
            ),
            None,
        )
        if inner is None:
            return found
        found.append(inner)


def placeholder(flag: Flag) -> str:
    """What stands for a value that only the user knows: `<TOKENIZER_FILE>`."""
    return f"<{(flag.metavar or flag.dest).upper().replace('-', '_')}>"
