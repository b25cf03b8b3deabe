"""Handing on what an open file holds, as long as it holds what was read of it before."""

from __future__ import annotations

from watchd.follow import decide, hole
from watchd.follow.decide import Shrink
from watchd.follow.report import Report
from watchd.follow.stream import OVERLAP, Stream, is_same, read_whole

BLOCK = 261_120 - OVERLAP
"""bytes of one block: with its proof it is one read of OpenSSH's sftp-server, which gives at most 261,120"""


async def read(stream: Stream, budget: int, report: Report) -> tuple[int, bool]:
    """Hand on at most `budget` bytes; what is left of the budget, and False where the file has other text now."""
    stream.size = await stream.held.size()
    if stream.size < max(stream.offset, len(stream.prefix)):
        return budget, not await _is_truncated(stream, report)
    if stream.short_at is not None:
        stream.short_at = None
        if not await is_same(stream.held, stream.place()):
            return budget, False
    if stream.size == stream.offset:
        stream.quiet += 1
        return budget, True
    stream.quiet, stream.grew_at = 0, report.now
    while stream.offset < stream.size and budget > 0:
        old = stream.old_until - stream.offset
        data = await stream.pull(min(BLOCK, budget, stream.size - stream.offset, old if old > 0 else BLOCK))
        if data is None:
            return budget, False
        if not data:
            break
        budget -= len(data)
        if stream.offset == stream.start and data[0] == 0:
            if not await stream.reread_beginning():
                return budget, False
            data = await _skip_hole(stream, data, report)
        if data:
            report.block(stream, data)
    return budget, True


async def _skip_hole(stream: Stream, data: bytes, report: Report) -> bytes:
    """Go to where text begins; what of `data` is left after that."""
    begin, leading = stream.offset, hole.nuls(data)
    if leading < len(data):
        stream.advance(data[:leading])
    else:
        await stream.skip(await _first_text(stream, begin + len(data)))
    reason = "NUL bytes: the log was truncated under a server that kept its own offset"
    report.gap(stream.generation, begin, stream.offset, reason)
    return data[leading:]


async def _first_text(stream: Stream, start: int) -> int:
    probing = hole.first_text(start, stream.size)
    try:
        offset, length = next(probing)
        while True:
            offset, length = probing.send(await read_whole(stream.held, offset, length))
    except StopIteration as found:
        return int(found.value)


async def _is_truncated(stream: Stream, report: Report) -> bool:
    beginning = await read_whole(stream.held, 0, min(stream.size, len(stream.prefix)))
    verdict = decide.shrink(
        beginning_differs=not stream.prefix.startswith(beginning),
        seen_before=stream.short_at is not None and stream.short_at < report.now,
    )
    stream.short_at = stream.short_at or report.now
    return verdict is Shrink.TRUNCATED
