"""A log as the watch would have seen it: line by line by its own clocks, with ticks, health and the process list between.

Lines of runs before the current one are old text. Time moves by the clocks that the lines print; a line without one
comes at once. While the server runs, its health check says `up` each ten seconds where the case has one that answers,
and is asked at once where the detector is curious; so is the process list.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.support import situations
from watchd import detect
from watchd.model import (
    Block,
    Event,
    HealthCheck,
    HealthResult,
    HealthSample,
    Process,
    ProcessSample,
    Run,
    Tick,
    Trigger,
    TriggerKind,
)
from watchd.parse import lines as prefixes

PAGES = (TriggerKind.FATAL_LINE, TriggerKind.TRACEBACK)
"""What files an incident at once."""
_T0 = datetime(2026, 1, 5, 10, 0, tzinfo=UTC)
_POLL_S = 10
_LONGEST_PAUSE_S = 45
"""A longer pause between two lines is cut short: nothing more would happen in it."""
_PROCESS = Process(pid=4711, parent=1, started=99, argv=("server",))


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """A trigger, and how many lines of the run had been written by then; `after` that of all: at or after its end."""

    trigger: Trigger
    lines: int
    of: int

    @property
    def from_end(self) -> int:
        """Lines that followed."""
        return self.of - self.lines


def replay(folder: Path) -> list[Heard]:
    """Every trigger of a case, in order, that of the process that ends included."""
    health = situations.health(folder)
    check = HealthCheck(url="http://127.0.0.1:1/health") if health in ("up", "slow") else None
    run = situations.read(folder).get(Run)
    assert run is not None
    stage = _Stage(check)
    data = situations.log(folder)
    if run.begin:
        stage.take(Block(generation=0, offset=0, data=data[: run.begin], at=stage.now, old=True))
    stage.take(ProcessSample(at=stage.now, known=True, process=_PROCESS))
    whole = data[run.begin :].split(b"\n")
    offset = run.begin
    for raw in whole:
        line = raw + b"\n"
        for second in _until(stage, prefixes.split(raw[:8192].decode("utf-8", "replace")).clock):
            stage.pass_second(second, up=health == "up")
        stage.lines += 1
        stage.take(Block(generation=0, offset=offset, data=line, at=stage.now))
        offset += len(line)
        stage.look(up=health == "up")
    for _ in range(4):
        stage.pass_second(stage.now + timedelta(seconds=1), up=health == "up")
    if health == "down":
        stage.take(ProcessSample(at=stage.now, known=True, process=None))
    elif health == "slow":
        for _ in range(4):
            stage.now += timedelta(seconds=_POLL_S)
            stage.take(HealthSample(at=stage.now, result=HealthResult.SLOW))
    return [Heard(trigger=trigger, lines=lines, of=stage.lines) for trigger, lines in stage.heard]


class _Stage:
    """The detector, and what time it is."""

    def __init__(self, check: HealthCheck | None) -> None:
        self.state = detect.begin(None, check)
        self.check = check
        self.now = _T0
        self.clock: int | None = None
        self.lines = 0
        self.heard: list[tuple[Trigger, int]] = []

    def take(self, event: Event) -> None:
        self.state, trigger = detect.step(self.state, event)
        if trigger is not None:
            self.heard.append((trigger, self.lines))

    def pass_second(self, at: datetime, *, up: bool) -> None:
        """A second passes: a tick, and health where it is due."""
        self.now = at
        self.take(Tick(at=at))
        if int((at - _T0).total_seconds()) % _POLL_S == 0 and up:
            self.take(HealthSample(at=at, result=HealthResult.UP))
        self.look(up=up)

    def look(self, *, up: bool) -> None:
        """Ask at once where the detector wants to know."""
        if detect.curious(self.state, self.now):
            self.take(ProcessSample(at=self.now, known=True, process=_PROCESS))
            if up:
                self.take(HealthSample(at=self.now, result=HealthResult.UP))


def _until(stage: _Stage, clock: str | None) -> Iterator[datetime]:
    """The seconds that pass until a line with this clock."""
    if clock is None:
        return
    hours, minutes, seconds = (int(part) for part in clock.split(":"))
    reads = 3600 * hours + 60 * minutes + seconds
    before, stage.clock = stage.clock, reads
    if before is None:
        return
    begun = stage.now
    pause = min((reads - before) % 86_400, _LONGEST_PAUSE_S) if reads - before != 0 else 0
    # A clock that goes back a little is another rank's; that is no time.
    if (reads - before) % 86_400 > 43_200:
        return
    for second in range(1, pause + 1):
        yield begun + timedelta(seconds=second)
