"""What is known while source is followed: files, objects, and what became of each check."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from watchd.correction.values import Module, Obj, Value, join
from watchd.correction.values import same as alike

MAX_STEPS = 400_000
"""Nodes that one run may look at."""
MAX_DEPTH = 40


class TooLongError(Exception):
    """The source could not be followed within the limits."""


class RaisedError(Exception):
    """An exception that the followed source surely raises here."""

    def __init__(self, path: str, first: int, last: int, type_: str = "") -> None:
        super().__init__(f"{path}:{first}")
        self.path, self.first, self.last, self.type = path, first, last, type_


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One frame of the traceback: `line` is the 1-based line in the file as it is now."""

    path: str
    line: int
    function: str


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
    objects: list[Obj] = field(default_factory=list)
    checks: dict[tuple[str, int], bool | None] = field(default_factory=dict)
    assumed: set[tuple[str, int]] = field(default_factory=set)
    steps: int = 0
    depth: int = 0
    on_compare: list[tuple[str, ast.Compare]] = field(default_factory=list)

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

    def note(self, path: str, line: int, passed: bool | None) -> None:
        """What became of a check; one that is met again has to pass each time."""
        before = self.checks.get((path, line), True)
        self.checks[path, line] = False if passed is False or before is False else (passed if before else before)

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
    from watchd.correction.values import unknown

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
