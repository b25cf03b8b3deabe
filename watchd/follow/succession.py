"""Which files come next, open and in order, once the held one is no longer the log.

Each function gives all files that it opened to its caller, or closes them where it raises.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from types import TracebackType

from watchd.errors import LogUnreadableError
from watchd.follow import decide, rotation, search
from watchd.follow.rotation import Sibling
from watchd.follow.search import Opened
from watchd.follow.stream import EVER, Place, Stream
from watchd.hosts.base import LogHandle, LogHost

TRUNCATED = "the log was truncated in place"
REPLACED = "the log was replaced: its path names another file"
AWAY = "the log was truncated or replaced while nobody looked"

DONE = 16
"""finished files that are known again"""

Beside = tuple[Sibling, ...]


@dataclass(slots=True, kw_only=True)
class Log:
    """Where the log is, and the ends of files that were read: none of them comes again, whatever it is called now."""

    host: LogHost
    path: str
    done: deque[Place] = field(default_factory=lambda: deque(maxlen=DONE))


@dataclass(slots=True, kw_only=True)
class Succession:
    """What comes after the held file.

    streams   open files, in the order in which they are to be read; the last one is the log from now on
    rest      the first of them holds what was not read of the held file, under its generation
    missing   files that came and went and cannot be opened: generation, and why
    instead   the held file under the name that it has now, where that one holds more of its text
    """

    streams: list[Stream] = field(default_factory=list)
    rest: bool = False
    missing: list[tuple[int, str]] = field(default_factory=list)
    instead: LogHandle | None = None


async def replaced(log: Log, held: Stream, opened: Opened, now: datetime) -> Succession:
    """After `held`, which lost its name: files that came and went, then the one that was opened at the path.

    Of a file that was deleted nothing tells what came after it: then the one at the path comes next.
    """

    async def once(beside: Beside, opening: _Opening) -> Succession:
        # Asked in this order: what is written to the held file meanwhile cannot make it look like one that is new.
        known = await search.where(log.host, beside, await _present(held.held), held.inode)
        between = rotation.after(known, beside, held.since) if known else ()
        between = await _before(log, between, opened.handle, opened.stat.inode)
        found = await _whole(log.host, between, held.generation, opening, now)
        last = await at_path(opened, held.generation + len(between) + 1, 0, REPLACED, now)
        last.since = _newest(between, last.since)
        found.streams.append(last)
        if known is not None and (known.stat.size > held.size or known.stat.inode != held.inode):
            # An editor, or a writer that copies, had put this file in the place of the held one before it was renamed.
            found.instead = await log.host.open_log(known.path)
            opening.handles.append(found.instead)
        return found

    return await _steady(log, once, opened)


async def rewritten(log: Log, held: Stream, now: datetime) -> Succession:
    """After `held`, whose text is gone: the rest in a copy, copies made after that one, then the file from 0."""
    place, since = held.place(), held.since

    async def once(beside: Beside, opening: _Opening) -> Succession:
        recent = (sibling for sibling in rotation.oldest_first(beside) if sibling.stat.mtime >= since)
        copy = await search.find(log.host, recent, place, now)
        between: Beside = ()
        if copy is not None:
            opening.handles.append(copy[1].held)
            between = await _before(log, rotation.after(copy[0], beside, since), held.held, held.inode)
        found = await _whole(log.host, between, held.generation, opening, now)
        if copy is not None:
            rest = copy[1]
            rest.old_until, rest.ended, rest.moved_at = held.old_until, True, now
            found.streams.insert(0, rest)
            found.rest = True
        anew = await Stream.open(held.held, held.generation + len(between) + 1, 0, now)
        anew.inode, anew.why, anew.since = held.inode, TRUNCATED, _newest(between, since)
        found.streams.append(anew)
        return found

    return await _steady(log, once, None)


async def returned(
    log: Log, place: Place, opened: Opened | None, *, window: int, used: int, now: datetime
) -> Succession:
    """After a time in which nobody looked: the file of `place`, those that came and went, the one at the path.

    Where the first of these is found nowhere, the last begins at most `window` bytes before its end. No generation up to
    `used` is given to another file.
    """
    given = max(used, place.generation)

    async def once(beside: Beside, opening: _Opening) -> Succession:
        known = await search.find(log.host, reversed(rotation.oldest_first(beside)), place, now)
        between: Beside = ()
        if known is not None:
            opening.handles.append(known[1].held)
            between = await _unread(log, rotation.after(known[0], beside, known[0].stat.mtime))
            if opened is not None:
                between = await _before(log, between, opened.handle, opened.stat.inode)
        found = await _whole(log.host, between, given, opening, now)
        if known is not None:
            known[1].moved_at = now
            found.streams.insert(0, known[1])
            found.rest = True
        if opened is not None:
            start = 0 if known else decide.first_offset(await opened.handle.size(), window)
            generation = given + len(between) + 1
            last = await at_path(opened, generation, start, REPLACED if known else AWAY, now)
            last.since = _newest(between, last.since)
            found.streams.append(last)
        elif found.streams:
            # Nothing has the name: the newest that there is may still be written to.
            found.streams[-1].moved_at, found.streams[-1].ended = None, False
        return found

    return await _steady(log, once, opened)


async def _steady(
    log: Log, once: Callable[[Beside, _Opening], Awaitable[Succession]], opened: Opened | None
) -> Succession:
    """What `once` makes of the files beside the log, when these are the same before and after: names move meanwhile."""
    async with _Opening(*([opened.handle] if opened else [])) as kept:
        for last in (False, False, True):
            beside = await search.siblings(log.host, log.path)
            async with _Opening() as opening:
                found = await once(beside, opening)
                if last or await search.siblings(log.host, log.path) == beside:
                    return found
                await opening.close()
    raise AssertionError(kept)


async def at_path(opened: Opened, generation: int, start: int, why: str, now: datetime) -> Stream:
    """The file at the path, to be read from `start` on. Raises LogUnreadableError, HostError."""
    stream = await Stream.open(opened.handle, generation, start, now)
    stream.why = why
    stream.inode, stream.seen, stream.changed_at = opened.stat.inode, opened.stat, now
    stream.since = opened.stat.mtime
    return stream


def _newest(siblings: Beside, since: int) -> int:
    return max([since, *(sibling.stat.mtime for sibling in siblings)])


async def _before(log: Log, siblings: Beside, handle: LogHandle, inode: tuple[int, int] | None) -> Beside:
    """The unread ones before the open file: it may have lost its name since it was opened, and stand among them."""
    if not siblings:
        return ()
    itself = await search.where(log.host, siblings, await _present(handle), inode)
    return await _unread(log, siblings[: siblings.index(itself)] if itself else siblings)


async def _unread(log: Log, siblings: Beside) -> Beside:
    for place in log.done if siblings else ():
        known = await search.where(log.host, siblings, place, None)
        siblings = tuple(sibling for sibling in siblings if sibling is not known)
    return siblings


async def _present(handle: LogHandle) -> Place:
    """The end of the file as it is now."""
    return (await Stream.open(handle, 0, await handle.size(), EVER)).place()


async def _whole(
    host: LogHost, siblings: Iterable[Sibling], generation: int, opening: _Opening, now: datetime
) -> Succession:
    """Open files to be read from beginning to end, as the generations after this one; empty ones tell nothing."""
    found = Succession()
    for sibling in siblings:
        generation += 1
        if not sibling.stat.size:
            continue
        try:
            handle = await host.open_log(sibling.path)
        except LogUnreadableError as error:
            found.missing.append((generation, f"it came and went, and cannot be read: {error.reason}"))
            continue
        opening.handles.append(handle)
        stream = await Stream.open(handle, generation, 0, now)
        stream.moved_at, stream.ended, stream.why = now, True, REPLACED
        found.streams.append(stream)
    return found


class _Opening:
    """Closes what was opened where something goes wrong before it is given away."""

    def __init__(self, *handles: LogHandle) -> None:
        self.handles = list(handles)

    async def close(self) -> None:
        for handle in self.handles:
            await handle.close()

    async def __aenter__(self) -> _Opening:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            await self.close()
