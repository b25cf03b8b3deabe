"""The tables, one migration after the other: a database says in `user_version` how many it has had.

A migration that was released is never changed; a new one is added at the end of `MIGRATIONS`. Times are RFC 3339
text in UTC with microseconds, always of one length, so that they sort as text. No clause here needs SQLite newer
than 3.34, which RHEL 9 has.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

from watchd.errors import StoreError

APPLICATION = 0x77746864
"""`wthd`, in the header of each database: sqlite.org/pragma.html#pragma_application_id."""

_FIRST = """
CREATE TABLE meta (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
);

CREATE TABLE incidents (
  id TEXT PRIMARY KEY,
  key TEXT NOT NULL,
  target TEXT,
  status TEXT NOT NULL CHECK (status IN ('firing', 'resolved')),
  stage TEXT NOT NULL,
  severity TEXT NOT NULL,
  revision INTEGER NOT NULL,
  opened_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  resolved_at TEXT,
  document TEXT NOT NULL
);
-- What is one to people is one here: a key has at most one open incident.
CREATE UNIQUE INDEX incidents_open ON incidents (key) WHERE status = 'firing';
CREATE INDEX incidents_key ON incidents (key, opened_at);

CREATE TABLE deliveries (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  incident TEXT NOT NULL REFERENCES incidents (id),
  sink TEXT NOT NULL,
  revision INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('pending', 'leased', 'sent', 'held', 'dead', 'dropped')),
  due_at TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  error TEXT NOT NULL,
  small INTEGER NOT NULL,
  created_at TEXT NOT NULL
);
CREATE INDEX deliveries_due ON deliveries (sink, due_at) WHERE state = 'pending';
CREATE INDEX deliveries_incident ON deliveries (incident, sink);

CREATE TABLE told (
  incident TEXT NOT NULL REFERENCES incidents (id),
  sink TEXT NOT NULL,
  revision INTEGER NOT NULL,
  status TEXT NOT NULL,
  stage TEXT NOT NULL,
  cause TEXT,
  PRIMARY KEY (incident, sink)
);

CREATE TABLE sinks (
  name TEXT PRIMARY KEY,
  not_before TEXT NOT NULL
);

CREATE TABLE checkpoints (
  target TEXT NOT NULL,
  path TEXT NOT NULL,
  generation INTEGER NOT NULL,
  "offset" INTEGER NOT NULL,
  prefix TEXT NOT NULL,
  prefix_length INTEGER NOT NULL,
  witness TEXT NOT NULL,
  witness_length INTEGER NOT NULL,
  PRIMARY KEY (target, path)
);

CREATE TABLE launches (
  target TEXT NOT NULL,
  boot_id TEXT NOT NULL,
  pid INTEGER NOT NULL,
  started INTEGER NOT NULL,
  argv TEXT NOT NULL,
  cwd TEXT,
  seen_at TEXT NOT NULL,
  PRIMARY KEY (target, boot_id, pid, started)
);
"""


def _begin(db: sqlite3.Connection) -> None:
    db.execute(f"PRAGMA application_id = {APPLICATION}")
    for statement in _FIRST.split(";\n"):
        db.execute(statement)


MIGRATIONS: tuple[Callable[[sqlite3.Connection], None], ...] = (_begin,)


def version(db: sqlite3.Connection, path: Path) -> int:
    """How many migrations this database has had. Raises StoreError where it is not watchd's, or of a newer watchd."""
    (found,) = db.execute("PRAGMA user_version").fetchone()
    (application,) = db.execute("PRAGMA application_id").fetchone()
    (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if (tables or found) and application != APPLICATION:
        raise StoreError(f"{path}: this is another program's database; name a file of watchd's own")
    if found > len(MIGRATIONS):
        raise StoreError(
            f"{path}: written by a newer watchd (schema {found}, this one knows {len(MIGRATIONS)}); upgrade watchd"
        )
    return int(found)
