"""The rules of judgement, each small and with its reason; `registry.RULES` has their order."""

from __future__ import annotations

import re

from watchd.diagnosis import root as roots
from watchd.diagnosis import say, witness, words
from watchd.diagnosis.base import Fault, Role, Scene
from watchd.model import Cause, Confidence, Diagnosis, Launch, MarkKind, Root, RunnerUp, Verdict

_STREAK = 3
"""Statistics in a row that say that nothing moves."""
_PULSE = 10
"""Lines after the last work that only answer health checks."""
_SPREAD = 60
"""Lines of work between the words of one orderly end: what was running is finished first."""

# What a server survives by trying again; a line of it alone does not make it degraded.
_TRANSIENT = frozenset((Cause.NETWORK, Cause.COLLECTIVE_ERROR, Cause.COLLECTIVE_TIMEOUT, Cause.PORT_IN_USE))
_HANGING = frozenset((Cause.GPU_HARDWARE, Cause.COLLECTIVE_TIMEOUT, Cause.WATCHDOG_HANG))
# exitcode: -11     Signal 9 (SIGKILL) received by PID     exited with code 139     return code = -9
_EXIT = re.compile(r"(?:exit(?:ed)?(?: with)?[ _]?(?:code|status)?[ :=(]{1,4}|exitcode *: |return code = )(-?\d{1,3})\b")
_SIGNALS = {4: Cause.SEGFAULT, 6: Cause.SEGFAULT, 7: Cause.SHARED_MEMORY, 8: Cause.SEGFAULT, 9: Cause.PROCESS_KILLED, 11: Cause.SEGFAULT}


def hangs(scene: Scene) -> Diagnosis | None:
    """The process lives and does no work: the endpoint is slow, or the log says so while it answers."""
    case = scene.case
    if case.health not in ("up", "slow"):
        return None
    index, reason = _stuck(scene)
    if case.health == "up" and index is None:
        return None
    lead = roots.lead(scene)
    event = witness.deciding(scene, lead)
    if event is not None and witness.cause_of(event) is Cause.GPU_HARDWARE:
        return _judged(scene, Verdict.HANG, Cause.GPU_HARDWARE, Confidence.LIKELY, lead, roots.of_event(scene, event))
    if lead is not None and lead.role is Role.ROOT and lead.cause in _HANGING and index is None:
        return _judged(scene, Verdict.HANG, lead.cause, Confidence.LIKELY, lead, roots.of_fault(scene, lead))
    if index is None:
        index = next(iter(reversed(scene.marked(MarkKind.WORK))), None)
        reason = "The health endpoint takes requests and does not answer in time."
    root = Root(index=index, rank=None) if index is not None else None
    dump = next((fault for fault in scene.faults if fault.index == index), None)
    found = _judged(scene, Verdict.HANG, Cause.WATCHDOG_HANG, Confidence.LIKELY, dump, root)
    return Diagnosis(
        verdict=found.verdict,
        cause=found.cause,
        confidence=found.confidence,
        summary=found.summary,
        because=(reason, *found.because),
        advice=found.advice,
        root=root,
        runner_up=RunnerUp(cause=Cause.NONE, flip="a line of work, or a request that is answered"),
    )


def serves_on(scene: Scene) -> Diagnosis | None:
    """It answers: what failed was a part, or nothing."""
    if scene.case.health != "up":
        return None
    fault = next((fault for fault in scene.faults if _lasting(scene, fault)), None)
    if fault is None:
        return _fine(scene, "It answers its health checks, and nothing that the log says stopped it.", Confidence.LIKELY)
    return _judged(scene, Verdict.DEGRADED, fault.cause, Confidence.LIKELY, fault, roots.of_fault(scene, fault))


