"""From the text of a log to a case and its diagnosis, without a host."""

from __future__ import annotations

import textwrap

from tests.support.cases import a_case
from watchd.diagnosis import registry
from watchd.engines.reading import read_run
from watchd.model import Case, Diagnosis, Finding, Launch, LaunchOrigin, Line, Machine, Run, Tracebacks
from watchd.parse import launch as launches
from watchd.parse import machine, traceback


def lines_of(text: str) -> tuple[Line, ...]:
    """The lines of a log, numbered from 1; the text may be indented as a whole."""
    found, offset = [], 0
    for number, line in enumerate(textwrap.dedent(text).strip("\n").split("\n"), 1):
        found.append(Line(number, offset, line))
        offset += len(line.encode()) + 1
    return tuple(found)


def case_of(
    log: str,
    *findings: Finding,
    health: str | None = "down",
    command: str = "",
    kernel: str = "",
    disks: str = "",
    engine: str | None = None,
) -> Case:
    """A case whose log was read to its end; `command`, `kernel` and `disks` are what the host would print."""
    data = textwrap.dedent(log).lstrip("\n").encode()
    run = read_run(data, offset=0, number=1, engine=engine)
    known: list[Finding] = [run, Tracebacks(blocks=traceback.read(run.lines)), *findings]
    if command:
        known.append(Launch(argv=launches.from_shell(command), origin=LaunchOrigin.BUNDLE))
    if kernel or disks:
        known.append(
            Machine(events=machine.events(textwrap.dedent(kernel)), mounts=machine.mounts(textwrap.dedent(disks)))
        )
    case = a_case(*known)
    return Case(target=case.target, trigger=case.trigger, health=health, findings=case.findings)


def diagnosed(case: Case) -> Diagnosis:
    """What the case means."""
    return registry.judge(case)


def root_line(case: Case, diagnosis: Diagnosis) -> int | None:
    """Number of the deciding line of the log, or None."""
    run = case.get(Run)
    root = diagnosis.root
    if run is None or root is None or root.index is None:
        return None
    return run.lines[root.index].number
