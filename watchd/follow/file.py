"""A log that is a file: every byte of it once, in order, whatever is done to the file meanwhile.

Bytes are pulled through an open handle, which stays with its file when the name moves. Whether the path still names
that file is looked at in every poll. What a look means is decided in `decide`, which file beside the log is which
generation in `rotation`, what proves a file the same one in `stream`; here is only the order in which things are asked.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from datetime import datetime, timedelta

from watchd.errors import HostError, LogUnreadableError
from watchd.follow import decide, hole, rotation, search
from watchd.follow.decide import Drain, Move, Shrink, Sight, Verdict
from watchd.follow.rotation import Sibling
from watchd.follow.search import Opened
from watchd.follow.stream import WITNESS, Place, Stream, is_same, read_whole
from watchd.hosts.base import FileStat, LogHandle, LogHost
from watchd.model import Block, Checkpoint, Event, Gap, LogStanding, LogState, Relaunch

MIB = 1024 * 1024
BLOCK = 261_120 - WITNESS
"""bytes of one block: with its proof it is one read of OpenSSH's sftp-server, which gives at most 261,120"""
STREAMS = 24
"""generations that may be open at once; of more rotations the names beside the log tell later"""
LATE = 8

_TRUNCATED = "the log was truncated in place"
_REPLACED = "the log was replaced: its path names another file"
_AWAY = "the log was truncated or replaced while nobody looked, and what was not read is in no file beside it"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mark:
    """What must come back when a poll hands out nothing."""

    place: Place | None
    old_until: int
    standing: LogState | None
    absent: bool


