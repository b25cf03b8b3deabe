"""Which of the files beside a log are its earlier generations, and in which order they were written. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from watchd.hosts.base import FileStat

SLACK_S = 60
"""seconds by which a time of last writing may be late: somebody may have written to a rotated file for a while"""

_PACKED = (".gz", ".xz", ".zst", ".bz2", ".lz4", ".zip")
# .1
# -2
_NUMBER = re.compile(r"[._-](\d{1,4})\Z")
# -20260105
# .2026-01-05_10-00-00
# .1767607200
_DATE = re.compile(r"[._-]\d[\dTZ:._-]{4,40}\Z")


class Kind(Enum):
    """How a rotated file is named: `.1` is the newest, a date the oldest first; of the rest the order is unknown."""

    NUMBER = "number"
    DATE = "date"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sibling:
    """A file whose name begins with the log's; `rank` rises with the time at which it was rotated, within a kind."""

    path: str
    stat: FileStat
    kind: Kind
    rank: str


def sibling(log: str, path: str, stat: FileStat) -> Sibling:
    """A file beside the log, with what its name says."""
    suffix = path.removeprefix(log)
    number = _NUMBER.fullmatch(suffix)
    if number:
        return Sibling(path=path, stat=stat, kind=Kind.NUMBER, rank=f"{9999 - int(number[1]):04d}")
    kind = Kind.DATE if _DATE.fullmatch(suffix) else Kind.OTHER
    return Sibling(path=path, stat=stat, kind=kind, rank=suffix)


def newest(log: str, paths: Iterable[str], limit: int) -> tuple[str, ...]:
    """The names of at most `limit` files that were rotated last, as far as names say; packed ones are left out."""

    def key(path: str) -> tuple[bool, str]:
        named = sibling(log, path, FileStat(size=0, mtime=0))
        return named.kind is not Kind.OTHER, named.rank

    plain = [path for path in paths if not path.endswith(_PACKED)]
    return tuple(sorted(plain, key=key, reverse=True)[:limit])


def oldest_first(siblings: Iterable[Sibling]) -> tuple[Sibling, ...]:
    """In the order in which they were last written; names decide within a second."""
    return tuple(sorted(siblings, key=lambda s: (s.stat.mtime, s.rank)))


def after(found: Sibling, siblings: Iterable[Sibling], since: int) -> tuple[Sibling, ...]:
    """The generations between `found` and the log, oldest first.

    Names say which: `.1` comes after `.2`. A file that was not written since then (whole seconds since 1970) is none
    of them, whatever its name: somebody chose that by hand.
    """
    if found.kind is Kind.OTHER:
        return ()
    later = [s for s in siblings if s.kind is found.kind and s.rank > found.rank and s.stat.mtime >= since - SLACK_S]
    return tuple(sorted(later, key=lambda s: s.rank))
