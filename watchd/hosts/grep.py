"""The founding commands where nothing can be run: the same lines and the same count as grep's. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Literal

from watchd.hosts import commands, frames
from watchd.model import FoundingGrep, Outcome, Reply

MAX_BYTES = 64 * 1024 * commands.KIB
"""At most so much of a log is searched here; the newest, where the window is larger."""

BROAD_WORDS = (b"error", b"exception", b"traceback", b"failed", b"cuda", b"assert")
CONTEXT = 5
SEPARATOR = b"--\n"


def grepped(step: Literal["broad", "assert"], data: bytes) -> tuple[int, bytes]:
    """Matching lines in all, and what the founding command of this step prints for such a log."""
    return _broad(data) if step == "broad" else _assert(data)


def _lines(data: bytes) -> Iterator[bytes]:
    """Only a newline ends a line, and the last one may lack it; grep adds it."""
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    return iter(lines)


def _broad(data: bytes) -> tuple[int, bytes]:
    count = 0
    last: deque[bytes] = deque(maxlen=commands.SHOWN_LINES)
    for line in _lines(data):
        lowered = line.lower()
        if any(word in lowered for word in BROAD_WORDS):
            count += 1
            last.append(line)
    return count, b"".join(line + b"\n" for line in last)


def _assert(data: bytes) -> tuple[int, bytes]:
    count = 0
    printed: list[bytes] = []
    # Lines since the last printed one, with the number of those that fell out at the far end.
    before: deque[bytes] = deque(maxlen=CONTEXT)
    dropped = 0
    for line in _lines(data):
        if b"Assert" not in line:
            dropped += len(before) == CONTEXT
            before.append(line)
            continue
        count += 1
        if printed and dropped:
            printed.append(SEPARATOR)
        printed += [earlier + b"\n" for earlier in before]
        printed.append(line + b"\n")
        before.clear()
        dropped = 0
    return count, b"".join(printed)


def reply(question: FoundingGrep, data: bytes, *, via: Literal["sftp", "bundle", "local"], cut: bool) -> Reply:
    """The reply to a founding question from the log's bytes; `cut`: these are only the newest of its window."""
    count, printed = grepped(question.step, data)
    kept, truncated = frames.bounded(question, printed)
    return Reply(
        question=question,
        outcome=Outcome.ANSWERED if count else Outcome.EMPTY,
        command=commands.shown(question),
        via=via,
        data=kept,
        count=count,
        detail=f"searched here, in the newest {MAX_BYTES >> 20} MiB only" if cut else "searched here, not on the host",
        truncated=truncated or cut,
    )
