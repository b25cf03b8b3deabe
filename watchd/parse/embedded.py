"""Tracebacks inside a single line: JSON log records, and text whose line ends were escaped."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from watchd.model import Line, Traceback
from watchd.parse import lines as prefixes

_DEEPEST = 6
# Keys under which a logger puts what happened; under others (prompt, content, body) stands what somebody sent.
_KEYS = re.compile(
    r"(?:exc|exception|error|err|trace|traceback|stack|message|msg|event|log|fields|detail|reason|record|text)",
    re.IGNORECASE,
)
_FOREIGN = re.compile(r"(?:prompt|input|content|body|request|output|completion|sample|user)", re.IGNORECASE)
# error="…Traceback (most recent call last):\n…"      exc_info='Traceback …'
_ASSIGNED = re.compile(
    r"\b(?P<key>[a-z_]{2,20})[=:] ?(?P<quote>[\"'])(?P<text>[^\"']{0,400}Traceback \(most recent call last\):\\n.*)$"
)


def read(index: int, text: str) -> Iterator[Traceback]:
    """The tracebacks that the line at `index` of a run holds; all their lines are that one."""
    from watchd.parse import traceback  # it is the reader of what is found here

    words = prefixes.split(text)
    for inner in _texts(words.body):
        lines = tuple(Line(None, 0, part) for part in inner.split("\n"))
        for block in traceback.read(lines):
            yield _placed(block, index, words)


def _placed(block: Traceback, index: int, words: prefixes.Words) -> Traceback:
    return Traceback(
        type=block.type,
        message=block.message,
        frames=block.frames,
        indexes=(index,),
        rank=block.rank if block.rank is not None else words.rank,
        process=block.process or words.process,
        earlier=_placed(block.earlier, index, words) if block.earlier else None,
        link=block.link,
        quoted=block.quoted,
        level=words.level or block.level,
    )


def _texts(body: str) -> Iterator[str]:
    if body.lstrip().startswith("{"):
        try:
            yield from _strings(json.loads(body), "", 0)
        except (ValueError, RecursionError):
            pass
        else:
            return
    assigned = _ASSIGNED.search(body)
    if assigned and _KEYS.match(assigned["key"]):
        text = assigned["text"].rstrip().removesuffix(assigned["quote"])
        yield text.replace("\\n", "\n").replace('\\"', '"').replace("\\'", "'").replace("\\\\", "\\")


def _strings(value: object, key: str, depth: int) -> Iterator[str]:
    if depth > _DEEPEST or _FOREIGN.search(key):
        return
    if isinstance(value, str):
        if "Traceback (most recent call last):\n" in value and _KEYS.search(key):
            yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _strings(inner, str(name), depth + 1)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner, key, depth + 1)
