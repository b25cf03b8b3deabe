"""On which line of a TOML text each key stands; tomllib knows, but does not tell.

Meant for text that tomllib has already read: other text gets some answer or none, but never an exception.
"""

from __future__ import annotations

import json
import re
import tomllib
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass

from watchd.errors import Mistake

Place = tuple[str | int, ...]
"""Where a value lies in the document: names of tables and keys, and indexes of arrays."""

_BLANK = re.compile(r"[ \t]*")
_BLANK_LINES = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
# bare-key    "quoted \" key"    'literal key'
_KEY = re.compile(r"""[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'""")
# Strings of every kind; the long ones may end in up to five quotes, of which three are the end.
_STRING = re.compile(
    r'"""(?:[^"\\]|\\[\s\S]|"{1,2}(?!"))*"{3,5}' + r"|'''(?:[^']|'{1,2}(?!'))*'{3,5}" + r"|"
    r'"(?:[^"\\\n]|\\.)*"' + r"|'[^'\n]*'"
)
# 1_000    -inf    true    1979-05-27 07:32:00Z
_SCALAR = re.compile(r"[^,\]}#\n]*")
# a key that needs no quotes
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_DEEPEST = 64
"""Values nested deeper than this get no line of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """The lines of a document's keys, counted from 1."""

    lines: Mapping[Place, int]

    def line(self, place: Place) -> int:
        """The line of this value, or of the nearest table around it; 0 where that is the whole file."""
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place, 0)

    def mistake(self, place: Place, reason: str) -> Mistake:
        """A mistake (or a warning) at this place."""
        return Mistake(line=self.line(place), key=dotted(place), reason=reason)


def dotted(place: Place) -> str:
    """A place as people write it: `targets[2].health.interval`, `hosts."gpu 1".port`."""
    text = ""
    for part in place:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += ("." if text else "") + _written(part)
    return text


def locate(text: str) -> Places:
    """The line of every key, table and array element of the document."""
    return Places(lines=_Scanner(text).scan())


def _written(key: str) -> str:
    if _BARE.fullmatch(key):
        return key
    quoted = json.dumps(key, ensure_ascii=False)
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in quoted)


class _Scanner:
    """One walk over the text; `at` only grows."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.ends = [found.start() for found in re.finditer("\n", text)]
        self.lines: dict[Place, int] = {}
        self.elements: dict[Place, int] = {}

    def scan(self) -> dict[Place, int]:
        table: Place = ()
        while True:
            self._skip(_BLANK_LINES)
            if self.at >= len(self.text):
                return self.lines
            before = self.at
            if self._peek() == "[":
                table = self._header()
            else:
                self._pair(table, 0)
            if self.at == before:
                self.at += 1

    def _header(self) -> Place:
        start = self.at
        array = self.text.startswith("[[", self.at)
        self.at += 2 if array else 1
        parts = self._key()
        self.at = self._line_end()
        table: Place = ()
        for depth, part in enumerate(parts, start=1):
            table = (*table, part)
            self._record(table, start)
            if array and depth == len(parts):
                self.elements[table] = self.elements.get(table, -1) + 1
            if table in self.elements:
                table = (*table, self.elements[table])
                self._record(table, start)
        return table

    def _pair(self, table: Place, depth: int) -> None:
        start = self.at
        place = table
        for part in self._key():
            place = (*place, part)
            self._record(place, start)
        self._skip(_BLANK)
        if self._peek() == "=":
            self.at += 1
            self._skip(_BLANK_LINES)
            self._value(place, depth)

    def _key(self) -> tuple[str, ...]:
        parts: list[str] = []
        while True:
            self._skip(_BLANK)
            found = _KEY.match(self.text, self.at)
            if not found:
                return tuple(parts)
            self.at = found.end()
            parts.append(_unquoted(found[0]))
            self._skip(_BLANK)
            if self._peek() != ".":
                return tuple(parts)
            self.at += 1

    def _value(self, place: Place, depth: int) -> None:
        mark = self._peek()
        if mark in ("[", "{") and depth >= _DEEPEST:
            self._skip_brackets()
        elif mark == "[":
            self._array(place, depth + 1)
        elif mark == "{":
            self._inline_table(place, depth + 1)
        elif not self._skip(_STRING):
            self._skip(_SCALAR)

    def _array(self, place: Place, depth: int) -> None:
        self.at += 1
        index = 0
        while self._more("]"):
            before = self.at
            element = (*place, index)
            self._record(element, before)
            self._value(element, depth)
            index += 1
            if self.at == before:
                return

    def _inline_table(self, place: Place, depth: int) -> None:
        self.at += 1
        while self._more("}"):
            before = self.at
            self._pair(place, depth)
            if self.at == before:
                return

    def _more(self, end: str) -> bool:
        """Whether another element comes before the closing bracket, which is passed over."""
        self._skip(_BLANK_LINES)
        if self._peek() == ",":
            self.at += 1
            self._skip(_BLANK_LINES)
        if self._peek() == end:
            self.at += 1
            return False
        return self.at < len(self.text)

    def _skip_brackets(self) -> None:
        depth = 0
        while self.at < len(self.text):
            mark = self._peek()
            depth += (mark in "[{") - (mark in "]}")
            if not self._skip(_STRING) and not self._skip(_BLANK_LINES):
                self.at += 1
            if depth == 0:
                return

    def _record(self, place: Place, at: int) -> None:
        self.lines.setdefault(place, bisect_right(self.ends, at - 1) + 1)

    def _skip(self, pattern: re.Pattern[str]) -> bool:
        found = pattern.match(self.text, self.at)
        if found and found.end() > self.at:
            self.at = found.end()
            return True
        return False

    def _peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def _line_end(self) -> int:
        found = self.text.find("\n", self.at)
        return len(self.text) if found < 0 else found


def _unquoted(key: str) -> str:
    if key[0] not in "\"'":
        return key
    if key[0] == "'" or "\\" not in key:
        return key[1:-1]
    try:
        return str(tomllib.loads(f"key = {key}")["key"])
    except ValueError:
        return key[1:-1]
