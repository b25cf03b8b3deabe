"""What is known while source is followed: files, objects, and what became of each check."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from watchd.correction.values import Module, Obj, Value, join, unknown
from watchd.correction.values import same as alike

MAX_STEPS = 400_000
"""Nodes that one run may look at."""
MAX_DEPTH = 40


class TooLongError(Exception):
    """The source could not be followed within the limits."""


class RaisedError(Exception):
    """An exception that the followed source surely raises here."""

    def __init__(self, path: str, first: int, last: int, type_: str = "", *, meant: bool = False) -> None:
        super().__init__(f"{path}:{first}")
        self.path, self.first, self.last, self.type = path, first, last, type_
        self.meant = meant
        """True where the source raises it itself; else it is an operation that fails"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One frame of the traceback: `line` is the 1-based line in the file as it is now."""

    path: str
    line: int
    function: str


@dataclass(frozen=True, slots=True)
class Compared:
    """One comparison that was made: where, its node and what stood on both sides."""

    path: str
    function: str
    node: ast.Compare
    op: ast.cmpop
    left: Value
    right: Value


Heap = list[dict[str, Value]]


@dataclass(slots=True)
class World:
    """One run through the source.

    modules   parsed files by path
    frames    the traceback, outermost first: an unknown `if` that leads there was taken
    edited    attributes whose values differ from the recorded launch: nothing is assumed of what depends on them
    objects   every object that was made
    checks    (path, line) of each check that was met, to whether it passed; None where that could not be told
    assumed   (path, line) of the conditions that were taken to hold since the traceback lies behind them
    """

    modules: Mapping[str, Module]
    frames: Sequence[Frame] = ()
    edited: frozenset[str] = frozenset()
    guard: ast.stmt | None = None
    """the `if` whose condition is the check itself: it has to be decided, not assumed"""
    objects: list[Obj] = field(default_factory=list)
    checks: dict[tuple[str, int], bool | None] = field(default_factory=dict)
    assumed: set[tuple[str, int]] = field(default_factory=set)
    place: tuple[str, int, int] | None = None
    """path, first and last line of the statement that failed"""
    trying: int = 0
    """`try` blocks that are open"""
    naming: set[tuple[str, str]] = field(default_factory=set)
    """names at the top of files that are just being looked up"""
    steps: int = 0
    depth: int = 0
    defaults: dict[int, dict[str, Value]] = field(default_factory=dict)
    """defaults of the fields of classes, by the id of their node; shared by all runs"""
    facts: Mapping[tuple[str, str], Value] = field(default_factory=dict)
    """values of expressions, by path and text, that the message of the exception quotes"""
    reads: dict[tuple[str, str, str], None] = field(default_factory=dict)
    """(path, function, attribute) of what was read of the arguments, in order"""
    compared: list[Compared] = field(default_factory=list)
    open: dict[tuple[str, int], ast.expr] = field(default_factory=dict)
    """conditions of checks that could not be told, by path and line"""
    refusing: Value = None
    """the value of the condition of the check that failed"""
    divided: list[tuple[int, int]] = field(default_factory=list)
    """left and right of each remainder that was taken"""

    def step(self) -> None:
        """Count one node. Raises TooLongError."""
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise TooLongError

    def add(self, made: Obj) -> Obj:
        """Remember an object, so that branches can be told apart."""
        self.objects.append(made)
        return made

    def save(self) -> Heap:
        """The attributes of all objects as they are now."""
        return [dict(one.attrs) for one in self.objects]

    def restore(self, heap: Heap) -> None:
        """Go back to saved attributes; objects that are newer keep theirs."""
        for one, attrs in zip(self.objects, heap, strict=False):
            one.attrs = dict(attrs)

    def merge(self, heap: Heap) -> None:
        """What is known where this state or the saved one holds."""
        for one, attrs in zip(self.objects, heap, strict=False):
            one.attrs = joined(one.attrs, attrs)

    def note(self, path: str, line: int, passed: bool | None, test: ast.expr | None = None) -> None:
        """What became of a check; one that is met again has to pass each time."""
        if passed is None and test is not None:
            self.open[path, line] = test
        # One that fails ends the run, if it is sure to be reached; else it is not known whether it is met at all.
        before = self.checks.get((path, line), True)
        self.checks[path, line] = True if passed and before else None

    def at_place(self, raised: RaisedError) -> bool:
        """Whether this is where the log says that it failed."""
        if self.place is None:
            return False
        path, first, last = self.place
        return raised.path == path and raised.first <= last and first <= raised.last

    def find(self, dotted: str) -> Module | None:
        """The file of a module by its dotted name, or None where it is not at hand."""
        tail = "/" + dotted.replace(".", "/")
        for path, module in self.modules.items():
            plain = str(PurePosixPath("/", path))
            if plain.endswith((tail + ".py", tail + "/__init__.py")):
                return module
        return None


def joined(one: Mapping[str, Value], other: Mapping[str, Value]) -> dict[str, Value]:
    """Names as far as both agree; a name that only one of them knows is unknown."""
    if one == other:
        return dict(one)
    found: dict[str, Value] = {}
    for name in (*one, *(name for name in other if name not in one)):
        if name in one and name in other:
            left, right = one[name], other[name]
            found[name] = left if alike(left, right) else join(left, right)
        else:
            found[name] = unknown(one.get(name, other.get(name)))
    return found