class FileFollower:
    """Follows one file.

    A poll hands on blocks of at most 256 KiB, contiguous within a generation but for what a Gap names, and at most `turn`
    bytes of them, so that one log cannot starve the others. Nothing is told twice, however a poll ends; a block has the
    same generation and offset whenever it is read again from a checkpoint.

    Without a checkpoint reading begins `window` bytes before the end, with `old` blocks; such a first block may begin
    within a line (its offset is not 0), which whoever makes lines must drop. A file that was not there at the first look
    and appears later is new from its first byte. Generations count from 1.

    With a checkpoint of a file that is found nowhere, a Gap is told and the present file is a new generation, new text,
    at most `window` bytes of it.
    """

    def __init__(
        self,
        host: LogHost,
        target: str,
        path: str,
        checkpoint: Checkpoint | None,
        *,
        window: int = MIB,
        turn: int = 4 * MIB,
    ) -> None:
        self._host = host
        self._target = target
        self._path = path
        self._window = window
        self.turn = turn
        self._place = _place(checkpoint) if checkpoint else None
        self._old_until = 0
        self._streams: deque[Stream] = deque()
        self._passed: deque[Stream] = deque(maxlen=STREAMS)
        self._late: deque[tuple[Stream, datetime]] = deque()
        self._let_go: list[LogHandle] = []
        self._events: list[Event] = []
        self._standing: LogState | None = None
        self._absent = False
        self._misses = 0

    @property
    def position(self) -> tuple[int, int] | None:
        """Generation and offset of the next byte; None before a file was found."""
        if self._streams:
            return self._streams[0].generation, self._streams[0].offset
        return (self._place.generation, self._place.offset) if self._place else None

    async def poll(self, now: datetime) -> tuple[Event, ...]:
        """One look at the log. Raises HostError; then, or cancelled, it has handed out nothing and may be called again."""
        before = self._mark()
        self._events = []
        try:
            await self._poll(now)
        except LogUnreadableError as error:
            self._drop()
            self._stand(LogState.DENIED, error.reason, now)
        except HostError:
            self._drop()
            if not self._events:
                raise
        except BaseException:
            self._drop()
            self._place, self._old_until = before.place, before.old_until
            self._standing, self._absent = before.standing, before.absent
            raise
        return tuple(self._events)

    async def checkpoint(self, generation: int, offset: int) -> Checkpoint | None:
        """The checkpoint of a place that was handed out here; None where that cannot be proven any more.

        Mostly nothing is asked of the host; one that lies far back is read again. Raises HostError.
        """
        for stream in (*self._streams, *reversed(self._passed)):
            if stream.generation == generation and stream.start <= offset <= stream.offset:
                try:
                    place = await stream.place_at(offset)
                except LogUnreadableError:
                    return None
                return place and self._checkpoint(place)
        return None

    async def close(self) -> None:
        """Let go of the log; never raises. A later poll takes it up where it stood."""
        self._drop()
        await self._close_let_go()

    # One poll.

    async def _poll(self, now: datetime) -> None:
        await self._close_let_go()
        while len(self._passed) > 1:
            self._passed.popleft()
        if not self._streams and not await self._take_up(now):
            return
        await self._look_at_late(now)
        budget = self.turn
        for _ in range(2 * STREAMS):
            head = self._streams[0]
            budget, sound = await self._read(head, budget, now)
            if not sound:
                await self._rewritten(head, head.held, now)
            elif await self._is_finished(head, now):
                self._next(now)
            else:
                break
        await self._look_at_path(now)

    async def _read(self, stream: Stream, budget: int, now: datetime) -> tuple[int, bool]:
        """Hand on what there is; the budget that is left, and False where the file has other text than was read."""
        stream.size = await stream.held.size()
        if stream.size < stream.offset:
            return budget, not await self._is_truncated(stream, now)
        if stream.short_at is not None:
            stream.short_at = None
            if not await is_same(stream.held, stream.place()):
                return budget, False
        stream.quiet = 0 if stream.size > stream.offset else stream.quiet + 1
        if stream.size > stream.offset:
            stream.grew_at = now
        while stream.offset < stream.size and budget > 0:
            old = stream.old_until - stream.offset
            data = await stream.pull(min(BLOCK, budget, stream.size - stream.offset, old if old > 0 else BLOCK))
            if data is None:
                return budget, False
            if not data:
                break
            budget -= len(data)
            if stream.offset == stream.start and data[0] == 0:
                data = await self._skip_hole(stream, data, now)
            if data:
                self._hand_on(stream, data, now)
        return budget, True

    def _hand_on(self, stream: Stream, data: bytes, now: datetime) -> None:
        old = stream.offset < stream.old_until
        self._events.append(Block(generation=stream.generation, offset=stream.offset, data=data, at=now, old=old))
        stream.advance(data)

    async def _skip_hole(self, stream: Stream, data: bytes, now: datetime) -> bytes:
        """Go to where text begins; what of `data` is left after that."""
        begin, leading = stream.offset, hole.nuls(data)
        if leading < len(data):
            stream.advance(data[:leading])
        else:
            await stream.skip(await self._first_text(stream, begin + len(data)))
        reason = "NUL bytes: the log was truncated under a server that kept its own offset"
        self._gap(stream.generation, begin, stream.offset, reason, now)
        return data[leading:]

    async def _first_text(self, stream: Stream, start: int) -> int:
        probing = hole.first_text(start, stream.size)
        try:
            offset, length = next(probing)
            while True:
                offset, length = probing.send(await read_whole(stream.held, offset, length))
        except StopIteration as found:
            return int(found.value)

    async def _is_truncated(self, stream: Stream, now: datetime) -> bool:
        beginning = await read_whole(stream.held, 0, min(stream.size, len(stream.prefix)))
        verdict = decide.shrink(
            beginning_differs=not stream.prefix.startswith(beginning),
            seen_before=stream.short_at is not None and stream.short_at < now,
        )
        stream.short_at = stream.short_at or now
        return verdict is Shrink.TRUNCATED

    async def _is_finished(self, stream: Stream, now: datetime) -> bool:
        """Whether its successor's turn has come."""
        if len(self._streams) == 1 or stream.offset < stream.size or stream.short_at is not None:
            return False
        if stream.ended:
            return True
        moved_at = stream.moved_at or now
        verdict = decide.drain(
            quiet_polls=stream.quiet,
            quiet=now - max(stream.grew_at, moved_at),
            since=now - moved_at,
            successor=await self._streams[1].held.size(),
        )
        if verdict is Drain.LEAVE:
            reason = f"it lost its name and is still written to; {self._path} is followed"
            self._gap(stream.generation, stream.offset, None, reason, now)
        return verdict is not Drain.WAIT

    def _next(self, now: datetime) -> None:
        head = self._streams.popleft()
        self._passed.append(head)
        self._late.append((head, (head.moved_at or now) + decide.GRACE))
        self._begin(self._streams[0], now)

    def _begin(self, stream: Stream, now: datetime) -> None:
        stream.quiet, stream.grew_at = 0, now
        self._events.append(Relaunch(generation=stream.generation, reason=stream.why, at=now))

    async def _look_at_late(self, now: datetime) -> None:
        """Say what was written to finished files after all."""
        while self._late and (now >= self._late[0][1] or len(self._late) > LATE):
            stream, _ = self._late.popleft()
            try:
                size = await stream.held.size()
            except LogUnreadableError:
                size = 0
            if size > stream.offset:
                reason = "written after the log had been replaced and its old file had been quiet"
                self._gap(stream.generation, stream.offset, size, reason, now)
            self._release(stream)

    # Whether the path still names the file.

    async def _look_at_path(self, now: datetime) -> None:
        tip = self._streams[-1]
        if len(self._streams) >= STREAMS or tip.short_at is not None:
            return
        if len(self._streams) > 1:
            tip.size = await tip.held.size()
        elif tip.offset < tip.size:
            return  # what is held is not lost: first things first
        path = await search.stat(self._host, self._path)
        after = tip.size if path is None or path.size <= tip.size else await tip.held.size()
        sight = Sight(
            size=tip.size, path=path, size_after=after, held=tip.inode, seen=tip.seen, changed_at=tip.changed_at, now=now
        )
        move, _ = decide.compare(sight)
        if path is None:
            self._miss(now)
        elif move is Move.KEEP:
            self._found(now)
            if path != tip.seen:
                tip.seen, tip.changed_at = path, now
        else:
            await self._compare(tip, move, now)

    async def _compare(self, tip: Stream, move: Move, now: datetime) -> None:
        opened = await self._open(now)
        if opened is None:
            return
        try:
            if tip.offset == 0:
                await tip.reread_beginning()
            place = tip.place()
            verdict = await self._judge(tip, opened, place, move)
        except BaseException:
            self._let_go.append(opened.handle)
            raise
        if verdict is Verdict.SAME:
            self._adopt(tip, opened, None if move is Move.SETTLE else now)
            if move is Move.OTHER and not place.prefix_length:
                tip.generation += 1
                tip.why = _REPLACED
                if len(self._streams) == 1:
                    self._begin(tip, now)
        elif verdict is Verdict.REPLACED:
            await self._replaced(tip, opened, place, now)
        else:
            await self._rewritten(tip, opened.handle, now)

    async def _judge(self, tip: Stream, opened: Opened, place: Place, move: Move) -> Verdict:
        path_matches = await is_same(opened.handle, place)
        twin = None
        if path_matches and move is not Move.SETTLE and place.prefix_length:
            twin = await search.twin(self._host, await search.siblings(self._host, self._path), place, tip)
        if path_matches and twin is None:
            return Verdict.SAME
        held_matches = await is_same(tip.held, place)
        return decide.judge(path_matches=path_matches, held_matches=held_matches, twin=twin is not None)

    def _adopt(self, stream: Stream, opened: Opened, changed_at: datetime | None) -> None:
        """Go on in a file with the same text: an editor or a copying writer put it in the place of the held one."""
        self._release(stream)
        stream.handle, stream.inode, stream.seen = opened.handle, opened.stat.inode, opened.stat
        stream.changed_at = changed_at

    async def _replaced(self, tip: Stream, opened: Opened, place: Place, now: datetime) -> None:
        """The held file lost its name: read it to its end, then those that came and went, then the one at the path."""
        fresh: list[Stream] = []
        try:
            since = tip.seen.mtime if tip.seen else 0
            beside = await search.siblings(self._host, self._path)
            held = await search.where(self._host, beside, place, tip)
            between = rotation.after(held, beside, since) if held else rotation.unseen(beside, since)
            await self._line_up(fresh, tip.generation, between, now)
            await self._add_path(fresh, tip.generation, opened, _REPLACED, now)
        except BaseException:
            self._let_go += [opened.handle, *(stream.held for stream in fresh)]
            raise
        tip.moved_at, tip.quiet, tip.grew_at = now, 0, now
        self._streams.extend(fresh)

    async def _rewritten(self, stream: Stream, handle: LogHandle, now: datetime) -> None:
        """Its text is gone. The rest of it may lie in a copy; then the file begins anew."""
        if stream is not self._streams[-1]:
            self._gap(stream.generation, stream.offset, None, "it was truncated after it had lost its name", now)
            self._next(now)
            return
        fresh: list[Stream] = []
        try:
            await self._rest_of(stream, fresh, now)
            generation = fresh[-1].generation if fresh else stream.generation
            anew = await Stream.open(handle, generation + 1, 0, now)
        except BaseException:
            self._let_go += [each.held for each in fresh]
            if handle is not stream.handle:
                self._let_go.append(handle)
            raise
        anew.inode, anew.why = stream.inode, _TRUNCATED
        if handle is not stream.handle:
            self._release(stream)
        stream.handle = None
        self._passed.append(stream)
        self._streams.pop()
        self._streams.extend([*fresh, anew])
        if not fresh:
            reason = f"{_TRUNCATED}: what was written after the last look is in no copy beside it"
            self._gap(stream.generation, stream.offset, None, reason, now)
            if len(self._streams) == 1:
                self._begin(anew, now)

    async def _rest_of(self, stream: Stream, fresh: list[Stream], now: datetime) -> None:
        """Open the copy that holds what was not read, and the copies that were made after it."""
        since = stream.seen.mtime if stream.seen else 0
        beside = await search.siblings(self._host, self._path)
        recent = [s for s in rotation.oldest_first(beside) if s.stat.mtime >= since]
        found = await search.find(self._host, recent, stream.place())
        if found is None:
            return
        sibling, handle = found
        rest = await _opened(handle, stream.generation, stream.offset, now, _TRUNCATED)
        rest.old_until, rest.ended = stream.old_until, True
        fresh.append(rest)
        await self._line_up(fresh, stream.generation, rotation.after(sibling, beside, since), now)

    # Taking a log up: for the first time, after a loss, or from a checkpoint.

    async def _take_up(self, now: datetime) -> bool:
        """Open the log where it stands; False where there is none."""
        opened = await self._open(now)
        place = self._place
        if place is None:
            if opened is not None:
                await self._take_first(opened, now)
        elif opened is not None and await self._is_path(opened, place):
            stream = await _opened(opened.handle, place.generation, place.offset, now, "")
            self._know(stream, opened, now)
            stream.old_until = self._old_until
            self._streams.append(stream)
        else:
            await self._search(place, opened, now)
        return bool(self._streams)

    async def _is_path(self, opened: Opened, place: Place) -> bool:
        try:
            return await is_same(opened.handle, place)
        except BaseException:
            self._let_go.append(opened.handle)
            raise

    async def _take_first(self, opened: Opened, now: datetime) -> None:
        try:
            size = await opened.handle.size()
        except BaseException:
            self._let_go.append(opened.handle)
            raise
        start = 0 if self._absent else decide.first_offset(size, self._window)
        stream = await _opened(opened.handle, 1, start, now, "")
        stream.old_until = 0 if self._absent else size
        self._know(stream, opened, now)
        self._streams.append(stream)

    async def _search(self, place: Place, opened: Opened | None, now: datetime) -> None:
        """The path names another file than the one that was read: look for that one beside it."""
        fresh: list[Stream] = []
        start, found = 0, None
        try:
            beside = await search.siblings(self._host, self._path)
            found = await search.find(self._host, reversed(rotation.oldest_first(beside)), place)
            if found is not None:
                sibling, handle = found
                fresh.append(await _opened(handle, place.generation, place.offset, now, ""))
                between = rotation.after(sibling, beside, sibling.stat.mtime)
                await self._line_up(fresh, place.generation, between, now)
            elif opened is not None:
                start = decide.first_offset(await opened.handle.size(), self._window)
            if opened is not None:
                await self._add_path(fresh, place.generation, opened, _AWAY if found is None else _REPLACED, now, start)
        except BaseException:
            self._let_go += [*([opened.handle] if opened else []), *(stream.held for stream in fresh)]
            raise
        if not fresh:
            return
        self._streams.extend(fresh)
        if found is not None:
            fresh[0].old_until = self._old_until
            fresh[0].moved_at = now if len(fresh) > 1 else None
            fresh[-1].ended = False
            return
        self._gap(place.generation, place.offset, None, _AWAY, now)
        self._begin(fresh[0], now)
        if start:
            reason = f"more than {self._window} bytes were written while nobody looked: only the last of them were read"
            self._gap(fresh[0].generation, 0, start, reason, now)

    async def _line_up(
        self, fresh: list[Stream], generation: int, siblings: tuple[Sibling, ...], now: datetime
    ) -> None:
        """Open whole files that came and went, oldest first, as the generations after this one."""
        for sibling in siblings:
            generation += 1
            try:
                handle = await self._host.open_log(sibling.path)
            except LogUnreadableError as error:
                self._gap(generation, 0, None, f"it came and went, and cannot be read: {error.reason}", now)
                continue
            stream = await _opened(handle, generation, 0, now, _REPLACED)
            stream.moved_at, stream.ended = now, True
            fresh.append(stream)

    async def _add_path(
        self, fresh: list[Stream], generation: int, opened: Opened, why: str, now: datetime, start: int = 0
    ) -> None:
        generation = fresh[-1].generation if fresh else generation
        stream = await Stream.open(opened.handle, generation + 1, start, now)
        stream.why = why
        self._know(stream, opened, now)
        fresh.append(stream)

    def _know(self, stream: Stream, opened: Opened, now: datetime) -> None:
        stream.inode, stream.seen, stream.changed_at = opened.stat.inode, opened.stat, now

    # What is told, and what is let go.

    async def _open(self, now: datetime) -> Opened | None:
        try:
            opened = await search.open_at(self._host, self._path)
        except LogUnreadableError as error:
            self._stand(LogState.DENIED, error.reason, now)
            return None
        if opened is None:
            self._miss(now)
        else:
            self._found(now)
        return opened

    def _miss(self, now: datetime) -> None:
        self._misses += 1
        if not self._streams:
            self._absent = self._absent or self._place is None
        # Between the two steps of a rotation the path names nothing for a moment.
        if not self._streams or self._misses > 1:
            self._stand(LogState.MISSING, f"no file {self._path}: waiting until there is one", now)

    def _found(self, now: datetime) -> None:
        self._misses = 0
        self._stand(LogState.LIVE, "followed", now)

    def _stand(self, state: LogState, detail: str, now: datetime) -> None:
        if state is not self._standing:
            self._standing = state
            self._events.append(LogStanding(state=state, detail=detail, at=now))

    def _gap(self, generation: int, start: int, end: int | None, reason: str, now: datetime) -> None:
        self._events.append(Gap(generation=generation, start=start, end=end, reason=reason, at=now))

    def _mark(self) -> _Mark:
        head = self._streams[0] if self._streams else None
        return _Mark(
            place=head.place() if head else self._place,
            old_until=head.old_until if head else self._old_until,
            standing=self._standing,
            absent=self._absent,
        )

    def _drop(self) -> None:
        """Let every handle go; the next poll finds the file again by what was read of it."""
        mark = self._mark()
        self._place, self._old_until = mark.place, mark.old_until
        if self._streams:
            self._passed.append(self._streams[0])
        for stream in (*self._streams, *(late for late, _ in self._late)):
            self._release(stream)
        self._streams.clear()
        self._late.clear()

    def _release(self, stream: Stream) -> None:
        if stream.handle is not None:
            self._let_go.append(stream.handle)
            stream.handle = None

    async def _close_let_go(self) -> None:
        while self._let_go:
            await self._let_go.pop().close()

    def _checkpoint(self, place: Place) -> Checkpoint:
        return Checkpoint(
            target=self._target,
            path=self._path,
            generation=place.generation,
            offset=place.offset,
            prefix=place.prefix,
            prefix_length=place.prefix_length,
            witness=place.witness,
            witness_length=place.witness_length,
        )


def _place(checkpoint: Checkpoint) -> Place:
    return Place(
        generation=checkpoint.generation,
        offset=checkpoint.offset,
        prefix=checkpoint.prefix,
        prefix_length=checkpoint.prefix_length,
        witness=checkpoint.witness,
        witness_length=checkpoint.witness_length,
    )
