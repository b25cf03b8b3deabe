"""The ladder is a list that can be checked: every rung is there, in order, and needs only what its lane brings."""

from __future__ import annotations

import pytest

from watchd.ladder.registry import LADDER, steps
from watchd.model import RUNGS


def test_the_ladder_has_every_rung_that_configuration_knows_but_the_stack_in_their_order():
    assert list(dict.fromkeys(step.rung for step in LADDER)) == [rung for rung in RUNGS if rung != "stack"]


def test_each_step_has_a_name_of_its_own_and_needs_steps_of_its_lane():
    lanes = {step.name: step.lane for step in LADDER}
    assert len(lanes) == len(LADDER)
    assert all(lanes[name] == step.lane for step in LADDER for name in step.after)


@pytest.mark.parametrize(
    ("rungs", "names"),
    [
        (RUNGS, [step.name for step in LADDER]),
        (("source",), ["window", "traceback", "source", "parser", "launch"]),
        (("context", "machine"), ["window", "context", "machine"]),
        (("stack",), []),
        ((), []),
    ],
)
def test_a_rung_brings_what_it_needs_and_nothing_else(rungs, names):
    assert [step.name for step in steps(rungs)] == names
