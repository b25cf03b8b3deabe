"""What one poll tells, in the order in which it happened."""

from __future__ import annotations

from datetime import UTC, datetime

from watchd.follow.stream import Stream
from watchd.model import Block, Event, Gap, LogStanding, LogState, Relaunch


class Report:
    """Collects the events of a poll; `standing` is what was told last of how following stands."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.standing: LogState | None = None
        self.now = datetime.min.replace(tzinfo=UTC)

    def begin(self, now: datetime) -> None:
        """Another poll; its events have this time."""
        self.events = []
        self.now = now

    def block(self, stream: Stream, data: bytes) -> None:
        """Hand on the next bytes of a stream, which goes on behind them."""
        old = stream.offset < stream.old_until
        self.events.append(Block(generation=stream.generation, offset=stream.offset, data=data, at=self.now, old=old))
        stream.advance(data)

    def gap(self, generation: int, start: int, end: int | None, reason: str) -> None:
        """Say what was not read, and why."""
        self.events.append(Gap(generation=generation, start=start, end=end, reason=reason, at=self.now))

    def relaunch(self, stream: Stream) -> None:
        """The log goes on in this stream."""
        self.events.append(Relaunch(generation=stream.generation, reason=stream.why, at=self.now))

    def stand(self, state: LogState, detail: str) -> None:
        """Say how following stands, where that is news."""
        if state is not self.standing:
            self.standing = state
            self.events.append(LogStanding(state=state, detail=detail, at=self.now))
