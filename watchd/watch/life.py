"""The life of a target's incident: opened by a trigger, concluded by a climb, resolved when the server is back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime, timedelta

from watchd import detect, incident
from watchd.errors import HostError, LogUnreadableError
from watchd.model import (
    Case,
    Checkpoint,
    Confidence,
    Diagnosis,
    Event,
    Gap,
    HealthResult,
    HealthSample,
    Incident,
    IncidentHealth,
    LogGap,
    Stage,
    Status,
    Target,
    Trigger,
    TriggerKind,
    Verdict,
)
from watchd.watch.alarm import Alarm
from watchd.watch.desk import Desk

LIVED = timedelta(seconds=60)
"""how long a new run must live before an incident without a health check resolves"""

_QUIET = (TriggerKind.PROCESS_GONE, TriggerKind.FIRST_LOOK)
"""Triggers that may yet turn out to be an orderly end: nobody is told before the climb has said what it was."""

_RISING = (TriggerKind.TRACEBACK, TriggerKind.PROCESS_GONE, TriggerKind.HEALTH_DOWN)
"""Witnesses that may know more of a run than what its incident has said: a server that hung may crash at last."""

_KEPT_GAPS = 20


class Life:
    """At most one open incident of one target. `place` gives the log's checkpoint for the transaction, or None."""

    def __init__(
        self,
        target: Target,
        desk: Desk,
        *,
        place: Callable[[], Awaitable[Checkpoint | None]],
        observe: Callable[[Incident], None],
    ) -> None:
        self._target = target
        self._desk = desk
        self._place = place
        self._observe = observe
        self._run = 0
        self._ups = 0
        self._over_at: datetime | None = None
        self._gaps: tuple[tuple[int, LogGap], ...] = ()
        self.incident: Incident | None = None
        """The incident that fires, or None."""

    async def resume(self) -> Incident | None:
        """Take up the incident that an earlier process left open."""
        self.incident = await self._desk.open_incident(self._target)
        return self.incident

    def note(self, event: Event) -> None:
        """Keep in mind what bears on the incident's end, and on what it can claim."""
        if isinstance(event, HealthSample):
            self._ups = self._ups + 1 if event.result is HealthResult.UP else 0
        elif isinstance(event, Gap):
            gap = LogGap(start=event.start, end=event.end, reason=event.reason)
            self._gaps = (*self._gaps[1 - _KEPT_GAPS :], (event.generation, gap))

    async def alarm(self, alarm: Alarm, health: IncidentHealth, now: datetime, *, quietly: bool) -> bool:
        """File what must be told at once; False where the open incident has said what there is to say of this run.

        `quietly`: the run was asked to stop, and this may be no more than its end.
        """
        self._ups = 0
        if self.knows(alarm):
            return False
        if not quietly and alarm.trigger.kind not in _QUIET:
            if self.incident is None:
                self._run = alarm.run
                await self._file(self._opened(alarm.trigger, health, now))
            elif alarm.run != self._run:
                self._run = alarm.run
                await self._file(incident.occur(self.incident, alarm.trigger, now=now))
        return True

    def knows(self, alarm: Alarm) -> bool:
        """Whether there is nothing new to this alarm: the same failure, seen by another witness."""
        found = self.incident
        if alarm.run != self._run:
            return False
        if found is None:
            return self._over_at is not None and alarm.trigger.at <= self._over_at
        if found.stage is Stage.CLIMBING:
            return False
        named = found.verdict is Verdict.CRASH and found.confidence is not Confidence.UNKNOWN
        return named or alarm.trigger.kind not in _RISING

    async def conclude(
        self, alarm: Alarm, case: Case, diagnosis: Diagnosis, health: IncidentHealth, now: datetime
    ) -> None:
        """File what the climb found."""
        found = self._spoken_of(alarm, case, diagnosis, health, now)
        if found is None:
            return
        fresh = self.incident is None or found.id != self.incident.id
        concluded = replace(incident.conclude(found, case, diagnosis, now=now), health=health)
        if fresh:
            concluded = replace(concluded, revision=1)
        if diagnosis.verdict is Verdict.OK:
            concluded = incident.resolve(concluded, now=now, why="withdrawn: nothing is wrong", verdict=Verdict.OK)
        elif diagnosis.verdict is Verdict.STOPPED:
            concluded = incident.resolve(concluded, now=now, why="it was stopped in order")
        if self.incident is None:
            self._run = alarm.run
        await self._file(concluded)

    def _spoken_of(
        self, alarm: Alarm, case: Case, diagnosis: Diagnosis, health: IncidentHealth, now: datetime
    ) -> Incident | None:
        """The incident that what was found belongs to, or None where it is no news."""
        found = self.incident
        failed = diagnosis.verdict not in (Verdict.OK, Verdict.DEGRADED, Verdict.STOPPED)
        if self.knows(alarm):
            return None
        if found is not None and alarm.run == self._run:
            # What was said once is only taken back by something worse that has a name.
            worse = diagnosis.verdict is Verdict.CRASH and diagnosis.confidence is not Confidence.UNKNOWN
            return found if found.stage is Stage.CLIMBING or worse else None
        if found is None or diagnosis.verdict is Verdict.STOPPED:
            # With another run's incident open, only the orderly end of this one has a place beside it.
            return self._opened(alarm.trigger, health, now) if _worth_filing(alarm.trigger, case, diagnosis) else None
        if failed and alarm.run > self._run:
            self._run = alarm.run
            return incident.occur(found, alarm.trigger, now=now)
        # A later run failed while this one was looked into: until that one's turn comes, this is the cause.
        return found if failed and found.stage is Stage.CLIMBING else None

    async def resolve_if_back(self, event: Event, state: detect.State, began: datetime | None) -> None:
        """The all-clear, where this event shows that the server is back; `began` is when the present run began."""
        found = self.incident
        if found is None or found.stage is Stage.CLIMBING:
            return
        if self._target.health is not None:
            if isinstance(event, HealthSample) and self._ups >= self._target.health.success:
                await self._all_clear(found, event.at, "its health check answers again")
            return
        if state.run == self._run or state.gone or began is None:
            return
        worked = state.worked_at is not None and state.worked_at >= began
        if worked or event.at - began >= LIVED:
            why = "a new run does its work" if worked else f"a new run has lived {LIVED.seconds} s"
            await self._all_clear(found, event.at, why)

    async def _all_clear(self, found: Incident, now: datetime, why: str) -> None:
        self._over_at = now
        await self._file(incident.resolve(found, now=now, why=why))

    def _opened(self, trigger: Trigger, health: IncidentHealth, now: datetime) -> Incident:
        fresh = incident.open_target(self._target, trigger, now=now, id=self._desk.new_id(now), health=health)
        # What was lost of an earlier file says nothing about this one.
        return incident.with_gaps(
            fresh, tuple(gap for generation, gap in self._gaps if generation == trigger.generation)
        )

    async def _file(self, after: Incident) -> None:
        """Store the incident, what is owed for it and the place in the log, in one transaction."""
        before = self.incident if self.incident and self.incident.id == after.id else None
        if before is not None or self.incident is None:
            self.incident = after
        try:
            place = await self._place()
        except (HostError, LogUnreadableError):
            # Without a place the same lines are read again after a restart and join the incident that is open then.
            place = None
        await self._desk.file(before, after, place)
        self._observe(after)
        if self.incident is after and after.status is Status.RESOLVED:
            self.incident = None


def _worth_filing(trigger: Trigger, case: Case, diagnosis: Diagnosis) -> bool:
    if diagnosis.verdict in (Verdict.OK, Verdict.DEGRADED):
        return False
    if trigger.kind is not TriggerKind.FIRST_LOOK:
        return True
    # What was stopped before anybody watched is no news, and what lives has not crashed: it starts, behind an old crash.
    return diagnosis.verdict is not Verdict.STOPPED and not (diagnosis.verdict is Verdict.CRASH and case.alive)
