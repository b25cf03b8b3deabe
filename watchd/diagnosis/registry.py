"""The order of judgement. `judge` is the door of this room, beside `root.choose`."""

from __future__ import annotations

from watchd.diagnosis import ending, failing, hanging, hostside, scene, serving
from watchd.diagnosis.base import Rule
from watchd.model import Case, Diagnosis

RULES: tuple[Rule, ...] = (
    hanging.hangs,
    serving.serves_on,
    ending.stopped,
    ending.finished,
    serving.works_on,
    hostside.seen_by_the_kernel,
    hostside.hidden_gpus,
    hostside.full_shared_memory,
    failing.failed,
    failing.ended_by_signal,
    failing.followed,
)
"""The first that applies decides: what lives before what is gone, what was meant before what failed, the host before
the log where the log shows only a consequence."""


def judge(case: Case) -> Diagnosis:
    """What this case means. Never raises and asks nobody; what is not known is not claimed."""
    read = scene.read(case)
    for rule in RULES:
        found = rule(read)
        if found is not None:
            return found
    return failing.silent(read)
