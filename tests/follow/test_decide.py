"""What one look at a log means: every verdict from what was seen alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from watchd.follow import decide
from watchd.follow.decide import Drain, Move, Shrink, Sight, Verdict
from watchd.hosts.base import FileStat

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
A, B = (1, 10), (1, 11)


def seen(size=100, mtime=1000, inode=None):
    return FileStat(size=size, mtime=mtime, inode=inode)


def look(path, *, size=100, after=None, held=None, before=None, changed_s=None):
    changed_at = None if changed_s is None else NOON - timedelta(seconds=changed_s)
    return decide.compare(
        Sight(
            size=size, path=path, size_after=size if after is None else after, held=held,
            seen=before or seen(), changed_at=changed_at, now=NOON,
        )
    )  # fmt: skip


@pytest.mark.parametrize(
    ("move", "sight"),
    [
        (Move.KEEP, {"path": seen()}),
        (Move.KEEP, {"path": seen(inode=A), "held": A, "before": seen(inode=A)}),
        (Move.OTHER, {"path": seen(inode=B), "held": A, "before": seen(inode=A)}),
        (Move.OTHER, {"path": seen(inode=A, size=0), "held": A, "before": seen(inode=A)}),
        (Move.KEEP, {"path": seen(size=150, mtime=1001), "after": 150}),
        (Move.KEEP, {"path": seen(size=120, mtime=1001), "after": 150}),
        (Move.OTHER, {"path": seen(size=99)}),
        (Move.OTHER, {"path": seen(size=151), "after": 150}),
        (Move.OTHER, {"path": seen(size=0), "size": 100}),
        (Move.TOUCHED, {"path": seen(mtime=1001)}),
        (Move.TOUCHED, {"path": seen(mtime=999)}),
        (Move.KEEP, {"path": seen(size=200, mtime=1001), "size": 200}),
        (Move.KEEP, {"path": seen(), "changed_s": 1.9}),
        (Move.SETTLE, {"path": seen(), "changed_s": 2}),
        (Move.KEEP, {"path": seen(size=101, mtime=1001), "size": 101, "changed_s": 9}),
    ],
)
def test_the_path_is_judged_by_inode_size_and_time(move, sight):
    assert look(**sight) is move


@pytest.mark.parametrize(
    ("path_matches", "held_matches", "twin", "verdict"),
    [
        (True, True, False, Verdict.SAME),
        (True, False, False, Verdict.SAME),
        (True, True, True, Verdict.REPLACED),
        (False, True, False, Verdict.REPLACED),
        (False, False, False, Verdict.REWRITTEN),
        (True, False, True, Verdict.REWRITTEN),
    ],
)
def test_bytes_settle_what_sizes_cannot(path_matches, held_matches, twin, verdict):
    assert decide.judge(path_matches=path_matches, held_matches=held_matches, twin=twin) is verdict


@pytest.mark.parametrize(
    ("beginning_differs", "seen_before", "verdict"),
    [
        (False, False, Shrink.WAIT),
        (True, False, Shrink.TRUNCATED),
        (False, True, Shrink.TRUNCATED),
        (True, True, Shrink.TRUNCATED),
    ],
)
def test_a_size_that_shrank_needs_other_bytes_or_a_second_look(beginning_differs, seen_before, verdict):
    assert decide.shrink(beginning_differs=beginning_differs, seen_before=seen_before) is verdict


@pytest.mark.parametrize(
    ("quiet_polls", "quiet_s", "since_s", "successor", "verdict"),
    [
        (2, 2, 2, 1, Drain.DONE),
        (1, 9, 9, 1, Drain.WAIT),
        (8, 1.9, 1.9, 1, Drain.WAIT),
        (0, 0, 9.9, 1, Drain.WAIT),
        (0, 0, 10, 1, Drain.LEAVE),
        (2, 2, 60, 1, Drain.DONE),
        (99, 999, 999, 0, Drain.WAIT),
        (0, 0, 999, 0, Drain.WAIT),
    ],
)
def test_a_file_without_a_name_is_left_when_it_is_quiet_and_its_successor_speaks(
    quiet_polls, quiet_s, since_s, successor, verdict
):
    quiet, since = timedelta(seconds=quiet_s), timedelta(seconds=since_s)
    assert decide.drain(quiet_polls=quiet_polls, quiet=quiet, since=since, successor=successor) is verdict


def test_a_log_that_was_never_seen_is_read_from_a_window_before_its_end():
    assert [decide.first_offset(size, 100) for size in (0, 99, 100, 101, 10**12)] == [0, 0, 0, 1, 10**12 - 100]
