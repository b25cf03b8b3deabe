"""Where the current run begins in a log that several runs wrote, one after the other, and which lines it has.

Nothing here knows an engine: what a launch and an end look like comes as patterns. Most lines are never decoded: a
pattern is searched only in lines that hold its longest literal text, which is looked for in bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from watchd.model import Line
from watchd.parse import lines as prefixes
from watchd.parse import quotes
from watchd.parse.needle import needle

LONGEST_LINE = 65_536
"""Bytes of a line that are kept as text; of a longer one head and tail remain, with a note between them."""

HEAD, TAIL = 5_000, 60_000
"""Lines of a run that are kept: the launch, and what happened last. What lies between in a longer run is left out."""

_TRIED, _FOUND = 2_000, 200
"""Lines looked at and kept per pattern: a text that is common in a log must not make it slow to read."""

_BACK = 300
"""Lines that may lie between the first word of a run and its banner: warnings of imports."""

_NEAR = 8_192
"""Bytes on either side of an end in which the clock and the shape of the lines are compared."""
_FIRST = 10
_PAUSE_S = 60
_EXCEPTION = re.compile(rb"[\w.]{0,200}(?:Error|Exception|Exit|Interrupt)\b(?::|\r?$|\n)")

Patterns = tuple[re.Pattern[str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Edges:
    """What the borders of a run look like. Every pattern must contain a literal text.

    openings  lines with which a launch begins, whatever stood before: a separator, the echoed command
    banners   lines that a launch prints early, though warnings may come before them
    endings   lines with which something outside says that the server is gone
    farewells last words of a process; they end a run only where what follows them begins like a run, after a while
    refusals  lines with which a program refuses its command line: it is at its very beginning, and at its end
    restarts  lines of a traceback that begins in a program's own module: that program may have begun just before
    lived     whether a line can only come from a run that has begun: work, an exception, an orderly end
    """

    openings: Patterns
    banners: Patterns
    endings: Patterns
    farewells: Patterns
    refusals: Patterns
    restarts: Patterns
    lived: Callable[[str], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """The current run as it lies in the bytes that were read.

    lines     its lines
    quoted    indexes of the lines that repeat somebody else's words
    begins    True where its beginning was recognised
    earlier   True where text of runs before it lies in the same bytes
    """

    lines: tuple[Line, ...]
    quoted: frozenset[int]
    begins: bool
    earlier: bool


def read(data: bytes, *, offset: int, number: int | None, edges: Edges) -> Piece:
    """Cut the last run out of `data`, which begins at byte `offset` of the file.

    `number` is that of the first line in `data`, None where it is unknown. Where `offset` is not 0, the first line is
    taken to be torn and is dropped.
    """
    torn = data.find(b"\n") + 1 if offset else 0
    if offset and not torn:
        torn = len(data)
    quoted = quotes.spans(data)
    start = _start(data, torn, edges, quoted)
    found = tuple(_lines(data, start, offset, number))
    inside = (
        frozenset(i for i, line in enumerate(found) if quotes.covers(quoted, line.offset - offset))
        if quoted
        else frozenset()
    )
    return Piece(
        lines=found,
        quoted=inside,
        begins=start > torn or offset == 0,
        earlier=bool(data[:start].strip()) and start > torn,
    )


def own_lines(data: bytes, patterns: Patterns, quoted: quotes.Spans = (), low: int = 0) -> Iterator[int]:
    """Where the lines begin that match one of `patterns`, in no order, without those inside quotations.

    Of each pattern the newest are found: at most `_FOUND` lines, among the newest `_TRIED` that hold its literal text.
    """
    for pattern in patterns:
        literal = needle(pattern.pattern).encode()
        if data.startswith((b'{"log":"', b'{"log": "')):
            literal = literal.replace(b'"', b'\\"')
        found, end = 0, len(data)
        for _ in range(_TRIED):
            at = data.rfind(literal, low, end)
            if at < 0 or found == _FOUND:
                break
            start = data.rfind(b"\n", low, at) + 1 or low
            if pattern.search(_body(data[start : _end(data, at)])) and not quotes.covers(quoted, start):
                found += 1
                yield start
            end = start


def _start(data: bytes, low: int, edges: Edges, quoted: quotes.Spans) -> int:
    openings = sorted(set(own_lines(data, edges.openings, quoted, low)))
    banners = sorted(set(own_lines(data, edges.banners, quoted, low)))
    start = low
    if openings or banners:
        start = _launch(data, low, openings, banners, edges)
    return _after_end(data, start, edges, quoted)


def _after_end(data: bytes, start: int, edges: Edges, quoted: quotes.Spans) -> int:
    """Begin of a run without a banner: what a refused launch prints, behind the end of the run before."""
    refused = sorted(set(own_lines(data, edges.refusals, quoted, start)))
    fresh = sorted(set(own_lines(data, edges.restarts, quoted, start)))
    latest = max((*refused[-1:], *fresh[-1:]), default=-1)
    endings = set(own_lines(data, edges.endings, quoted, start))
    farewells = set(own_lines(data, edges.farewells, quoted, start))
    raised = set(_raised(data, fresh))
    for line in sorted(endings | farewells | raised, reverse=True):
        after = _end(data, line) + 1
        if latest < after and line not in endings:
            continue
        passed, again = _begins_anew(data, start, line, after)
        if latest < after and not again:
            # Behind an end that the shell or a supervisor tells, only a run that begins like this one is another.
            continue
        plain = line in endings or (bool(refused) and refused[-1] >= after)
        if plain or (passed and again) or (line in farewells and (passed or again)):
            return after
    return start


def _raised(data: bytes, fresh: list[int]) -> Iterator[int]:
    """Exception lines of the tracebacks that begin in a program's own module: with them that program ended."""
    for frame in fresh:
        at = frame
        for _ in range(_BACK):
            end = _end(data, at)
            line = data[at:end]
            if line[:1].isalpha() and _EXCEPTION.match(line):
                yield at
                break
            at = end + 1
            if at >= len(data):
                return


