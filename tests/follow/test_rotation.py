"""Which file beside a log is which generation."""

from __future__ import annotations

import pytest

from watchd.follow import rotation
from watchd.follow.rotation import Kind
from watchd.hosts.base import FileStat

LOG = "/logs/server.log"


def beside(*names, mtime=1000):
    return tuple(rotation.sibling(LOG, LOG + name, FileStat(size=10, mtime=mtime)) for name in names)


def names(siblings):
    return [sibling.path.removeprefix(LOG) for sibling in siblings]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (".1", Kind.NUMBER),
        ("-2", Kind.NUMBER),
        (".0012", Kind.NUMBER),
        ("-20260105", Kind.DATE),
        (".2026-01-05_10-00-00", Kind.DATE),
        (".20260105T100000Z", Kind.DATE),
        (".1767607200", Kind.DATE),
        (".old", Kind.OTHER),
        (".1.bak", Kind.OTHER),
        ("1", Kind.OTHER),
        (".err", Kind.OTHER),
        (".1\n", Kind.OTHER),
    ],
)
def test_a_name_says_how_a_file_was_rotated(name, kind):
    assert beside(name)[0].kind is kind


def test_of_numbers_the_smallest_came_last():
    assert names(rotation.after(beside(".3")[0], beside(".1", ".10", ".2", ".3"), 1000)) == [".2", ".1"]


def test_of_dates_the_greatest_came_last():
    found = rotation.after(beside("-20260103")[0], beside("-20260105", "-20260102", "-20260104", "-20260103"), 1000)
    assert names(found) == ["-20260104", "-20260105"]


def test_names_of_another_kind_tell_nothing():
    assert rotation.after(beside(".2")[0], beside("-20260105", ".old", ".err"), 1000) == ()
    assert rotation.after(beside(".old")[0], beside(".1", ".2"), 1000) == ()


def test_a_file_that_was_last_written_long_before_is_not_what_came_after():
    """Somebody moved the log to `.2` by hand, and a `.1` of last year stood there."""
    assert rotation.after(beside(".2")[0], beside(".1", mtime=1000), 5000) == ()
    assert names(rotation.after(beside(".2")[0], beside(".1", mtime=4950), 5000)) == [".1"]


def test_the_names_that_were_rotated_last_are_looked_at_first_and_packed_ones_never():
    paths = [LOG + name for name in (".1.gz", ".9", ".1", ".2", ".old", ".3.zst", ".10")]
    assert [path.removeprefix(LOG) for path in rotation.newest(LOG, paths, 3)] == [".1", ".2", ".9"]
    assert [path.removeprefix(LOG) for path in rotation.newest(LOG, paths, 9)] == [".1", ".2", ".9", ".10", ".old"]


def test_oldest_first_goes_by_time_and_within_a_second_by_name():
    found = (*beside(".1", mtime=7), *beside(".3", ".2", mtime=5), *beside(".old", mtime=6))
    assert names(rotation.oldest_first(found)) == [".3", ".2", ".old", ".1"]
