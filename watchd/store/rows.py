"""Nouns to rows and back; pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from watchd.errors import StoreError
from watchd.model import (
    Cause,
    Checkpoint,
    Delivery,
    DeliveryState,
    Incident,
    LaunchRecord,
    Stage,
    Status,
    Told,
    wire,
)

Row = Sequence[object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """A delivery taken up, with the newest state of its incident and what the sink knew of it before this attempt."""

    delivery: Delivery
    incident: Incident
    told: Told | None


def stamp(at: datetime) -> str:
    """RFC 3339 in UTC with microseconds: 27 characters, which sort like the times."""
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def moment(text: object) -> datetime:
    """What `stamp` wrote."""
    return datetime.fromisoformat(str(text))


def incident_row(incident: Incident) -> Row:
    """For FILE_INCIDENT."""
    return (
        incident.id,
        incident.key,
        None if incident.target is None else incident.target.name,
        incident.status.value,
        incident.stage.value,
        incident.severity.value,
        incident.revision,
        stamp(incident.opened_at),
        stamp(incident.updated_at),
        None if incident.resolved_at is None else stamp(incident.resolved_at),
        # Log bytes that are no text may have come as lone surrogates, which SQLite does not take.
        wire.to_json(incident).encode("utf-8", "replace").decode(),
    )


def incident(document: object) -> Incident:
    """Raises StoreError where the document cannot be read: its writer was another watchd, or the disk lied."""
    try:
        return wire.from_json(str(document))
    except ValueError as error:
        raise StoreError("a stored incident cannot be read; was it written by a newer watchd?") from error


def delivery_row(delivery: Delivery, due_at: datetime) -> Row:
    """For ADD_DELIVERY: without the id, which the database gives."""
    return (
        delivery.incident,
        delivery.sink,
        delivery.revision,
        delivery.state.value,
        stamp(due_at),
        delivery.attempt,
        delivery.error,
        int(delivery.small),
        stamp(delivery.created_at),
    )


def settled_row(delivery: Delivery) -> Row:
    """For SETTLE."""
    return (
        delivery.state.value,
        stamp(delivery.due_at),
        delivery.attempt,
        delivery.error,
        int(delivery.small),
        delivery.id,
    )


def leased(delivery: Delivery) -> Delivery:
    """What LEASE makes of it."""
    return replace(delivery, state=DeliveryState.LEASED, attempt=delivery.attempt + 1)


def delivery(row: Row) -> Delivery:
    """From DUE or DELIVERIES."""
    return Delivery(
        id=whole(row[0]),
        incident=str(row[1]),
        sink=str(row[2]),
        revision=whole(row[3]),
        state=DeliveryState(str(row[4])),
        due_at=moment(row[5]),
        attempt=whole(row[6]),
        error=str(row[7]),
        small=bool(row[8]),
        created_at=moment(row[9]),
    )


def told(row: Row) -> Told:
    """From TOLD, without the sink."""
    return Told(
        confirmed=True,
        revision=whole(row[0]),
        status=Status(str(row[1])),
        stage=Stage(str(row[2])),
        cause=None if row[3] is None else Cause(str(row[3])),
    )


def told_row(incident: Incident, sink: str) -> Row:
    """For KEEP_TOLD."""
    cause = None if incident.cause is None else incident.cause.value
    return (incident.id, sink, incident.revision, incident.status.value, incident.stage.value, cause)


def checkpoint_row(checkpoint: Checkpoint) -> Row:
    """For KEEP_CHECKPOINT."""
    return (
        checkpoint.target,
        checkpoint.path,
        checkpoint.generation,
        checkpoint.offset,
        checkpoint.prefix,
        checkpoint.prefix_length,
        checkpoint.witness,
        checkpoint.witness_length,
    )


def checkpoint(row: Row) -> Checkpoint:
    """From CHECKPOINT."""
    return Checkpoint(
        target=str(row[0]),
        path=str(row[1]),
        generation=whole(row[2]),
        offset=whole(row[3]),
        prefix=str(row[4]),
        prefix_length=whole(row[5]),
        witness=str(row[6]),
        witness_length=whole(row[7]),
    )


def launch_row(launch: LaunchRecord) -> Row:
    """For KEEP_LAUNCH."""
    return (
        launch.target,
        launch.boot_id,
        launch.pid,
        launch.started,
        json.dumps(launch.argv),
        launch.cwd,
        stamp(launch.seen_at),
    )


def launch(row: Row) -> LaunchRecord:
    """From LAUNCHES."""
    return LaunchRecord(
        target=str(row[0]),
        boot_id=str(row[1]),
        pid=whole(row[2]),
        started=whole(row[3]),
        argv=tuple(str(word) for word in json.loads(str(row[4]))),
        cwd=None if row[5] is None else str(row[5]),
        seen_at=moment(row[6]),
    )


def whole(value: object) -> int:
    """A whole number, as SQLite hands it over."""
    assert isinstance(value, int)
    return value