def _begins_anew(data: bytes, start: int, end: int, after: int) -> tuple[bool, bool]:
    """Whether time passed at an end, and whether the first lines of the run are printed again behind it."""
    before = [
        clock
        for text in _texts(data, max(start, end - _NEAR), after)
        for clock in [prefixes.split(text).clock]
        if clock
    ]
    behind = [clock for text in _texts(data, after, after + _NEAR) for clock in [prefixes.split(text).clock] if clock]
    passed = bool(before and behind) and not 0 <= _seconds(behind[0]) - _seconds(before[-1]) < _PAUSE_S
    first = {_shape(text) for text in _texts(data, start, min(start + _NEAR, end))[:_FIRST]}
    again = any(_shape(text) in first for text in _texts(data, after, after + _NEAR)[:_FIRST])
    return passed, again


def _texts(data: bytes, start: int, end: int) -> list[str]:
    return [raw[: prefixes.LONGEST].decode("utf-8", "replace") for raw in data[start:end].split(b"\n") if raw.strip()]


def _shape(text: str) -> str:
    return re.sub(r"\d+", "0", text)[:120]


def _seconds(clock: str) -> int:
    hours, minutes, seconds = (int(part) for part in clock.split(":"))
    return 3600 * hours + 60 * minutes + seconds


def _launch(data: bytes, low: int, openings: list[int], banners: list[int], edges: Edges) -> int:
    """Begin of the last launch: several of its marks may stand together, with nothing lived between them."""
    marks = sorted({*openings, *banners}, reverse=True)
    first = marks[0]
    for mark in marks[1:]:
        if any(edges.lived(text) for text in _bodies(data, mark, first)):
            break
        first = mark
    if first in openings:
        return first
    return _before_banner(data, low, first, edges)


def _before_banner(data: bytes, low: int, banner: int, edges: Edges) -> int:
    """Go up from a banner as far as nothing speaks of a run before."""
    start = banner
    for _ in range(_BACK):
        if start <= low:
            return low
        above = data.rfind(b"\n", low, start - 1) + 1 or low
        if edges.lived(_body(data[above : start - 1])):
            return start
        start = above
    return start


def _bodies(data: bytes, start: int, end: int) -> Iterator[str]:
    while start < end:
        stop = _end(data, start)
        yield _body(data[start:stop])
        start = stop + 1


def _body(raw: bytes) -> str:
    return prefixes.split(raw[: prefixes.LONGEST].decode("utf-8", "replace")).body


def _end(data: bytes, start: int) -> int:
    end = data.find(b"\n", start)
    return end if end >= 0 else len(data)


def _lines(data: bytes, start: int, offset: int, number: int | None) -> Iterator[Line]:
    head = _ahead(data, start, HEAD)
    tail = max(head, _back(data, start, TAIL))
    for low, high in ((start, head), (tail, len(data))):
        first = None if number is None else number + data.count(b"\n", 0, low)
        at, index = low, 0
        while at < high:
            end = _end(data, at)
            yield Line(None if first is None else first + index, offset + at, _text(data[at:end]))
            index, at = index + 1, end + 1


def _ahead(data: bytes, start: int, count: int) -> int:
    """Where the line begins that lies `count` lines behind `start`."""
    at = start
    for _ in range(count):
        at = data.find(b"\n", at) + 1
        if not at:
            return len(data)
    return at


def _back(data: bytes, start: int, count: int) -> int:
    """Where the last `count` lines begin, not before `start`."""
    at = len(data) - data.endswith(b"\n")
    for _ in range(count):
        at = data.rfind(b"\n", start, at)
        if at < 0:
            return start
    return at + 1


def _text(raw: bytes) -> str:
    if len(raw) <= LONGEST_LINE:
        return raw.decode("utf-8", "replace")
    half = LONGEST_LINE // 2
    head, tail = raw[:half].decode("utf-8", "replace"), raw[-half:].decode("utf-8", "replace")
    return f"{head} … {len(raw) - 2 * half} bytes left out … {tail}"
