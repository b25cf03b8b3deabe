"""Who is owed a message, and seeing to it that each gets it: at least once, the newest state only.

The upper half decides and is pure. An incident's deliveries are filed with it, freely; whether a message is still
worth sending is decided again when its turn comes, from what the sink has confirmed by then. So a message that was
on its way while the incident moved on is neither forgotten nor repeated. Delivery is at least once: a process killed
between a sink's answer and its noting sends again, with the same id and revision.
"""

from __future__ import annotations

import asyncio
import random as chance
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase

import structlog

from watchd.model import (
    Checkpoint,
    Delivery,
    DeliveryState,
    Incident,
    Severity,
    Stage,
    Status,
    Told,
    Verdict,
)
from watchd.sinks.base import Answer, Result, Sink
from watchd.store import AsyncStore, Lease

WAIT_FOR_CLIMB = timedelta(seconds=5)
BACKOFF_FIRST_S = 1.0
BACKOFF_LAST_S = 600.0
GIVE_UP = timedelta(hours=24)
SEND_LIMIT_S = 60.0
SLEEP_LIMIT_S = 60.0

_RANKED = tuple(Severity)
_AFTER = {
    Result.SENT: DeliveryState.SENT,
    Result.RETRY: DeliveryState.PENDING,
    Result.SHRINK: DeliveryState.PENDING,
    Result.HOLD: DeliveryState.HELD,
    Result.DEAD: DeliveryState.DEAD,
}

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Which incidents go to one sink, and how it takes them.

    sink      its name in the configuration
    edits     see `sinks.base.Sink`
    severity  this and above
    targets   names or globs; empty means all
    labels    the target must carry each of these
    """

    sink: str
    edits: bool
    severity: Severity = Severity.ERROR
    targets: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)


def leads(route: Route, incident: Incident) -> bool:
    """Whether this incident goes to this sink. One above a single target (a lost host) passes for every target."""
    if _RANKED.index(incident.severity) < _RANKED.index(route.severity):
        return False
    target = incident.target
    if target is None:
        return True
    named = not route.targets or any(fnmatchcase(target.name, glob) for glob in route.targets)
    return named and all(target.labels.get(label) == value for label, value in route.labels.items())


def worth_telling(incident: Incident, told: Told | None, route: Route) -> bool:
    """Whether the sink should hear this state of the incident, given what it heard before."""
    if told is None:
        # An alarm that was withdrawn before anybody heard of it stays unheard.
        return leads(route, incident) and incident.verdict is not Verdict.OK
    if not told.confirmed:
        return True  # it may believe something that is no longer so
    if incident.revision <= told.revision:
        return False
    if route.edits or incident.status is not told.status:
        return True
    return incident.stage is Stage.FINAL and incident.cause != told.cause


def owed(
    before: Incident | None, after: Incident, routes: Iterable[Route], told: Mapping[str, Told], now: datetime
) -> tuple[Delivery, ...]:
    """The deliveries to file with this revision; `before` is the one before it, `told` what each sink was told."""
    if before is not None and before.revision == after.revision:
        return ()
    concerned = [
        route
        for route in routes
        if route.sink in told or leads(route, after) or (before is not None and leads(route, before))
    ]
    return tuple(
        Delivery(
            incident=after.id,
            sink=route.sink,
            revision=after.revision,
            due_at=_due_at(after, told.get(route.sink), route, now),
            created_at=now,
        )
        for route in concerned
    )


def next_attempt(delivery: Delivery, answer: Answer, now: datetime, random: Callable[[], float]) -> Delivery:
    """The delivery after this answer to its attempt; `random` gives numbers from 0 to 1 for the full jitter."""
    state = _AFTER[answer.result]
    due = now
    if answer.result is Result.SHRINK and delivery.small:
        state = DeliveryState.DEAD
    if answer.result is Result.RETRY:
        if now - delivery.created_at >= GIVE_UP:
            state = DeliveryState.DEAD
        doublings = min(delivery.attempt - 1, 30)
        due += timedelta(seconds=random() * min(BACKOFF_FIRST_S * 2**doublings, BACKOFF_LAST_S))
        due = max(due, now + timedelta(seconds=answer.retry_after_s or 0))
    small = delivery.small or answer.result is Result.SHRINK
    return replace(delivery, state=state, due_at=due, small=small, error=answer.reason)


def _due_at(incident: Incident, told: Told | None, route: Route, now: datetime) -> datetime:
    if route.edits or incident.stage is Stage.FINAL:
        return now
    if told is None or not told.confirmed:
        return max(now, incident.opened_at + WAIT_FOR_CLIMB)
    over = incident.status is Status.RESOLVED and told.status is Status.FIRING
    return now if over else now + WAIT_FOR_CLIMB


def _now() -> datetime:
    return datetime.now(UTC)


class _Outlet:
    """A sink with its queue's bell; `due` is what it rests for, meaningful while `resting`."""

    def __init__(self, route: Route, sink: Sink) -> None:
        self.route = route
        self.sink = sink
        self.bell = asyncio.Event()
        self.failing = True  # until it has answered once in this process, nobody knows
        self.resting = False
        self.due: datetime | None = None

    def done_until(self, end: datetime) -> bool:
        return self.resting and not self.bell.is_set() and (self.due is None or self.due > end)


