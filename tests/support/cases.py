"""Cases for the ladder: a target, a trigger, and nothing known yet."""

from __future__ import annotations

from collections.abc import Generator
from datetime import UTC, datetime

from watchd.ladder.base import Asking
from watchd.model import Case, Finding, Question, Reply, Target, Trigger, TriggerKind

AT = datetime(2025, 9, 18, 14, 9, 55, tzinfo=UTC)
LOG = "/data/logs/server.log"


def a_target(
    *, name: str = "eagle3", host: str | None = "gpu-01", log: str = LOG, process: str | None = None
) -> Target:
    """A target on a host; of a bundle where `host` is None."""
    return Target(name=name, host=host, log=log, process=process)


def a_case(
    *findings: Finding, target: Target | None = None, offset: int | None = None, alive: bool | None = None
) -> Case:
    """A case at its beginning; `offset` is where the trigger saw something."""
    trigger = Trigger(kind=TriggerKind.TRACEBACK, summary="a traceback at top level", at=AT, offset=offset)
    return Case(target=target or a_target(), trigger=trigger, findings=findings, alive=alive)


def asks(rung: Asking) -> tuple[Question, ...]:
    """The first questions of a rung."""
    return next(rung)


def ends(rung: Generator[object, tuple[Reply, ...], tuple[Finding, ...]], *replies: Reply) -> tuple[Finding, ...]:
    """What a rung has learnt, after these replies to its last questions; fails where it asks again."""
    try:
        rung.send(replies)
    except StopIteration as done:
        found: tuple[Finding, ...] = done.value
        return found
    raise AssertionError("it asked again")


def learns(rung: Asking) -> tuple[Finding, ...]:
    """What a rung that asks nothing has learnt."""
    try:
        questions = next(rung)
    except StopIteration as done:
        found: tuple[Finding, ...] = done.value
        return found
    raise AssertionError(f"it asked {questions}")
