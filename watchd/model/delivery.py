"""What is kept across a restart: how far a log was read, who must still be told, and what started a server."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from watchd.model.incident import Cause, Stage, Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """How far a target's log was read and acted upon.

    target      name of the target
    path        the log
    generation  the file's generation
    offset      bytes: the start of the first line, or oldest unfinished block, that has had no effect yet
    prefix      hex SHA-256 of the file's first `prefix_length` bytes
    witness     hex SHA-256 of the `witness_length` bytes before `offset`: tells a regrown file from the same one
    """

    target: str
    path: str
    generation: int
    offset: int
    prefix: str
    prefix_length: int
    witness: str
    witness_length: int


class DeliveryState(StrEnum):
    """Where a delivery stands. `held` waits for a person, `dead` was given up."""

    PENDING = "pending"
    LEASED = "leased"
    SENT = "sent"
    HELD = "held"
    DEAD = "dead"
    DROPPED = "dropped"
    """a newer one says more"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One message owed to one sink.

    incident    id of the incident
    sink        name of the sink in the configuration
    revision    the incident's revision that asked for it; what is sent is the newest at the time
    due_at      not before this
    attempt     attempts begun so far
    error       why the last attempt failed, without URLs or secrets
    small       the destination found it too large: the next attempt sends the short form
    """

    id: int | None = None
    incident: str
    sink: str
    revision: int
    due_at: datetime
    state: DeliveryState = DeliveryState.PENDING
    attempt: int = 0
    error: str = ""
    small: bool = False
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What one sink was last told of one incident.

    confirmed  False where something newer was tried and never confirmed: it may have been heard, or not
    revision   the newest revision that the sink confirmed, 0 where it never confirmed any; status, stage and cause are
               those of that revision
    """

    confirmed: bool
    revision: int = 0
    status: Status = Status.FIRING
    stage: Stage = Stage.CLIMBING
    cause: Cause | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchRecord:
    """A server as it was seen alive: the launch command is never in the log.

    started  clock ticks since boot at which the process began: with `pid` and `boot_id` an identity used only once
    argv     its command line, secrets already redacted
    cwd      its working directory, or None where that cannot be read
    seen_at  when it was last seen
    """

    target: str
    pid: int
    started: int
    boot_id: str
    argv: tuple[str, ...]
    cwd: str | None = None
    seen_at: datetime
