"""A log on this machine, and a follower of it in time that passes when a test says so."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.localhost import LocalHost
from watchd.follow.file import FileFollower
from watchd.model import Block, Checkpoint, Event, Gap, LogStanding, Relaunch

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


class Following:
    """A log, a host and a follower. What is written gets the present second as its time of last writing."""

    def __init__(self, folder: Path, *, inodes: bool) -> None:
        self.path = folder / "server.log"
        self.host = LocalHost(inodes=inodes)
        self.now = NOON
        self.events: list[Event] = []
        self.follower: FileFollower

    def begin(self, checkpoint: Checkpoint | None = None, **bounds: int) -> None:
        self.follower = FileFollower(self.host, "eagle3", str(self.path), checkpoint, **bounds)

    async def poll(self, polls: int = 1, *, seconds: float = 1.0) -> list[Event]:
        """What so many polls tell, each after so many seconds."""
        told: list[Event] = []
        for _ in range(polls):
            self.now += timedelta(seconds=seconds)
            told += await self.follower.poll(self.now)
        self.events += told
        return told

    async def text(self, polls: int = 1, *, seconds: float = 1.0) -> bytes:
        """The bytes that so many polls tell."""
        return b"".join(e.data for e in await self.poll(polls, seconds=seconds) if isinstance(e, Block))

    def of(self, kind: type) -> list[Event]:
        return [event for event in self.events if isinstance(event, kind)]

    def story(self) -> list[object]:
        """All that was told, without times and reasons: blocks of a generation joined."""
        told: list[object] = []
        for event in self.events:
            match event:
                case Block():
                    before = told[-1] if told else None
                    if isinstance(before, tuple) and before[0] == event.generation and isinstance(before[2], bytes):
                        told[-1] = (*before[:2], before[2] + event.data)
                    else:
                        told.append((event.generation, event.offset, event.data))
                case Gap():
                    told.append(("gap", event.generation, event.start, event.end))
                case Relaunch():
                    told.append(("relaunch", event.generation))
                case LogStanding():
                    told.append(event.state.value)
        return told


@pytest.fixture(params=[False, True], ids=["as SFTP shows files", "with inodes"])
def log(tmp_path: Path, request: pytest.FixtureRequest) -> Following:
    found = Following(tmp_path, inodes=request.param)
    found.begin()
    return found
