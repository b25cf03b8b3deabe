"""Which files come next, open and in order, once the held one is no longer the log.

Every function opens files and gives them all to its caller, or, where it raises, closes those that it opened.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime

from watchd.errors import LogUnreadableError
from watchd.follow import decide, rotation, search
from watchd.follow.rotation import Sibling
from watchd.follow.search import Opened
from watchd.follow.stream import Place, Stream
from watchd.hosts.base import LogHandle, LogHost

TRUNCATED = "the log was truncated in place"
REPLACED = "the log was replaced: its path names another file"
AWAY = "the log was truncated or replaced while nobody looked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place0:
    """Where a log is."""

    host: LogHost
    path: str


@dataclass(slots=True, kw_only=True)
class Succession:
    """What comes after the held file.

    streams   open files, in the order in which they are to be read; the last is the one at the path
    rest      the first of them holds what was not read of the held file, under its generation
    missing   generations of files that came and went and cannot be opened, and why
    """

    streams: list[Stream] = field(default_factory=list)
    rest: bool = False
    missing: list[tuple[int, str]] = field(default_factory=list)


class Finder:
    """Looks for the files that come next beside one log."""

    def __init__(self, host: LogHost, path: str) -> None:
        self._host = host
        self._path = path

    async def replaced(self, held: Stream, place: Place, opened: Opened, now: datetime) -> Succession:
        """After `held`, which lost its name: files that came and went, then the one that was opened at the path."""
        async with _opening(opened.handle) as found:
            since = held.seen.mtime if held.seen else 0
            beside = await search.siblings(self._host, self._path)
            known = await search.where(self._host, beside, place, held)
            between = rotation.after(known, beside, since) if known else rotation.unseen(beside, since)
            await self._open_whole(found, between, held.generation, now)
            found.streams.append(await first(opened, _next(found, held.generation), now, REPLACED))
            return found

    async def rewritten(self, held: Stream, handle: LogHandle, now: datetime) -> Succession:
        """After `held`, whose text is gone: the rest in a copy, copies made after that one, then the file from 0."""
        async with _opening(None if handle is held.handle else handle) as found:
            since = held.seen.mtime if held.seen else 0
            beside = await search.siblings(self._host, self._path)
            recent = [s for s in rotation.oldest_first(beside) if s.stat.mtime >= since]
            copy = await search.find(self._host, recent, held.place())
            if copy is not None:
                rest = await _open(found, copy[1], held.place(), now)
                rest.old_until, rest.ended = held.old_until, True
                found.rest = True
                await self._open_whole(found, rotation.after(copy[0], beside, since), held.generation, now)
            anew = await Stream.open(handle, _next(found, held.generation), 0, now)
            anew.inode, anew.why = held.inode, TRUNCATED
            found.streams.append(anew)
            return found

    async def returned(self, place: Place, opened: Opened | None, window: int, now: datetime) -> Succession:
        """After a time in which nobody looked: the file of `place`, those that came and went, the one at the path.

        Without the first of these the last one begins at most `window` bytes before its end.
        """
        async with _opening(opened and opened.handle) as found:
            beside = await search.siblings(self._host, self._path)
            known = await search.find(self._host, reversed(rotation.oldest_first(beside)), place)
            start = 0
            if known is not None:
                rest = await _open(found, known[1], place, now)
                found.rest = True
                between = rotation.after(known[0], beside, known[0].stat.mtime)
                await self._open_whole(found, between, place.generation, now)
                rest.moved_at = now
            elif opened is not None:
                start = decide.first_offset(await opened.handle.size(), window)
            if opened is not None:
                why = AWAY if known is None else REPLACED
                found.streams.append(await first(opened, _next(found, place.generation), now, why, start))
            elif found.streams:
                # Nothing has the name: the newest that there is may still be written to.
                found.streams[-1].moved_at, found.streams[-1].ended = None, False
            return found

    async def _open_whole(
        self, found: Succession, siblings: Iterable[Sibling], generation: int, now: datetime
    ) -> None:
        for sibling in siblings:
            generation += 1
            try:
                handle = await self._host.open_log(sibling.path)
            except LogUnreadableError as error:
                found.missing.append((generation, error.reason))
                continue
            whole = await _open(found, handle, None, now, generation)
            whole.moved_at, whole.ended, whole.why = now, True, REPLACED
