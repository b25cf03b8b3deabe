"""The order of judgement. `judge` is the only door."""

from __future__ import annotations

from watchd.diagnosis import scene, verdict
from watchd.diagnosis.base import Rule
from watchd.model import Case, Diagnosis

RULES: tuple[Rule, ...] = (
    verdict.hangs,
    verdict.serves_on,
    verdict.stopped,
    verdict.finished,
    verdict.works_on,
    verdict.seen_by_the_kernel,
    verdict.hidden_gpus,
    verdict.full_shared_memory,
    verdict.failed,
    verdict.ended_by_signal,
    verdict.followed,
)


def judge(case: Case) -> Diagnosis:
    """What this case means; the first rule that applies says it."""
    read = scene.read(case)
    for rule in RULES:
        found = rule(read)
        if found is not None:
            return found
    return verdict.silent(read)
