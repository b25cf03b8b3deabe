"""The launch command of the present run, recorded while its process lives: the line that is wrong is never in the log."""

from __future__ import annotations

from datetime import datetime, timedelta

from watchd.model import Launch, LaunchOrigin, Process, Target
from watchd.watch.desk import Desk

AGAIN = timedelta(seconds=60)
"""how old the word that a process was seen alive may grow in the store"""


class Launches:
    """What started the target, as far as a process of it was seen."""

    def __init__(self, target: Target, desk: Desk) -> None:
        self._target = target
        self._desk = desk
        self._launch: Launch | None = None
        self._seen: datetime | None = None
        self._written: datetime | None = None
        self.began: datetime | None = None
        """When the present run was seen to begin; None while nothing tells it from the first."""

    async def resume(self, now: datetime) -> Process | None:
        """Take up what an earlier process recorded; the server's process, as it was then."""
        self._launch = await self._desk.last_launch(self._target)
        if self._launch is None or self._launch.pid is None or self._launch.started is None:
            return None
        self._seen = now
        return Process(pid=self._launch.pid, parent=0, started=self._launch.started, argv=self._launch.argv)

    async def record(self, process: Process, boot_id: str, at: datetime) -> None:
        """The process was seen alive."""
        self._seen = at
        known = self._launch
        if known is None or (known.pid, known.started) != (process.pid, process.started):
            self._written = None
            self._launch = known = Launch(
                argv=process.argv, origin=LaunchOrigin.RECORDED, pid=process.pid, started=process.started
            )
        if self._written is None or abs(at - self._written) >= AGAIN:
            self._written = at
            await self._desk.record_launch(self._target, known, boot_id, at)

    def present(self) -> Launch | None:
        """The recorded launch, if its process was seen after the present run began: else it is an earlier one's."""
        stale = self.began is not None and (self._seen is None or self._seen < self.began)
        return None if stale else self._launch
