"""A trigger with what was known of the server when it fired. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

from watchd import detect
from watchd.model import (
    Case,
    HealthResult,
    HealthSample,
    Incident,
    Launch,
    Process,
    Target,
    Trigger,
    TriggerKind,
)

WAITING = 8
"""alarms that wait for the climb before them: of a server that dies faster than anybody can look, the newest"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """A reason to climb.

    run      which launch it is about, as the detector counts them
    launch   the recorded command of that launch, or None
    process  the process that ran, where it was known
    """

    trigger: Trigger
    run: int
    launch: Launch | None = None
    process: Process | None = None


def raised(trigger: Trigger, before: detect.State, after: detect.State, launch: Launch | None) -> Alarm:
    """The alarm for a trigger that took the detector from one state to the next."""
    # A process that had said goodbye is not the one whose traceback follows.
    said_goodbye = before.suspicion is not None and before.suspicion.stopping
    if trigger.kind is TriggerKind.TRACEBACK and before.suspicion is not None:
        run = before.suspicion.run
    else:
        # Its end is what makes the next run begin.
        run = before.run if trigger.kind is TriggerKind.PROCESS_GONE else after.run
    return Alarm(
        trigger=trigger,
        run=run,
        launch=None if said_goodbye else launch,
        process=None if said_goodbye else before.process,
    )


def taken_up(
    found: Incident, place: tuple[int, int] | None, *, run: int, launch: Launch | None, process: Process | None
) -> Alarm:
    """The alarm for an incident whose climb an earlier watchd did not end; `place` is the checkpoint filed with it."""
    trigger = Trigger(kind=TriggerKind.ASKED, summary=found.summary, at=found.opened_at)
    if place is not None and place[1]:
        # Its run is the one that was read last then: by now another may have begun in the same log.
        trigger = replace(trigger, generation=place[0], offset=place[1] - 1)
    return Alarm(trigger=trigger, run=run, launch=launch, process=process)


def queued(waiting: deque[Alarm], alarm: Alarm) -> deque[Alarm]:
    """The queue with this alarm. The first is being climbed for; behind it each run needs one, and nobody needs many."""
    head, behind = list(waiting)[:1], list(waiting)[1:]
    if any(one.run == alarm.run for one in behind):
        return waiting
    return deque((*head, *behind[1 - WAITING :], alarm))


def bounded(alarm: Alarm, state: detect.State) -> Alarm:
    """The alarm, now that another run has begun behind the one that failed: the later one's lines are not its own."""
    trigger = alarm.trigger
    if trigger.end is not None or trigger.generation != state.generation:
        return alarm
    return replace(alarm, trigger=replace(trigger, end=state.turned))


def case(
    alarm: Alarm, *, target: Target, state: detect.State, samples: Sequence[HealthSample], launch: Launch | None
) -> Case:
    """What is known before the ladder is climbed; `launch` is the recorded command of the present run."""
    process = state.process
    if alarm.process is not None or alarm.trigger.kind is TriggerKind.PROCESS_GONE:
        alive: bool | None = process is not None and process.same(alarm.process)
    else:
        alive = process is not None if process or target.process else None
    last = samples[-1].result if samples else None
    if last is not None and alive is False:
        # Whoever answers now is another process.
        last = HealthResult.DOWN
    known = alarm.launch or (launch if alive else None)
    return Case(
        target=target,
        trigger=alarm.trigger,
        health=None if last in (None, HealthResult.BLIND) else last.value,
        samples=tuple(samples),
        alive=alive,
        findings=(known,) if known else (),
    )
