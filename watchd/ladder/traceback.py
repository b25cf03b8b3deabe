"""Every traceback of the current run, taken apart by rank and tied to the exceptions before it. Asks nothing."""

from __future__ import annotations

from watchd.ladder.base import Asking
from watchd.model import Case, Run, Tracebacks
from watchd.parse import traceback


def read(case: Case) -> Asking:
    """The tracebacks in the lines that were read."""
    yield from ()
    run = case.get(Run)
    return (Tracebacks(blocks=traceback.read(run.lines)),) if run else ()
