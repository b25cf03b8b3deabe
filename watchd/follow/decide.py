"""What one look at a log means. Pure: everything that was seen comes in, a verdict with its reason goes out.

SFTP tells neither inode nor device, and its times are whole seconds. So that the path still names the held file is
concluded from sizes, and where sizes leave a doubt, from bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from watchd.hosts.base import FileStat

GRACE = timedelta(seconds=10)
"""how long a file that lost its name is still read while somebody goes on writing to it"""
QUIET_POLLS = 2
QUIET = timedelta(seconds=2)
"""how long, and how many polls, such a file must have stood still to count as finished"""
SETTLE = timedelta(seconds=2)
"""how long after the last change a quiet log is compared once more: two writes may fall into one whole second"""


class Move(Enum):
    """What to do about the path.

    KEEP     it names the held file
    SETTLE   it seems to; compare once, since nobody can tell within a whole second
    TOUCHED  written anew with the same size, or only touched: compare
    OTHER    it names another file: compare, it may be a copy with the same text
    """

    KEEP = "keep"
    SETTLE = "settle"
    TOUCHED = "touched"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What was seen of a log, in this order: the held file's size, the path, the held file's size once more.

    held        device and inode of the held file, where known
    seen        the path when it was last known to name the held file
    changed_at  when it last looked different; None once it was compared after that
    """

    size: int
    path: FileStat
    size_after: int
    held: tuple[int, int] | None
    seen: FileStat | None
    changed_at: datetime | None
    now: datetime


def compare(sight: Sight) -> Move:
    """Whether the path names the held file."""
    path, seen = sight.path, sight.seen
    if path.inode is not None and sight.held is not None and path.inode != sight.held:
        return Move.OTHER
    if not sight.size <= path.size <= sight.size_after:
        return Move.OTHER
    if seen is not None and path.size == seen.size and path.mtime != seen.mtime:
        return Move.TOUCHED
    if sight.changed_at is not None and path == seen and sight.now - sight.changed_at >= SETTLE:
        return Move.SETTLE
    return Move.KEEP


class Verdict(Enum):
    """What the comparison of bytes came to."""

    SAME = "same"
    """the path names a file with the same text: go on in it"""
    REPLACED = "replaced"
    """it names another file; the held one still has the rest of its text"""
    REWRITTEN = "rewritten"
    """the held file itself has other text now"""


def judge(*, path_matches: bool, held_matches: bool, twin: bool) -> Verdict:
    """`path_matches`, `held_matches`: the file has the text that was read, as far as it was read.

    `twin`: a third file beside the log has it too, so the log was renamed and its successor begins with the same text.
    """
    if path_matches and not twin:
        return Verdict.SAME
    return Verdict.REPLACED if held_matches else Verdict.REWRITTEN


class Shrink(Enum):
    """What a file that is shorter than what was read of it means."""

    WAIT = "wait"
    """a cached size may be stale: look again"""
    TRUNCATED = "truncated"


def shrink(*, beginning_differs: bool, seen_before: bool) -> Shrink:
    """A file is truncated when its first bytes are others now, or when a second look finds it short as well."""
    return Shrink.TRUNCATED if beginning_differs or seen_before else Shrink.WAIT


class Drain(Enum):
    """Whether to go on with a file that lost its name."""

    WAIT = "wait"
    DONE = "done"
    LEAVE = "leave"
    """it is still written to, but so is its successor, and that one counts"""


def drain(*, quiet_polls: int, quiet: timedelta, since: timedelta, successor: int) -> Drain:
    """`successor`: bytes in the file that has the name now. As long as that one is empty there is nothing to hurry to:
    a server whose log was moved away goes on writing to the old file.
    """
    if successor == 0:
        return Drain.WAIT
    if quiet_polls >= QUIET_POLLS and quiet >= QUIET:
        return Drain.DONE
    return Drain.LEAVE if since >= GRACE else Drain.WAIT


def first_offset(size: int, window: int) -> int:
    """Where reading begins in a log that was never seen."""
    return max(0, size - window)
