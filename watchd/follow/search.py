"""Looking for a file that lost its name among those beside the log."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from watchd.errors import LogUnreadableError
from watchd.follow import rotation
from watchd.follow.rotation import Sibling
from watchd.follow.stream import EVER, Place, Stream
from watchd.hosts.base import FileStat, LogHandle, LogHost

LIMIT = 20
"""files beside a log that are looked at"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """An open file and the path that named it; `stat.inode` is the open file's, or None."""

    handle: LogHandle
    stat: FileStat


class Held(Protocol):
    """The held file as it was last seen: `inode` None where unknown, `seen` what its path named."""

    size: int
    inode: tuple[int, int] | None
    seen: FileStat | None


async def open_at(host: LogHost, path: str) -> Opened | None:
    """Open what the path names; None where it names nothing. Raises LogUnreadableError, HostError.

    Where inodes are known, path and open file are the same one: the path may be renamed at any moment.
    """
    before = await host.stat(path)
    for _ in range(3):
        if before is None:
            return None
        try:
            handle = await host.open_log(path)
        except LogUnreadableError:
            if await host.stat(path) is None:
                return None
            raise
        if before.inode is None:
            return Opened(handle=handle, stat=before)
        try:
            after = await host.stat(path)
        except BaseException:
            await handle.close()
            raise
        if after is not None and after.inode == before.inode:
            return Opened(handle=handle, stat=before)
        await handle.close()
        before = after
    return None


async def is_one(held: Stream, opened: Opened) -> bool:
    """Whether two files without text are one, as far as anybody can tell."""
    if held.inode is not None and opened.stat.inode is not None:
        return held.inode == opened.stat.inode
    return await held.held.size() == await opened.handle.size()


async def siblings(host: LogHost, log: str) -> tuple[Sibling, ...]:
    """The files beside the log that may be earlier generations of it, at most LIMIT, packed ones left out."""
    try:
        names = await host.siblings(log)
    except LogUnreadableError:
        return ()
    found = [(path, await _stat(host, path)) for path in rotation.newest(log, names, LIMIT)]
    return tuple(rotation.sibling(log, path, seen) for path, seen in found if seen is not None)


async def _stat(host: LogHost, path: str) -> FileStat | None:
    try:
        return await host.stat(path)
    except LogUnreadableError:
        return None


async def find(
    host: LogHost, candidates: Iterable[Sibling], place: Place, now: datetime
) -> tuple[Sibling, Stream] | None:
    """The first of these files that has the text that was read, open at that place. Raises HostError."""
    if not place.prefix_length:
        return None  # of an empty file nothing was read: any file would do
    for candidate in candidates:
        if candidate.stat.size < max(place.offset, place.prefix_length):
            continue
        handle = None
        try:
            handle = await host.open_log(candidate.path)
            stream = await Stream.open(handle, place.generation, place.offset, now)
            if stream.proves(place):
                return candidate, stream
        except LogUnreadableError:
            pass
        except BaseException:
            if handle is not None:
                await handle.close()
            raise
        if handle is not None:
            await handle.close()
    return None


async def where(
    host: LogHost, beside: Sequence[Sibling], place: Place, inode: tuple[int, int] | None
) -> Sibling | None:
    """Which of these files is the one held open, or has its text. Raises HostError."""
    if inode is not None:
        itself = next((s for s in beside if s.stat.inode == inode), None)
        if itself is not None:
            return itself
    return await _closed(find(host, reversed(rotation.oldest_first(beside)), place, EVER))


async def twin(host: LogHost, beside: Sequence[Sibling], place: Place, held: Held) -> Sibling | None:
    """The same where the log's successor has the same text, so that text alone proves nothing. Raises HostError.

    Renaming changes neither size nor time of last writing; a copy that somebody made has a time of its own.
    """
    if held.inode is not None:
        return next((s for s in beside if s.stat.inode == held.inode), None)
    seen = held.seen
    exact = [
        s
        for s in beside
        if s.stat.size == held.size
        and (seen is None or (s.stat.mtime == seen.mtime if seen.size == held.size else s.stat.mtime >= seen.mtime))
    ]
    return await _closed(find(host, exact, place, EVER))


async def _closed(finding: Awaitable[tuple[Sibling, Stream] | None]) -> Sibling | None:
    found = await finding
    if found is None:
        return None
    await found[1].held.close()
    return found[0]
