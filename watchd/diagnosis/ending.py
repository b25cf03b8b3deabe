"""An end that was meant: told to stop and stopped in order, or a job that was done."""

from __future__ import annotations

from watchd.diagnosis import root as roots
from watchd.diagnosis import say
from watchd.diagnosis.base import Fault, Role, Scene
from watchd.model import Cause, Confidence, Diagnosis, MarkKind, Root, RunnerUp, Verdict

_SPREAD = 60
"""Lines of work between the words of one orderly end: what was running is finished first."""

_WHO = (
    ("DUE TO TIME LIMIT", "The scheduler ended it at its time limit: ask for more with --time, or save and resume (requeue)."),
    ("PREEMPTION", "It was preempted: requeue it and resume from the checkpoint (--requeue)."),
    ("preempted", "It was preempted: requeue it and resume from the checkpoint (--requeue)."),
    ("CANCELLED", "Somebody cancelled the job (scancel); nothing needs repair."),
    ("drained", "The node is being drained: the server must come back elsewhere; nothing needs repair."),
    ("Gracefully stopping", "It was stopped by hand or by a deployment (docker compose stop or down); nothing needs repair."),
    ("Received 2 death signal", "Somebody pressed Ctrl-C (SIGINT); nothing needs repair."),
    ("^C", "Somebody pressed Ctrl-C (SIGINT); nothing needs repair."),
    ("Stopping", "Its unit was stopped (systemctl stop, or a dependency); nothing needs repair."),
)  # fmt: skip
_ANYBODY = "Nothing needs repair; if nobody meant it, find out who sent SIGTERM or SIGINT: a person, a supervisor, a deployment."


def stopped(scene: Scene) -> Diagnosis | None:
    """It was told to stop and did so in order, with nothing wrong before."""
    index = _orderly_end(scene)
    if index is None or _failed_before(scene, index):
        return None
    text = scene.bodies[index].strip()
    return Diagnosis(
        verdict=Verdict.STOPPED,
        cause=Cause.PROCESS_KILLED,
        confidence=Confidence.LIKELY,
        summary=say.short(f"It was told to stop and did so in order: {text}"),
        because=(f"Its end begins in {say.place(scene, index)}: {say.short(text, 200)}", "No fault stands before it."),
        advice=say.bounded([next((said for word, said in _WHO if word in text), _ANYBODY)]),
        root=Root(index=index),
        runner_up=RunnerUp(cause=Cause.NONE, flip="a fault before the order to stop"),
    )


def finished(scene: Scene) -> Diagnosis | None:
    """A job that said that it ended well, with no fault after."""
    done = scene.marked(MarkKind.FINISHED)
    if not done or len(scene.marked(MarkKind.WORK, after=done[-1])) >= roots.SOLID:
        return None
    if any(fault.index > done[-1] and not _is_farewell(fault) for fault in scene.faults):
        return None
    return say.fine(f"The job ended by itself and well: {say.short(scene.bodies[done[-1]], 160)}", Confidence.LIKELY)


def _is_farewell(fault: Fault) -> bool:
    """Whether a job that is done may still say so: early words, and connections of those who left before."""
    return fault.role is Role.SIGN or (fault.role is Role.ECHO and fault.cause is Cause.COLLECTIVE_ERROR)


def _orderly_end(scene: Scene) -> int | None:
    """The first word of the orderly end with which the run closes, or None."""
    stops = scene.marked(MarkKind.STOPPING)
    work = scene.marked(MarkKind.WORK)
    if not stops or sum(index > stops[-1] for index in work) > _SPREAD:
        return None
    first = stops[-1]
    for stop in reversed(stops[:-1]):
        if sum(stop < index < first for index in work) > _SPREAD:
            break
        first = stop
    return first


def _failed_before(scene: Scene, index: int) -> bool:
    lead = roots.lead(scene)
    if lead is not None and lead.role is not Role.ECHO and lead.index <= index:
        return True
    work = scene.marked(MarkKind.WORK)
    solid = work[-roots.SOLID] if len(work) >= roots.SOLID else -1
    return any(fatal <= index for fatal in scene.marked(MarkKind.FATAL, after=solid))
