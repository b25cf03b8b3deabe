"""This machine: the same questions, answered by the same commands and by files read directly."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from watchd.errors import LogUnreadableError
from watchd.hosts import commands, frames, here, replies
from watchd.hosts.base import FileStat, LogHandle
from watchd.model import BootId, CommandLine, Outcome, Processes, Question, ReadLog, ReadSource, Reply
from watchd.parse import sourcepath

CHUNK = 64 * commands.KIB


class LocalHost:
    """This machine as a host; `name` is what incidents call it."""

    def __init__(self, name: str = "localhost", *, nonce: Callable[[], str] = lambda: secrets.token_hex(16)) -> None:
        self._name = name
        self._nonce = nonce

    @property
    def name(self) -> str:
        """Its name towards people."""
        return self._name

    async def ask(self, questions: tuple[Question, ...], *, limit_s: float) -> tuple[Reply, ...]:
        """One reply to each question, in order; all commands run in one shell, files are read beside it."""
        run = [i for i, q in enumerate(questions) if _runs(q) and commands.refusal(q) is None]
        read = [i for i in range(len(questions)) if i not in run]
        ran, been_read = await asyncio.gather(
            _run([questions[i] for i in run], self._nonce(), limit_s), _read([questions[i] for i in read], limit_s)
        )
        found = dict(zip((*run, *read), (*ran, *been_read), strict=True))
        return tuple(found[i] for i in range(len(questions)))

    async def open_log(self, path: str) -> LogHandle:
        """Open a regular file. Raises LogUnreadableError."""
        return here.open_regular(path)

    async def stat(self, path: str) -> FileStat | None:
        """The file that the path names now, links followed; None where there is none."""
        return here.file_stat(path)

    async def siblings(self, path: str) -> tuple[str, ...]:
        """Paths beside it whose names begin with its own, newest first, at most 50."""
        return here.siblings(path)

    async def close(self) -> None:
        """Nothing is held."""


def _runs(question: Question) -> bool:
    """Whether a command answers it here; what /proc holds is read."""
    return commands.runs(question) and not isinstance(question, (Processes, CommandLine, BootId))


async def _run(questions: Sequence[Question], nonce: str, limit_s: float) -> list[Reply]:
    if not questions:
        return []
    capture = frames.Capture(questions, nonce)
    began = time.monotonic()
    missing = (Outcome.LOST, "the answer was cut off before its end")
    process = await asyncio.create_subprocess_exec(
        "sh", "-c", os.fsencode(commands.script(questions, nonce)),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip
    try:
        async with asyncio.timeout(limit_s):
            await asyncio.gather(_drain(process.stdout, capture.feed), _drain(process.stderr, capture.feed_errors))
    except TimeoutError:
        missing = (Outcome.TIMED_OUT, f"not answered within {limit_s:.3g} s")
    finally:
        await _end(process)
    elapsed = (time.monotonic() - began) * 1000
    return [
        frames.reply(question, piece, via="local", lost=missing, elapsed_ms=elapsed)
        for question, piece in zip(questions, frames.pieces(capture, questions, nonce), strict=True)
    ]


async def _drain(stream: asyncio.StreamReader | None, feed: Callable[[bytes], None]) -> None:
    assert stream is not None
    while data := await stream.read(CHUNK):
        feed(data)


async def _end(process: asyncio.subprocess.Process) -> None:
    """The shell and all that it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    if process.stdin is not None:
        process.stdin.close()
    await process.wait()


async def _read(questions: Sequence[Question], limit_s: float) -> list[Reply]:
    found: list[Reply] = []
    try:
        async with asyncio.timeout(limit_s):
            for question in questions:
                began = time.monotonic()
                reply = await asyncio.to_thread(_answer, question)
                found.append(replace(reply, elapsed_ms=(time.monotonic() - began) * 1000))
    except TimeoutError:
        why = f"not answered within {limit_s:.3g} s"
        found += [replies.unanswered(q, "local", why, Outcome.TIMED_OUT) for q in questions[len(found) :]]
    return found


def _answer(question: Question) -> Reply:
    why_not = commands.refusal(question)
    if why_not is not None:
        return replies.unanswered(question, "local", why_not)
    try:
        match question:
            case ReadLog():
                return _log(question)
            case ReadSource():
                return _source(question)
            case Processes():
                return replies.small(question, "local", _processes())
            case CommandLine(pid=pid):
                return replies.small(question, "local", _whole(f"/proc/{pid}/cmdline", commands.limit(question)))
            case _:
                return replies.small(question, "local", _whole("/proc/sys/kernel/random/boot_id", commands.KIB))
    except LogUnreadableError as error:
        return replies.unanswered(question, "local", error.reason)


def _log(question: ReadLog) -> Reply:
    with here.open_regular(question.log) as log:
        size = log.size_now()
        offset, length = replies.window(question, size)
        return replies.log(question, "local", log.read_now(offset, length), offset=offset, size=size)


def _source(question: ReadSource) -> Reply:
    home = str(Path.home())
    why_not = sourcepath.refusal(question.path, home=home)
    if why_not is not None:
        return replies.unanswered(question, "local", why_not)
    real = os.path.realpath(question.path)
    allowed = replace(question, roots=(*question.roots, *(os.path.realpath(root) for root in question.roots)))
    quoted = sourcepath.needs_quote(real, allowed.roots)
    why_not = sourcepath.refusal(real, home=home) or (quoted if isinstance(quoted, str) else None)
    if why_not is not None:
        return replies.unanswered(question, "local", why_not if real == question.path else f"{real}: {why_not}")
    data = _whole(real, sourcepath.MAX_BYTES, links=False)
    return replace(replies.source(allowed, "local", data, real=real), question=question)


def _whole(path: str, limit: int, *, links: bool = True) -> bytes:
    """A file, at most one byte more than the limit: that byte says that there was more."""
    with here.open_regular(path, links=links) as file:
        return file.read_now(0, limit + 1)


def _processes() -> bytes:
    """The layout of `commands`, as a grep that knows -z would print it."""
    stats: list[bytes] = []
    lines: list[bytes] = []
    for pid in sorted((entry.name for entry in Path("/proc").iterdir() if entry.name.isdigit()), key=int):
        try:
            stat, line = Path("/proc", pid, "stat").read_bytes(), Path("/proc", pid, "cmdline").read_bytes()
        except OSError:
            # It has ended, or it is nobody's business.
            continue
        stats.append(stat)
        if line:
            lines += [f"/proc/{pid}/cmdline:".encode() + word + b"\0" for word in line.removesuffix(b"\0").split(b"\0")]
    return b"".join(stats) + b"\nz\n" + b"".join(lines)