def stopped(scene: Scene) -> Diagnosis | None:
    """It was told to stop and did so in order, with nothing wrong before."""
    index = _orderly_end(scene)
    if index is None:
        return None
    before = roots.lead(scene)
    if before is not None and before.role is not Role.ECHO and before.index < index:
        return None
    if any(fatal < index for fatal in scene.marked(MarkKind.FATAL, after=_last_solid_work(scene))):
        return None
    root = Root(index=index)
    text = scene.bodies[index]
    return Diagnosis(
        verdict=Verdict.STOPPED,
        cause=Cause.PROCESS_KILLED,
        confidence=Confidence.LIKELY,
        summary=say.bounded([f"It was told to stop and did so in order: {text.strip()}"])[0][:240],
        because=(f"The end begins with: {text.strip()[:200]}", "No fault stands before it."),
        advice=say.bounded([_who_stopped(text)]),
        root=root,
        runner_up=RunnerUp(cause=Cause.NONE, flip="a fault before the order to stop"),
    )


def finished(scene: Scene) -> Diagnosis | None:
    """A job that said that it ended well, with no fault after."""
    done = scene.marked(MarkKind.FINISHED)
    if not done:
        return None
    after = [fault for fault in scene.faults if fault.index > done[-1] and fault.role is not Role.SIGN]
    if after or len(scene.marked(MarkKind.WORK, after=done[-1])) >= roots.SOLID:
        return None
    return _fine(scene, f"The job ended by itself and well: {scene.bodies[done[-1]].strip()[:160]}", Confidence.LIKELY)


def works_on(scene: Scene) -> Diagnosis | None:
    """Nobody asked its health; the log ends with work, and nothing that it survived lasts."""
    if scene.case.health is not None or scene.case.alive is False or roots.lead(scene) is not None:
        return None
    if not scene.marked(MarkKind.WORK) and not scene.marked(MarkKind.READY) and scene.bodies:
        return None
    return _fine(scene, "The log ends with work and without a fault; its health was not asked.", Confidence.GUESS)


def seen_by_the_kernel(scene: Scene) -> Diagnosis | None:
    """The kernel log says what the run's own log shows only as a consequence."""
    lead = roots.lead(scene)
    event = witness.deciding(scene, lead)
    cause = witness.cause_of(event) if event is not None else None
    if event is None or cause is None:
        return None
    agreed = witness.by_pid(scene, event) and (lead is not None or bool(scene.marked(MarkKind.FATAL)))
    confidence = Confidence.CERTAIN if agreed else Confidence.LIKELY
    return _judged(scene, Verdict.CRASH, cause, confidence, lead, roots.of_event(scene, event))


def hidden_gpus(scene: Scene) -> Diagnosis | None:
    """No GPU can be seen though the machine has them: the launch itself hides them."""
    lead = roots.lead(scene)
    if lead is None or lead.signature is None or lead.signature.name != "no-gpu-to-be-seen" or not scene.machine.gpus:
        return None
    launch = scene.case.get(Launch)
    shown = next((word for word in launch.argv if word.startswith("CUDA_VISIBLE_DEVICES=")), None) if launch else None
    if shown is None:
        return None
    found = _judged(scene, Verdict.CRASH, Cause.LAUNCH_ARGUMENT, Confidence.LIKELY, lead, roots.of_fault(scene, lead))
    count = len(scene.machine.gpus)
    return Diagnosis(
        verdict=found.verdict,
        cause=found.cause,
        confidence=found.confidence,
        summary=f"Launch refused: {shown} names no GPU of this host; nvidia-smi shows {count}, numbered from 0",
        because=found.because,
        advice=say.bounded([f"Correct {shown}: nvidia-smi lists {count} GPU(s), numbered 0 to {count - 1}."]),
        root=found.root,
        runner_up=RunnerUp(cause=Cause.DRIVER_MISMATCH, flip="nvidia-smi failing on the host"),
    )


def full_shared_memory(scene: Scene) -> Diagnosis | None:
    """No space is left, and of all file systems only the shared memory is full."""
    lead = roots.lead(scene)
    if lead is None or lead.cause is not Cause.DISK_FULL:
        return None
    full = [mount.mount for mount in scene.machine.mounts if max(mount.used_percent, mount.inodes_percent or 0) >= words.FULL]
    if full != ["/dev/shm"]:  # noqa: S108 - a mount point that is looked for, not used
        return None
    return _judged(scene, Verdict.CRASH, Cause.SHARED_MEMORY, Confidence.LIKELY, lead, roots.of_fault(scene, lead))


