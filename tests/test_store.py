"""The store on a real SQLite file: what is written together is there together, and survives what may happen to it."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import stat
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from tests.support.founding import T0, climbing, final, resolved
from watchd.errors import StoreError
from watchd.model import Checkpoint, Delivery, DeliveryState, LaunchRecord, Stage, Status, Told
from watchd.store import AsyncStore, Store, place, schema

SECOND = timedelta(seconds=1)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state" / "watchd.db"


@pytest.fixture
def store(path):
    with Store(path) as opened:
        yield opened


def a_delivery(incident, sink="hook", **fields):
    given = {"revision": incident.revision, "due_at": T0, "created_at": T0} | fields
    return Delivery(incident=incident.id, sink=sink, **given)


def a_checkpoint(**fields):
    given = {"target": "eagle3", "path": "/data/server.log", "generation": 2, "offset": 8_512}
    hashes = {"prefix": "ab" * 32, "prefix_length": 1024, "witness": "cd" * 32, "witness_length": 64}
    return Checkpoint(**given | hashes | fields)


def a_launch(number, **fields):
    given = {"target": "eagle3", "pid": 4000 + number, "started": 100 * number, "boot_id": "b00t"}
    return LaunchRecord(**given | {"argv": ("python3", "-m", "x"), "seen_at": T0 + number * SECOND} | fields)


# What is filed


def test_an_incident_comes_back_as_it_was_filed(store):
    store.file(final())
    assert store.incident(final().id) == final()
    assert store.incident("unknown") is None


def test_a_later_revision_takes_the_place_of_the_earlier_one(store):
    store.file(climbing())
    store.file(final())
    assert store.incident(climbing().id) == final()
    assert store.open_incidents() == (final(),)


def test_an_open_incident_is_found_by_its_key_until_it_is_resolved(store):
    store.file(final())
    assert store.open_incident(final().key) == final()
    store.file(resolved())
    assert store.open_incident(final().key) is None
    assert store.last_incident(final().key) == resolved()


def test_the_last_incident_of_a_key_is_the_one_opened_last_whatever_its_id(store):
    newer = replace(resolved(climbing(1)), id="a", key="k", opened_at=T0 + SECOND)
    store.file(newer)
    store.file(replace(resolved(climbing(2)), id="z", key="k"))
    assert store.last_incident("k") == newer


def test_two_incidents_of_one_key_are_never_open_together(store):
    store.file(climbing(1))
    with pytest.raises(StoreError, match="UNIQUE"):
        store.file(replace(climbing(2), key=climbing(1).key))
    assert store.open_incidents() == (climbing(1),)


def test_incident_deliveries_and_checkpoint_are_written_together_or_not_at_all(path):
    class Failing(Store):
        def _commit(self, label):
            if label == "file":
                raise sqlite3.OperationalError("database or disk is full")
            super()._commit(label)

    with Failing(path) as store:
        with pytest.raises(StoreError, match="disk is full"):
            store.file(climbing(), [a_delivery(climbing())], a_checkpoint())
        assert store.incident(climbing().id) is None
        assert store.deliveries(climbing().id) == ()
        assert store.checkpoint("eagle3", "/data/server.log") is None
        store.keep([a_checkpoint()])  # and the store goes on


def test_every_change_goes_through_commit_by_its_name(path):
    labels = []

    class Noted(Store):
        def _commit(self, label):
            labels.append(label)
            super()._commit(label)

    with Noted(path) as store:
        store.file(climbing(), [a_delivery(climbing())], a_checkpoint())
        store.keep([a_checkpoint()])
        store.record_launch(a_launch(1))
        store.settle(replace(store.lease("hook", T0).delivery, state=DeliveryState.SENT), said=climbing())
        store.wake("hook", T0)
        store.free_leases()
        store.release("hook", T0)
        store.note("key", "value")
        changes = store._db.total_changes
        assert labels == [
            *("migrate_1", "file", "keep", "launch", "lease", "settle", "wake", "free_leases", "release", "note")
        ]
        store.incident("x"), store.told("x"), store.next_due("hook"), store.depth(), store.lease("hook", T0)
        assert store._db.total_changes == changes


def test_text_that_is_no_unicode_is_stored_without_harm(store):
    store.file(replace(climbing(), summary="bad \udcff byte"))
    assert store.incident(climbing().id).summary == "bad ? byte"


# Checkpoints, launches, notes


def test_a_checkpoint_is_kept_by_target_and_path(store):
    store.keep([a_checkpoint(), a_checkpoint(path="/data/other.log", offset=1)])
    store.keep([a_checkpoint(offset=9_000)])
    assert store.checkpoint("eagle3", "/data/server.log") == a_checkpoint(offset=9_000)
    assert store.checkpoint("eagle3", "/data/other.log") == a_checkpoint(path="/data/other.log", offset=1)
    assert store.checkpoint("other", "/data/server.log") is None


def test_the_last_five_launches_of_a_target_are_kept_newest_first(store):
    for number in range(8):
        store.record_launch(a_launch(number, cwd="/srv"))
    store.record_launch(a_launch(1, target="other"))
    assert store.launches("eagle3") == tuple(a_launch(number, cwd="/srv") for number in (7, 6, 5, 4, 3))
    assert store.launches("other") == (a_launch(1, target="other"),)


def test_a_launch_seen_again_is_one_launch(store):
    store.record_launch(a_launch(1))
    store.record_launch(a_launch(2))
    store.record_launch(a_launch(1, seen_at=T0 + 60 * SECOND))
    assert [launch.pid for launch in store.launches("eagle3")] == [4001, 4002]


def test_a_launch_keeps_bytes_that_are_no_text(store):
    store.record_launch(a_launch(1, argv=("run", "--name", "\udcff")))
    assert store.launches("eagle3")[0].argv == ("run", "--name", "\udcff")


def test_a_note_is_kept(store):
    store.note("started", "once")
    store.note("started", "twice")
    assert store.noted("started") == "twice"
    assert store.noted("nothing") is None


# Deliveries


def test_a_delivery_is_leased_when_it_is_due_and_only_once(store):
    store.file(climbing(), [a_delivery(climbing(), due_at=T0 + 5 * SECOND)])
    assert store.lease("hook", T0) is None
    assert store.next_due("hook") == T0 + 5 * SECOND
    lease = store.lease("hook", T0 + 5 * SECOND)
    assert (lease.incident, lease.told, lease.delivery.attempt) == (climbing(), None, 1)
    assert store.deliveries(climbing().id) == (lease.delivery,)
    assert store.lease("hook", T0 + 60 * SECOND) is None
    assert store.next_due("hook") is None


def test_a_lease_carries_the_newest_state_of_the_incident(store):
    store.file(climbing(), [a_delivery(climbing())])
    store.file(final())
    assert store.lease("hook", T0).incident == final()


def test_each_sink_has_its_own_queue_in_the_order_of_due_times(store):
    store.file(climbing(1), [a_delivery(climbing(1), due_at=T0 + SECOND), a_delivery(climbing(1), "ops")])
    store.file(climbing(2), [a_delivery(climbing(2))])
    later = T0 + 9 * SECOND
    assert [store.lease("hook", later).incident.id for _ in range(2)] == [climbing(2).id, climbing(1).id]
    assert store.lease("ops", later).incident.id == climbing(1).id


def test_a_newer_delivery_takes_the_place_of_the_waiting_one(store):
    store.file(climbing(), [a_delivery(climbing()), a_delivery(climbing(), "ops")])
    store.file(final(), [a_delivery(final())])
    states = [(d.sink, d.revision, d.state) for d in store.deliveries(final().id)]
    assert states == [
        ("hook", 1, DeliveryState.DROPPED),
        ("ops", 1, DeliveryState.PENDING),
        ("hook", 2, DeliveryState.PENDING),
    ]


def test_what_was_owed_soon_is_not_put_off_by_a_newer_revision(store):
    store.file(climbing(), [a_delivery(climbing(), due_at=T0 + 5 * SECOND)])
    store.file(final(), [a_delivery(final(), due_at=T0 + 8 * SECOND)])
    assert store.next_due("hook") == T0 + 5 * SECOND


def test_a_newer_revision_does_not_wait_for_the_back_off_of_the_older_one(store):
    store.file(climbing(), [a_delivery(climbing())])
    lease = store.lease("hook", T0)
    store.settle(replace(lease.delivery, state=DeliveryState.PENDING, due_at=T0 + 300 * SECOND))
    store.file(final(), [a_delivery(final(), due_at=T0 + 8 * SECOND)])
    assert store.next_due("hook") == T0 + 8 * SECOND


def test_a_failed_delivery_makes_way_for_a_newer_one_that_came_meanwhile(store):
    store.file(climbing(), [a_delivery(climbing())])
    lease = store.lease("hook", T0)
    store.file(final(), [a_delivery(final())])
    store.settle(replace(lease.delivery, state=DeliveryState.PENDING, error="HTTP 503"))
    assert [d.state for d in store.deliveries(final().id)] == [DeliveryState.DROPPED, DeliveryState.PENDING]
    assert store.deliveries(final().id)[0].error == "HTTP 503"


def test_what_was_told_is_known_with_its_status_stage_and_cause(store):
    store.file(final(), [a_delivery(final()), a_delivery(final(), "ops"), a_delivery(final(), "untried")])
    store.settle(replace(store.lease("hook", T0).delivery, state=DeliveryState.SENT), said=final())
    store.settle(replace(store.lease("ops", T0).delivery, state=DeliveryState.PENDING))
    assert store.told(final().id) == {
        "hook": Told(confirmed=True, revision=2, status=Status.FIRING, stage=Stage.FINAL, cause=final().cause),
        "ops": Told(confirmed=False),
    }
    assert store.lease("ops", T0).told == Told(confirmed=False)


def test_a_sink_as_a_whole_may_ask_to_wait(store):
    store.file(climbing(1), [a_delivery(climbing(1)), a_delivery(climbing(1), "ops")])
    store.file(climbing(2), [a_delivery(climbing(2))])
    floor = T0 + 30 * SECOND
    store.settle(replace(store.lease("hook", T0).delivery, state=DeliveryState.PENDING), not_before=floor)
    assert store.lease("hook", T0 + 29 * SECOND) is None
    assert store.next_due("hook") == floor
    assert store.lease("ops", T0) is not None
    assert store.lease("hook", floor) is not None


def test_waking_a_sink_ends_back_offs_but_not_the_wait_for_a_climb(store):
    store.file(climbing(1), [a_delivery(climbing(1))])
    store.settle(replace(store.lease("hook", T0).delivery, state=DeliveryState.PENDING, due_at=T0 + 300 * SECOND))
    store.file(climbing(2), [a_delivery(climbing(2), due_at=T0 + 5 * SECOND)])
    store.wake("hook", T0 + SECOND)
    assert [store.deliveries(climbing(n).id)[0].due_at for n in (1, 2)] == [T0 + SECOND, T0 + 5 * SECOND]


def test_leases_of_a_dead_process_are_free_at_the_next_start(path):
    with Store(path) as store:
        store.file(climbing(), [a_delivery(climbing())])
        store.lease("hook", T0)
    with Store(path) as store:
        assert store.lease("hook", T0) is None
        assert store.free_leases() == 1
        lease = store.lease("hook", T0)
        assert (lease.delivery.attempt, lease.told) == (2, Told(confirmed=False))


def test_a_freed_lease_makes_way_for_a_newer_delivery(store):
    store.file(climbing(), [a_delivery(climbing())])
    store.lease("hook", T0)
    store.file(final(), [a_delivery(final())])
    store.free_leases()
    assert [d.state for d in store.deliveries(final().id)] == [DeliveryState.DROPPED, DeliveryState.PENDING]


def test_a_held_delivery_waits_until_it_is_released(store):
    store.file(climbing(), [a_delivery(climbing())])
    store.settle(replace(store.lease("hook", T0).delivery, state=DeliveryState.HELD, error="HTTP 404 no_service"))
    assert store.lease("hook", T0 + 900 * SECOND) is None
    assert store.release("hook", T0 + 900 * SECOND) == 1
    assert store.lease("hook", T0 + 900 * SECOND).delivery.created_at == T0 + 900 * SECOND


def test_depth_counts_by_sink_and_state(store):
    store.file(climbing(1), [a_delivery(climbing(1)), a_delivery(climbing(1), "ops")])
    store.file(climbing(2), [a_delivery(climbing(2))])
    store.lease("hook", T0)
    assert store.depth() == {
        "hook": {DeliveryState.PENDING: 1, DeliveryState.LEASED: 1},
        "ops": {DeliveryState.PENDING: 1},
    }


# The file


def test_the_file_is_for_its_owner_alone_whatever_the_umask(path):
    before = os.umask(0)
    try:
        with Store(path) as store:
            store.file(climbing())
            modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert modes["watchd.db"] == 0o600
    assert set(modes.values()) == {0o600}


def test_a_file_that_others_can_read_is_closed_to_them(path):
    with Store(path):
        pass
    path.chmod(0o644)
    with Store(path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_it_flushes_every_commit_and_writes_ahead(store):
    assert store._db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert store._db.execute("PRAGMA synchronous").fetchone() == (2,)
    assert store._db.execute("PRAGMA busy_timeout").fetchone() == (5000,)


def test_two_processes_never_use_one_store(path, store):
    script = f"from watchd.store import Store\nStore({str(path)!r})"
    second = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=False)
    assert f"another watchd (process {os.getpid()}) is using this store" in second.stderr


def test_a_running_store_can_be_read_but_not_written_from_beside(path, store):
    store.file(climbing())
    with Store(path, read_only=True) as beside:
        assert beside.open_incidents() == (climbing(),)
        with pytest.raises(StoreError, match="readonly"):
            beside.note("key", "value")


def test_the_schema_has_a_version_and_opening_again_changes_nothing(path):
    with Store(path) as store:
        store.file(climbing())
    with Store(path) as store:
        assert store._db.execute("PRAGMA user_version").fetchone() == (len(schema.MIGRATIONS),)
        assert store.open_incidents() == (climbing(),)


def test_a_half_made_migration_leaves_nothing_behind(path, monkeypatch):
    def half(db):
        db.execute("CREATE TABLE half (x)")
        raise sqlite3.OperationalError("power went away")

    with Store(path) as store:
        store.file(climbing())
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, half))
    with pytest.raises(StoreError, match="power went away"):
        Store(path)
    monkeypatch.undo()
    with Store(path) as store:
        assert store._read("SELECT name FROM sqlite_master WHERE name = 'half'") == []
        assert store.open_incidents() == (climbing(),)


def test_a_database_of_a_newer_watchd_is_refused(path):
    with Store(path) as store:
        store._db.execute("PRAGMA user_version = 999")
    with pytest.raises(StoreError, match=r"watchd\.db: written by a newer watchd \(schema 999"):
        Store(path)


def test_another_programs_database_is_refused_and_left_alone(path):
    path.parent.mkdir()
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE theirs (x)")
    other.commit()
    other.close()
    with pytest.raises(StoreError, match="another program's database"):
        Store(path)
    other = sqlite3.connect(path)
    assert other.execute("SELECT name FROM sqlite_master").fetchall() == [("theirs",)]
    other.close()


def test_a_damaged_database_is_refused(path):
    with Store(path) as store:
        for number in range(40):
            store.file(climbing(number))
    content = bytearray(path.read_bytes())
    content[4096 * 3 : 4096 * 6] = b"\xff" * 4096 * 3
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"watchd\.db"):
        Store(path)


def test_a_file_that_is_no_database_is_refused(path):
    path.parent.mkdir()
    path.write_text("[store]\nnot = 'a database'\n" * 100)
    with pytest.raises(StoreError, match="not a database"):
        Store(path)


def test_a_folder_that_cannot_be_made_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="needs a folder in which watchd may write"):
        Store(tmp_path / "file" / "watchd.db")


MOUNTS = """\
proc /proc proc rw,relatime 0 0
/dev/vda / ext4 rw,relatime 0 0
filer:/export /mnt/shared\\040space nfs4 rw,vers=4.2 0 0
/dev/vdb /mnt/shared\\040space/local ext4 rw 0 0
host:/home /home/user fuse.sshfs rw 0 0
"""


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/var/lib/watchd", None),
        ("/mnt/shared space/watchd", "nfs4"),
        ("/mnt/shared space/local/watchd", None),
        ("/mnt/shared spaces", None),
        ("/home/user/watchd", "fuse.sshfs"),
    ],
)
def test_a_network_file_system_is_known_by_its_mount(folder, kind):
    assert place.network_file_system(MOUNTS, Path(folder)) == kind


def test_every_exception_of_sqlite_becomes_ours(store):
    found = [
        kind
        for kind in vars(sqlite3).values()
        if isinstance(kind, type) and issubclass(kind, Exception) and kind.__module__ == "sqlite3"
    ]
    assert len(found) >= 10
    for kind in found:
        with pytest.raises(StoreError, match=r"watchd\.db: reason"), store._ours():
            raise kind("reason")


# From a loop


async def test_calls_from_a_loop_run_in_order_on_one_thread(path):
    store = AsyncStore(Store(path))
    await asyncio.gather(*(store.note("last", str(number)) for number in range(50)))
    assert await store.noted("last") == "49"
    await store.close()


async def test_a_write_is_carried_out_even_if_its_caller_is_cancelled(path):
    store = AsyncStore(Store(path))
    first = asyncio.ensure_future(store.file(climbing()))
    second = asyncio.ensure_future(store.note("key", "value"))
    await asyncio.sleep(0)
    first.cancel()
    second.cancel()
    await store.close()
    with Store(path) as again:
        assert again.noted("key") == "value"
        assert again.open_incidents() == (climbing(),)


# A process killed at any moment

KILLED = """
import os, signal, sys
from tests.support.founding import T0, climbing, final
from tests.test_store import a_checkpoint, a_delivery
from watchd.store import Store

