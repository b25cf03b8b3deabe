"""What was learnt: the run, its tracebacks, the guard, the launch, the machine; and what they mean together.

Lines are referred to by their index in `Run.lines`; `Line.number` and `Line.offset` say where they lie in the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Literal, NamedTuple, TypeVar

from watchd.model.event import HealthSample, Trigger
from watchd.model.incident import Cause, Confidence, Evidence, Verdict
from watchd.model.machine import Machine, MachineEvent
from watchd.model.target import Target

Rank = int | str
"""Who spoke: the integer where the name ends in one (`TP3`, `[rank3]`, `Worker_TP3`: 3), else the name as logged."""


class Line(NamedTuple):
    """A line of the current run.

    number  1-based in the file (only `\\n` ends a line), None where the beginning of the file was not read
    offset  byte offset of its first byte in the file
    text    without its end, decoded as UTF-8 with errors replaced, control sequences and prefixes still in it
    """

    number: int | None
    offset: int
    text: str


class MarkKind(StrEnum):
    """What an engine says about one of its lines."""

    BANNER = "banner"
    """a launch begins here"""
    LOADING = "loading"
    READY = "ready"
    WORK = "work"
    """it serves or trains: progress"""
    IDLE = "idle"
    """looks like progress and is none: health checks, statistics that say nothing moves"""
    REQUEST = "request"
    """one request failed; the server goes on"""
    FATAL = "fatal"
    """the process cannot go on"""
    STOPPING = "stopping"
    """it was asked to stop and does so in order"""
    CLEANUP = "cleanup"
    """it ends its own children: a consequence"""
    BUSY = "busy"
    """a line of work that says that requests are running or waiting"""
    FINISHED = "finished"
    """a job ended well, by itself"""
    QUOTED = "quoted"
    """somebody else's words that the server repeats: a prompt, a sample"""