def failed(scene: Scene) -> Diagnosis | None:
    """A fault that the run names and did not survive."""
    lead = roots.lead(scene)
    if lead is None or lead.role is Role.ECHO:
        return None
    confidence = Confidence.LIKELY if lead.named and lead.role is Role.ROOT else Confidence.GUESS
    return _judged(scene, Verdict.CRASH, lead.cause, confidence, lead, roots.of_fault(scene, lead))


def ended_by_signal(scene: Scene) -> Diagnosis | None:
    """Only its launcher or shell says how it ended."""
    for fault in scene.faults:
        if fault.role is not Role.ECHO or roots.recovered(scene, fault):
            continue
        cause = _signal_cause(fault.text) or (Cause.PROCESS_KILLED if fault.signature and fault.signature.name == "killed" else None)
        if cause is not None:
            root = roots.of_fault(scene, fault)
            root = Root(index=root.index, rank=root.rank if root.rank is not None else roots.launcher_rank(scene))
            return _judged(scene, Verdict.CRASH, cause, Confidence.GUESS, fault, root)
    return None


def followed(scene: Scene) -> Diagnosis | None:
    """Only consequences can be seen: what they follow from lies elsewhere."""
    lead = roots.lead(scene)
    if lead is None:
        return None
    cause = lead.cause if lead.signature is not None and lead.signature.cause is not None else Cause.PROCESS_KILLED
    return _judged(scene, Verdict.CRASH, cause, Confidence.GUESS, lead, roots.of_fault(scene, lead))


def silent(scene: Scene) -> Diagnosis:
    """It is gone without a word."""
    if scene.case.health is None and scene.case.alive is None:
        return _fine(scene, "The log names no fault; health and process were not asked.", Confidence.UNKNOWN)
    index = len(scene.bodies) - 1
    while index >= 0 and not scene.bodies[index].strip():
        index -= 1
    root = Root(index=index) if index >= 0 else None
    found = _judged(scene, Verdict.CRASH, Cause.PROCESS_KILLED, Confidence.UNKNOWN, None, root)
    return Diagnosis(
        verdict=found.verdict,
        cause=found.cause,
        confidence=found.confidence,
        summary="It is gone, and its log ends without a word about it",
        because=("The log just stops.", "Nothing in what could be read of the kernel log belongs to it."),
        advice=found.advice,
        root=root,
        runner_up=RunnerUp(cause=Cause.HOST_OUT_OF_MEMORY, flip="a line of the OOM killer that names this process"),
    )


def _judged(scene: Scene, verdict: Verdict, cause: Cause, confidence: Confidence, fault: Fault | None, root: Root | None) -> Diagnosis:
    return Diagnosis(
        verdict=verdict,
        cause=cause,
        confidence=confidence,
        summary=say.summary(scene, verdict, cause, fault, root),
        because=say.because(scene, fault, root),
        advice=say.advice(scene, verdict, cause, fault, root),
        root=root,
        runner_up=_runner_up(scene, cause, fault),
    )


def _fine(scene: Scene, reason: str, confidence: Confidence) -> Diagnosis:
    del scene
    return Diagnosis(verdict=Verdict.OK, cause=Cause.NONE, confidence=confidence, summary="Nothing is wrong", because=(reason,))


def _runner_up(scene: Scene, cause: Cause, fault: Fault | None) -> RunnerUp | None:
    """The next best: the first other cause that the run names."""
    for other in scene.faults:
        if other.role is Role.ROOT and other.cause is not cause and other.named:
            where = scene.run.lines[other.index]
            place = f"line {where.number}" if where.number is not None else f"byte {where.offset}"
            return RunnerUp(cause=other.cause, flip=f"if {place} came first or stood alone: {other.text[:120]}")
    if fault is not None and not fault.named:
        return RunnerUp(cause=Cause.LAUNCH_ARGUMENT, flip="a check of the launch's arguments at the innermost frame")
    return None


