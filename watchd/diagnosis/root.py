"""Which of all faults decides: the first one that nothing explains and from which the server did not recover."""

from __future__ import annotations

import re
from dataclasses import replace

from watchd.diagnosis import faults, stragglers, witness
from watchd.diagnosis import scene as scenes
from watchd.diagnosis.base import Fault, Role, Scene
from watchd.model import Case, Cause, MarkKind, Root, Traceback

SOLID = 3
"""Lines of work after a fault that show that the server goes on; the others of a group may finish one or two."""

# What a server survives by trying again: a line of it alone takes nothing away.
_TRANSIENT = frozenset((Cause.NETWORK, Cause.COLLECTIVE_ERROR, Cause.COLLECTIVE_TIMEOUT, Cause.PORT_IN_USE))
_PROGRAMS = ("<module>", "_run_module_as_main")
"""Functions with which a program begins."""

# Exception in thread Thread-5 (…):      the rest of the process goes on
_THREAD = re.compile(r"^Exception in thread ")
# run.sh: line 7:  4242 Aborted                 (core dumped) python3 serve.py
_SHELL = re.compile(
    r"^\S{1,80}: line \d+: +\d+ (?:Killed|Terminated|Aborted|Segmentation fault|Bus error|Illegal instruction)\b"
)
_WEB = re.compile(r"/(?:starlette|fastapi|uvicorn|aiohttp|tornado|flask|werkzeug|grpc|gunicorn)/")
# failed (exitcode: 1) local_rank: 3 (pid: 178)       rank      : 11 (local_rank: 3)
_LOCAL_RANK = re.compile(r"\blocal_rank['\": =]{1,4}(\d{1,5})\b|\brank[ =:]{1,2}(\d{1,5})\b")
_LAUNCHER_RANK = re.compile(r"(?:^|\s)rank +: (\d{1,5}) \(local_rank|failed \(exitcode: -?\d+\) local_rank: (\d{1,5})")


def choose(case: Case) -> Root | None:
    """What decides this case as far as it is known now; None where nothing went wrong or nothing says so."""
    scene = scenes.read(case)
    if case.health == "up":
        fault = lasting(scene)
        return of_fault(scene, fault) if fault is not None else None
    fault = lead(scene)
    event = witness.deciding(scene, fault)
    if event is not None:
        return of_event(scene, event)
    return of_fault(scene, fault) if fault is not None else None


def lead(scene: Scene) -> Fault | None:
    """The fault that decides for a server that is gone, or None."""
    tail = [fault for fault in scene.faults if not recovered(scene, fault)]
    for role in (Role.ROOT, Role.SIGN, Role.ECHO):
        found = [fault for fault in tail if fault.role is role]
        if found:
            return _first(scene, found)
    return None


def lasting(scene: Scene) -> Fault | None:
    """The first fault of a server that answers which took something away: a request, a part, a worker."""
    ready = scene.marked(MarkKind.READY)
    alive = sorted((*ready, *scene.marked(MarkKind.WORK)))
    for fault in scene.faults:
        begun = bool(alive) and alive[0] < fault.index
        passing = fault.traceback is None and (
            fault.cause in _TRANSIENT or (fault.cause is Cause.LAUNCH_ARGUMENT and not begun)
        )
        if fault.role is Role.ROOT and not passing and (begun or not _ended_its_process(fault)):
            return fault
    return None


def _ended_its_process(fault: Fault) -> bool:
    """Whether nothing caught it: whoever printed it is gone, so it was a run before, not the server that answers."""
    block = fault.traceback
    if block is None:
        return bool(_SHELL.match(fault.text))
    return block.level is None and bool(block.frames) and block.frames[0].function in _PROGRAMS


def recovered(scene: Scene, fault: Fault) -> bool:
    """Whether the server became ready after it, or worked on: at least three lines of work that may be this rank's."""
    if any(scene.marked(MarkKind.READY, after=fault.index)):
        return True
    after = scene.marked(MarkKind.WORK, after=fault.index)
    if fault.rank is None or len(after) < SOLID:
        return len(after) >= SOLID
    ranks = [scene.words[index].rank for index in after[:200]]
    return sum(rank is None or rank == fault.rank for rank in ranks) >= SOLID


