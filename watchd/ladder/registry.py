"""The ladder, from broad to narrow, in the order in which evidence tells it; what must be known before stands in `after`.

Two rounds reach the source: the window of the log; then, at once, the founding commands on the run that it holds, the
source of the frame that was found in it, and the launch command. The machine is asked beside them, and may take no
longer than 4 s: a GPU that fell off the bus can hold up `nvidia-smi` for minutes, and some sinks wait at most 5 s.
"""

from __future__ import annotations

from collections.abc import Collection

from watchd.ladder import broad, context, launch, machine, source, traceback
from watchd.ladder.base import Step

MACHINE_S = 4.0

LADDER: tuple[Step, ...] = (
    Step(name="broad", rung="broad", ask=broad.founding, after=("window",)),
    Step(name="window", rung="broad", ask=broad.window, show=broad.show_window),
    Step(name="context", rung="context", ask=context.founding, after=("window",)),
    Step(name="traceback", rung="traceback", ask=traceback.read, after=("window",)),
    Step(name="source", rung="source", ask=source.read, show=source.show, after=("traceback",)),
    Step(name="parser", rung="source", ask=source.parser, show=source.show, after=("traceback", "launch")),
    Step(name="launch", rung="launch", ask=launch.read, show=launch.show, after=("window",)),
    Step(name="machine", rung="machine", ask=machine.read, show=machine.show, lane="machine", limit_s=MACHINE_S),
)


def steps(rungs: Collection[str]) -> tuple[Step, ...]:
    """The steps of these rungs, and those whose findings they need, in the order of the ladder."""
    known = {step.name: step for step in LADDER}
    wanted = {step.name for step in LADDER if step.rung in rungs}
    waiting = list(wanted)
    while waiting:
        for name in known[waiting.pop()].after:
            if name not in wanted:
                wanted.add(name)
                waiting.append(name)
    return tuple(step for step in LADDER if step.name in wanted)