class Mark(NamedTuple):
    """An engine's word on one line: `line` is its index in `Run.lines`."""

    line: int
    kind: MarkKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The log from the last launch on.

    lines           its lines, in file order
    marks           the engine's word on some of them, in file order
    engine          name of the engine, `generic` where none was recognised
    engine_version  as the log says it, or None
    complete        False where the beginning of the run lies before what was read
    earlier         True where runs before this one lie in the same file
    knobs           what this engine calls the things that advice may speak of: `memory_share` -> its flag
    arguments       files below a packages' folder in which this engine defines its flags
    """

    lines: tuple[Line, ...]
    marks: tuple[Mark, ...] = ()
    engine: str = "generic"
    engine_version: str | None = None
    complete: bool = True
    earlier: bool = False
    knobs: Mapping[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()

    @property
    def begin(self) -> int:
        """Byte offset at which it begins in the file, as far as it was read."""
        return self.lines[0].offset if self.lines else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFrame:
    """One frame of a traceback: `line` counts from 1; `code` is the quoted source line or None."""

    path: str
    line: int
    function: str
    code: str | None = None


class Link(StrEnum):
    """How an exception is tied to the one that Python printed after it."""

    CAUSE = "cause"
    """The above exception was the direct cause of the following exception"""
    CONTEXT = "context"
    """During handling of the above exception, another exception occurred"""
    GROUP = "group"
    """a leaf of the exception group"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traceback:
    """One traceback block, demultiplexed: lines of other ranks between its own do not belong to it.

    type        exception type as logged (`torch.OutOfMemoryError`); empty where the block was cut before it
    message     its message, first line and, where pydantic puts the news there, as logged; may be empty
    frames      outermost first
    indexes     indexes in `Run.lines` of the block's lines, header to exception line
    rank        who printed it, or None
    process     process name as logged, or None
    earlier     the exception that Python printed before this one of the same chain, or None
    link        how `earlier` is tied to this one, or None
    quoted      True where the block lies inside another message (a worker's traceback carried by its parent)
    level       log level word of its first line (`ERROR`, `WARNING`), or None
    """

    type: str
    message: str
    frames: tuple[TraceFrame, ...]
    indexes: tuple[int, ...]
    rank: Rank | None = None
    process: str | None = None
    earlier: Traceback | None = None
    link: Link | None = None
    quoted: bool = False
    level: str | None = None

    @property
    def last(self) -> int:
        """Index in `Run.lines` of the exception line."""
        return self.indexes[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracebacks:
    """Every traceback of the run, by place of the exception line; chained ones hang on their `earlier`."""

    blocks: tuple[Traceback, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """A source file as it lies on the host: `text` may be cut to the enclosing function, padded to true line numbers."""

    path: str
    text: str
    sha256: str
    line: int
    code: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """The check that failed.

    condition  as the source has it, on one line
    names      attribute and variable names in it, aliases resolved, in order of appearance
    requires   attribute names that the check ties together, those of enclosing `if`s included
    enclosing  conditions of the enclosing `if`s, outermost first
    line       1-based line where the check begins
    """

    condition: str
    names: tuple[str, ...]
    requires: tuple[str, ...]
    enclosing: tuple[str, ...]
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceExcerpt:
    """The lines around the deciding frame; `matches_log` is False where the file changed since the crash, None if unknown."""

    path: str
    first_line: int
    lines: tuple[str, ...]
    guard: Guard | None
    sha256: str
    matches_log: bool | None


class LaunchOrigin(StrEnum):
    """Where a launch command was learnt."""

    RECORDED = "recorded"
    PROCESS = "process"
    UNIT = "unit"
    CONTAINER = "container"
    LOG = "log"
    BUNDLE = "bundle"


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """The command that started the current run; `flags` maps each flag to its values as given."""

    argv: tuple[str, ...]
    origin: LaunchOrigin
    pid: int | None = None
    started: int | None = None

    @property
    def flags(self) -> Mapping[str, tuple[str, ...]]:
        """Each `--flag` of the command and the words that follow it; `--flag=value` is split."""
        found: dict[str, list[str]] = {}
        name = ""
        for word in self.argv:
            if word.startswith("-") and not word[1:2].isdigit() and len(word) > 1:
                name, equals, value = word.partition("=")
                found[name] = [value] if equals else []
            elif name:
                found[name].append(word)
        return {flag: tuple(values) for flag, values in found.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One edit of a launch command: `value` None for a flag without one, or one that is taken away.

    basis  `proven` (the check passes with it), `derived` (the source forces the value), or `suggestion`
    """

    flag: str
    action: Literal["add", "drop", "set"]
    value: str | None
    basis: Literal["proven", "derived", "suggestion"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """What is known of a corrected launch command.

    argv       the corrected words with the secrets still in them, or empty where no command is offered
    edits      what differs from the launch
    passed     checks in the source that the corrected command passes, of the `evaluated` ones that could be told
    fails      True where the check was read on the host and surely fails for the recorded arguments
    possible   flags that may have been meant, where none is near enough to be applied
    unknown    the words that the program refused, where it refused words
    notes      sentences that a person should read beside it
    """

    argv: tuple[str, ...] = ()
    edits: tuple[Edit, ...] = ()
    passed: int = 0
    evaluated: int = 0
    fails: bool = False
    possible: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Root:
    """What decides: the line of the log (`index` in the run) or of the kernel log (`event`), and the traceback behind it."""

    index: int | None
    event: MachineEvent | None = None
    traceback: Traceback | None = None
    rank: Rank | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFiles:
    """Further files that the traceback or the launch names, beside that of the innermost frame."""

    files: tuple[SourceFile, ...] = ()


Finding = Run | Tracebacks | Root | SourceFile | SourceFiles | SourceExcerpt | Launch | Machine | Fix
F = TypeVar("F")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Everything known about one trigger, growing as the ladder is climbed.

    health      `up`, `down`, `slow`, or None where nobody asked: then no claim rests on it
    alive       whether the process lives, None where that cannot be seen
    findings    what the rungs learnt, at most one of each type
    steps       every question that was asked, with what became of it
    """

    target: Target
    trigger: Trigger
    health: str | None = None
    samples: tuple[HealthSample, ...] = ()
    alive: bool | None = None
    findings: tuple[Finding, ...] = ()
    steps: tuple[Evidence, ...] = ()

    def get(self, kind: type[F]) -> F | None:
        """The finding of this type, or None."""
        for finding in self.findings:
            if isinstance(finding, kind):
                return finding
        return None

    def with_finding(self, finding: Finding) -> Case:
        """This case with one more finding; it replaces one of the same type."""
        kept = tuple(f for f in self.findings if type(f) is not type(finding))
        return replace(self, findings=(*kept, finding))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerUp:
    """The next best cause, and what would have to be seen for it to win."""

    cause: Cause
    flip: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What a case means.

    summary   one line that a person can act on
    because   sentences, the most important first
    advice    what to do, the most important first; the first three stay under 400 characters together
    root      the deciding line, None for `ok`
    """

    verdict: Verdict
    cause: Cause | None
    confidence: Confidence
    summary: str
    because: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    root: Root | None = None
    runner_up: RunnerUp | None = None
