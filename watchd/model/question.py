"""The closed set of questions that a host may be asked, and the shape of its answers.

Each way to reach a machine answers them in its own way; `Reply.via` says which. A question that is not in this file
cannot be asked, so this page and `hosts/commands.py` together are all that watchd does to a machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundingGrep:
    """One of the two commands with which a person begins, on the log from byte `start` on.

    `broad`: the last 20 lines that match `error|Error|exception|Traceback|failed|CUDA|assert` in any case.
    `assert`: each line with `Assert`, and the five lines before it.
    """

    step: Literal["broad", "assert"]
    log: str
    start: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLog:
    """Bytes of the log: `length` of them from `start`, or the newest `length` where `start` is None."""

    log: str
    start: int | None
    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSource:
    """A source file that a traceback names; the path is hostile.

    path   as the traceback has it
    line   1-based line that the traceback names
    code   that line as the log quotes it, or None
    roots  folders from which source may be read; empty means site-packages, dist-packages and Python's own library,
           and elsewhere only where `code` stands within three lines of `line`
    """

    path: str
    line: int
    code: str | None
    roots: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Processes:
    """Every process: the reply's data is `stat` and command line as `hosts/commands.py` describes them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLine:
    """The command line of a process, NUL-separated; with no pid, the one that a bundle holds."""

    pid: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelLog:
    """The newest part of the kernel log, as `dmesg -T` prints it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """`df -P`, then, after an empty line, `df -Pi`: mounted file systems, blocks and inodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpus:
    """`nvidia-smi`'s table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BootId:
    """The id of this boot of the host."""


Question = FoundingGrep | ReadLog | ReadSource | Processes | CommandLine | KernelLog | Disk | Gpus | BootId


class Outcome(StrEnum):
    """What became of a question. `lost` is never the same as `empty`."""

    ANSWERED = "answered"
    EMPTY = "empty"
    REFUSED = "refused"
    TIMED_OUT = "timed_out"
    LOST = "lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A host's answer.

    question    what was asked
    outcome     whether it was answered
    command     what a person would type to ask the same, as the evidence shows it
    via         `exec` (a command on the host), `sftp`, `local` or `bundle`
    data        the bytes that came back, at most what the host's limits allow
    offset      for ReadLog: where `data` begins in the file
    size        for ReadLog and ReadSource: size of the file in bytes at the time
    count       for FoundingGrep: matching lines in all, of which `data` may hold only the last
    detail      why it was not answered, in words for a person
    truncated   True where more was there than `data` holds
    elapsed_ms  how long it took
    """

    question: Question
    outcome: Outcome
    command: str
    via: Literal["exec", "sftp", "local", "bundle"]
    data: bytes = b""
    offset: int = 0
    size: int | None = None
    count: int | None = None
    detail: str = ""
    truncated: bool = False
    elapsed_ms: float = 0.0
