"""What the host says, against or beside the run's own log."""

from __future__ import annotations

from dataclasses import replace

from watchd.diagnosis import root as roots
from watchd.diagnosis import say, witness, words
from watchd.diagnosis.base import Scene
from watchd.model import Cause, Confidence, Diagnosis, Launch, MarkKind, RunnerUp, Verdict

_SHARED = "/dev/shm"  # noqa: S108 - a mount point that is looked for, not used


def seen_by_the_kernel(scene: Scene) -> Diagnosis | None:
    """The kernel log says what the run's own log shows only as a consequence. Certain where both name one pid."""
    lead = roots.lead(scene)
    event = witness.deciding(scene, lead)
    cause = witness.cause_of(event) if event is not None else None
    if event is None or cause is None:
        return None
    agree = witness.by_pid(scene, event) and (lead is not None or bool(scene.marked(MarkKind.FATAL)))
    confidence = Confidence.CERTAIN if agree else Confidence.LIKELY
    return say.diagnosis(scene, Verdict.CRASH, cause, confidence, lead, roots.of_event(scene, event))


def hidden_gpus(scene: Scene) -> Diagnosis | None:
    """No GPU can be seen though the machine has them: the launch itself hides them."""
    lead = roots.lead(scene)
    launch = scene.case.get(Launch)
    if lead is None or lead.signature is None or lead.signature.name != "no-gpu-to-be-seen" or launch is None:
        return None
    shown = next((word for word in launch.argv if word.startswith("CUDA_VISIBLE_DEVICES=")), None)
    count = len(scene.machine.gpus)
    if shown is None or not count:
        return None
    found = say.diagnosis(
        scene, Verdict.CRASH, Cause.LAUNCH_ARGUMENT, Confidence.LIKELY, lead, roots.of_fault(scene, lead)
    )
    return replace(
        found,
        summary=f"Launch refused: {shown} names no GPU of this host; nvidia-smi shows {count}, numbered from 0",
        advice=say.bounded([f"Correct {shown}: nvidia-smi lists {count} GPU(s), numbered 0 to {count - 1}."]),
        runner_up=RunnerUp(cause=Cause.DRIVER_MISMATCH, flip="nvidia-smi failing on the host"),
    )


def full_shared_memory(scene: Scene) -> Diagnosis | None:
    """No space is left, and of all file systems only the shared memory is full."""
    lead = roots.lead(scene)
    if lead is None or lead.cause is not Cause.DISK_FULL:
        return None
    full = [mount.mount for mount in scene.machine.mounts if words.fill_of(mount) >= words.FULL]
    if full != [_SHARED]:
        return None
    return say.diagnosis(
        scene, Verdict.CRASH, Cause.SHARED_MEMORY, Confidence.LIKELY, lead, roots.of_fault(scene, lead)
    )
