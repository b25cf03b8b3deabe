"""The one who looks on: tells what the daemon sees, and takes the incident from the outbox as any sink does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime

from watchd.demo.program import GOODBYE
from watchd.demo.screen import Screen
from watchd.demo.telling import Seen, Telling
from watchd.model import Block, HealthResult, HealthSample, Incident, Stage, Status, Verdict
from watchd.sinks.base import Answer, Result
from watchd.sinks.draw import Style

HEALTHY = 3
"""Samples in a row after which the server counts as healthy here."""


class Witness:
    """A sink, and an observer of the daemon. Made inside a running loop."""

    name = "witness"
    edits = True

    def __init__(self, screen: Screen, now: Callable[[], datetime]) -> None:
        self._screen = screen
        self._now = now
        self._telling = Telling(width=screen.width)
        self._ups = 0
        self.healthy = asyncio.Event()
        self.goodbye = asyncio.Event()
        """Set once the last line of an orderly stop was followed."""
        self.stopped = asyncio.Event()
        """Set once the daemon has judged the end of the first launch: an orderly stop."""
        self.resolved = asyncio.Event()
        """Set once the crash is over: the server is back."""
        self.incident: asyncio.Future[Incident] = asyncio.get_running_loop().create_future()

    def say(self, word: str, text: str) -> None:
        """Tell something that the story itself does."""
        self._screen.show(self._telling.row(self._now(), word, text, Style.STRONG))

    def say_command(self, word: str, command: str, marked: set[str]) -> None:
        """Tell a command that the story runs; the flags in `marked` stand out."""
        self._screen.show(*self._telling.command(self._now(), word, command, marked))

    def observe(self, target: str, seen: Seen) -> None:  # noqa: ARG002 -- there is one target
        """Tell what the daemon saw, did or found."""
        self._screen.show(*self._telling.rows(seen, self._now()))
        if isinstance(seen, HealthSample):
            self._ups = self._ups + 1 if seen.result is HealthResult.UP else 0
            if self._ups >= HEALTHY:
                self.healthy.set()
        if isinstance(seen, Block) and GOODBYE.encode() in seen.data:
            self.goodbye.set()
        if isinstance(seen, Incident) and seen.verdict is Verdict.STOPPED:
            self.stopped.set()
        if isinstance(seen, Incident) and seen.verdict is Verdict.CRASH and seen.status is Status.RESOLVED:
            self.resolved.set()

    async def send(self, incident: Incident, *, first: bool, small: bool) -> Answer:  # noqa: ARG002
        """Keep the first crash of which everything is known."""
        told = incident.stage is Stage.FINAL and incident.status is Status.FIRING
        if told and incident.verdict is Verdict.CRASH and not self.incident.done():
            self.incident.set_result(incident)
        return Answer(result=Result.SENT)
