"""Every statement that reads or writes the tables of `schema.py`, as it stands: nothing is ever pasted into SQL."""

from __future__ import annotations

FILE_INCIDENT = """
INSERT INTO incidents (id, key, target, status, stage, severity, revision, opened_at, updated_at, resolved_at, document)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET status = excluded.status, stage = excluded.stage, severity = excluded.severity,
  target = excluded.target, revision = excluded.revision, updated_at = excluded.updated_at,
  resolved_at = excluded.resolved_at, document = excluded.document
"""
INCIDENT = "SELECT document FROM incidents WHERE id = ?"
OPEN_INCIDENT = "SELECT document FROM incidents WHERE key = ? AND status = 'firing'"
LAST_INCIDENT = "SELECT document FROM incidents WHERE key = ? ORDER BY opened_at DESC, id DESC LIMIT 1"
OPEN_INCIDENTS = "SELECT document FROM incidents WHERE status = 'firing' ORDER BY opened_at, id"

KEEP_CHECKPOINT = """
INSERT OR REPLACE INTO checkpoints
  (target, path, generation, "offset", prefix, prefix_length, witness, witness_length)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
CHECKPOINT = """
SELECT target, path, generation, "offset", prefix, prefix_length, witness, witness_length
FROM checkpoints WHERE target = ? AND path = ?
"""

KEEP_LAUNCH = """
INSERT OR REPLACE INTO launches (target, boot_id, pid, started, argv, cwd, seen_at) VALUES (?, ?, ?, ?, ?, ?, ?)
"""
FORGET_LAUNCHES = """
DELETE FROM launches WHERE target = ?1 AND rowid NOT IN
  (SELECT rowid FROM launches WHERE target = ?1 ORDER BY seen_at DESC, rowid DESC LIMIT ?2)
"""
LAUNCHES = """
SELECT target, boot_id, pid, started, argv, cwd, seen_at
FROM launches WHERE target = ? ORDER BY seen_at DESC, rowid DESC
"""

ADD_DELIVERY = """
INSERT INTO deliveries (incident, sink, revision, state, due_at, attempt, error, small, created_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
# A delivery that was tried waits for its back-off; what takes its place need not.
EARLIEST_UNTRIED = """
SELECT min(due_at) FROM deliveries WHERE incident = ? AND sink = ? AND state = 'pending' AND attempt = 0
"""
SUPERSEDE = """
UPDATE deliveries SET state = 'dropped' WHERE incident = ? AND sink = ? AND state IN ('pending', 'held')
"""
DUE = """
SELECT id, incident, sink, revision, state, due_at, attempt, error, small, created_at
FROM deliveries WHERE sink = ? AND state = 'pending' AND due_at <= ? ORDER BY due_at, id LIMIT 1
"""
NEXT_DUE = "SELECT min(due_at) FROM deliveries WHERE sink = ? AND state = 'pending'"
LEASE = "UPDATE deliveries SET state = 'leased', attempt = attempt + 1 WHERE id = ?"
SETTLE = """
UPDATE deliveries SET due_at = ?2, attempt = ?3, error = ?4, small = ?5,
  state = CASE WHEN ?1 IN ('pending', 'held') AND EXISTS (
      SELECT 1 FROM deliveries newer WHERE newer.incident = deliveries.incident AND newer.sink = deliveries.sink
      AND newer.state = 'pending' AND newer.id > deliveries.id)
    THEN 'dropped' ELSE ?1 END
WHERE id = ?6
"""
FREE_LEASES = """
UPDATE deliveries SET state = CASE WHEN EXISTS (
    SELECT 1 FROM deliveries newer WHERE newer.incident = deliveries.incident AND newer.sink = deliveries.sink
    AND newer.state = 'pending' AND newer.id > deliveries.id)
  THEN 'dropped' ELSE 'pending' END
WHERE state = 'leased'
"""
WAKE = """
UPDATE deliveries SET due_at = ?2 WHERE sink = ?1 AND state = 'pending' AND attempt > 0 AND due_at > ?2
"""
RELEASE = """
UPDATE deliveries SET state = 'pending', due_at = ?2, created_at = ?2 WHERE sink = ?1 AND state = 'held'
"""
DELIVERIES = """
SELECT id, incident, sink, revision, state, due_at, attempt, error, small, created_at
FROM deliveries WHERE incident = ? ORDER BY id
"""
DEPTH = "SELECT sink, state, count(*) FROM deliveries GROUP BY sink, state"

KEEP_TOLD = "INSERT OR REPLACE INTO told (incident, sink, revision, status, stage, cause) VALUES (?, ?, ?, ?, ?, ?)"
TOLD = "SELECT sink, revision, status, stage, cause FROM told WHERE incident = ?"
# The last attempt was never confirmed.
UNSURE = """
SELECT sink FROM deliveries WHERE incident = ? AND attempt > 0
GROUP BY sink HAVING max(id) > coalesce(max(CASE WHEN state = 'sent' THEN id END), 0)
"""

KEEP_FLOOR = "INSERT OR REPLACE INTO sinks (name, not_before) VALUES (?, ?)"
FLOOR = "SELECT not_before FROM sinks WHERE name = ?"

NOTE = "INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)"
NOTED = "SELECT value FROM meta WHERE key = ?"
