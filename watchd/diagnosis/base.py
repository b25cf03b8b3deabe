"""The shapes of judgement: what a signature is, what a fault is, and everything that a rule may look at."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from watchd.model import Case, Cause, Diagnosis, Machine, MarkKind, Rank, Run, Traceback
from watchd.parse.lines import Words


class Role(StrEnum):
    """What a line may do that matches a signature."""

    ROOT = "root"
    """it may decide"""
    SIGN = "sign"
    """an early or partial word: it decides only where what failed later has the same cause, or none of its own"""
    ECHO = "echo"
    """it follows from something else"""
    NOISE = "noise"
    """it means nothing, whatever it says"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """One thing that logs say, as data.

    name      unique in the catalogue
    cause     what it means, or None for noise and for consequences of anything
    role      what a line that matches may do
    patterns  searched in a line without prefixes, or in `Type: message` of an exception; one match is enough
    on        where it is looked for: `lines`, `exceptions` or `both`
    contains  a second pattern that the same text must hold, or None
    frames    a pattern that a frame of the exception's traceback (`path:function`) must hold, or None
    weak      True where any other signature that matches goes before it
    says      one phrase for the summary; `{…}` are facts
    advice    sentences of which the first whose facts are all known is given
    matches   lines that it must match
    misses    lines that it must not match
    """

    name: str
    cause: Cause | None
    role: Role
    patterns: tuple[re.Pattern[str], ...]
    on: str = "both"
    contains: re.Pattern[str] | None = None
    frames: re.Pattern[str] | None = None
    weak: bool = False
    says: str = ""
    advice: tuple[str, ...] = ()
    matches: tuple[str, ...] = ()
    misses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Something in the run that may have been what went wrong.

    index      index in `Run.lines` of the line that states it
    cause      what it means by itself
    role       what it may do
    text       what it says: the line without prefixes, or `Type: message`
    words      named parts of the match
    signature  what it matched, or None where only its type speaks
    traceback  the exception that it is, or None
    rank       who wrote it
    process    name of the process that wrote it
    """

    index: int
    cause: Cause
    role: Role
    text: str
    words: Mapping[str, str] = field(default_factory=dict)
    signature: Signature | None = None
    traceback: Traceback | None = None
    rank: Rank | None = None
    process: str | None = None

    @property
    def named(self) -> bool:
        """Whether a cause was recognised, not only that something was raised."""
        return self.cause not in (Cause.ASSERTION, Cause.UNHANDLED_EXCEPTION)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A case as the rules see it: everything is read once.

    words   lines of the run, taken apart
    bodies  the same without what stands in front of them
    faults  what may have gone wrong, in file order, without noise
    marks   indexes of the run's lines by what their engine says about them, in file order
    """

    case: Case
    run: Run
    words: tuple[Words, ...]
    bodies: tuple[str, ...]
    faults: tuple[Fault, ...]
    marks: Mapping[MarkKind, tuple[int, ...]]
    machine: Machine

    def marked(self, kind: MarkKind, after: int = -1) -> tuple[int, ...]:
        """Indexes of lines of this kind behind the line `after`."""
        return tuple(index for index in self.marks.get(kind, ()) if index > after)


Rule = Callable[[Scene], Diagnosis | None]
"""One small judgement: None where it does not apply, else a diagnosis with its reason."""
