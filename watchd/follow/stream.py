"""One open file of a log: how far it was read, and what proves that it is still the same file."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime

from watchd.hosts.base import FileStat, LogHandle
from watchd.model import Checkpoint

PREFIX = 1024
"""bytes at the beginning by which a file is known again"""
WITNESS = 64
"""bytes before an offset that tell a file that was truncated and regrown from the one that was read"""
OVERLAP = 512
"""bytes before an offset that are read again with those behind it: the same proof, while the file is held"""
RECENT = 32 * 1024
"""bytes kept of what was handed out last: a checkpoint mostly lies there"""
EVER = datetime.min.replace(tzinfo=UTC)
"""a time for streams that are opened only to look"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """An offset in a generation, and two hashes that prove it: the fields are those of `model.Checkpoint`."""

    generation: int
    offset: int
    prefix: str
    prefix_length: int
    witness: str
    witness_length: int


def place_of(checkpoint: Checkpoint) -> Place:
    """The place that a checkpoint speaks of."""
    return Place(
        generation=checkpoint.generation,
        offset=checkpoint.offset,
        prefix=checkpoint.prefix,
        prefix_length=checkpoint.prefix_length,
        witness=checkpoint.witness,
        witness_length=checkpoint.witness_length,
    )


class Stream:
    """An open file. `offset` is the next byte to hand out; `start` the first one that was handed out here.

    generation  its number in the log's history
    old_until   bytes before this offset lay there before the log was first seen
    prefix      its first bytes, at most PREFIX
    recent      the bytes before `offset`, at least OVERLAP of them where there are so many
    inode       device and inode where known
    seen        the path when it last was known to name this file
    changed_at  when that last changed, None once it was compared
    since       whole seconds since 1970 on the host: a file beside the log not written after this came before it
    size        as last seen
    quiet       polls in a row in which it did not grow
    moved_at    when it was found to have lost its name, None while it has it
    short_at    when it was first found shorter than `offset`, None while it is not
    ended       nobody is expected to write to it any more: finished where it ends
    why         how it came to be followed
    """

    def __init__(self, handle: LogHandle, generation: int, start: int, now: datetime) -> None:
        self.handle: LogHandle | None = handle
        self.generation = generation
        self.start = self.offset = start
        self.old_until = 0
        self.prefix = b""
        self.recent = b""
        self.inode: tuple[int, int] | None = None
        self.seen: FileStat | None = None
        self.changed_at: datetime | None = None
        self.since = 0
        self.size = start
        self.quiet = 0
        self.grew_at = now
        self.moved_at: datetime | None = None
        self.short_at: datetime | None = None
        self.ended = False
        self.why = ""

    @classmethod
    async def open(cls, handle: LogHandle, generation: int, start: int, now: datetime) -> Stream:
        """Begin at `start`, with the file's beginning and the bytes before `start` read as proof."""
        stream = cls(handle, generation, start, now)
        stream.prefix = await read_whole(handle, 0, PREFIX)
        stream.recent = await read_whole(handle, start - min(OVERLAP, start), min(OVERLAP, start))
        return stream

    def proves(self, place: Place) -> bool:
        """Whether a stream that was opened at this place found there what was read before."""
        witness = self.recent[len(self.recent) - place.witness_length :] if place.witness_length else b""
        prefix = self.prefix[: place.prefix_length]
        return (len(witness), len(prefix)) == (place.witness_length, place.prefix_length) and (
            (digest(witness), digest(prefix)) == (place.witness, place.prefix)
        )

    @property
    def held(self) -> LogHandle:
        """The open handle."""
        assert self.handle is not None
        return self.handle

    async def pull(self, length: int) -> bytes | None:
        """The next bytes, at most `length`; empty at the end; None where what was read before them is there no more.

        The bytes before `offset` are read along, so the proof costs no request of its own.
        """
        before = self.recent[-OVERLAP:]
        data = await self.held.read(self.offset - len(before), len(before) + length)
        if len(data) < len(before):
            return b""
        fresh = data[len(before) :]
        known = self.prefix[self.offset : self.offset + len(fresh)]
        return fresh if data.startswith(before) and fresh.startswith(known) else None

    def advance(self, data: bytes) -> None:
        """`data` was handed out."""
        reach = len(self.prefix) - self.offset
        if len(self.prefix) < PREFIX and 0 <= reach < len(data):
            self.prefix += data[reach : reach + PREFIX - len(self.prefix)]
        self.recent = (self.recent + data)[-RECENT:]
        self.offset += len(data)

    async def skip(self, offset: int) -> None:
        """Go on at `offset`; what lies before it is not handed out."""
        self.offset = offset
        self.recent = await read_whole(self.held, offset - min(OVERLAP, offset), min(OVERLAP, offset))

    async def reread_beginning(self) -> bool:
        """Read the prefix again, of a file of which nothing was handed out; False where it is another one now."""
        now = await read_whole(self.held, 0, PREFIX)
        if not now.startswith(self.prefix):
            return False
        self.prefix = now
        return True

    def place(self) -> Place:
        """Where reading stands."""
        return self._place(self.offset, self.recent[-WITNESS:])

    async def place_at(self, offset: int) -> Place | None:
        """The same for an offset that was passed; None where its proof cannot be had any more."""
        if not self.start <= offset <= self.offset:
            return None
        length = min(WITNESS, offset)
        behind = self.offset - offset
        if behind + length <= len(self.recent):
            return self._place(offset, self.recent[len(self.recent) - behind - length :][:length])
        # Whoever follows may let it go meanwhile.
        handle, now = self.handle, self.place()
        if handle is None:
            return None
        witness = await read_whole(handle, offset - length, length)
        # Read in this order: had the file been rewritten before the first of them, the second would show it.
        if len(witness) < length or not await is_same(handle, now):
            return None
        return self._place(offset, witness)

    def _place(self, offset: int, witness: bytes) -> Place:
        return Place(
            generation=self.generation,
            offset=offset,
            prefix=digest(self.prefix),
            prefix_length=len(self.prefix),
            witness=digest(witness),
            witness_length=len(witness),
        )


def digest(data: bytes) -> str:
    """Hex SHA-256."""
    return hashlib.sha256(data).hexdigest()


async def is_same(handle: LogHandle, place: Place) -> bool:
    """Whether the file has the text that was read of it, as far as a prefix and a witness tell."""
    before = place.offset - place.witness_length
    witness = await read_whole(handle, before, place.witness_length)
    if len(witness) < place.witness_length or digest(witness) != place.witness:
        return False
    prefix = await read_whole(handle, 0, place.prefix_length)
    return len(prefix) == place.prefix_length and digest(prefix) == place.prefix


async def read_whole(handle: LogHandle, offset: int, length: int) -> bytes:
    """`length` bytes from `offset` on, fewer only where the file ends."""
    found = b""
    while len(found) < length:
        data = await handle.read(offset + len(found), length - len(found))
        if not data:
            break
        found += data
    return found
