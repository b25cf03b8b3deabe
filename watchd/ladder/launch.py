"""The command that started the current run: as it was recorded, as a bundle keeps it, as the process or the log shows it."""

from __future__ import annotations

import shlex
from itertools import takewhile

from watchd.ladder import process
from watchd.ladder.base import Asking
from watchd.model import Case, CommandLine, Launch, LaunchOrigin, MarkKind, Outcome, Processes, Reply, Run
from watchd.parse import launch, processes, survey

_FIRST_LINES = 400


def read(case: Case) -> Asking:
    """The launch command, from the best place that shows it; nothing where it was recorded while the server lived."""
    if case.get(Launch):
        return ()
    if case.target.host is None:
        (reply,) = yield (CommandLine(pid=None),)
        argv = launch.from_any(reply.data) if reply.outcome is Outcome.ANSWERED else ()
        found = Launch(argv=argv, origin=LaunchOrigin.BUNDLE) if argv else None
    elif case.alive is not False:
        (reply,) = yield (Processes(),)
        found = _living(case, reply)
    else:
        found = None
    found = found or _echoed(case.get(Run))
    return (found,) if found else ()


def show(case: Case, reply: Reply) -> tuple[str, int | None]:
    """The command alone: nobody else's command line is kept."""
    found = case.get(Launch)
    if reply.outcome is not Outcome.ANSWERED or found is None or found.origin is LaunchOrigin.LOG:
        return "", None
    return shlex.join(found.argv), None


def _living(case: Case, reply: Reply) -> Launch | None:
    if reply.outcome is not Outcome.ANSWERED:
        return None
    run = case.get(Run)
    found, _ = process.find(processes.processes(reply.data), case.target, run.engine if run else "")
    if found is None:
        return None
    return Launch(argv=found.argv, origin=LaunchOrigin.PROCESS, pid=found.pid, started=found.started)


def _echoed(run: Run | None) -> Launch | None:
    """What a shell's trace shows in front of everything else: later in a log a `+` may be anybody's."""
    if run is None or not run.complete:
        return None
    end = min((mark.line for mark in run.marks if mark.kind is not MarkKind.BANNER), default=len(run.lines))
    first = run.lines[: min(end, _FIRST_LINES)]
    argv = launch.echoed(line.text for line in takewhile(lambda line: not survey.raised(line.text), first))
    return Launch(argv=argv, origin=LaunchOrigin.LOG) if argv else None
