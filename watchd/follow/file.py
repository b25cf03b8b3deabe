"""A log that is a file: every byte of it once, in order, whatever is done to the file meanwhile.

Bytes are pulled through an open handle, which stays with its file when the name moves. Whether the path still names
that file is looked at in every poll. What a look means is decided in `decide`, which file beside the log is which
generation in `rotation`, what proves a file the same one in `stream`; here is only the order in which things are asked.
"""

from __future__ import annotations

from collections import deque
from dataclasses import asdict
from datetime import datetime

from watchd.errors import HostError, LogUnreadableError
from watchd.follow import decide, search, succession
from watchd.follow.decide import Drain, Move, Sight, Verdict
from watchd.follow.reading import read
from watchd.follow.report import Report
from watchd.follow.search import Opened
from watchd.follow.stream import PREFIX, Place, Stream, is_same, place_of
from watchd.follow.succession import AWAY, TRUNCATED, Log, Succession
from watchd.hosts.base import LogHandle, LogHost
from watchd.model import Checkpoint, Event, LogState

MIB = 1024 * 1024
STREAMS = 24
"""generations that are open at once before no more are looked for: the names beside the log tell of them later"""
LOOKS = 3
"""looks at the path in one poll, at most"""
LATE = 8
"""finished files that are kept open until it is sure that nobody writes to them"""


