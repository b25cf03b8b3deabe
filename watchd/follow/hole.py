"""Where text begins in a file that begins with a hole.

A server that was started with `> server.log` keeps its own offset: after the file was truncated under it, its next
write leaves a hole before it, as long as all that it had written. Reading that hole over a network would take minutes.
"""

from __future__ import annotations

from collections.abc import Generator

SAMPLE = 4096
"""bytes of one probe"""

Probing = Generator[tuple[int, int], bytes, int]
"""Yields (offset, length) of bytes to look at, receives them, returns an offset."""


def nuls(data: bytes) -> int:
    """How many NUL bytes `data` begins with."""
    return len(data) - len(data.lstrip(b"\0"))


def first_text(start: int, size: int) -> Probing:
    """The offset of the first byte that is not NUL, or `size`; a few kilobytes are read, however long the hole is.

    It is taken for granted that text holds no run of NULs as long as a probe.
    """
    low, high = start, size
    probe = max(low, high - SAMPLE)
    while low < high:
        data = yield probe, min(SAMPLE, high - probe)
        leading = nuls(data)
        if not data:
            return low  # it shrank meanwhile: the next look sees that
        if leading < len(data):
            high = probe + leading
            if probe == low:
                return high
        elif probe + len(data) >= high:
            return high
        else:
            low = probe + len(data)
        probe = low if high - low <= SAMPLE else (low + high) // 2
    return high