def of_fault(scene: Scene, fault: Fault) -> Root:
    """The root that a fault makes: with the exception behind it, and who failed first."""
    block = fault.traceback or _exception_behind(scene, fault)
    astray = stragglers.find(scene, fault)
    if astray is not None and astray.index is not None:
        return Root(index=astray.index, traceback=block, rank=astray.rank)
    return Root(index=fault.index, traceback=block, rank=_rank(scene, fault, block))


def of_event(scene: Scene, event: witness.Event) -> Root:
    """The root that a line of the kernel log makes: the run's own fault stands behind it as what was seen."""
    fault = lead(scene)
    behind = of_fault(scene, fault) if fault is not None else Root(index=None)
    rank = rank_of_pid(scene, event.pid) if event.pid is not None else None
    if rank is None:
        rank = behind.rank if behind.rank is not None else launcher_rank(scene)
    return replace(behind, index=None, event=event, rank=rank)


_STATED_SOON = 40
"""Lines within which an exception is the same event as the line that announced it."""


def _first(scene: Scene, found: list[Fault]) -> Fault:
    """The earliest; what concerns only a thread or a request comes last, unless what follows has the same cause."""
    best = min(found, key=lambda fault: (beside(scene, fault), fault.index))
    best = next((fault for fault in found if fault.named and fault.cause is best.cause), best)
    if best.traceback is None and best.signature is not None and best.signature.on == "both":
        for other in found:
            near = other.index - best.index < _STATED_SOON and best.rank in (None, other.rank)
            if other.traceback is not None and near and _announces(best, other.traceback):
                return other
    return best


def _announces(line: Fault, block: Traceback) -> bool:
    """Whether a line only says ahead what the exception then says: the same words."""
    message = block.message[:40].rstrip(" .")
    return len(message) > 8 and message in line.text


def beside(scene: Scene, fault: Fault) -> bool:
    """Whether it ended only a thread or a request of a process that goes on."""
    if fault.traceback is None:
        return False
    first = fault.traceback.indexes[0]
    if first and _THREAD.match(scene.bodies[first - 1]):
        return True
    return any(_WEB.search(frame.path) for frame in fault.traceback.frames[:8])


def _exception_behind(scene: Scene, fault: Fault) -> Traceback | None:
    """The exception that this line announces or states itself."""
    if fault.role is Role.ROOT:
        own = faults.stated(fault.text, fault.index)
        if own is not None:
            return own
    for other in scene.faults:
        if other.index <= fault.index or other.traceback is None:
            continue
        told = (
            fault.cause is Cause.PROCESS_KILLED
            and other.signature is not None
            and other.signature.name == "interrupted"
        )
        if told or (other.cause is fault.cause and other.role is not Role.ECHO):
            return other.traceback
    return None


def _rank(scene: Scene, fault: Fault, block: Traceback | None) -> int | str | None:
    """Who failed first: by the line itself, its exception, faults of the same cause after it, or the launcher's report."""
    if fault.rank is not None:
        return fault.rank
    if block is not None and block.rank is not None:
        return block.rank
    if fault.traceback is not None or fault.cause is Cause.LAUNCH_ARGUMENT:
        return None
    later = [other for other in scene.faults if other.index > fault.index]
    for other in later:
        if other.cause is fault.cause and other.role is Role.ROOT and other.rank is not None:
            return other.rank
    return launcher_rank(scene)


def rank_of_pid(scene: Scene, pid: int) -> int | str | None:
    """The rank of a process, where a line names both: its own prefix, its launcher's spawn or report."""
    mark = str(pid)
    for line, words in zip(scene.run.lines, scene.words, strict=True):
        if mark in line.text:
            local = _LOCAL_RANK.search(line.text)
            if words.pid == pid and words.rank is not None:
                return words.rank
            if local:
                return int(local[1] or local[2])
    return None


def launcher_rank(scene: Scene) -> int | None:
    """The rank that the launcher names as the first that failed, or None."""
    for index in reversed(range(len(scene.bodies))):
        match = _LAUNCHER_RANK.search(scene.bodies[index])
        if match:
            return int(match[1] or match[2])
    return None
