"""What is kept across a restart: how far a log was read, and who must still be told."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


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
    attempt     attempts made so far
    error       why the last attempt failed, without URLs or secrets
    """

    id: int | None = None
    incident: str
    sink: str
    revision: int
    due_at: datetime
    state: DeliveryState = DeliveryState.PENDING
    attempt: int = 0
    error: str = ""
    created_at: datetime
