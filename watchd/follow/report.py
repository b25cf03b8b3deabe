"""What one poll tells, in the order in which it happened."""

from __future__ import annotations

from datetime import UTC, datetime

from watchd.follow.stream import Stream
from watchd.model import Block, Event, Gap, LogStanding, LogState, Relaunch


class Report:
    """Collects the events of a poll.

    standing    what was told last of how following stands
    misses      polls in a row in which the path named nothing
    generation  the highest that anything was told of: none up to it may be given to another file
    """

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.standing: LogState | None = None
        self.generation = 0
        self.misses = 0
        self.now = datetime.min.replace(tzinfo=UTC)

    def begin(self, now: datetime) -> None:
        """Another poll; its events have this time."""
        self.events = []
        self.now = now

    def block(self, stream: Stream, data: bytes) -> None:
        """Hand on the next bytes of a stream, which goes on behind them."""
        self.generation = max(self.generation, stream.generation)
        old = stream.offset < stream.old_until
        self.events.append(Block(generation=stream.generation, offset=stream.offset, data=data, at=self.now, old=old))
        stream.advance(data)

    def gap(self, generation: int, start: int, end: int | None, reason: str) -> None:
        """Say what was not read, and why."""
        self.generation = max(self.generation, generation)
        self.events.append(Gap(generation=generation, start=start, end=end, reason=reason, at=self.now))

    def relaunch(self, stream: Stream) -> None:
        """The log goes on in this stream."""
        self.generation = max(self.generation, stream.generation)
        self.events.append(Relaunch(generation=stream.generation, reason=stream.why, at=self.now))

    def stand(self, state: LogState, detail: str) -> None:
        """Say how following stands, where that is news."""
        if state is not self.standing:
            self.standing = state
            self.events.append(LogStanding(state=state, detail=detail, at=self.now))

    def missing(self, path: str, *, held: bool) -> None:
        """The path names nothing. Between the two steps of a rotation that is so for a moment, while a file is held."""
        self.misses += 1
        if not held or self.misses > 1:
            self.stand(LogState.MISSING, f"no file {path}: waiting until there is one")

    def found(self) -> None:
        """The path names a file that can be read."""
        self.misses = 0
        self.stand(LogState.LIVE, "followed")

    def retract(self, standing: LogState | None) -> None:
        """Take back what this poll said of how following stands: it turned out otherwise."""
        self.events = [event for event in self.events if not isinstance(event, LogStanding)]
        self.standing = standing
