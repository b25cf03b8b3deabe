"""The store on SQLite: one connection, one process, every change flushed to the disk before it counts.

Not thread-safe: `threaded.AsyncStore` gives it a thread of its own. Every change goes through `_commit`, by name.
"""

from __future__ import annotations

import os
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import TracebackType

from watchd.errors import StoreError
from watchd.model import Checkpoint, Delivery, DeliveryState, Incident, LaunchRecord, Told
from watchd.store import place, queries, rows, schema
from watchd.store.rows import Lease, stamp

BUSY_S = 5.0
LAUNCHES_KEPT = 5
NEVER = Told(confirmed=False)


class Store:
    """A database file. Opening checks it, brings it to the present schema, and takes it for this process alone.

    With `read_only` it is opened as it is, beside a running watchd, and nothing can be written.
    Every method raises StoreError where the database cannot be read or written.
    """

    def __init__(self, path: str | Path, *, read_only: bool = False) -> None:
        self._path = Path(path).absolute()
        self._lock: int | None = None
        if not read_only:
            place.prepare(self._path)
            self._lock = place.claim(self._path)
        try:
            with self._ours():
                self._db = self._connect("ro" if read_only else "rw")
            self._open(read_only=read_only)
        except BaseException:
            self._unlock()
            raise

    def __enter__(self) -> Store:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        with self._ours():
            self._db.close()
        self._unlock()

    # Incidents

    def file(
        self, incident: Incident, deliveries: Iterable[Delivery] = (), checkpoint: Checkpoint | None = None
    ) -> None:
        """Write an incident, whom to tell, and how far the log was read for it: all or nothing.

        A delivery takes the place of those of the same incident and sink that wait or are held, and is due no later
        than one of them that was never tried.
        """
        with self._transaction("file") as db:
            db.execute(queries.FILE_INCIDENT, rows.incident_row(incident))
            for delivery in deliveries:
                which = (delivery.incident, delivery.sink)
                (untried,) = db.execute(queries.EARLIEST_UNTRIED, which).fetchone()
                db.execute(queries.SUPERSEDE, which)
                due = delivery.due_at if untried is None else min(delivery.due_at, rows.moment(untried))
                db.execute(queries.ADD_DELIVERY, rows.delivery_row(delivery, due))
            if checkpoint is not None:
                db.execute(queries.KEEP_CHECKPOINT, rows.checkpoint_row(checkpoint))

    def incident(self, incident: str) -> Incident | None:
        """The incident with this id, its times to the millisecond."""
        return self._incident(queries.INCIDENT, incident)

    def open_incident(self, key: str) -> Incident | None:
        """The incident of this key that still fires."""
        return self._incident(queries.OPEN_INCIDENT, key)

    def last_incident(self, key: str) -> Incident | None:
        """The newest incident of this key, open or not."""
        return self._incident(queries.LAST_INCIDENT, key)

    def open_incidents(self) -> tuple[Incident, ...]:
        """Every incident that still fires, the oldest first."""
        return tuple(rows.incident(document) for (document,) in self._read(queries.OPEN_INCIDENTS))

    # Checkpoints and launches

    def keep(self, checkpoints: Iterable[Checkpoint]) -> None:
        """Write checkpoints that had no other effect, in one transaction."""
        with self._transaction("keep") as db:
            db.executemany(queries.KEEP_CHECKPOINT, [rows.checkpoint_row(checkpoint) for checkpoint in checkpoints])

    def checkpoint(self, target: str, path: str) -> Checkpoint | None:
        """How far this log was read, or None where it never was."""
        found = self._read(queries.CHECKPOINT, target, path)
        return rows.checkpoint(found[0]) if found else None

    def record_launch(self, launch: LaunchRecord) -> None:
        """Note a server seen alive; of each target the last five are kept."""
        with self._transaction("launch") as db:
            db.execute(queries.KEEP_LAUNCH, rows.launch_row(launch))
            db.execute(queries.FORGET_LAUNCHES, (launch.target, LAUNCHES_KEPT))

    def launches(self, target: str) -> tuple[LaunchRecord, ...]:
        """The servers of this target last seen alive, the newest first."""
        return tuple(rows.launch(row) for row in self._read(queries.LAUNCHES, target))

    # Deliveries

    def lease(self, sink: str, now: datetime) -> Lease | None:
        """Take up the delivery of this sink that has been due longest, or None; the attempt counts from here on."""
        floor = self._floor(sink)
        found = [] if floor is not None and floor > now else self._read(queries.DUE, sink, stamp(now))
        if not found:
            return None
        waiting = rows.delivery(found[0])
        told = self.told(waiting.incident).get(sink)
        incident = self.incident(waiting.incident)
        assert incident is not None  # REFERENCES in the schema
        with self._transaction("lease") as db:
            db.execute(queries.LEASE, (waiting.id,))
        return Lease(delivery=rows.leased(waiting), incident=incident, told=told)

    def settle(self, delivery: Delivery, *, said: Incident | None = None, not_before: datetime | None = None) -> None:
        """Write what became of a leased delivery.

        said        the state of the incident that the sink confirmed, None where it confirmed nothing
        not_before  the sink as a whole wants nothing before this

        One that would wait or be held is dropped where a newer one of the same incident and sink waits already.
        """
        with self._transaction("settle") as db:
            db.execute(queries.SETTLE, rows.settled_row(delivery))
            if said is not None:
                db.execute(queries.KEEP_TOLD, rows.told_row(said, delivery.sink))
            if not_before is not None:
                db.execute(queries.KEEP_FLOOR, (delivery.sink, stamp(not_before)))

    def told(self, incident: str) -> Mapping[str, Told]:
        """What each sink was last told of this incident; a sink that was never tried is missing."""
        found = {str(row[0]): rows.told(row[1:]) for row in self._read(queries.TOLD, incident)}
        for (sink,) in self._read(queries.UNSURE, incident):
            found[str(sink)] = replace(found.get(str(sink), NEVER), confirmed=False)
        return found

    def next_due(self, sink: str) -> datetime | None:
        """When this sink's next delivery is due, or None where none waits."""
        ((due,),) = self._read(queries.NEXT_DUE, sink)
        if due is None:
            return None
        floor = self._floor(sink)
        return rows.moment(due) if floor is None else max(rows.moment(due), floor)

    def wake(self, sink: str, now: datetime) -> None:
        """Make every delivery of this sink that waits to be tried again due at once: the sink answers."""
        with self._transaction("wake") as db:
            db.execute(queries.WAKE, (sink, stamp(now)))

    def free_leases(self) -> int:
        """Let every leased delivery wait again, at a start: whoever held them is dead. Returns how many."""
        with self._transaction("free_leases") as db:
            return db.execute(queries.FREE_LEASES).rowcount

    def release(self, sink: str, now: datetime) -> int:
        """Let this sink's held deliveries wait again, as if owed since now: somebody may have mended it."""
        with self._transaction("release") as db:
            return db.execute(queries.RELEASE, (sink, stamp(now))).rowcount

    def deliveries(self, incident: str) -> tuple[Delivery, ...]:
        """Every delivery of this incident, in the order in which they were owed."""
        return tuple(rows.delivery(row) for row in self._read(queries.DELIVERIES, incident))

    def depth(self) -> Mapping[str, Mapping[DeliveryState, int]]:
        """How many deliveries of each sink stand in each state."""
        found: defaultdict[str, dict[DeliveryState, int]] = defaultdict(dict)
        for sink, state, count in self._read(queries.DEPTH):
            found[str(sink)][DeliveryState(str(state))] = rows.whole(count)
        return dict(found)

    # Notes of the daemon's own

    def note(self, key: str, value: str) -> None:
        """Write a word about watchd itself; also the proof that the store can be written."""
        with self._transaction("note") as db:
            db.execute(queries.NOTE, (key, value))

    def noted(self, key: str) -> str | None:
        """What was noted under this key."""
        found = self._read(queries.NOTED, key)
        return str(found[0][0]) if found else None

    # Inside

    def _commit(self, label: str) -> None:
        """Flush a transaction to the disk; `label` names what it wrote."""
        del label
        self._db.execute("COMMIT")

    @contextmanager
    def _transaction(self, label: str) -> Iterator[sqlite3.Connection]:
        with self._ours():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._commit(label)
            except BaseException:
                with suppress(sqlite3.Error):
                    self._db.execute("ROLLBACK")
                raise

    @contextmanager
    def _ours(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, sqlite3.Warning) as error:
            raise StoreError(f"{self._path}: {error}") from error

    def _read(self, query: str, *values: object) -> list[tuple[object, ...]]:
        with self._ours():
            return self._db.execute(query, values).fetchall()

    def _incident(self, query: str, value: str) -> Incident | None:
        found = self._read(query, value)
        return rows.incident(found[0][0]) if found else None

    def _floor(self, sink: str) -> datetime | None:
        found = self._read(queries.FLOOR, sink)
        return rows.moment(found[0][0]) if found else None

    def _connect(self, mode: str) -> sqlite3.Connection:
        address = f"{self._path.as_uri()}?mode={mode}"
        return sqlite3.connect(address, uri=True, timeout=BUSY_S, isolation_level=None, check_same_thread=False)

    def _open(self, *, read_only: bool) -> None:
        try:
            with self._ours():
                self._check()
                had = schema.version(self._db, self._path)
                if not read_only:
                    self._prepare()
                    self._migrate(had)
        except BaseException:
            self._db.close()
            raise

    def _check(self) -> None:
        (first, *_) = self._db.execute("PRAGMA integrity_check(1)").fetchone()
        if first != "ok":
            raise StoreError(f"{self._path}: damaged ({first}); move it away, or put a copy back, and start again")

    def _prepare(self) -> None:
        (mode,) = self._db.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            raise StoreError(f"{self._path}: write-ahead logging cannot be switched on here; use a local disk")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.execute("PRAGMA foreign_keys = ON")

    def _migrate(self, had: int) -> None:
        for number, migrate in enumerate(schema.MIGRATIONS[had:], start=had + 1):
            with self._transaction(f"migrate_{number}") as db:
                migrate(db)
                db.execute(f"PRAGMA user_version = {number}")

    def _unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
