"""The source file of the innermost frame that belongs to the project, as it lies on the host."""

from __future__ import annotations

import re
from collections.abc import Sequence

from watchd.diagnosis import root as roots
from watchd.ladder.base import Asking
from watchd.model import Case, Launch, Outcome, ReadSource, Reply, Run, SourceFile, SourceFiles, TraceFrame

_AROUND = 10
_MORE = 3
"""Further files that one climb reads at most."""
_REFUSED = ": error: "
_LAST_LINES = 1500
_MODULE = re.compile(r"[A-Za-z_][\w.]{0,200}")
# /opt/env/lib/python3.11/site-packages/torch/cuda/__init__.py:61: FutureWarning: …
_PACKAGES = re.compile(r"(/[\w./+-]{1,300}/(?:site|dist)-packages)/")
# from sample.server.args import prepare
_IMPORT = re.compile(r"(?m)^\s{0,12}(?:from|import) ([A-Za-z_][\w.]{0,200})")
_ARGUMENTS = re.compile(r"(?:arg|option|cli|config)[^/]*\.py$")
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


def parser(case: Case) -> Asking:
    """Where argparse refused the command there is no traceback: the program that the launch names, and what it imports.

    A module is looked for in the packages' folder that the run's own lines name; a script where the launch has it.
    """
    root, run, launch = roots.choose(case), case.get(Run), case.get(Launch)
    if run is None or launch is None or (root is not None and root.traceback is not None):
        return ()
    if not any(_REFUSED in line.text for line in run.lines[-_LAST_LINES:]):
        return ()
    files: dict[str, SourceFile] = {}
    wanted = _programs(launch.argv, run)
    for _ in range(2):
        frames = tuple(_frame(path) for path in wanted if path not in files)[: _MORE + 1]
        replies = (yield tuple(_question(frame, case) for frame in frames)) if frames else ()
        found = [_file(frame, reply) for frame, reply in zip(frames, replies, strict=True)]
        files |= {file.path: file for file in found if file is not None}
        wanted = tuple(path for file in found if file is not None for path in _imported(file))[:_MORE]
    return (SourceFiles(files=tuple(files.values())),) if files else ()


def _programs(argv: Sequence[str], run: Run) -> tuple[str, ...]:
    """The file that the launch starts, and those in which its engine defines flags, as far as the run says where they lie."""
    script = next((word for word in argv if word.endswith(".py") and word.startswith("/")), None)
    if script is not None:
        return (script,)
    folder = next((match[1] for line in run.lines if (match := _PACKAGES.search(line.text))), None)
    if folder is None:
        return ()
    module = next((argv[at + 1] for at, word in enumerate(argv[:-1]) if word == "-m"), "")
    started = (f"{module.replace('.', '/')}.py",) if _MODULE.fullmatch(module) else ()
    return tuple(f"{folder}/{path}" for path in dict.fromkeys((*started, *run.arguments)))


def _imported(file: SourceFile) -> tuple[str, ...]:
    """Files of the same package that this one imports, those first whose names speak of arguments."""
    found = dict.fromkeys(_IMPORT.findall(file.text))
    own = _package(file.path)
    home, _, name = own.rpartition("/")
    paths = [f"{home}/{dotted.replace('.', '/')}.py" for dotted in found if dotted.partition(".")[0] == name]
    return tuple(sorted(paths, key=lambda path: not _ARGUMENTS.search(path))[:_MORE])


def _frame(path: str) -> TraceFrame:
    return TraceFrame(path=path, line=1, function="")


def _question(frame: TraceFrame, case: Case) -> ReadSource:
    return ReadSource(path=frame.path, line=frame.line, code=frame.code, roots=case.target.source_roots)


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
        if frame.path != inner.path and frame.function != "<module>" and _package(frame.path) == _package(inner.path):
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
