"""A page of labels and texts, and commands that can be copied from it. Pure, like everything behind `render`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from watchd.sinks.draw import Row, Span, Style, columns, cut, plain, wrap

_LABEL = 12
"""Columns that a label takes, its indent and the gap behind it."""
_NARROW = 64
"""Below this many columns a label stands in a line of its own."""
_TEXT_ROWS = 6


@dataclass(frozen=True, slots=True)
class Layout:
    """A page of labels on the left and text on the right of them; on a narrow screen below them."""

    width: int

    @property
    def room(self) -> int:
        """Columns for the text."""
        return self.width - (4 if self.width < _NARROW else _LABEL)

    def section(self, label: str, body: Sequence[Row]) -> list[Row]:
        """The label beside the first row of the body; nothing where the body is empty."""
        if not body:
            return []
        name = Span(f"  {label}".ljust(_LABEL), Style.FAINT)
        if self.width < _NARROW:
            return [(name,), *((Span("    "), *row) for row in body)]
        return [(name, *body[0]), *((Span(" " * _LABEL), *row) for row in body[1:])]

    def text(
        self, text: str, style: Style = Style.PLAIN, *, rows: int | None = _TEXT_ROWS, mark: str = ""
    ) -> list[Row]:
        """Wrapped text, line by line, each later row indented by the width of `mark`, which stands before the first."""
        lines = [plain(line) for line in text.rstrip("\n").split("\n")]
        room = self.room - columns(mark)
        wrapped = [row for line in lines for row in wrap(line, room)]
        if rows is not None and len(wrapped) > rows:
            wrapped = [*wrapped[: rows - 1], cut(wrapped[rows - 1] + "…", room)]
        return [(Span(mark if not n else " " * columns(mark)), Span(row, style)) for n, row in enumerate(wrapped)]


def command(command: str, marked: set[str], style: Style, room: int) -> list[Row]:
    """A command in rows of `room` columns, to be copied: broken with a backslash in front of flags, or of words, never within one."""
    rows: list[Row] = []
    spans: list[Span] = []
    room -= 2  # for the backslash
    for flag, part in _parts(whole_plain(command), room - 2):
        used = sum(columns(span.text) for span in spans)
        if spans and used + 1 + columns(part) > room:
            rows.append((*spans, Span(" \\")))
            spans = [Span("  ")]
        elif spans:
            spans.append(Span(" "))
        spans.append(Span(part, style if flag in marked else Style.PLAIN))
    return [*rows, tuple(spans)] if spans else rows


def _parts(command: str, room: int) -> Iterator[tuple[str, str]]:
    """Each flag with its values, and the flag's name; where that is wider than `room`, word by word."""
    words: list[str] = []
    flag = ""
    for word in [*_words(command), "-"]:
        if word.startswith("-") and not word[1:2].isdigit():
            part = " ".join(words)
            yield from [(flag, part)] if 0 < columns(part) <= room else ((flag, word) for word in words)
            words, flag = [], word.partition("=")[0]
        words.append(word)


def _words(command: str) -> list[str]:
    """The command's words as they are written, quotes and all."""
    words = [""]
    quote = ""
    escaped = False
    for char in command:
        if char == " " and not quote and not escaped:
            words.append("")
            continue
        words[-1] += char
        if escaped:
            escaped = False
        elif char == "\\" and quote != "'":
            escaped = True
        elif char == quote:
            quote = ""
        elif char in "'\"" and not quote:
            quote = char
    return [word for word in words if word]


def whole_plain(text: str) -> str:
    """Harmless, but never shortened: what is copied must be whole."""
    return "".join(plain(text[start : start + 2_000]) for start in range(0, len(text), 2_000))