def _stuck(scene: Scene) -> tuple[int | None, str]:
    """Where it stopped to work by its own words, and why that is so."""
    last_work = max((*scene.marked(MarkKind.WORK), -1))
    idle = scene.marked(MarkKind.IDLE, after=last_work)
    if len(idle) >= _STREAK:
        return idle[0], f"{len(idle)} statistics in a row show requests and no token."
    dumps = [fault for fault in scene.faults if fault.signature and fault.signature.name == "stack-dumped-while-stuck" and fault.index > last_work]
    if dumps:
        return dumps[0].index, "Its own timer dumps the stacks, and no line of work follows."
    busy = scene.marked(MarkKind.BUSY)
    after = [body for body in scene.bodies[last_work + 1 :] if body.strip()]
    if busy and busy[-1] == last_work and len(after) >= _PULSE and all(_PULSE_LINE.search(body) for body in after):
        return last_work, f"{len(after)} health checks were answered since the last line of work, which still had a request running."
    return None, ""


# 127.0.0.1 - - [01/Dec/2026 13:51:54] "GET /health HTTP/1.1" 200 -
_PULSE_LINE = re.compile(r"\"(?:GET|HEAD) /(?:health|ready|live|ping|metrics|v1/models|v2/health)\S* HTTP|\bhealthz? 200\b")


def _lasting(scene: Scene, fault: Fault) -> bool:
    """Whether a fault of a server that answers took something away: a request, a part, a worker."""
    if fault.role is not Role.ROOT:
        return False
    if fault.traceback is None and fault.cause in _TRANSIENT:
        return False
    lived = any(index < fault.index for kind in (MarkKind.WORK, MarkKind.READY) for index in scene.marked(kind))
    if not lived and _ended_its_process(fault):
        return False
    ready = scene.marked(MarkKind.READY)
    return not (fault.traceback is None and fault.cause is Cause.LAUNCH_ARGUMENT and ready and fault.index < ready[0])


def _ended_its_process(fault: Fault) -> bool:
    """Whether nothing caught it: whoever printed it is gone, so it is not the server that answers, nor a rank of it."""
    block = fault.traceback
    if block is None or block.level is not None or not block.frames:
        return False
    return block.frames[0].function in ("<module>", "_run_module_as_main")


def _orderly_end(scene: Scene) -> int | None:
    """The first word of the orderly end with which the run closes, or None."""
    stops = scene.marked(MarkKind.STOPPING)
    if not stops:
        return None
    work = scene.marked(MarkKind.WORK)
    first = stops[-1]
    if sum(index > first for index in work) > _SPREAD:
        return None
    for stop in reversed(stops[:-1]):
        if sum(stop < index < first for index in work) > _SPREAD:
            break
        first = stop
    return first


def _last_solid_work(scene: Scene) -> int:
    work = scene.marked(MarkKind.WORK)
    return work[-roots.SOLID] if len(work) >= roots.SOLID else -1


def _who_stopped(text: str) -> str:
    for word, said in _STOPPERS:
        if word in text:
            return said
    return "Nothing needs repair; find out who stopped it (SIGTERM or SIGINT, a person, a supervisor, a deployment) if nobody meant to."


_STOPPERS = (
    ("DUE TO TIME LIMIT", "The scheduler ended it at its time limit: ask for more with --time, or save and resume (requeue)."),
    ("PREEMPTION", "It was preempted: requeue it and resume from the checkpoint (--requeue)."),
    ("preempted", "It was preempted: requeue it and resume from the checkpoint (--requeue)."),
    ("CANCELLED", "Somebody cancelled the job (scancel); nothing needs repair."),
    ("drained", "The node is being drained: the server must come back elsewhere; nothing needs repair."),
    ("Gracefully stopping", "It was stopped by hand or by a deployment (docker compose stop or down); nothing needs repair."),
    ("Received 2 death signal", "Somebody pressed Ctrl-C (SIGINT); nothing needs repair."),
    ("^C", "Somebody pressed Ctrl-C (SIGINT); nothing needs repair."),
)  # fmt: skip


def _signal_cause(text: str) -> Cause | None:
    match = _EXIT.search(text)
    if match is None:
        return None
    code = int(match[1])
    number = -code if code < 0 else code - 128 if code > 128 else 0
    return _SIGNALS.get(number)
