"""`watchd demo`: a server on a host dies on its arguments, the daemon watches, and one incident names the cause.

Everything lives below one folder of its own and goes with it, whatever ends the story: the host, the server, the
store. Nothing of the user's own configuration is read.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shlex
import signal
import sys
import tempfile
from collections.abc import Awaitable, Iterator
from pathlib import Path
from typing import TextIO, TypeVar

import structlog

from watchd import daemon
from watchd.demo.asking import Asker, asker, can_be_launched
from watchd.demo.host import LOOPBACK, USER, DemoHost
from watchd.demo.program import Program
from watchd.demo.screen import Screen
from watchd.demo.server import Server, free_port
from watchd.demo.witness import Witness
from watchd.model import Cause, Incident, Severity, Verdict, wire
from watchd.outbox import Route
from watchd.settings import load
from watchd.sinks import draw, terminal
from watchd.sinks.draw import Row, Span, Style

HOST = "demo-host"
UP_LIMIT_S = 20.0
END_LIMIT_S = 15.0
INCIDENT_LIMIT_S = 20.0
STOPPED_LIMIT_S = 5.0
_LAST_LOG_LINES = 12

T = TypeVar("T")


class StoryError(Exception):
    """The story did not come to its end; the text says what was missing."""


def main(*, as_json: bool, program: Program | None = None, out: TextIO | None = None, err: TextIO | None = None) -> int:
    """Tell the story on `out`; with `as_json`, print the incident alone.

    Returns 0 when the incident came and names the right cause, else 1 with what was missing on `err`; 128 and the
    signal's number when SIGINT, SIGTERM or SIGHUP ended it. Raises BrokenPipeError when nobody reads `out` any more.
    """
    shown = out or sys.stdout
    screen = Screen(shown, silent=as_json)
    answers = sys.stdin
    at_terminal = not as_json and shown.isatty() and answers is not None and answers.isatty()
    asks = asker(screen, answers, at_terminal=at_terminal)
    return asyncio.run(_until_told(program or Program(), screen, as_json, err or sys.stderr, asks))


async def _until_told(program: Program, screen: Screen, as_json: bool, err: TextIO, asks: Asker | None) -> int:
    """The story, until it ends, or until a signal or a closed output cancels it; what is left over is put away then."""
    loop = asyncio.get_running_loop()
    told: list[signal.Signals] = []
    task = asyncio.create_task(_tell(program, screen, as_json, err, asks))

    def end(number: signal.Signals) -> None:
        # Only once: a second one would end the putting away.
        if not told:
            told.append(number)
            task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, end, number)
    screen.end = task.cancel
    try:
        return await task
    except asyncio.CancelledError:
        if screen.broken is not None:
            raise screen.broken from None
        if not told:
            raise
        return 128 + told[0]


async def _tell(program: Program, screen: Screen, as_json: bool, err: TextIO, asks: Asker | None) -> int:
    loop = asyncio.get_running_loop()
    began = loop.time()
    with tempfile.TemporaryDirectory(prefix="watchd-demo-") as name, _apart(Path(name)) as events:
        try:
            incident = await _play(program, Path(name), screen, asks)
        except StoryError as error:
            print(f"watchd demo: {error}", file=err)
            for line in events.read_text(encoding="utf-8", errors="replace").splitlines()[-_LAST_LOG_LINES:]:
                print(f"  {draw.plain(line)}", file=err)
            return 1
        finally:
            # A thread of the daemon may still be opening the store in the folder that is to be removed.
            await loop.shutdown_default_executor()
    if as_json:
        screen.write(wire.to_json(incident, indent=2))
    else:
        if asks is None:
            _show(incident, screen)
        took = f"That took {loop.time() - began:.0f} s. Host, server and log are gone again."
        screen.show((Span(took, Style.FAINT),))
    missing = lacks(incident, program)
    if missing:
        print(f"watchd demo: the incident came, but {'; '.join(missing)}", file=err)
    return 1 if missing else 0


def _show(incident: Incident, screen: Screen) -> None:
    screen.write("\n" + terminal.render(incident, width=screen.width, colour=screen.colour) + "\n")


async def _play(program: Program, folder: Path, screen: Screen, asks: Asker | None) -> Incident:
    """The daemon at its work, and beside it what happens to the server. Raises StoryError."""
    port, log = free_port(), folder / "server.log"
    packages = folder / "engine" / "lib" / "python3" / "site-packages"
    program.write(packages)
    log.touch()
    stop = asyncio.Event()
    async with DemoHost(folder) as host:
        screen.show(*_opening(host, screen.width))
        witness = Witness(screen, daemon.now)
        route = Route(sink=witness.name, edits=witness.edits, severity=Severity.INFO)
        settings = load(_configure(program, folder, host, port, log))
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(daemon.serve(settings, stop=stop, extra=((route, witness),), observe=witness.observe))
                incident = await _die(program, packages, log, port, witness)
                if asks is not None:
                    _show(incident, screen)
                    await _offer(incident, asks, packages, log, witness)
                stop.set()
        except ExceptionGroup as errors:
            raise _story_error(errors) from errors
    return incident


async def _die(program: Program, packages: Path, log: Path, port: int, witness: Witness) -> Incident:
    """A launch that serves; then one with a flag less."""
    async with Server(program.words(port, steps=True), packages=packages, log=log) as server:
        witness.say_command("launch", server.command, {program.steps})
        await _in_time(witness.healthy.wait(), UP_LIMIT_S, "the server did not become healthy")
        witness.say("stop", "SIGTERM, to launch it with other flags")
        await _in_time(server.stop(), END_LIMIT_S, "the server did not stop")
        await _in_time(witness.goodbye.wait(), END_LIMIT_S, "the last line of its log was not followed")
    with contextlib.suppress(StoryError):
        # As long as a person takes to type the next command; what follows does not rest on it.
        await _in_time(witness.stopped.wait(), STOPPED_LIMIT_S, "the stop was not judged")
    async with Server(program.words(port, steps=False), packages=packages, log=log) as server:
        witness.say_command("launch", server.command, set())
        witness.say("", f"this time without {program.steps}; and > {log.name} has emptied the log")
        status = await _in_time(server.ended(), END_LIMIT_S, "the server did not die")
        witness.say("exit", f"status {status}")
        return await _in_time(witness.incident, INCIDENT_LIMIT_S, "no incident came")


async def _offer(incident: Incident, asks: Asker, packages: Path, log: Path, witness: Witness) -> None:
    """Ask whether the host shall launch its server with the corrected command, and see the incident resolve."""
    launch = incident.launch
    if launch is None or launch.corrected is None or not can_be_launched(incident):
        return
    if not await asks.agrees("watchd itself never runs it. Shall the demo's host launch the corrected command?"):
        return
    words = tuple(shlex.split(launch.corrected))[1:]
    async with Server(words, packages=packages, log=log) as server:
        witness.say_command("launch", server.command, {edit.flag for edit in launch.edits})
        await _in_time(witness.resolved.wait(), UP_LIMIT_S + END_LIMIT_S, "the incident did not resolve")
        witness.say("end", "the server is back, and the incident is over")


async def _in_time(happening: Awaitable[T], limit_s: float, otherwise: str) -> T:
    try:
        async with asyncio.timeout(limit_s):
            return await happening
    except TimeoutError as error:
        raise StoryError(f"{otherwise} within {limit_s:g} s") from error


def lacks(incident: Incident, program: Program) -> list[str]:
    """What the incident should say and does not; empty where it names the right cause."""
    guard = incident.source.guard if incident.source else None
    root = incident.root.text if incident.root else ""
    wanted = {
        f"its verdict is {incident.verdict.value}, not crash": incident.verdict is Verdict.CRASH,
        f"its cause is {incident.cause}, not launch_argument": incident.cause is Cause.LAUNCH_ARGUMENT,
        f"the deciding line is {root!r}, no {program.exception}": root.startswith(program.exception),
        "it shows no check": guard is not None,
        "its check does not tie the three flags together": guard is not None
        and set(program.attributes) <= set(guard.requires),
    }
    return [text for text, right in wanted.items() if not right]


def _opening(host: DemoHost, width: int) -> list[Row]:
    text = (
        f"A server dies on its arguments, and watchd says why. All of it happens on this machine: an SSH host on"
        f" {LOOPBACK}:{host.port}, a server process on it, and the daemon that `watchd run` runs. Here it asks the"
        f" server's health every second; by itself it asks every ten. Times are UTC."
    )
    return [*((Span(line, Style.FAINT),) for line in draw.wrap(text, width)), ()]


def _configure(program: Program, folder: Path, host: DemoHost, port: int, log: Path) -> Path:
    """Write watchd.toml. A JSON string is a TOML string, but for DEL and lone surrogates."""
    process = rf"{re.escape(program.package)}\.launch .*--port {port}( |$)"
    text = f"""\
