"""The shapes of judgement: what a fault is, and everything that a rule may look at."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from watchd.model import Case, Cause, Diagnosis, Machine, MarkKind, Rank, Role, Run, Signature, Traceback
from watchd.parse.lines import Words

__all__ = ["Fault", "Role", "Rule", "Scene", "Signature"]


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
    pids    process ids that the run's lines name, read where the kernel log tells something
    marks   indexes of the run's lines by what their engine says about them, in file order
    """

    case: Case
    run: Run
    words: tuple[Words, ...]
    bodies: tuple[str, ...]
    faults: tuple[Fault, ...]
    marks: Mapping[MarkKind, tuple[int, ...]]
    machine: Machine
    pids: frozenset[int] = frozenset()

    def marked(self, kind: MarkKind, after: int = -1) -> tuple[int, ...]:
        """Indexes of lines of this kind behind the line `after`."""
        found = self.marks.get(kind, ())
        return found if after < 0 else found[bisect_right(found, after) :]


Rule = Callable[[Scene], Diagnosis | None]
"""One small judgement: None where it does not apply, else a diagnosis with its reason."""
