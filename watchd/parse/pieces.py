"""Lines out of pieces of a log, which end anywhere."""

from __future__ import annotations

LINE_LIMIT = 64 * 1024
"""bytes of one line that are looked at; of a longer one the rest flows by"""

Piece = tuple[int, bytes]
"""Where it begins in the log, and its bytes without a line end."""


def cut(tail: Piece, offset: int, data: bytes) -> tuple[tuple[Piece, ...], bytes]:
    """The lines that end in `data`, which follows the unfinished line `tail`; and what follows the last of them."""
    first, *rest = data.split(b"\n")
    if not rest:
        return (), first
    found = [(tail[0], tail[1] + first)]
    offset += len(first) + 1
    for line in rest[:-1]:
        found.append((offset, line))
        offset += len(line) + 1
    return tuple(found), rest[-1]


def shown(line: bytes) -> bytes:
    """At most LINE_LIMIT bytes of a line; of a long one that carriage returns write over, the last state of it."""
    if len(line) > LINE_LIMIT:
        line = line[line.rfind(b"\r", 0, len(line) - 1) + 1 :]
    return line[:LINE_LIMIT]
