"""Which process is the target's: one look at a host's process list, shared by all targets on it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime

from watchd.hosts.base import Host
from watchd.ladder import process
from watchd.model import BootId, Outcome, Process, Processes, ProcessSample, Reply, Target
from watchd.parse import processes as listing

LOOK_S = 8.0
"""seconds that one look may take"""


class Census:
    """The process list of one host, not older than asked for."""

    def __init__(self, host: Host, *, clock: Callable[[], float]) -> None:
        self._host = host
        self._clock = clock
        self._lock = asyncio.Lock()
        self._seen: tuple[Process, ...] | None = None
        self._why = ""
        self._at = float("-inf")
        self.boot_id = ""
        """The id of the boot in which the processes were seen."""

    async def look(self, *, not_older_s: float) -> tuple[tuple[Process, ...] | None, str]:
        """Every process, or None and why they cannot be seen."""
        asked = self._clock()
        async with self._lock:
            # Whoever waited here while another looked takes what that one saw.
            if self._at < asked - not_older_s:
                started = self._clock()
                reply, boot = await self._host.ask((Processes(), BootId()), limit_s=LOOK_S)
                self._seen, self._why = _read(reply)
                self.boot_id = boot.data.decode("ascii", "replace").strip()[:64]
                self._at = started
            return self._seen, self._why


def _read(reply: Reply) -> tuple[tuple[Process, ...] | None, str]:
    if reply.outcome is not Outcome.ANSWERED:
        return None, reply.detail or f"the process list: {reply.outcome}"
    seen = listing.processes(reply.data)
    if not any(one.pid == 1 for one in seen):
        return None, "the host hides other users' processes (hidepid)"
    return seen, ""


def choose(
    seen: tuple[Process, ...], target: Target, engine: str, known: Process | None, *, at: datetime
) -> ProcessSample:
    """The target's process among these; one that was known and is not there has gone, one never seen is merely unknown."""
    still = next((one for one in seen if one.same(known) and one.state != "Z"), None) if known else None
    if still is not None:
        # While it lives it is the one, whatever else is started that looks like it.
        own, why = process.find((still,), target, engine)
        if own is not None:
            return ProcessSample(at=at, known=True, process=own, detail=why)
    found, why = process.find(seen, target, engine)
    if found is not None:
        return ProcessSample(at=at, known=True, process=found, detail=why)
    if known is not None:
        return ProcessSample(at=at, known=True, process=still, detail="as recorded")
    return ProcessSample(at=at, known=target.process is not None, detail=why)