[store]
url = {json.dumps(f"sqlite:///{folder / 'watchd.db'}")}

[hosts.{HOST}]
address = "{LOOPBACK}"
port = {host.port}
user = "{USER}"
identity = {{ file = {json.dumps(str(host.identity))} }}
known_hosts = {json.dumps(str(host.known_hosts))}

[[targets]]
name = {json.dumps(program.package)}
host = "{HOST}"
log = {json.dumps(str(log))}
process = {json.dumps(process)}

[targets.health]
url = "http://{LOOPBACK}:{port}/health"
interval = "1s"
timeout = "5s"
start = "30s"
"""
    path = folder / "watchd.toml"
    path.write_text(text, encoding="utf-8")
    return path


def _story_error(errors: BaseExceptionGroup[BaseException]) -> StoryError:
    """What the person is told of it: our own word where there is one, else what broke."""
    leaves: list[BaseException] = []
    waiting: list[BaseException] = [errors]
    while waiting:
        error = waiting.pop()
        if isinstance(error, BaseExceptionGroup):
            waiting.extend(error.exceptions)
        else:
            leaves.append(error)
    ours = next((error for error in leaves if isinstance(error, StoryError)), None)
    return ours or StoryError(f"the daemon ended: {'; '.join(map(repr, leaves))}")


@contextlib.contextmanager
def _apart(folder: Path) -> Iterator[Path]:
    """Away from the user's ssh_config and from a service manager; the daemon's events go to the file that is yielded."""
    kept = {name: os.environ.get(name) for name in ("HOME", "NOTIFY_SOCKET")}
    os.environ["HOME"] = str(folder)
    os.environ.pop("NOTIFY_SOCKET", None)
    before = structlog.get_config()
    path = folder / "events.log"
    with path.open("w", encoding="utf-8", errors="backslashreplace") as events:
        structlog.configure(
            processors=[structlog.processors.format_exc_info, structlog.processors.JSONRenderer()],
            logger_factory=structlog.WriteLoggerFactory(events),
            cache_logger_on_first_use=False,
        )
        try:
            yield path
        finally:
            structlog.configure(**before)
            for name, value in kept.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value
