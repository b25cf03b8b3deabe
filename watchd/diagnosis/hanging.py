"""A server that lives and does no work. An endpoint may lie in both directions, so the log has a say."""

from __future__ import annotations

import re
from dataclasses import replace

from watchd.diagnosis import root as roots
from watchd.diagnosis import say, witness
from watchd.diagnosis.base import Role, Scene
from watchd.model import Cause, Confidence, Diagnosis, MarkKind, Root, RunnerUp, Verdict

_STREAK = 3
"""Statistics in a row that say that nothing moves."""
_PULSE = 10
"""Lines after the last work that only answer health checks."""
_CAUSES = frozenset((Cause.GPU_HARDWARE, Cause.COLLECTIVE_TIMEOUT, Cause.WATCHDOG_HANG))
"""What leaves a process standing."""

# 127.0.0.1 - - [01/Dec/2026 13:51:54] "GET /health HTTP/1.1" 200 -
_CHECK = re.compile(r"\"(?:GET|HEAD) /(?:health|ready|live|ping|metrics|v1/models|v2/health)\S* HTTP|\bhealthz? 200\b")


def hangs(scene: Scene) -> Diagnosis | None:
    """The endpoint is slow; or it answers, and the log says that nothing is done."""
    health = scene.case.health
    if health not in ("up", "slow"):
        return None
    index, reason = _stuck(scene)
    if health == "up" and index is None:
        return None
    return _named(scene, index) or _standing(scene, index, reason)


def _named(scene: Scene, index: int | None) -> Diagnosis | None:
    """Where the kernel or the run itself says what it hangs in."""
    lead = roots.lead(scene)
    event = witness.deciding(scene, lead)
    if event is not None and witness.cause_of(event) is Cause.GPU_HARDWARE:
        root = roots.of_event(scene, event)
        return say.diagnosis(scene, Verdict.HANG, Cause.GPU_HARDWARE, Confidence.LIKELY, lead, root)
    if index is None and lead is not None and lead.role is Role.ROOT and lead.cause in _CAUSES:
        return say.diagnosis(scene, Verdict.HANG, lead.cause, Confidence.LIKELY, lead, roots.of_fault(scene, lead))
    return None


def _standing(scene: Scene, index: int | None, reason: str) -> Diagnosis:
    if index is None:
        index = next(iter(reversed(scene.marked(MarkKind.WORK))), None)
        reason = "The health endpoint takes requests and does not answer in time."
    fault = next((fault for fault in scene.faults if fault.index == index), None)
    root = Root(index=index) if index is not None else None
    found = say.diagnosis(scene, Verdict.HANG, Cause.WATCHDOG_HANG, Confidence.LIKELY, fault, root)
    flip = RunnerUp(cause=Cause.NONE, flip="a line of work, or a request that is answered")
    return replace(found, because=(reason, *found.because), runner_up=flip)


def _stuck(scene: Scene) -> tuple[int | None, str]:
    """The line with which it stopped to work by its own words, and why that is so."""
    last = max((*scene.marked(MarkKind.WORK), -1))
    idle = scene.marked(MarkKind.IDLE, after=last)
    if len(idle) >= _STREAK:
        return idle[0], f"{len(idle)} statistics in a row show requests and no progress."
    for fault in scene.faults:
        if fault.index > last and fault.signature is not None and fault.signature.name == "stack-dumped-while-stuck":
            return fault.index, "Its own timer dumps the stacks, and no line of work follows."
    busy = scene.marked(MarkKind.BUSY)
    after = [body for body in scene.bodies[last + 1 :] if body.strip()]
    if busy and busy[-1] == last and len(after) >= _PULSE and all(_CHECK.search(body) for body in after):
        return (
            last,
            f"{len(after)} health checks were answered since the last line of work, which had a request running.",
        )
    return None, ""
