"""The source file of the innermost frame that belongs to the project, as it lies on the host."""

from __future__ import annotations

import re
from collections.abc import Sequence

from watchd.diagnosis import root as roots
from watchd.ladder.base import Asking
from watchd.model import Case, Outcome, ReadSource, Reply, SourceFile, TraceFrame

_AROUND = 10
# /usr/lib/python3.11/json/decoder.py, and not /usr/lib/python3/dist-packages/…
_LIBRARY = re.compile(r"/lib(?:64)?/python3(?:\.\d{1,3})?t?/(?!(?:site|dist)-packages/)")


def read(case: Case) -> Asking:
    """Ask for the file in which the root exception was raised."""
    root = roots.choose(case)
    frame = innermost(root.traceback.frames) if root and root.traceback else None
    if frame is None:
        return ()
    question = ReadSource(path=frame.path, line=frame.line, code=frame.code, roots=case.target.source_roots)
    (reply,) = yield (question,)
    if reply.outcome is not Outcome.ANSWERED:
        return ()
    return (
        SourceFile(
            path=frame.path,
            text=reply.data.decode("utf-8", "replace"),
            sha256=reply.detail.removeprefix("sha256="),
            line=frame.line,
            code=frame.code,
        ),
    )


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
