"""The store for those who may not wait: every call runs on one thread of its own, in the order of the calls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import ParamSpec, TypeVar

from watchd.model import Checkpoint, Delivery, DeliveryState, Incident, LaunchRecord, Told
from watchd.store.rows import Lease
from watchd.store.sqlite import Store

P = ParamSpec("P")
R = TypeVar("R")


class AsyncStore:
    """The methods of `Store`, awaitable. What was asked for is carried out even if the one who asked is cancelled."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="store")

    async def close(self) -> None:
        """Carry out what was asked for, then let go of the file."""
        await self._call(self._store.close)
        self._thread.shutdown(wait=False)

    async def file(
        self, incident: Incident, deliveries: Iterable[Delivery] = (), checkpoint: Checkpoint | None = None
    ) -> None:
        """See `Store.file`."""
        await self._call(self._store.file, incident, deliveries, checkpoint)

    async def incident(self, incident: str) -> Incident | None:
        """See `Store.incident`."""
        return await self._call(self._store.incident, incident)

    async def open_incident(self, key: str) -> Incident | None:
        """See `Store.open_incident`."""
        return await self._call(self._store.open_incident, key)

    async def last_incident(self, key: str) -> Incident | None:
        """See `Store.last_incident`."""
        return await self._call(self._store.last_incident, key)

    async def open_incidents(self) -> tuple[Incident, ...]:
        """See `Store.open_incidents`."""
        return await self._call(self._store.open_incidents)

    async def keep(self, checkpoints: Iterable[Checkpoint]) -> None:
        """See `Store.keep`."""
        await self._call(self._store.keep, checkpoints)

    async def checkpoint(self, target: str, path: str) -> Checkpoint | None:
        """See `Store.checkpoint`."""
        return await self._call(self._store.checkpoint, target, path)

    async def record_launch(self, launch: LaunchRecord) -> None:
        """See `Store.record_launch`."""
        await self._call(self._store.record_launch, launch)

    async def launches(self, target: str) -> tuple[LaunchRecord, ...]:
        """See `Store.launches`."""
        return await self._call(self._store.launches, target)

    async def lease(self, sink: str, now: datetime) -> Lease | None:
        """See `Store.lease`."""
        return await self._call(self._store.lease, sink, now)

    async def settle(
        self, delivery: Delivery, *, said: Incident | None = None, not_before: datetime | None = None
    ) -> None:
        """See `Store.settle`."""
        await self._call(self._store.settle, delivery, said=said, not_before=not_before)

    async def told(self, incident: str) -> Mapping[str, Told]:
        """See `Store.told`."""
        return await self._call(self._store.told, incident)

    async def next_due(self, sink: str) -> datetime | None:
        """See `Store.next_due`."""
        return await self._call(self._store.next_due, sink)

    async def wake(self, sink: str, now: datetime) -> None:
        """See `Store.wake`."""
        await self._call(self._store.wake, sink, now)

    async def free_leases(self) -> int:
        """See `Store.free_leases`."""
        return await self._call(self._store.free_leases)

    async def release(self, sink: str, now: datetime) -> int:
        """See `Store.release`."""
        return await self._call(self._store.release, sink, now)

    async def deliveries(self, incident: str) -> tuple[Delivery, ...]:
        """See `Store.deliveries`."""
        return await self._call(self._store.deliveries, incident)

    async def depth(self) -> Mapping[str, Mapping[DeliveryState, int]]:
        """See `Store.depth`."""
        return await self._call(self._store.depth)

    async def note(self, key: str, value: str) -> None:
        """See `Store.note`."""
        await self._call(self._store.note, key, value)

    async def noted(self, key: str) -> str | None:
        """See `Store.noted`."""
        return await self._call(self._store.noted, key)

    async def _call(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        # A cancelled caller must not take a queued write with it: what it wrote may already have been sent.
        return await asyncio.shield(
            asyncio.get_running_loop().run_in_executor(self._thread, lambda: function(*args, **kwargs))
        )
