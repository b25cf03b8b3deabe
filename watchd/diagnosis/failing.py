"""A server that is gone: by a fault that its log names, by a signal that its launcher names, or without a word."""

from __future__ import annotations

import re
from dataclasses import replace

from watchd.diagnosis import root as roots
from watchd.diagnosis import say
from watchd.diagnosis.base import Role, Scene
from watchd.model import Cause, Confidence, Diagnosis, Root, RunnerUp, Verdict

# exitcode: -11     exitcode  : -9 (pid: 70115)     exited with code 139     return code = -9
_EXIT = re.compile(
    r"(?:exit(?:ed)?(?: with)?[ _]?(?:code|status)?[ :=(]{1,4}|exitcode *: |return code = )(-?\d{1,3})\b"
)
# signaled to shutdown with signal 7     Signal 11 (SIGSEGV) received by PID 70115     terminated with signal SIGBUS
_SIGNAL = re.compile(r"\b[Ss]ignal[ :=]{1,2}(?:(\d{1,2})\b|SIG([A-Z]{3,5})\b)")
_NAMES = {"ILL": 4, "ABRT": 6, "BUS": 7, "FPE": 8, "KILL": 9, "SEGV": 11}
_SIGNALS = {
    4: Cause.SEGFAULT,
    6: Cause.SEGFAULT,
    7: Cause.SHARED_MEMORY,
    8: Cause.SEGFAULT,
    9: Cause.PROCESS_KILLED,
    11: Cause.SEGFAULT,
}
"""SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGKILL, SIGSEGV."""


def failed(scene: Scene) -> Diagnosis | None:
    """A fault that the run names and did not survive."""
    lead = roots.lead(scene)
    if lead is None or lead.role is Role.ECHO:
        return None
    confidence = Confidence.LIKELY if lead.named and lead.role is Role.ROOT else Confidence.GUESS
    return say.diagnosis(scene, Verdict.CRASH, lead.cause, confidence, lead, roots.of_fault(scene, lead))


def ended_by_signal(scene: Scene) -> Diagnosis | None:
    """Only its launcher or shell says how it ended: a negative status, or one above 128, is a signal."""
    for fault in scene.faults:
        if fault.role is not Role.ECHO or roots.recovered(scene, fault):
            continue
        said = fault.signature is not None and fault.signature.name == "killed"
        cause = _by_status(fault.text) or (Cause.PROCESS_KILLED if said else None)
        if cause is None:
            continue
        root = roots.of_fault(scene, fault)
        rank = root.rank if root.rank is not None else roots.launcher_rank(scene)
        return say.diagnosis(scene, Verdict.CRASH, cause, Confidence.GUESS, fault, Root(index=root.index, rank=rank))
    return None


def followed(scene: Scene) -> Diagnosis | None:
    """Only consequences can be seen: what they follow from lies elsewhere."""
    lead = roots.lead(scene)
    if lead is None:
        return None
    cause = (
        lead.signature.cause
        if lead.signature is not None and lead.signature.cause is not None
        else Cause.PROCESS_KILLED
    )
    return say.diagnosis(scene, Verdict.CRASH, cause, Confidence.GUESS, lead, roots.of_fault(scene, lead))


def silent(scene: Scene) -> Diagnosis:
    """It is gone without a word; or nobody knows whether it is."""
    if scene.case.health is None and scene.case.alive is None:
        return say.fine(
            "Nobody asked its health check, nor whether its process lives: a server that was killed leaves such a log too.",
            Confidence.UNKNOWN,
            "The log names no fault, and its health was not asked",
        )
    last = next((index for index in reversed(range(len(scene.bodies))) if scene.bodies[index].strip()), None)
    root = Root(index=last) if last is not None else None
    found = say.diagnosis(scene, Verdict.CRASH, Cause.PROCESS_KILLED, Confidence.UNKNOWN, None, root)
    return replace(
        found,
        summary="It is gone, and its log ends without a word about it",
        because=("The log just stops.", "Nothing in what could be read of the kernel log belongs to it."),
        runner_up=RunnerUp(cause=Cause.HOST_OUT_OF_MEMORY, flip="a line of the OOM killer that names this process"),
    )


def _by_status(text: str) -> Cause | None:
    match = _EXIT.search(text)
    if match is not None:
        status = int(match[1])
        return _SIGNALS.get(-status if status < 0 else status - 128)
    told = _SIGNAL.search(text)
    if told is None:
        return None
    return _SIGNALS.get(int(told[1]) if told[1] else _NAMES.get(told[2], 0))
