"""Run one framed session over an SSH connection: bounded in time and bytes, never waiting for the peer to clean up."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence
from typing import Any

import asyncssh

from watchd.errors import HostRefusedError
from watchd.hosts import commands, frames, ssh_bounded, ssh_errors
from watchd.model import Outcome, Question, Reply

FIRST_FRAME_S = 10.0
"""A login shell's start-up files may block: so long may pass before the first frame."""

GREETING = b"watchd\n"
"""Sent to the session's stdin. Our script ignores it; an SFTP server that was put in its place takes the first four
bytes for an absurd length and ends, where it would otherwise wait for ever."""


class ExecRefusedError(Exception):
    """The host runs no commands for this user; the text is what it said instead."""


class _Session(asyncssh.SSHClientSession[bytes]):
    """Collects what the channel brings and wakes the waiting task when anything changes."""

    def __init__(self, capture: frames.Capture) -> None:
        self.capture = capture
        self.changed = asyncio.Event()
        self.closed = False
        self.status: int | None = None
        self.lost: Exception | None = None

    def data_received(self, data: bytes, datatype: int | None) -> None:
        if datatype is None:
            self.capture.feed(data)
        else:
            self.capture.feed_errors(data)
        self.changed.set()

    def eof_received(self) -> bool:
        return True

    def exit_status_received(self, status: int) -> None:
        self.status = status
        self.changed.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed, self.lost = True, exc
        self.changed.set()


async def ask(
    host: str,
    connection: asyncssh.SSHClientConnection,
    questions: Sequence[Question],
    nonce: str,
    *,
    limit_s: float,
) -> list[Reply]:
    """The replies to questions that are answered by commands, in order. Raises ExecRefusedError."""
    capture = frames.Capture(questions, nonce)
    began = time.monotonic()
    channel = None
    missing = (Outcome.TIMED_OUT, f"not answered within {limit_s:.3g} s")
    try:
        async with asyncio.timeout(limit_s):
            channel, session = await ssh_bounded.session(lambda: _start(connection, capture, questions, nonce), _close)
            # What was put in place of our script may have ended already.
            with contextlib.suppress(BrokenPipeError):
                channel.write(GREETING)
            missing = await _finish(session)
    except TimeoutError:
        pass
    except ssh_errors.FOREIGN as error:
        failure = ssh_errors.translated(host, error)
        missing = (Outcome.REFUSED if isinstance(failure, HostRefusedError) else Outcome.LOST, failure.reason)
    finally:
        # Never waited for: on a dead link the peer's answer would not come. Its stdin ends, and the session with it.
        if channel is not None:
            channel.close()
    elapsed = (time.monotonic() - began) * 1000
    found = frames.pieces(capture, questions, nonce)
    return [
        frames.reply(question, piece, via="exec", lost=missing, elapsed_ms=elapsed)
        for question, piece in zip(questions, found, strict=True)
    ]


async def _start(
    connection: asyncssh.SSHClientConnection, capture: frames.Capture, questions: Sequence[Question], nonce: str
) -> tuple[asyncssh.SSHClientChannel[bytes], _Session]:
    session = _Session(capture)
    # A path may hold bytes that are no UTF-8, so the command goes out as bytes; asyncssh's annotation knows only text.
    command: Any = commands.session(questions, nonce).encode("utf-8", "surrogateescape")
    channel, _ = await connection.create_session(lambda: session, command, encoding=None, request_pty=False)
    return channel, session


def _close(late: tuple[asyncssh.SSHClientChannel[bytes], _Session]) -> None:
    late[0].close()


async def _finish(session: _Session) -> tuple[Outcome, str]:
    """Wait for the last frame; what it returns is said of every question without an end frame."""
    begin_by = time.monotonic() + FIRST_FRAME_S
    while not (session.capture.complete or session.closed):
        session.changed.clear()
        patience = None if session.capture.begun else max(0.0, begin_by - time.monotonic())
        try:
            async with asyncio.timeout(patience):
                await session.changed.wait()
        except TimeoutError:
            if not session.capture.begun:
                return Outcome.TIMED_OUT, (
                    f"the login shell did not begin within {FIRST_FRAME_S:g} s: look at its start-up files"
                )
    if session.capture.complete or session.capture.begun:
        return Outcome.LOST, "the answer was cut off before its end"
    if session.status is not None and session.lost is None:
        said = bytes(session.capture.out + session.capture.errors)
        raise ExecRefusedError(" ".join(said.decode("utf-8", "replace").split())[:200] or "it said nothing")
    return Outcome.LOST, "the connection broke before an answer came"


def refused(question: Question, said: str, *, elapsed_ms: float = 0.0) -> Reply:
    """The reply to a question that would need a command, on a host that runs none."""
    return Reply(
        question=question,
        outcome=Outcome.REFUSED,
        command=commands.shown(question),
        via="exec",
        detail=f"the host runs no commands for this user ({said})",
        elapsed_ms=elapsed_ms,
    )
