"""Replies that every way to reach a machine builds alike. Pure."""

from __future__ import annotations

import hashlib
from typing import Literal

from watchd.hosts import commands, frames
from watchd.model import Outcome, Question, ReadLog, ReadSource, Reply
from watchd.parse import sourcepath

Via = Literal["exec", "sftp", "local", "bundle"]

MAX_LOG_BYTES = 64 * 1024 * commands.KIB
"""At most so much of a log comes back for one question."""


def unanswered(question: Question, via: Via, detail: str, outcome: Outcome = Outcome.REFUSED) -> Reply:
    """A question that was not answered, and why."""
    return Reply(question=question, outcome=outcome, command=commands.shown(question), via=via, detail=detail)


def small(question: Question, via: Via, data: bytes) -> Reply:
    """The contents of a small file, or one byte more than its limit of a larger one."""
    kept, truncated = frames.bounded(question, data)
    outcome = Outcome.ANSWERED if data.strip() else Outcome.EMPTY
    return Reply(
        question=question,
        outcome=outcome,
        command=commands.shown(question),
        via=via,
        data=kept,
        truncated=truncated,
    )


def window(question: ReadLog, size: int) -> tuple[int, int]:
    """Offset and length of what is to be read of a log of this size."""
    length = max(0, min(question.length, MAX_LOG_BYTES))
    start = max(0, size - length) if question.start is None else max(0, question.start)
    return start, max(0, min(length, size - start))


def log(question: ReadLog, via: Via, data: bytes, *, offset: int, size: int) -> Reply:
    """Bytes of a log; `truncated` where the log holds more than was asked for."""
    return Reply(
        question=question,
        outcome=Outcome.ANSWERED if data else Outcome.EMPTY,
        command=commands.shown(question),
        via=via,
        data=data,
        offset=offset,
        size=size,
        truncated=offset + len(data) < size or (question.start is None and offset > 0),
    )


def source(question: ReadSource, via: Via, data: bytes, *, real: str) -> Reply:
    """What the rule lets through of a source file; `detail` is `sha256=` and the hash of the whole file."""
    if len(data) > sourcepath.MAX_BYTES:
        return unanswered(question, via, "larger than 1 MiB")
    kept = sourcepath.kept(data, real=real, line=question.line, code=question.code, roots=question.roots)
    if isinstance(kept, str):
        return unanswered(question, via, kept)
    return Reply(
        question=question,
        outcome=Outcome.ANSWERED if data else Outcome.EMPTY,
        command=commands.shown(question),
        via=via,
        data=kept.data,
        size=len(data),
        detail=f"sha256={hashlib.sha256(data).hexdigest()}",
        truncated=not kept.whole,
    )