class Outbox:
    """Delivers what the store says is due, one message at a time to each sink, all sinks at once."""

    def __init__(
        self,
        store: AsyncStore,
        outlets: Sequence[tuple[Route, Sink]],
        *,
        now: Callable[[], datetime] = _now,
        sleep: Callable[[float], Coroutine[None, None, None]] = asyncio.sleep,
        random: Callable[[], float] = chance.random,
    ) -> None:
        self._store = store
        self._outlets = [_Outlet(route, sink) for route, sink in outlets]
        self._now = now
        self._sleep = sleep
        self._random = random
        self._stirred = asyncio.Event()

    async def file(self, before: Incident | None, after: Incident, checkpoint: Checkpoint | None = None) -> None:
        """Write a new state of an incident with all that is owed for it, and set out to deliver it."""
        told = await self._store.told(after.id)
        routes = [outlet.route for outlet in self._outlets]
        await self._store.file(after, owed(before, after, routes, told, self._now()), checkpoint)
        self.wake()

    def wake(self) -> None:
        """Look into the store at once: something was filed there."""
        for outlet in self._outlets:
            outlet.bell.set()

    async def run(self) -> None:
        """Deliver until cancelled. Leases of a process before this one are free, what was held is tried again.

        Ends at once where there is no sink. A store that fails ends it with an ExceptionGroup of StoreError.
        """
        await self._store.free_leases()
        for outlet in self._outlets:
            await self._store.release(outlet.route.sink, self._now())
        async with asyncio.TaskGroup() as group:
            for outlet in self._outlets:
                group.create_task(self._serve(outlet), name=f"outbox {outlet.route.sink}")

    async def drain(self, limit_s: float) -> None:
        """Wait, while `run` runs, until nothing more can be delivered within `limit_s` seconds from now."""
        end = self._now() + timedelta(seconds=limit_s)
        limit = asyncio.ensure_future(self._sleep(limit_s))
        try:
            while not limit.done() and not all(outlet.done_until(end) for outlet in self._outlets):
                self._stirred.clear()
                await _first(limit, self._stirred.wait())
        finally:
            limit.cancel()

    async def _serve(self, outlet: _Outlet) -> None:
        while True:
            outlet.bell.clear()
            lease = await self._store.lease(outlet.route.sink, self._now())
            if lease is None:
                await self._rest(outlet)
            else:
                await self._deliver(outlet, lease)

    async def _rest(self, outlet: _Outlet) -> None:
        outlet.due = await self._store.next_due(outlet.route.sink)
        outlet.resting = True
        self._stirred.set()
        try:
            if outlet.due is None:
                await outlet.bell.wait()
            else:
                # Bounded, since the clock that tells what is due may be set while the other one sleeps.
                seconds = min(max(0.0, (outlet.due - self._now()).total_seconds()), SLEEP_LIMIT_S)
                await _first(outlet.bell.wait(), self._sleep(seconds))
        finally:
            outlet.resting = False

    async def _deliver(self, outlet: _Outlet, lease: Lease) -> None:
        delivery, incident = lease.delivery, lease.incident
        if not worth_telling(incident, lease.told, outlet.route):
            unsent = replace(delivery, state=DeliveryState.DROPPED, attempt=delivery.attempt - 1)
            await self._store.settle(unsent)
            return
        answer = await self._send(outlet.sink, lease)
        now = self._now()
        settled = next_attempt(delivery, answer, now, self._random)
        sent = answer.result is Result.SENT
        floor = None if answer.retry_after_s is None else now + timedelta(seconds=answer.retry_after_s)
        await self._store.settle(settled, said=incident if sent else None, not_before=floor)
        _report(settled, answer)
        if sent and outlet.failing:
            await self._store.wake(outlet.route.sink, now)
        outlet.failing = not sent and (outlet.failing or answer.result is Result.RETRY)

    async def _send(self, sink: Sink, lease: Lease) -> Answer:
        first = lease.told is None or not lease.told.revision
        try:
            async with asyncio.timeout(SEND_LIMIT_S):
                return await sink.send(lease.incident, first=first, small=lease.delivery.small)
        except Exception as error:  # noqa: BLE001 a sink that raises is broken; the others must go on
            return Answer(result=Result.RETRY, reason=type(error).__name__)


async def _first(*waits: Awaitable[object]) -> None:
    """Wait until one of these is over, and end those that were begun here."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    begun = [task for task, wait in zip(tasks, waits, strict=True) if task is not wait]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in begun:
            task.cancel()


def _report(delivery: Delivery, answer: Answer) -> None:
    words = {"sink": delivery.sink, "incident": delivery.incident, "revision": delivery.revision}
    match delivery.state:
        case DeliveryState.SENT:
            log.info("delivery_sent", attempt=delivery.attempt, **words)
        case DeliveryState.HELD:
            log.error("delivery_held", attempt=delivery.attempt, reason=answer.reason, **words)
        case DeliveryState.DEAD:
            log.error("delivery_dead", attempt=delivery.attempt, reason=answer.reason, **words)
        case _:
            log.warning("delivery_failed", attempt=delivery.attempt, reason=answer.reason, **words)
