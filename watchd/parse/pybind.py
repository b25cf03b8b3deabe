"""Python exceptions as C++ hosts print them (pybind11): the message, an empty line, `At:`, and the frames, innermost first.

"Failed to initialize Python stub: ModuleNotFoundError: No module named 'sentencepiece'

At:
  /models/translate/1/model.py(9): <module>
  <frozen importlib._bootstrap>(488): _call_with_frames_removed
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from watchd.model import Line, Traceback, TraceFrame
from watchd.parse import lines as prefixes

_EXCEPTION = re.compile(
    r"\b(?P<type>(?:\w+\.){0,8}[A-Z]\w{2,80}(?:Error|Exception|Interrupt|Exit)): (?P<message>.{1,2000})$"
)
_FRAME = re.compile(r"^ {2,8}(?P<path>[^\s(][^(\n]{0,400})\((?P<line>\d{1,9})\): (?P<function>\S.{0,200})$")
_ABOVE = 4


def read(run_lines: Sequence[Line]) -> Iterator[Traceback]:
    """Every exception of this form, by place of its message."""
    for index, line in enumerate(run_lines):
        if "At:" in line.text and prefixes.split(line.text).body.strip() == "At:":
            block = _block(run_lines, index)
            if block is not None:
                yield block


def _block(run_lines: Sequence[Line], at: int) -> Traceback | None:
    for above in range(at - 1, max(-1, at - _ABOVE), -1):
        words = prefixes.split(run_lines[above].text)
        match = _EXCEPTION.search(words.body)
        if match:
            frames = tuple(_frames(run_lines, at + 1))
            if not frames:
                return None
            return Traceback(
                type=match["type"],
                message=match["message"].rstrip('"'),
                frames=tuple(reversed(frames)),
                indexes=(*range(at, at + 1 + len(frames)), above),
                rank=words.rank,
                process=words.process,
                level=words.level,
            )
    return None


def _frames(run_lines: Sequence[Line], start: int) -> Iterator[TraceFrame]:
    for line in run_lines[start : start + 200]:
        match = _FRAME.match(prefixes.split(line.text).body)
        if match is None:
            return
        yield TraceFrame(path=match["path"], line=int(match["line"]), function=match["function"])