class Killed(Store):
    def _commit(self, label):
        if (label, "before") == (sys.argv[2], sys.argv[3]):
            os.kill(os.getpid(), signal.SIGKILL)
        super()._commit(label)
        if label == sys.argv[2]:
            os.kill(os.getpid(), signal.SIGKILL)

store = Killed(sys.argv[1])
store.file(climbing(), [a_delivery(climbing())], a_checkpoint())
store.lease("hook", T0)
"""


@pytest.mark.parametrize(
    ("label", "moment", "found"),
    [
        ("migrate_1", "before", None),
        ("migrate_1", "after", None),
        ("file", "before", None),
        ("file", "after", DeliveryState.PENDING),
        ("lease", "before", DeliveryState.PENDING),
        ("lease", "after", DeliveryState.LEASED),
    ],
)
def test_a_process_killed_around_a_commit_leaves_all_of_it_or_nothing(path, label, moment, found):
    command = [sys.executable, "-c", KILLED, str(path), label, moment]
    ended = subprocess.run(command, timeout=30, check=False, cwd=Path(__file__).parent.parent)
    assert ended.returncode == -signal.SIGKILL
    with Store(path) as store:
        deliveries = store.deliveries(climbing().id)
        assert [d.state for d in deliveries] == ([] if found is None else [found])
        assert (store.incident(climbing().id) is None) == (found is None)
        assert (store.checkpoint("eagle3", "/data/server.log") is None) == (found is None)
