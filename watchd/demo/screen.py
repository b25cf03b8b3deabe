"""The terminal of the demo: where rows go, and what happens when nobody looks any more."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TextIO

from watchd.sinks import draw, terminal
from watchd.sinks.draw import Row


class Screen:
    """Rows and texts to a stream; `silent` shows no rows.

    A reader that has gone away ends the story by `end` and is kept in `broken`: it is no fault of whoever was showing.
    """

    def __init__(self, stream: TextIO, *, silent: bool) -> None:
        self._stream = stream
        self._silent = silent
        self.broken: OSError | None = None
        self.end: Callable[[], object] = lambda: None
        self.width = max(terminal.NARROWEST, min(terminal.width_of(stream), terminal.WIDEST))
        self.colour = terminal.wants_colour(stream, os.environ)

    def show(self, *rows: Row) -> None:
        """Show these rows now."""
        if rows and not self._silent:
            self.write(draw.paint(rows, colour=self.colour))

    def write(self, text: str) -> None:
        """Write this text, silent or not."""
        if self.broken is not None:
            return
        try:
            terminal.show(text, self._stream)
        except OSError as error:
            self.broken = error
            self.end()