class FileFollower:
    """Follows one file.

    A poll hands on blocks of at most 256 KiB, contiguous within a generation but for what a Gap names, and at most
    `turn` bytes of them, so that one log cannot starve the others. Nothing is told twice, however a poll ends; read
    again from a checkpoint, a byte has the generation and offset that it had before. Generations count from 1.

    Without a checkpoint reading begins `window` bytes before the end, with `old` blocks. The first of them may begin
    within a line (its offset is not 0): whoever makes lines must drop that piece. A file that was not there at the
    first look and appears later is new from its first byte.

    With a checkpoint of a file that is found nowhere, a Gap is told, and the present file is a new generation and new
    text, at most `window` bytes of it.

    A file that lost its name is read until it has been quiet for two polls and two seconds and its successor is not
    empty, at most 10 s while both grow; what is written to it later is told as a Gap.
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
        self._log = Log(host=host, path=path)
        self._window = window
        self.turn = turn
        self._place = place_of(checkpoint) if checkpoint else None
        self._old_until = 0
        self._streams: deque[Stream] = deque()
        self._passed: deque[Stream] = deque(maxlen=STREAMS)
        self._late: deque[tuple[Stream, datetime]] = deque()
        self._let_go: list[LogHandle] = []
        self._report = Report()
        self._absent = False

    @property
    def position(self) -> tuple[int, int] | None:
        """Generation and offset of the next byte; None before a file was found."""
        place, _ = self._here()
        return (place.generation, place.offset) if place else None

    async def poll(self, now: datetime) -> tuple[Event, ...]:
        """One look at the log. Raises HostError; then, or when cancelled, nothing was handed on and it may be called again."""
        place, old_until = self._here()
        standing, absent, done = self._report.standing, self._absent, self._log.done.copy()
        self._report.begin(now)
        try:
            await self._poll(now)
        except LogUnreadableError as error:
            self._drop()
            self._report.retract(standing)
            self._report.stand(LogState.DENIED, error.reason)
        except HostError:
            self._drop()
            if not self._report.events:
                raise
        except BaseException:
            self._drop()
            self._place, self._old_until = place, old_until
            self._report.standing, self._absent, self._log.done = standing, absent, done
            raise
        return tuple(self._report.events)

    async def checkpoint(self, generation: int, offset: int) -> Checkpoint | None:
        """The checkpoint of a place that was handed on here; None where it was not, or cannot be proven any more.

        Mostly nothing is asked of the host; of a place that lies far back 64 bytes are read again. Raises HostError.
        """
        for stream in (*self._streams, *reversed(self._passed)):
            if stream.generation == generation and stream.start <= offset <= stream.offset:
                try:
                    place = await stream.place_at(offset)
                except LogUnreadableError:
                    return None
                return Checkpoint(target=self._target, path=self._path, **asdict(place)) if place else None
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
        if not self._streams:
            await self._take_up(now)
        if not self._streams:
            return
        await self._look_at_late(now)
        budget = self.turn
        for _ in range(LOOKS):
            budget = await self._read(budget, now)
            if not await self._look_at_path(now):
                break

    async def _read(self, budget: int, now: datetime) -> int:
        """Hand on what there is, file after file; what is left of the budget."""
        for _ in range(2 * STREAMS):
            head = self._streams[0]
            budget, sound = await read(head, budget, self._report)
            if not sound:
                await self._rewritten(head, now)
                continue
            verdict = await self._drained(head, now)
            if verdict is Drain.WAIT:
                break
            self._next(verdict, now)
        return budget

    async def _drained(self, head: Stream, now: datetime) -> Drain:
        """Whether its successor's turn has come."""
        if len(self._streams) == 1 or head.offset < head.size or head.short_at is not None:
            return Drain.WAIT
        if head.ended:
            return Drain.DONE
        moved_at = head.moved_at or now
        successors = [await stream.held.size() for stream in tuple(self._streams)[1:]]
        return decide.drain(
            quiet_polls=head.quiet,
            quiet=now - max(head.grew_at, moved_at),
            since=now - moved_at,
            successor=max(successors),
        )

    def _next(self, verdict: Drain, now: datetime) -> None:
        head = self._streams.popleft()
        self._passed.append(head)
        self._log.done.append(head.place())
        if verdict is Drain.DONE:
            self._late.append((head, max(now, (head.moved_at or now) + decide.GRACE)))
        else:
            reason = f"it lost its name and is still written to, and so is {self._path}, which is followed"
            self._report.gap(head.generation, head.offset, None, reason)
            self._release(head)
        self._begin(self._streams[0], now)

    def _begin(self, stream: Stream, now: datetime) -> None:
        stream.quiet, stream.grew_at = 0, now
        self._report.relaunch(stream)

    async def _look_at_late(self, now: datetime) -> None:
        """Say what was written to finished files after all."""
        while self._late and (now >= self._late[0][1] or len(self._late) > LATE):
            stream = self._late[0][0]
            try:
                size = await stream.held.size()
            except LogUnreadableError:
                size = 0
            self._late.popleft()
            self._release(stream)
            if size > stream.offset:
                reason = "written after the log had been replaced and its old file had been quiet"
                self._report.gap(stream.generation, stream.offset, size, reason)

    # Whether the path still names the file.

    async def _look_at_path(self, now: datetime) -> bool:
        """True where there is more to read at once: the held file was written anew, or went with nothing in it."""
        tip = self._streams[-1]
        if len(self._streams) >= STREAMS:
            return False
        if len(self._streams) > 1 or tip.size == tip.start:
            tip.size = await tip.held.size()
        if len(self._streams) == 1 and tip.offset < tip.size:
            return False  # what is held cannot be lost: first things first
        if not tip.offset and len(tip.prefix) != min(tip.size, PREFIX) and not await tip.reread_beginning():
            await self._rewritten(tip, now)  # its turn had not even come
            return True
        try:
            path = await self._host.stat(self._path)
        except LogUnreadableError as error:
            self._report.stand(LogState.DENIED, error.reason)
            return False
        if path is None:
            await self._look_without_path(tip, now)
            return False
        move = decide.compare(
            Sight(
                size=tip.size, path=path, size_after=tip.size if path.size <= tip.size else await tip.held.size(),
                held=tip.inode, seen=tip.seen, changed_at=tip.changed_at, now=now,
            )
        )  # fmt: skip
        if move is not Move.KEEP:
            return await self._compare(tip, move, now) is Verdict.REWRITTEN or tip.ended
        self._report.found()
        if path != tip.seen and tip.short_at is None:
            tip.seen, tip.changed_at = path, now
            if len(self._streams) == 1:
                tip.since = max(tip.since, path.mtime)
        return False

    async def _look_without_path(self, tip: Stream, now: datetime) -> None:
        self._miss()
        # The last chance to see that it was written anew with the same size: a rotated file is not looked at again.
        if self._report.misses == 1 and not await is_same(tip.held, tip.place()):
            await self._rewritten(tip, now)

    async def _compare(self, tip: Stream, move: Move, now: datetime) -> Verdict | None:
        """Open what the path names, and act upon what its bytes say; None where it cannot be opened."""
        opened = await self._open()
        if opened is None:
            return None
        try:
            sound = tip.offset > 0 or await tip.reread_beginning()
            place = tip.place()
            verdict = await self._judge(tip, opened, place, move) if sound else Verdict.REWRITTEN
        except BaseException:
            self._let_go.append(opened.handle)
            raise
        if verdict is Verdict.SAME:
            # Held from now on is the path's file: an editor, or a writer that copies, may have put it there.
            self._release(tip)
            tip.handle, tip.inode, tip.seen = opened.handle, opened.stat.inode, opened.stat
            tip.changed_at = None if move is Move.SETTLE else now
        elif verdict is Verdict.REPLACED:
            found = await succession.replaced(self._log, tip, opened, now)
            tip.moved_at, tip.quiet, tip.grew_at = now, 0, now
            tip.ended = not place.prefix_length
            if found.instead is not None:
                self._release(tip)
                tip.handle = found.instead
            self._line_up(found)
        else:
            self._let_go.append(opened.handle)
            await self._rewritten(tip, now)
        return verdict

    async def _judge(self, tip: Stream, opened: Opened, place: Place, move: Move) -> Verdict:
        path_matches = await is_same(opened.handle, place)
        other = False
        if not place.prefix_length:
            other = move is Move.OTHER and not await search.is_one(tip, opened)
        elif path_matches and move is not Move.SETTLE:
            beside = await search.siblings(self._host, self._path)
            other = await search.twin(self._host, beside, place, tip) is not None
        if path_matches and not other:
            return Verdict.SAME
        held_matches = await is_same(tip.held, place)
        return decide.judge(path_matches=path_matches, held_matches=held_matches, twin=other)

    async def _rewritten(self, stream: Stream, now: datetime) -> None:
        """The text of this file is gone. Read what of it lies in a copy, and then the file anew."""
        if stream is not self._streams[-1]:
            self._report.gap(stream.generation, stream.offset, None, "it was truncated after it had lost its name")
            self._next(Drain.DONE, now)
            return
        found = await succession.rewritten(self._log, stream, now)
        stream.handle = None
        self._streams.pop()
        self._passed.append(stream)
        self._log.done.append(stream.place())
        first = not self._streams
        self._line_up(found)
        if not found.rest:
            reason = f"{TRUNCATED}: what was written after the last look is in no copy beside it"
            self._report.gap(stream.generation, stream.offset, None, reason)
            if first:
                self._begin(self._streams[0], now)

    def _line_up(self, found: Succession) -> None:
        self._streams.extend(found.streams)
        for generation, reason in found.missing:
            self._report.gap(generation, 0, None, reason)

    # Taking a log up: for the first time, after a loss, or from a checkpoint.

    async def _take_up(self, now: datetime) -> None:
        """Open the log and go on where it was left; where nothing is found, the standing says so."""
        opened, place = await self._open(), self._place
        if place is None:
            if opened is not None:
                self._streams.append(await self._first(opened, now))
            return
        if opened is not None:
            try:
                stream = await succession.at_path(opened, place.generation, place.offset, "", now)
            except BaseException:
                self._let_go.append(opened.handle)
                raise
            if stream.proves(place):
                stream.old_until = self._old_until
                self._streams.append(stream)
                return
        await self._return(place, opened, now)

    async def _first(self, opened: Opened, now: datetime) -> Stream:
        try:
            size = await opened.handle.size()
            start = 0 if self._absent else decide.first_offset(size, self._window)
            stream = await succession.at_path(opened, 1, start, "", now)
        except BaseException:
            self._let_go.append(opened.handle)
            raise
        stream.old_until = 0 if self._absent else size
        return stream

    async def _return(self, place: Place, opened: Opened | None, now: datetime) -> None:
        """The path does not name the file that was read: go on in that one, if it is found, or say that it is lost."""
        found = await succession.returned(
            self._log, place, opened, window=self._window, used=self._report.generation, now=now
        )
        if not found.streams:
            return
        self._line_up(found)
        head = self._streams[0]
        if found.rest:
            head.old_until = self._old_until
            return
        self._report.gap(place.generation, place.offset, None, f"{AWAY}, and the rest of it is in no file beside it")
        self._begin(head, now)
        if head.start:
            reason = f"more than {self._window} bytes came while nobody looked: only the last of them were read"
            self._report.gap(head.generation, 0, head.start, reason)

    # What is held, and what is let go.

    async def _open(self) -> Opened | None:
        try:
            opened = await search.open_at(self._host, self._path)
        except LogUnreadableError as error:
            self._report.stand(LogState.DENIED, error.reason)
            return None
        if opened is None:
            self._miss()
        else:
            self._report.found()
        return opened

    def _miss(self) -> None:
        self._absent = self._absent or (self._place is None and not self._streams)
        self._report.missing(self._path, held=bool(self._streams))

    def _here(self) -> tuple[Place | None, int]:
        if self._streams:
            return self._streams[0].place(), self._streams[0].old_until
        return self._place, self._old_until

    def _drop(self) -> None:
        """Let every handle go; the next poll finds the file again by what was read of it."""
        self._place, self._old_until = self._here()
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
