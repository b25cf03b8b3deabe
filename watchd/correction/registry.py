"""The door of this room: what is known of a case, and the corrected launch command, both as plain data for a child process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from watchd.correction import guarded, settings, usage
from watchd.correction.flags import Known
from watchd.correction.follow import Follower, modules_of
from watchd.model import Case, Edit, Fix, Launch, Root, Run, SourceFile, SourceFiles
from watchd.parse import launch as launches

_LAST_LINES = 1500
_FIRST_LINES = 400
_LINE = 8000
_FRAMES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What the child is given; plain data.

    texts     files by path: source, and a settings file that the launch names
    frames    (path, line, function, quoted code), outermost first; none where argparse refused the command
    message   what the exception said
    launch    the recorded words
    running   the words that the program saw
    lines     the last lines of the run, where argparse refused the command; else none
    """

    texts: dict[str, str]
    frames: list[tuple[str, int, str, str | None]]
    message: str
    launch: list[str]
    running: list[str]
    lines: list[str]


def job(case: Case, root: Root | None) -> Job | None:
    """What there is to correct in this case, or None: no launch command, or nothing that speaks of one."""
    launch, run = case.get(Launch), case.get(Run)
    if launch is None or run is None or not launch.argv:
        return None
    own, more = case.get(SourceFile), case.get(SourceFiles)
    files = (*((own,) if own else ()), *(more.files if more else ()))
    trace = root.traceback if root is not None else None
    lines = [line.text[:_LINE] for line in run.lines[-_LAST_LINES:]] if trace is None else []
    if trace is not None and own is None:
        return None
    if trace is None and not any(map(usage.refuses, lines)):
        return None
    return Job(
        texts={file.path: file.text for file in files},
        frames=_frames(trace.frames, own.path if own else "") if trace is not None else [],
        message=trace.message if trace is not None else "",
        launch=list(launch.argv),
        running=list(_running(launch, run)),
        lines=lines,
    )


def _frames(frames: Any, innermost: str) -> list[tuple[str, int, str, str | None]]:
    """The frames down to the one whose file was read."""
    found = [(f.path, f.line, f.function, f.code) for f in frames if not f.path.startswith("<")]
    while found and found[-1][0] != innermost:
        found.pop()
    return found[-_FRAMES:]


def _running(launch: Launch, run: Run) -> tuple[str, ...]:
    """The words that the program saw: where the log echoes a longer command that ends in the same flags, that one."""
    echoed = launches.echoed(line.text for line in run.lines[:_FIRST_LINES])
    if echoed is None or echoed == launch.argv:
        return launch.argv
    flags = [word for word in launch.argv if word.startswith("-")]
    return echoed if flags and all(word in echoed for word in flags) else launch.argv


def solve(job: Job) -> Fix | None:
    """The corrected command. Never raises for what a source says; a deep one may exhaust the stack."""
    if not job.frames:
        refused = usage.read(job.lines)
        if refused is None:
            return None
        return usage.fix(refused, tuple(job.launch), _known(job, refused), job.texts)
    path = settings.named(job.running)
    held = job.texts.get(path or "")
    return guarded.fix(
        guarded.Crash(
            texts={name: text for name, text in job.texts.items() if name.endswith(".py")},
            frames=job.frames,
            message=job.message,
            launch=tuple(job.launch),
            running=tuple(job.running),
            settings=settings.read(path, held) if path and held is not None else {},
            unread=path is not None and held is None,
        )
    )


def _known(job: Job, refused: usage.Refused) -> Known:
    """The flags of the program: from its source where that knows more, else from its usage text."""
    told = usage.known_in(refused.usage)
    modules = modules_of({path: text for path, text in job.texts.items() if path.endswith(".py")}, ())
    read = Follower(modules, (), None).known if modules else Known()
    return read if len(read.by_name) > len(told.by_name) else told


def to_json(job: Job) -> bytes:
    """A job as the child reads it."""
    return json.dumps(asdict(job)).encode()


def answer(question: bytes) -> str:
    """What the child answers: a fix as JSON, or null."""
    fields: Mapping[str, Any] = json.loads(question)
    found = solve(Job(**{**fields, "frames": [tuple(frame) for frame in fields["frames"]]}))
    return json.dumps(asdict(found) if found else None)


def from_json(text: bytes) -> Fix | None:
    """What `answer` wrote."""
    found: dict[str, Any] | None = json.loads(text)
    if found is None:
        return None
    plain: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in found.items()}
    plain["edits"] = tuple(Edit(**edit) for edit in found["edits"])
    return Fix(**plain)
