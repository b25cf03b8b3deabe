"""`watchd demo`: a server on a host dies on its arguments, the daemon watches, and one incident names the cause.

Everything lives below one folder of its own and ends with it, whatever ends the story: the host, the server, the
store. Nothing of the user's is read but the environment.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

import structlog

from watchd import daemon
from watchd.demo.host import LOOPBACK, USER, DemoHost
from watchd.demo.program import Program
from watchd.demo.server import Server, free_port
from watchd.demo.telling import Seen, Telling
from watchd.errors import WatchdError
from watchd.model import Cause, HealthResult, HealthSample, Incident, Severity, Stage, Status, Verdict, wire
from watchd.outbox import Route
from watchd.settings import load
from watchd.sinks import draw, terminal
from watchd.sinks.base import Answer, Result
from watchd.sinks.draw import Row, Span, Style

HOST = "demo-host"
INTERRUPTED = 130
HEALTHY = 3
"""Samples of a healthy server before its next launch."""
UP_LIMIT_S = 20.0
INCIDENT_LIMIT_S = 25.0
END_LIMIT_S = 15.0


class StoryError(WatchdError):
    """The story did not come to its end; the text says what was missing."""


def main(program: Program | None = None, *, as_json: bool, out: TextIO | None = None, err: TextIO | None = None) -> int:
    """Tell the story; with `as_json`, print the incident alone.

    0 when the incident came and names the right cause, else 1 with what was missing on `err`; 128 and the signal's
    number when a signal ended it. Raises BrokenPipeError when nobody reads `out` any more.
    """
    out, err = out or sys.stdout, err or sys.stderr
    screen = _Screen(out, silent=as_json)
    told: list[signal.Signals] = []
    with tempfile.TemporaryDirectory(prefix="watchd-demo-") as name, _apart(Path(name)):
        try:
            asyncio.run(_until_told(_play(program or Program(), Path(name), screen, as_json), screen, told))
        except StoryError as error:
            print(f"watchd demo: {error}", file=err)
            _show_log(Path(name, "watchd.log"), err)
            return error.exit_status
        except asyncio.CancelledError:
            if screen.broken is not None:
                raise screen.broken from None
            print("watchd demo: ended, and everything that it had started", file=err)
            return 128 + (told[0] if told else signal.SIGINT)
    return 0


@dataclass(slots=True)
class _Screen:
    """Where rows go; `silent` shows none. A reader that has gone away ends the story, and is no fault of the daemon."""

    stream: TextIO
    silent: bool
    broken: OSError | None = None
    end: Callable[[], object] = lambda: None
    width: int = field(init=False)
    colour: bool = field(init=False)

    def __post_init__(self) -> None:
        self.width = max(terminal.NARROWEST, min(terminal.width_of(self.stream), terminal.WIDEST))
        self.colour = terminal.wants_colour(self.stream, os.environ)

    def show(self, *rows: Row) -> None:
        if not self.silent:
            self.write(draw.paint(rows, colour=self.colour))

    def write(self, text: str) -> None:
        if self.broken is not None:
            return
        try:
            terminal.show(text, self.stream)
        except OSError as error:
            self.broken = error
            self.end()


class _Witness:
    """A sink that keeps the incident, and the onlooker who tells what the daemon sees."""

    name = "witness"
    edits = True

    def __init__(self, screen: _Screen) -> None:
        self._screen = screen
        self._telling = Telling(width=screen.width)
        self._ups = 0
        self.healthy = asyncio.Event()
        self.incident: asyncio.Future[Incident] = asyncio.get_running_loop().create_future()

    def say(self, word: str, text: str) -> None:
        self._screen.show(self._telling.row(_now(), word, text, Style.STRONG))

    def observe(self, target: str, seen: Seen) -> None:  # noqa: ARG002 -- there is one target
        self._screen.show(*self._telling.rows(seen, _now()))
        if isinstance(seen, HealthSample):
            self._ups = self._ups + 1 if seen.result is HealthResult.UP else 0
            if self._ups >= HEALTHY:
                self.healthy.set()

    async def send(self, incident: Incident, *, first: bool, small: bool) -> Answer:  # noqa: ARG002
        told = incident.stage is Stage.FINAL and incident.status is Status.FIRING
        if told and incident.verdict is Verdict.CRASH and not self.incident.done():
            self.incident.set_result(incident)
        return Answer(result=Result.SENT)


async def _until_told(play: object, screen: _Screen, told: list[signal.Signals]) -> None:
    """Run the story until it ends, or until a signal or a closed output cancels it; later signals wait for that."""
    assert asyncio.iscoroutine(play)
    loop = asyncio.get_running_loop()
    task = asyncio.create_task(play)

    def end(number: signal.Signals) -> None:
        if not told:
            told.append(number)
            task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, end, number)
    screen.end = task.cancel
    await task


async def _play(program: Program, folder: Path, screen: _Screen, as_json: bool) -> None:
    witness = _Witness(screen)
    began = asyncio.get_running_loop().time()
    packages = folder / "engine" / "lib" / "python3" / "site-packages"
    program.write(packages)
    async with DemoHost(folder / "host") as host:
        screen.show(*_opening(host, screen.width))
        incident = await _watched(program, folder, packages, host, witness)
    if as_json:
        screen.write(wire.to_json(incident, indent=2))
    else:
        screen.write("\n" + terminal.render(incident, width=screen.width, colour=screen.colour) + "\n")
    missing = lacks(incident, program)
    if missing:
        raise StoryError("the incident came, but " + "; ".join(missing))
    took = asyncio.get_running_loop().time() - began
    screen.show((Span(f"That took {took:.0f} s. Host and server are gone, and nothing of them was kept.", Style.FAINT),))


async def _watched(program: Program, folder: Path, packages: Path, host: DemoHost, witness: _Witness) -> Incident:
    """The daemon at its work, and beside it what happens to the server."""
    port, log = free_port(), folder / "server.log"
    log.touch()
    settings = load(_write_settings(program, folder, host, port, log))
    stop = asyncio.Event()
    route = Route(sink=witness.name, edits=witness.edits, severity=Severity.INFO)
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(
                daemon.serve(settings, stop=stop, extra=((route, witness),), observe=witness.observe), name="daemon"
            )
            incident = await _dies(program, packages, log, port, witness)
            stop.set()
    except ExceptionGroup as group_of_errors:
        for error in _leaves(group_of_errors):
            if isinstance(error, StoryError):
                raise error from group_of_errors
        raise StoryError(f"the daemon ended: {'; '.join(map(repr, _leaves(group_of_errors)))}") from group_of_errors
    return incident


async def _dies(program: Program, packages: Path, log: Path, port: int, witness: _Witness) -> Incident:
    """A launch that serves; then one with a flag less."""
    async with Server(program.words(port, steps=True), packages=packages, log=log) as server:
        witness.say("launch", server.command)
        await _in_time(witness.healthy.wait(), UP_LIMIT_S, "the server did not become healthy")
        witness.say("stop", "SIGTERM, for another launch")
        await _in_time(server.stop(), END_LIMIT_S, "the server did not stop")
    async with Server(program.words(port, steps=False), packages=packages, log=log) as server:
        witness.say("launch", server.command)
        witness.say("", f"without {program.steps} this time, and with > {log.name}")
        status = await _in_time(server.ended(), END_LIMIT_S, "the server did not die")
        witness.say("exit", f"status {status}")
        return await _in_time(witness.incident, INCIDENT_LIMIT_S, "no incident came")


async def _in_time[T](happening: object, limit_s: float, otherwise: str) -> T: ...
