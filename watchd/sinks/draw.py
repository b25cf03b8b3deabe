"""Text for a terminal: made harmless, measured, cut, wrapped and coloured. Everything here is pure.

Text from logs is hostile: it reaches a terminal only through `plain`, which leaves nothing in it that a terminal
would obey and nothing that a reader could not see.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple

ELLIPSIS = "…"
TAB = 8
LONGEST = 4_000
"""Characters of one text that are looked at; what lies beyond is shown as an ellipsis."""

# \x1b[31mERROR\x1b[0m   \x1b[1;38;5;196mfatal
_SGR = re.compile(r"\x1b\[[0-9;]{0,40}m")


class Style(StrEnum):
    """A colour or weight by its SGR parameters; `PLAIN` sends nothing."""

    PLAIN = ""
    STRONG = "1"
    FAINT = "2"
    ALARM = "1;31"
    WARNING = "33"
    GOOD = "32"
    WRONG = "31"
    NAME = "36"


class Span(NamedTuple):
    """Some text in one style. The text is harmless already."""

    text: str
    style: Style = Style.PLAIN


Row = tuple[Span, ...]
"""One line on the screen."""


def plain(text: str) -> str:
    """The text with everything that a terminal obeys, or that a reader would not see, written out as an escape.

    Colour codes are dropped, since they say nothing; tabs become spaces; other control characters, of C1 too, bidi
    overrides, zero-width characters, line separators and surrogates become `\\x1b` or `\\u202e`. Line ends must
    have been split away before, else they are written out as well.
    """
    if text.isascii() and text.isprintable():
        return _bounded(text)
    visible = _SGR.sub("", _bounded(text)).expandtabs(TAB)
    return "".join(char if _harmless(char) else _escape(char) for char in visible)


def columns(text: str) -> int:
    """How many columns of a terminal the text takes: wide characters two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(_columns_of(char) for char in text)


def cut(text: str, width: int) -> str:
    """The text in at most `width` columns; what was cut off its end shows as an ellipsis."""
    if columns(text) <= width:
        return text
    return _head(text, width - 1) + ELLIPSIS


def cut_front(text: str, width: int) -> str:
    """Like `cut`, but the end is kept: for paths, whose end tells more."""
    if columns(text) <= width:
        return text
    return ELLIPSIS + _head(text[::-1], width - 1)[::-1]


def wrap(text: str, width: int, *, rows: int | None = None) -> list[str]:
    """The text in lines of at most `width` columns, broken at spaces where there are any.

    With `rows`, at most so many, the last of them ending in an ellipsis where more was there. Never empty.
    """
    width = max(1, width)
    lines = list(_wrapped(text, width))
    if rows is not None and len(lines) > rows:
        # The line before the cut is filled up again from the words after it, then cut.
        rest = " ".join(lines[rows - 1 :])
        lines = [*lines[: rows - 1], cut(rest, width) if columns(rest) > width else _marked(rest, width)]
    return lines or [""]


def paint(rows: Iterable[Row], *, colour: bool) -> str:
    """The rows as text, line ends between them; without `colour` not one escape sequence is in it."""
    return "\n".join("".join(_painted(span, colour) for span in _trimmed(row)) for row in rows)


def _trimmed(row: Row) -> Row:
    """The row without blanks at its end."""
    while row and not (text := row[-1].text.rstrip(" ")):
        row = row[:-1]
    return (*row[:-1], Span(text, row[-1].style)) if row else row


def _painted(span: Span, colour: bool) -> str:
    if not colour or span.style is Style.PLAIN or not span.text:
        return span.text
    return f"\x1b[{span.style.value}m{span.text}\x1b[0m"


def _bounded(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + ELLIPSIS


def _harmless(char: str) -> bool:
    # Cc: controls, C1 too. Cf: bidi overrides, zero-width, tags. Zl, Zp: line ends to some. Cs: not encodable.
    return unicodedata.category(char) not in {"Cc", "Cf", "Cs", "Zl", "Zp"}


def _escape(char: str) -> str:
    code = ord(char)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _columns_of(char: str) -> int:
    if unicodedata.category(char) in {"Mn", "Me"}:
        return 0
    return 2 if unicodedata.east_asian_width(char) in {"W", "F"} else 1


def _head(text: str, width: int) -> str:
    used = 0
    for index, char in enumerate(text):
        used += _columns_of(char)
        if used > width:
            return text[:index]
    return text


def _marked(text: str, width: int) -> str:
    return _head(text, width - 1) + ELLIPSIS


def _wrapped(text: str, width: int) -> Iterator[str]:
    rest = text.strip(" ")
    while columns(rest) > width:
        head = _head(rest, width) or rest[:1]
        if not rest.startswith(" ", len(head)):
            head = head[: head.rfind(" ")] if " " in head else head
        yield head.rstrip(" ")
        rest = rest[len(head) :].lstrip(" ")
    if rest:
        yield rest
