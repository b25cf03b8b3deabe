"""A server that answers, or whose log ends with work: what failed was a part of it, or nothing."""

from __future__ import annotations

from watchd.diagnosis import root as roots
from watchd.diagnosis import say
from watchd.diagnosis.base import Scene
from watchd.model import Confidence, Diagnosis, MarkKind, Verdict


def serves_on(scene: Scene) -> Diagnosis | None:
    """It answers its health checks."""
    if scene.case.health != "up":
        return None
    fault = roots.lasting(scene)
    if fault is None:
        return say.fine("It answers its health checks, and nothing that the log says stopped it.", Confidence.LIKELY)
    return say.diagnosis(scene, Verdict.DEGRADED, fault.cause, Confidence.LIKELY, fault, roots.of_fault(scene, fault))


def works_on(scene: Scene) -> Diagnosis | None:
    """Nobody asked its health; the log ends with work, and it recovered from whatever it met."""
    if scene.case.health is not None or scene.case.alive is False or roots.lead(scene) is not None:
        return None
    if not scene.marked(MarkKind.WORK) and not scene.marked(MarkKind.READY):
        return None
    return say.fine("The log ends with work and without a fault; its health was not asked.", Confidence.GUESS)
