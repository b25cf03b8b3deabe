"""The source file of the innermost frame that belongs to the project, as it lies on the host."""

from __future__ import annotations

import re
from collections.abc import Sequence

from watchd.diagnosis import root as roots
from watchd.ladder.base import Asking
from watchd.model import Case, Outcome, ReadSource, Reply, SourceFile, SourceFiles, TraceFrame

_AROUND = 10
_MORE = 3
"""Further files that one climb reads at most."""
# /usr/lib/python3.11/json/decoder.py, and not /usr/lib/python3/dist-packages/…
_LIBRARY = re.compile(r"/lib(?:64)?/python3(?:\.\d{1,3})?t?/(?!(?:site|dist)-packages/)")


def read(case: Case) -> Asking:
    """Ask for the file in which the root exception was raised."""
    root = roots.choose(case)
    frame = innermost(root.traceback.frames) if root and root.traceback else None
    if frame is None:
        return ()
    frames = (frame, *_others(root.traceback.frames, frame)) if root and root.traceback else (frame,)
    replies = yield tuple(
        ReadSource(path=one.path, line=one.line, code=one.code, roots=case.target.source_roots) for one in frames
    )
    first, *more = (_file(one, reply) for one, reply in zip(frames, replies, strict=True))
    if first is None:
        return ()
    others = tuple(file for file in more if file is not None)
    return (first, SourceFiles(files=others)) if others else (first,)


def _file(frame: TraceFrame, reply: Reply) -> SourceFile | None:
    if reply.outcome is not Outcome.ANSWERED:
        return None
    return SourceFile(
        path=frame.path,
        text=reply.data.decode("utf-8", "replace"),
        sha256=reply.detail.removeprefix("sha256="),
        line=frame.line,
        code=frame.code,
    )


def _others(frames: Sequence[TraceFrame], inner: TraceFrame) -> tuple[TraceFrame, ...]:
    """One frame of each other file of the same package, from the inside out: there the flags may be defined."""
    found: dict[str, TraceFrame] = {}
    for frame in reversed(frames):
        if frame.path != inner.path and _package(frame.path) == _package(inner.path):
            found.setdefault(frame.path, frame)
    return tuple(found.values())[:_MORE]


def _package(path: str) -> str:
    """The folder under site-packages, or else the folder that most of the path shares."""
    parts = path.split("/")
    for home in ("site-packages", "dist-packages", "python"):
        if home in parts[:-1]:
            return "/".join(parts[: parts.index(home) + 2])
    return "/".join(parts[:3])


def innermost(frames: Sequence[TraceFrame]) -> TraceFrame | None:
    """The innermost frame in a file of the project; where all lie in Python's own library, the innermost of those."""
    files = [frame for frame in frames if not frame.path.startswith("<")]
    own = [frame for frame in files if not _LIBRARY.search(frame.path)]
    return next(reversed(own or files), None)


def show(case: Case, reply: Reply) -> tuple[str, int | None]:  # noqa: ARG001  the shape of a Show
    """The lines that the command of the evidence prints."""
    question = reply.question
    if not isinstance(question, ReadSource) or reply.outcome is not Outcome.ANSWERED:
        return "", None
    lines = reply.data.decode("utf-8", "replace").split("\n")
    return "\n".join(lines[max(0, question.line - 1 - _AROUND) : question.line + _AROUND]), None
