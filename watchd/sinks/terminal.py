"""Incidents for a person at a terminal.

`render` is pure and decides nothing about the terminal: width and colour are arguments. `wants_colour`, `width_of`
and `show` ask the terminal and write to it.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TextIO

from watchd.model import Incident, Stage, Status
from watchd.sinks import draw, page
from watchd.sinks.base import Answer, Result

NARROWEST, WIDEST = 40, 200
_ASCII = str.maketrans({"━": "=", "│": "|", "▶": ">", "…": "...", "·": "-"})
_REMEMBERED = 256
"""Incidents of which is known what was told last."""


def render(incident: Incident, *, width: int, colour: bool, full: bool = False) -> str:
    """An incident as text without a line end behind it.

    One line while the ladder is climbed, everything once it is done, two lines when it is over; `full` asks for
    everything whatever its state. `width` counts columns, 40 to 200, and holds for all but commands, which are there
    to be copied. Times are UTC.
    """
    width = max(NARROWEST, min(width, WIDEST))
    if full:
        rows = page.whole(incident, width=width)
    elif incident.status is Status.RESOLVED:
        rows = page.resolved(incident, width=width)
    elif incident.stage is Stage.CLIMBING:
        rows = page.climbing(incident, width=width)
    else:
        rows = page.whole(incident, width=width)
    return draw.paint(rows, colour=colour)


def wants_colour(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Whether colour makes sense there: a terminal that is not dumb, and nobody has set NO_COLOR (https://no-color.org)."""
    return not environ.get("NO_COLOR") and environ.get("TERM") != "dumb" and stream.isatty()


def width_of(stream: TextIO) -> int:
    """Columns of the terminal behind the stream; 80 where there is none and COLUMNS says nothing."""
    try:
        columns = os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        columns = 0
    return columns or shutil.get_terminal_size((80, 24)).columns


def show(text: str, stream: TextIO) -> None:
    """Write the text and a line end, in the characters that the stream's encoding has. Raises OSError, ValueError."""
    encoding = stream.encoding or "utf-8"
    try:
        "━│▶…·".encode(encoding)
    except UnicodeEncodeError:
        text = text.translate(_ASCII)
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")
    stream.flush()


@dataclass(slots=True, kw_only=True)
class TerminalSink:
    """Prints incidents as they come; width and colour are asked of the stream each time unless they are given.

    A revision that has nothing new to say of an incident already told in full becomes one line.
    """

    name: str
    stream: TextIO = field(default_factory=lambda: sys.stdout)
    width: int | None = None
    colour: bool | None = None
    edits: bool = field(default=True, init=False)
    _told: OrderedDict[str, object] = field(default_factory=OrderedDict, init=False, repr=False)

    async def send(self, incident: Incident, *, first: bool, small: bool) -> Answer:  # noqa: ARG002 -- each line stands by itself
        """Print this incident; a closed stream is a dead destination."""
        try:
            show(self._text(incident, small), self.stream)
        except (OSError, ValueError) as error:
            return Answer(result=Result.DEAD, reason=f"the output is closed: {type(error).__name__}")
        return Answer(result=Result.SENT)

    def _text(self, incident: Incident, small: bool) -> str:
        width = self.width if self.width is not None else width_of(self.stream)
        colour = self.colour if self.colour is not None else wants_colour(self.stream, os.environ)
        told = (incident.verdict, incident.cause, incident.root, incident.frame, incident.launch)
        final = incident.status is Status.FIRING and incident.stage is Stage.FINAL
        if final and (small or self._told.get(incident.id) == told):
            return draw.paint(page.again(incident, width=max(NARROWEST, min(width, WIDEST))), colour=colour)
        if final:
            self._told[incident.id] = told
            while len(self._told) > _REMEMBERED:
                self._told.popitem(last=False)
        return render(incident, width=width, colour=colour)
