"""The neighbourhood of assertions: the second founding command, on the current run."""

from __future__ import annotations

from watchd.ladder.base import Asking
from watchd.model import Case, FoundingGrep, Run


def founding(case: Case) -> Asking:
    """Each line with `Assert` and the five before it."""
    run = case.get(Run)
    yield (FoundingGrep(step="assert", log=case.target.log, start=run.begin if run else 0),)
    return ()
