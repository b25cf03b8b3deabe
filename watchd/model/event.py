"""What happens to a target: bytes of its log, samples of its health, looks at its process; and what they trigger.

All times are aware datetimes in UTC, taken on the machine where watchd runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Some bytes of a log, exactly as they lie in the file.

    generation  which file this is, counted up whenever the log was replaced or truncated; never used again
    offset      where `data` begins in that file, in bytes
    data        never empty
    old         True for text that lay there before watchd looked for the first time: context, no alarm
    at          when it was read
    """

    generation: int
    offset: int
    data: bytes
    at: datetime
    old: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Relaunch:
    """The log began anew: it was truncated or replaced. Its next block starts `generation` at offset 0."""

    generation: int
    reason: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Bytes of a generation that were not read and cannot be: from `start` up to `end`, or to an unknown end."""

    generation: int
    start: int
    end: int | None
    reason: str
    at: datetime


class LogState(StrEnum):
    """How following a log stands, as people are told."""

    LIVE = "live"
    MISSING = "missing"
    DENIED = "denied"
    STALLED = "stalled"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStanding:
    """The state of following changed; `detail` says what to do about it."""

    state: LogState
    detail: str
    at: datetime


class HealthResult(StrEnum):
    """What one sample saw: an expected answer; a refusal or a wrong answer; no answer in time."""

    UP = "up"
    DOWN = "down"
    SLOW = "slow"
    BLIND = "blind"
    """watchd itself could not ask (the SSH connection was gone): no vote."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthSample:
    """One question to a health endpoint and what came of it; `latency_ms` is None where nothing came back."""

    at: datetime
    result: HealthResult
    http_status: int | None = None
    latency_ms: float | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process on the host.

    pid      process id
    parent   id of its parent
    started  clock ticks since boot at which it started: with the pid it is an identity that is not used twice
    argv     its command line; empty for kernel threads
    state    the letter of /proc/PID/stat: R, S, D, Z, …
    """

    pid: int
    parent: int
    started: int
    argv: tuple[str, ...]
    state: str = "S"

    def same(self, other: Process | None) -> bool:
        """Whether the other is this very process, not a later one with its pid."""
        return other is not None and (self.pid, self.started) == (other.pid, other.started)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSample:
    """A look at the target's process: `process` is None when none lives, `known` False when that cannot be seen."""

    at: datetime
    known: bool
    process: Process | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """Time passed."""

    at: datetime


Event = Block | Relaunch | Gap | LogStanding | HealthSample | ProcessSample | Tick


class TriggerKind(StrEnum):
    """Which witness spoke."""

    FATAL_LINE = "fatal_line"
    TRACEBACK = "traceback"
    HEALTH_DOWN = "health_down"
    PROCESS_GONE = "process_gone"
    FIRST_LOOK = "first_look"
    """The log was met for the first time, and the server did not answer or did not live."""
    ASKED = "asked"
    """A person asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """A reason to climb the ladder.

    kind        the witness
    summary     one line: what was seen
    generation  generation of the log that it speaks of, or None
    offset      byte offset of the line that was seen, or None where no line spoke
    begin, end  byte offsets between which the run that it speaks of lies, where other witnesses than the log tell:
                an earlier process was gone by `begin`, a later one was there by `end`
    at          when
    """

    kind: TriggerKind
    summary: str
    at: datetime
    generation: int | None = None
    offset: int | None = None
    begin: int = 0
    end: int | None = None
