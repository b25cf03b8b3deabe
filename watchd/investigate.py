"""From a trigger to its meaning: climb the ladder, read the guard, correct the launch, judge."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from watchd.diagnosis import registry as diagnosis
from watchd.diagnosis import root as roots
from watchd.hosts.base import Host
from watchd.ladder import climb, guard
from watchd.model import Case, Diagnosis, Evidence, SourceExcerpt, SourceFile

Step = Callable[[Evidence], None]


async def investigate(
    host: Host,
    case: Case,
    *,
    clock: Callable[[], float] = time.monotonic,
    on_step: Step | None = None,
) -> tuple[Case, Diagnosis]:
    """Climb with what the case already knows, and say what it means. Never raises for what a host or a log does."""
    case = await climb.climb(
        host, case, rungs=case.target.rungs, budget_s=case.target.climb_budget_s, clock=clock, on_step=on_step
    )
    source = case.get(SourceFile)
    excerpt, fix = await asyncio.gather(_excerpt(source), guard.fix(case, roots.choose(case)))
    for finding in (excerpt, fix):
        if finding is not None:
            case = case.with_finding(finding)
    return case, diagnosis.judge(case)


async def _excerpt(source: SourceFile | None) -> SourceExcerpt | None:
    return None if source is None else await guard.excerpt(source)
