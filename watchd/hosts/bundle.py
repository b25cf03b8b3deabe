"""A folder of evidence in place of a host: what was gathered there answers the same questions.

    server.log           the log
    source/ABSOLUTE PATH source files
    host/dmesg.txt       KernelLog
    host/df.txt          Disk
    host/nvidia-smi.txt  Gpus
    host/cmdline.txt     CommandLine: the launch command as one line of shell text

Bundles come from strangers: no link is followed, no path leaves the folder, every file is bounded.
"""

from __future__ import annotations

import asyncio
import shlex
import time
from dataclasses import replace
from pathlib import Path

from watchd.errors import BundleError, LogUnreadableError
from watchd.hosts import commands, grep, here, replies
from watchd.hosts.base import FileStat, LogHandle
from watchd.model import (
    CommandLine,
    Disk,
    FoundingGrep,
    Gpus,
    KernelLog,
    Outcome,
    Question,
    ReadLog,
    ReadSource,
    Reply,
)
from watchd.parse import sourcepath

LOG = "server.log"
ABSENT = "not in the bundle"


class BundleHost:
    """A bundle as a host. Raises BundleError where the folder holds no `server.log`.

    It holds one log, so whatever path a question names, that log is meant.
    """

    def __init__(self, folder: Path | str) -> None:
        self._folder = str(folder)
        try:
            self._open(LOG).close_now()
        except LogUnreadableError as error:
            raise BundleError(f"{self._folder}: no bundle: {LOG}: {error.reason}") from error

    @property
    def name(self) -> str:
        """The folder's own name."""
        return Path(self._folder).absolute().name

    async def ask(self, questions: tuple[Question, ...], *, limit_s: float) -> tuple[Reply, ...]:
        """One reply to each question, in order; what the bundle cannot tell is refused."""
        found: list[Reply] = []
        try:
            async with asyncio.timeout(limit_s):
                for question in questions:
                    began = time.monotonic()
                    reply = await asyncio.to_thread(self._answer, question)
                    found.append(replace(reply, elapsed_ms=(time.monotonic() - began) * 1000))
        except TimeoutError:
            why = f"not answered within {limit_s:.3g} s"
            found += [replies.unanswered(q, "bundle", why, Outcome.TIMED_OUT) for q in questions[len(found) :]]
        return tuple(found)

    async def open_log(self, path: str) -> LogHandle:  # noqa: ARG002
        """Open the bundle's log. Raises LogUnreadableError."""
        return self._open(LOG)

    async def stat(self, path: str) -> FileStat | None:  # noqa: ARG002
        """The bundle's log."""
        return here.file_stat(str(Path(self._folder, LOG)))

    async def siblings(self, path: str) -> tuple[str, ...]:  # noqa: ARG002
        """A bundle holds one log."""
        return ()

    async def close(self) -> None:
        """Nothing is held."""

    def _open(self, *parts: str) -> here.HereLog:
        return here.open_below(self._folder, parts)

    def _answer(self, question: Question) -> Reply:
        try:
            match question:
                case FoundingGrep():
                    return self._founding(question)
                case ReadLog():
                    return self._log(question)
                case ReadSource():
                    return self._source(question)
                case CommandLine(pid=None):
                    return replies.small(question, "bundle", _words(self._file("cmdline.txt", question)))
                case KernelLog():
                    return replies.small(question, "bundle", self._file("dmesg.txt", question))
                case Disk():
                    return replies.small(question, "bundle", self._file("df.txt", question))
                case Gpus():
                    return replies.small(question, "bundle", self._file("nvidia-smi.txt", question))
                case _:
                    return replies.unanswered(question, "bundle", ABSENT)
        except LogUnreadableError as error:
            reason = ABSENT if isinstance(error.__cause__, FileNotFoundError) else error.reason
            return replies.unanswered(question, "bundle", reason)

    def _file(self, name: str, question: Question) -> bytes:
        """A file of the host's, at most one byte more than the limit."""
        room = commands.limit(question) + 1
        with self._open("host", name) as file:
            start = max(0, file.size_now() - room) if commands.keeps_newest(question) else 0
            return file.read_now(start, room)

    def _founding(self, question: FoundingGrep) -> Reply:
        with self._open(LOG) as log:
            size = log.size_now()
            wanted = max(0, question.start)
            start = max(wanted, size - grep.MAX_BYTES)
            data = log.read_now(start, max(0, size - start))
        return grep.reply(question, data, via="bundle", cut=start > wanted)

    def _log(self, question: ReadLog) -> Reply:
        with self._open(LOG) as log:
            size = log.size_now()
            offset, length = replies.window(question, size)
            return replies.log(question, "bundle", log.read_now(offset, length), offset=offset, size=size)

    def _source(self, question: ReadSource) -> Reply:
        why_not = sourcepath.refusal(question.path)
        if why_not is not None:
            return replies.unanswered(question, "bundle", why_not)
        with self._open("source", *question.path.strip("/").split("/")) as file:
            data = file.read_now(0, sourcepath.MAX_BYTES + 1)
        return replies.source(question, "bundle", data, real=question.path)


def _words(text: bytes) -> bytes:
    """The launch command as /proc holds one: NUL behind each word."""
    if b"\0" in text:
        return text
    line = text.decode("utf-8", "surrogateescape").strip()
    try:
        words = shlex.split(line)
    except ValueError:
        words = line.split()
    return b"".join(word.encode("utf-8", "surrogateescape") + b"\0" for word in words)
