"""What one framed session printed, cut into the replies to its questions. Pure: `hosts/commands.py` writes the frames."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from watchd.hosts import commands
from watchd.model import BootId, CommandLine, FoundingGrep, KernelLog, Outcome, Question, Reply
from watchd.parse.processes import OURS

MAX_ERRORS = 64 * commands.KIB
"""Bytes of stderr that are kept of a session."""

NO_SUCH_COMMAND = 127
KILLED = 128
"""A shell reports a command that a signal ended as this and the signal's number."""

Via = Literal["exec", "local"]


class Capture:
    """The output of a session as it comes in, bounded."""

    def __init__(self, questions: Sequence[Question], nonce: str) -> None:
        self._room = sum(commands.limit(q) + commands.KIB for q in questions) + MAX_ERRORS
        self._done = f"\n{OURS}{nonce} done\n".encode()
        self._begun = f"\n{OURS}{nonce} ".encode()
        self.out = bytearray()
        self.errors = bytearray()
        self.complete = False
        self.begun = False

    def feed(self, data: bytes) -> None:
        """More of stdout; what is beyond all limits is dropped, and the end frames with it."""
        before = max(0, len(self.out) - len(self._done))
        self.out += data[: max(0, self._room - len(self.out))]
        self.begun = self.begun or self.out.find(self._begun, before) >= 0
        self.complete = self.complete or self.out.find(self._done, before) >= 0

    def feed_errors(self, data: bytes) -> None:
        """More of stderr."""
        self.errors += data[: max(0, MAX_ERRORS - len(self.errors))]


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """What came back for one question.

    data    stdout between the frames
    errors  stderr between the frames, on one line
    status  exit status of the command; None where it did not end by itself
    window  exit status of the `tail` in front of it where that failed, else 0
    count   matching lines, or None
    """

    data: bytes
    errors: str
    status: int | None
    window: int = 0
    count: int | None = None


def pieces(capture: Capture, questions: Sequence[Question], nonce: str) -> list[Piece | None]:
    """One piece for each question, None where its end frame did not come back."""
    out, errors = bytes(capture.out), bytes(capture.errors)
    return [_piece(out, errors, i, nonce) if commands.runs(question) else None for i, question in enumerate(questions)]


def _piece(out: bytes, errors: bytes, index: int, nonce: str) -> Piece | None:
    frame = f"\n{OURS}{nonce} "
    begin = f"{frame}{index} begin\n".encode()
    start = out.find(begin)
    if start < 0:
        return None
    start += len(begin)
    end = re.compile(re.escape(f"{frame}{index} end".encode()) + rb"((?: [st]?\d{1,18}){0,4}) ?\n").search(out, start)
    if end is None:
        return None
    numbers = {word[:1]: int(word[1:]) for word in end[1].decode().split() if word[0] in "st"}
    counts = [int(word) for word in end[1].decode().split() if word[0] not in "st"]
    said = errors.partition(begin)[2].partition(frame.encode())[0]
    return Piece(
        data=out[start : end.start()],
        errors=_one_line(said),
        status=numbers.get("s"),
        window=numbers.get("t", 0),
        count=counts[0] if counts else None,
    )


def _one_line(said: bytes) -> str:
    """The first words of stderr, fit to be shown: it is the host's text."""
    lines = [line.strip() for line in said.decode("utf-8", "replace").splitlines() if line.strip()]
    return "".join(c if c.isprintable() else "?" for c in "; ".join(lines[:3]))[:300]


def reply(question: Question, piece: Piece | None, *, via: Via, lost: tuple[Outcome, str], elapsed_ms: float) -> Reply:
    """The reply to one question; `lost` is what to say where its end frame is missing."""
    outcome, detail = lost if piece is None else judged(question, piece)
    data, truncated = (b"", False) if piece is None else bounded(question, piece.data)
    counted = piece is not None and outcome in (Outcome.ANSWERED, Outcome.EMPTY)
    return Reply(
        question=question,
        outcome=outcome,
        command=commands.shown(question),
        via=via,
        data=data,
        count=piece.count if piece is not None and counted else None,
        detail=detail,
        truncated=truncated,
        elapsed_ms=elapsed_ms,
    )


def bounded(question: Question, data: bytes) -> tuple[bytes, bool]:
    """At most what the question's limit allows, and whether there was more; no half line in front of the newest."""
    room = commands.limit(question)
    if len(data) <= room:
        return data, False
    if not commands.keeps_newest(question):
        return data[:room], True
    data = data[-room:]
    return data[data.find(b"\n") + 1 :], True


def judged(question: Question, piece: Piece) -> tuple[Outcome, str]:
    """What became of a question whose end frame came back, and why in words."""
    if piece.status is None:
        return Outcome.LOST, "the command did not end by itself"
    if isinstance(question, FoundingGrep):
        return _judged_grep(piece)
    if isinstance(question, KernelLog) and b"-- No entries --" in piece.data[:200]:
        return Outcome.REFUSED, f"dmesg is refused to this user, and journalctl has no entries for it ({piece.errors})"
    if piece.data.strip():
        return Outcome.ANSWERED, piece.errors if piece.status else ""
    if piece.status == 0 and not piece.errors:
        return Outcome.EMPTY, ""
    return Outcome.REFUSED, _why(question, piece)


def _judged_grep(piece: Piece) -> tuple[Outcome, str]:
    if piece.status is None or piece.status >= KILLED or piece.window >= KILLED:
        return Outcome.LOST, f"the command was ended on the host: {piece.errors or 'killed'}"
    if piece.data:
        return Outcome.ANSWERED, piece.errors
    if piece.status == 1 and piece.count == 0 and not piece.window and not piece.errors:
        return Outcome.EMPTY, ""
    if piece.count:
        return Outcome.LOST, f"{piece.count} lines matched, and none came back: {piece.errors}"
    return Outcome.REFUSED, piece.errors or f"grep ended with status {piece.status}"


def _why(question: Question, piece: Piece) -> str:
    if isinstance(question, KernelLog):
        return f"the kernel log is closed to this user: dmesg and journalctl both failed ({piece.errors})"
    if isinstance(question, CommandLine):
        return f"no such process: {piece.errors}"
    if piece.status == NO_SUCH_COMMAND:
        return f"not installed there: {piece.errors}"
    if isinstance(question, BootId):
        return f"not readable there: {piece.errors}"
    return piece.errors or f"it ended with status {piece.status} and said nothing"
