"""A question to the person at the terminal, answered by a line; nobody is waited for who cannot answer."""

from __future__ import annotations

import asyncio
import os
from typing import TextIO

from watchd.demo.screen import Screen
from watchd.model import Incident

_LONGEST = 1024


class Asker:
    """Asks on the screen and reads the answer from `answers`, without holding up what runs beside it."""

    def __init__(self, screen: Screen, answers: TextIO) -> None:
        self._screen = screen
        self._answers = answers

    async def agrees(self, question: str) -> bool:
        """Whether the next line begins with a `y`; the end of the input is a no."""
        self._screen.write(f"\n{question} [y/N] ")
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()
        number = self._answers.fileno()

        def heard() -> None:
            if not ready.done():
                ready.set_result(None)

        loop.add_reader(number, heard)
        try:
            await ready
        finally:
            loop.remove_reader(number)
        said = os.read(number, _LONGEST)
        if not said.endswith(b"\n"):
            self._screen.write("\n")
        return said.strip().lower().startswith(b"y")


def asker(screen: Screen, answers: TextIO, *, at_terminal: bool) -> Asker | None:
    """The one who asks, or None where nobody sits at a terminal."""
    return Asker(screen, answers) if at_terminal else None


def can_be_launched(incident: Incident) -> bool:
    """Whether the corrected command is complete: no value in it is left to the person."""
    launch = incident.launch
    return launch is not None and bool(launch.corrected) and not any(
        edit.value is not None and edit.value.startswith("<") for edit in launch.edits
    )  # fmt: skip
