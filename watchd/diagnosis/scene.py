"""Read a case once, for all rules."""

from __future__ import annotations

from watchd.diagnosis import faults, signatures, witness
from watchd.diagnosis.base import Scene
from watchd.model import Case, Machine, MarkKind, Run, Tracebacks
from watchd.parse import lines as prefixes


def read(case: Case) -> Scene:
    """The case as the rules see it; a case without a run is one with an empty run."""
    run = case.get(Run) or Run(lines=())
    blocks = (case.get(Tracebacks) or Tracebacks(blocks=())).blocks
    machine = case.get(Machine) or Machine()
    words = tuple(prefixes.split(line.text) for line in run.lines)
    return Scene(
        case=case,
        run=run,
        words=words,
        bodies=tuple(word.body for word in words),
        faults=faults.read(run, words, blocks, signatures.with_own(case.target.signatures)),
        marks={kind: faults.marked(run.marks, kind) for kind in MarkKind},
        machine=machine,
        pids=witness.pids(words) if machine.events else frozenset(),
    )
