"""Where a watch writes: the store and what is owed to the sinks, as one thing."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from datetime import datetime

import structlog

from watchd import incident
from watchd.model import Checkpoint, Incident, Launch, LaunchOrigin, LaunchRecord, Scope, Severity, Status, Target
from watchd.outbox import Outbox
from watchd.parse import secrets
from watchd.store import AsyncStore

KEEP_S = 1.0
"""seconds between two transactions for places that no incident went with"""


log = structlog.get_logger()


class Desk:
    """Files incidents with what is owed for them, and keeps places and launches."""

    def __init__(self, store: AsyncStore, box: Outbox) -> None:
        self._store = store
        self._box = box
        self._places: dict[str, Checkpoint] = {}
        self._kept: dict[str, tuple[int, int]] = {}

    def new_id(self, now: datetime) -> str:
        """An incident id."""
        return incident.new_id(now, os.urandom(10))

    async def open_incident(self, target: Target) -> Incident | None:
        """The target's incident that still fires."""
        return await self._store.open_incident(incident.key(Scope.TARGET, target.name))

    async def open_host_incident(self, host: str) -> Incident | None:
        """The host's incident that still fires."""
        return await self._store.open_incident(incident.key(Scope.HOST, host))

    async def file(self, before: Incident | None, after: Incident, place: Checkpoint | None = None) -> None:
        """Store the incident, whom to tell, and the place in the log: all or nothing."""
        if place is not None:
            # Not afterwards: meanwhile it might be written over the newer one.
            self._places.pop(place.target, None)
        await self._box.file(before, after, place)
        _report(before, after)
        if place is not None:
            self._kept[place.target] = (place.generation, place.offset)

    async def checkpoint(self, target: str, path: str) -> Checkpoint | None:
        """How far this log was read."""
        found = await self._store.checkpoint(target, path)
        if found:
            self._kept[target] = (found.generation, found.offset)
        return found

    def wants_place(self, target: str, place: tuple[int, int]) -> bool:
        """Whether this place is news: nothing is asked of a host to write down what is known."""
        waiting = self._places.get(target)
        known = (waiting.generation, waiting.offset) if waiting else self._kept.get(target)
        return place != known

    def note_place(self, place: Checkpoint) -> None:
        """Write this place with the next transaction, unless one behind it was written meanwhile."""
        if (place.generation, place.offset) >= self._kept.get(place.target, (0, 0)):
            self._places[place.target] = place

    async def keep_places(self, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        """Write the noted places once a second, all in one transaction, until cancelled."""
        while True:
            await sleep(KEEP_S)
            await self.flush()

    async def flush(self) -> None:
        """Write what was noted."""
        if self._places:
            places, self._places = self._places, {}
            await self._store.keep(places.values())
            self._kept.update({place.target: (place.generation, place.offset) for place in places.values()})

    async def last_launch(self, target: Target) -> Launch | None:
        """The launch that was last seen alive, unless an incident that is over has spoken of its end."""
        records = await self._store.launches(target.name)
        if not records:
            return None
        last = await self._store.last_incident(incident.key(Scope.TARGET, target.name))
        if last is not None and last.status is Status.RESOLVED and last.opened_at >= records[0].seen_at:
            return None
        record = records[0]
        return Launch(argv=record.argv, origin=LaunchOrigin.RECORDED, pid=record.pid, started=record.started)

    async def record_launch(self, target: Target, launch: Launch, boot_id: str, at: datetime) -> None:
        """Keep the command line of a living server, redacted."""
        assert launch.pid is not None
        assert launch.started is not None
        _, argv, _ = secrets.redact_launch(launch.argv)
        await self._store.record_launch(
            LaunchRecord(
                target=target.name,
                pid=launch.pid,
                started=launch.started,
                boot_id=boot_id,
                argv=tuple(argv),
                seen_at=at,
            )
        )


def _report(before: Incident | None, after: Incident) -> None:
    """What happened, in the daemon's own log: it must tell the story without any sink."""
    if before is not None and before.revision == after.revision:
        return
    if after.status is Status.RESOLVED:
        event = "incident_resolved"
    else:
        event = "incident_opened" if before is None else "incident_updated"
    loud = after.status is Status.FIRING and after.severity in (Severity.ERROR, Severity.CRITICAL)
    (log.error if loud else log.info)(
        event,
        incident=after.id,
        revision=after.revision,
        target=after.target.name if after.target else None,
        verdict=after.verdict.value,
        cause=after.cause.value if after.cause else None,
        stage=after.stage.value,
        summary=after.summary,
    )
