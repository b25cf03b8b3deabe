"""Time that passes only when a test says so."""

from __future__ import annotations

import asyncio
import heapq
from datetime import UTC, datetime, timedelta

TURNS = 50
"""turns of the loop after which everything that could run has run"""


class Clock:
    """Begins at noon. `slept` lists every pause that was asked for."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.slept: list[float] = []
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []

    def monotonic(self) -> float:
        """Seconds since the beginning."""
        return self.seconds

    def now(self) -> datetime:
        """The time of day."""
        return datetime(2026, 1, 5, 12, tzinfo=UTC) + timedelta(seconds=self.seconds)

    async def sleep(self, seconds: float) -> None:
        """Return when so much time has passed."""
        self.slept.append(seconds)
        future = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (self.seconds + seconds, len(self.slept), future))
        await future

    async def advance(self, seconds: float) -> None:
        """Let time pass, and everything happen that happens meanwhile."""
        end = self.seconds + seconds
        await self.settle()
        while self._waiting and self._waiting[0][0] <= end:
            self.seconds, _, future = heapq.heappop(self._waiting)
            if not future.done():
                future.set_result(None)
            await self.settle()
        self.seconds = end

    async def settle(self) -> None:
        """Let everything run that can run without time passing."""
        for _ in range(TURNS):
            await asyncio.sleep(0)
