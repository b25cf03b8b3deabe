"""Stretches of a log that repeat somebody else's words: a prompt, a sample, the output of a sandbox.

A server that prints what its users send prints whatever they like, tracebacks and kernel messages included. Where it
marks the beginning and the end, what lies between is not its own.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

# audit: user=u-88213 chars=611 text follows   …   audit: end of text user=u-88213
# --- sample step=426 reward=0.0 ---           …   --- end of sample ---
# <<< BEGIN PROMPT                             …   <<< END PROMPT
_END = re.compile(rb"\b(?:end of|END OF|END) (\w{3,40})\b")
_NEEDLES = (b"end of ", b"END ")
_WORD = r"(text|prompt|input|message|body|content|output|sample|TEXT|PROMPT|INPUT|MESSAGE|BODY|CONTENT|OUTPUT|SAMPLE)"
_OPENING = re.compile(rf"\b{_WORD} follows:?\s*$|\bBEGIN (?:OF )?{_WORD}\b|^-{{2,8}} {_WORD}\b.{{0,200}} -{{2,8}}\s*$")
OPENING_NEEDLES = (b" follows", b"BEGIN ", b"-- ")
"""Each line that opens a quotation holds one of these."""
LONGEST = 65_536
"""Bytes that one quotation may have; a log in which the end is missing is not swallowed."""

Spans = Sequence[tuple[int, int]]


def spans(data: bytes) -> Spans:
    """Byte ranges of `data` between a marker line and its `end of …` line, in order, without the markers."""
    found: list[tuple[int, int]] = []
    for place in sorted(_places(data)):
        start = data.rfind(b"\n", 0, place) + 1
        end = data.find(b"\n", place)
        line = data[start : end if end >= 0 else len(data)][:400]
        marker = _END.search(line)
        tag = line.split(maxsplit=1)[:1]
        if marker and tag and (not found or found[-1][1] < start):
            opened = _opening(data, start, tag[0], marker[1])
            if opened is not None and (not found or found[-1][1] <= opened):
                found.append((opened, start))
    return found


def covers(quoted: Spans, position: int) -> bool:
    """Whether the byte at `position` lies inside a quotation."""
    index = bisect_right(quoted, (position, 1 << 62)) - 1
    return index >= 0 and quoted[index][0] <= position < quoted[index][1]


def _places(data: bytes) -> set[int]:
    places = set()
    for text in _NEEDLES:
        at = data.find(text)
        while at >= 0:
            places.add(at)
            at = data.find(text, at + len(text))
    return places


def _opening(data: bytes, before: int, tag: bytes, word: bytes) -> int | None:
    """Where the quotation begins: behind the nearest line above that has the same tag and names the same word."""
    lowest = max(0, before - LONGEST)
    at = before - 1
    while at > lowest:
        start = data.rfind(b"\n", lowest, at) + 1 or lowest
        line = data[start:at]
        if line.lstrip().startswith(tag) and word.lower() in line.lower():
            return None if _END.search(line) else at + 1
        at = start - 1
    return None


class Opened(NamedTuple):
    """A quotation whose end has not been seen: the tag and the word that its end will have."""

    tag: str
    word: str


def opening(body: str) -> Opened | None:
    """What a line opens that says that somebody else's words follow; for whoever cannot wait for the end."""
    found = _OPENING.search(body[:400])
    tag = body.split(maxsplit=1)[:1]
    if found is None or not tag or _END.search(body[:400].encode()):
        return None
    return Opened(tag[0], next(filter(None, found.groups())).lower())


def closes(body: str, opened: Opened) -> bool:
    """Whether a line ends this quotation."""
    found = _END.search(body[:400].encode())
    return found is not None and found[1].decode().lower() == opened.word and body.split(maxsplit=1)[0] == opened.tag


def follow(quote: tuple[Opened, int] | None, offset: int, body: str) -> tuple[tuple[Opened, int] | None, bool]:
    """Take one line in, at this byte offset: the quotation that is open behind it, and whether the line is part of one.

    One that does not end within LONGEST bytes is given up.
    """
    if quote is None:
        opened = opening(body)
        return ((opened, offset), True) if opened else (None, False)
    opened, since = quote
    if not 0 <= offset - since < LONGEST:
        return None, False
    return (None if closes(body, opened) else quote), True
