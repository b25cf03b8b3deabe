"""The connection to one host: kept open, and told of when it cannot be."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from typing import Protocol

import structlog

from watchd import incident
from watchd.errors import HostLostError, HostRefusedError
from watchd.model import Incident
from watchd.watch.desk import Desk

UNREACHABLE_AFTER = timedelta(seconds=30)
"""how long a host may be away before people are told that watchd cannot see its servers"""
GLANCE_S = 0.5

log = structlog.get_logger()


class Line(Protocol):
    """A host as its link needs it."""

    @property
    def name(self) -> str:
        """Its name in the configuration."""

    @property
    def connected(self) -> bool:
        """Whether the connection stands."""

    async def connect(self) -> None:
        """Open it. Raises HostError."""


Way = Callable[[], AbstractAsyncContextManager[None]]
"""What a handshake is made in: it waits until there is room on the way to the host."""


class Link:
    """Keeps one host connected; `hold` is run again by a supervisor whenever it ends with a HostError."""

    def __init__(self, host: Line, desk: Desk, *, way: Way, now: Callable[[], datetime]) -> None:
        self._host = host
        self._desk = desk
        self._way = way
        self._now = now
        self._down_since: datetime | None = None
        self._incident: Incident | None = None
        self._known = False
        self._problem = ""
        self.up = asyncio.Event()
        """Set while the connection stands."""
        self.tried = asyncio.Event()
        """Set once the first attempt came to an end, well or not."""

    @property
    def name(self) -> str:
        """The host's name."""
        return self._host.name

    async def hold(self) -> None:
        """Connect, and stay until the connection is lost. Raises HostError."""
        async with self._way():
            await self._host.connect()
        log.info("host_connected", host=self.name)
        self.up.set()
        self.tried.set()
        await self._all_clear()
        try:
            while self._host.connected:  # noqa: ASYNC110  the library says it to nobody but those who ask
                await asyncio.sleep(GLANCE_S)
        finally:
            self.up.clear()
        raise HostLostError(self.name, "the connection was lost")

    async def note_failure(self, error: Exception) -> None:
        """Take down that the host is away; after a while, or at once where it says no, tell people."""
        self.tried.set()
        now = self._now()
        self._down_since = self._down_since or now
        if str(error) != self._problem:
            self._problem = str(error)
            log.error("host_down", host=self.name, error=self._problem)
        patient = now - self._down_since < UNREACHABLE_AFTER and not isinstance(error, HostRefusedError)
        if patient or await self._open() is not None:
            return
        reason = getattr(error, "reason", "") or str(error)
        self._incident = incident.open_host(self.name, reason, now=now, id=self._desk.new_id(now))
        await self._desk.file(None, self._incident)

    async def _all_clear(self) -> None:
        self._down_since = None
        self._problem = ""
        found = await self._open()
        if found is not None:
            self._incident = None
            await self._desk.file(
                found, incident.resolve(found, now=self._now(), why=f"{self.name} can be reached again")
            )

    async def _open(self) -> Incident | None:
        if not self._known:
            self._incident = await self._desk.open_host_incident(self.name)
            self._known = True
        return self._incident
