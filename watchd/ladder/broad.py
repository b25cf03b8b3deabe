"""The broadest look: the end of the log, cut to its current run; the founding grep on that run; a survey of it.

The window is read before the grep is run, since only then is it known where the current run begins: a count over the
runs of last month would be true of the file and false of the crash. It costs nothing, for the grep goes out together
with the questions about source and launch, and it keeps the host from reading gigabytes that nobody asked about.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from watchd.engines.reading import read_run
from watchd.ladder.base import Asking
from watchd.model import Case, FoundingGrep, Line, MarkKind, Outcome, ReadLog, Reply, Run
from watchd.parse import survey

WINDOW = 8 * 1024 * 1024
WIDE_WINDOW = 64 * 1024 * 1024
_EDGE = 64 * 1024
"""A sign of failure so near to the beginning of a window may be the end of something that lies before it."""

_FAILURE = frozenset({MarkKind.FATAL, MarkKind.REQUEST, MarkKind.STOPPING})
_PROGRESS = frozenset({MarkKind.LOADING, MarkKind.READY, MarkKind.WORK, MarkKind.IDLE, MarkKind.QUOTED})


def window(case: Case) -> Asking:
    """The newest 8 MiB of the log; once more up to 64 MiB where those hold no beginning of what went wrong."""
    (reply,) = yield (_newest(case, WINDOW),)
    run = _run(case, reply)
    if run is None or reply.offset == 0 or not _falls_short(case, reply, run):
        return (run,) if run else ()
    (wider,) = yield (_newest(case, WIDE_WINDOW),)
    return (_run(case, wider) or run,)


def founding(case: Case) -> Asking:
    """The first founding command, on the current run."""
    run = case.get(Run)
    yield (FoundingGrep(step="broad", log=case.target.log, start=run.begin if run else 0),)
    return ()


def show_window(case: Case, reply: Reply) -> tuple[str, int | None]:
    """A survey of the run, and how many lines it has; nothing of a window that was too small."""
    run = case.get(Run)
    if run is None or not run.lines or run.lines[0].offset < reply.offset:
        return "", None
    return survey.text(survey.families(_without_progress(run))), len(run.lines)


def _newest(case: Case, length: int) -> ReadLog:
    return ReadLog(log=case.target.log, start=None, length=length)


def _run(case: Case, reply: Reply) -> Run | None:
    if reply.outcome is not Outcome.ANSWERED:
        return None
    trigger = case.trigger
    number = 1 if reply.offset == 0 else None
    data = reply.data
    if trigger.end is not None and reply.offset <= trigger.end < reply.offset + len(data):
        data = data[: trigger.end - reply.offset]
    run = read_run(data, offset=reply.offset, number=number, engine=case.target.engine)
    while trigger.offset is not None and reply.offset <= trigger.offset < run.begin:
        # By now another launch is in the log; the one that was seen to fail came before it.
        run = read_run(data[: run.begin - reply.offset], offset=reply.offset, number=number, engine=case.target.engine)
    return _from(run, trigger.begin)


def _from(run: Run, begin: int) -> Run:
    """The run without lines of before `begin`: the process that wrote those was gone by then."""
    if begin <= run.begin or not run.lines or begin > run.lines[-1].offset:
        return run
    first = next(index for index, line in enumerate(run.lines) if line.offset >= begin)
    marks = tuple(mark._replace(line=mark.line - first) for mark in run.marks if mark.line >= first)
    return replace(run, lines=run.lines[first:], marks=marks, complete=True, earlier=True)


def _falls_short(case: Case, reply: Reply, run: Run) -> bool:
    """Whether what went wrong may lie before this window."""
    if run.complete:
        return False
    seen = case.trigger.offset
    if seen is not None and seen < reply.offset:
        return True
    first = next(_signs(run), None)
    return first is None or first.offset - reply.offset < _EDGE


def _signs(run: Run) -> Iterator[Line]:
    """Lines that speak of failure: by their engine's word, or as an exception does."""
    told = {mark.line for mark in run.marks if mark.kind in _FAILURE}
    quiet = _marked(run)
    for index, line in enumerate(run.lines):
        if index in told or (index not in quiet and survey.raised(line.text)):
            yield line


def _marked(run: Run) -> frozenset[int]:
    return frozenset(mark.line for mark in run.marks if mark.kind in _PROGRESS)


def _without_progress(run: Run) -> Iterator[Line]:
    quiet = _marked(run)
    return (line for index, line in enumerate(run.lines) if index not in quiet)
