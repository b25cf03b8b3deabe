"""Of ranks that waited for each other, the one that did not take part.

The ranks that report a timeout are those that waited. Who waited in another operation than the others, who lags behind
in the count of operations, or who reports nothing at all, is the one to look at; and what it said last is the first
sign of why.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from watchd.diagnosis.base import Fault, Scene
from watchd.model import Cause, MarkKind

# [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5211, OpType=_ALLGATHER_BASE, NumelIn=…
_TIMEOUT = re.compile(r"WorkNCCL\(SeqNum=(?P<number>\d{1,12}), OpType=(?P<operation>\w{1,40})")
# rank 0 of 8 up        world size: 8       world_size=4       nranks 8
_WORLD = re.compile(
    r"\brank \d{1,5} of (\d{1,5})\b|\bworld[_ ]size[=: ]{1,3}(\d{1,5})\b|\bnranks (\d{1,5})\b|\bnproc[-_]per[-_]node[=: ]{1,2}(\d{1,4})\b"
)
_MANY = 4_096


@dataclass(frozen=True, slots=True, kw_only=True)
class Straggler:
    """The rank that did not take part, and the index of the line with which it went astray, or None."""

    rank: int
    index: int | None


def find(scene: Scene, lead: Fault) -> Straggler | None:
    """The straggler behind a timed-out collective, or None where the log does not tell."""
    if lead.cause is not Cause.COLLECTIVE_TIMEOUT:
        return None
    waits = _waits(scene, lead)
    rank = _odd_one(waits)
    if rank is None:
        rank = _missing(scene, set(waits) or ({lead.rank} if isinstance(lead.rank, int) else set()))
    return Straggler(rank=rank, index=_last_word(scene, rank, lead)) if rank is not None else None


def _waits(scene: Scene, lead: Fault) -> dict[int, tuple[int, str]]:
    """Per rank the first operation that it reports to have waited in."""
    found: dict[int, tuple[int, str]] = {}
    for fault in scene.faults:
        if fault.index >= lead.index and fault.cause is Cause.COLLECTIVE_TIMEOUT and isinstance(fault.rank, int):
            match = _TIMEOUT.search(fault.text)
            if match:
                found.setdefault(fault.rank, (int(match["number"]), match["operation"]))
    return found


def _odd_one(waits: dict[int, tuple[int, str]]) -> int | None:
    """The one rank that waited in another operation, or lags behind, where the others agree."""
    if len(waits) < 3:
        return None
    common, count = Counter(waits.values()).most_common(1)[0]
    odd = [rank for rank, operation in waits.items() if operation != common]
    return odd[0] if len(odd) == 1 and count > 1 else None


def _missing(scene: Scene, waiting: set[int]) -> int | None:
    """The one rank of the job that reports nothing, where all others wait."""
    sizes = [
        int(next(filter(None, match.groups())))
        for body in (*scene.bodies[:2000], *_words(scene))
        for match in [_WORLD.search(body)]
        if match
    ]
    seen = {line.rank for line in scene.words[-_MANY:] if isinstance(line.rank, int)}
    world = set(range(max(sizes))) if sizes and max(sizes) <= _MANY else seen
    silent = world - waiting
    return silent.pop() if len(silent) == 1 and waiting else None


def _words(scene: Scene) -> tuple[str, ...]:
    from watchd.model import Launch

    launch = scene.case.get(Launch)
    return (" ".join(launch.argv),) if launch else ()


def _last_word(scene: Scene, rank: int, lead: Fault) -> int | None:
    """What this rank itself said last before the others began to wait, where that is no line of work."""
    work = set(scene.marked(MarkKind.WORK))
    since = max((index for index in work if index < lead.index), default=-1)
    for index in range(lead.index - 1, since, -1):
        if scene.words[index].rank == rank and scene.bodies[index].strip():
            return index
    return None
