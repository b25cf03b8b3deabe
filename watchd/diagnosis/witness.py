"""What the host's kernel saw, and whether it concerns this run: tied by pid, or by time where no pid is known."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from pathlib import PurePath

from watchd.diagnosis.base import Fault, Role, Scene
from watchd.model import Cause, Launch, MachineEvent, MachineEventKind
from watchd.parse.lines import Words

Event = MachineEvent

HARDWARE = frozenset(
    (
        46,
        48,
        54,
        62,
        64,
        74,
        79,
        92,
        94,
        95,
        110,
        119,
        120,
        136,
        140,
        143,
        *range(144, 151),
        155,
        156,
        158,
        167,
        171,
        172,
    )
)
"""Xids that mean the board, a link or the firmware. 13, 31, 43 are the application's, 45 is its clean-up, 63 and 154 say
what was done about another one. (NVIDIA's Xid catalogue.)"""

_CAUSES = {
    MachineEventKind.OOM_KILL: Cause.HOST_OUT_OF_MEMORY,
    MachineEventKind.SEGFAULT: Cause.SEGFAULT,
    MachineEventKind.XID: Cause.GPU_HARDWARE,
    MachineEventKind.GPU_FAULT: Cause.GPU_HARDWARE,
}
_WEAK = frozenset(
    (
        Cause.GPU_ILLEGAL_ACCESS,
        Cause.GPU_HARDWARE,
        Cause.COLLECTIVE_ERROR,
        Cause.COLLECTIVE_TIMEOUT,
        Cause.PROCESS_KILLED,
        Cause.SEGFAULT,
        Cause.WATCHDOG_HANG,
    )
)
"""What a log says of a failing board, where its kernel log says which."""

_BEFORE, _AFTER, _SILENT = timedelta(seconds=120), timedelta(seconds=120), timedelta(minutes=30)
"""How far from the last word of a run an event may lie; a log that just stops may have stopped a while before."""

_PID = re.compile(
    r"\bpid['\"=: ]{1,3}(\d{2,8})\b|\bsubprocess (\d{2,8})\b|\bprocess \[?(\d{2,8})\b|: line \d+: +(\d{2,8}) ",
    re.IGNORECASE,
)
_ENDS = 2_000
"""Lines at either end of a run in which process ids are looked for."""
_STAMP = re.compile(r"(?P<clock>\d\d:\d\d:\d\d)")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
# [Tue Nov  4 14:07:33 2025]      2025-11-04T14:07:33
_KERNEL_DATE = re.compile(r"(?:\b|-)(?P<month>[A-Z][a-z]{2}|\d\d)(?: {1,2}|-)(?P<day>\d{1,2})[ T]\d\d:")
# 2025-11-04 13:05:20     2025/04/13 19:20:05     [E1018 03:19:09      INFO 10-30 17:12:00
_DATE = re.compile(r"\b\d{4}[-/](\d\d)[-/](\d\d)[T ]|\b[IWEF](\d\d)(\d\d) \d\d:|\b[A-Z]+ (\d\d)-(\d\d) \d\d:")
_OURS = re.compile(r"^(?:python|pt_|ray::|torch|java)")


def deciding(scene: Scene, lead: Fault | None) -> Event | None:
    """The kernel's line that explains what the log shows only as a consequence, or None."""
    silent = lead is None or lead.role is Role.ECHO
    for event in scene.machine.events:
        cause = cause_of(event)
        if cause is None or not concerns(scene, event, silent=silent, fault=lead):
            continue
        if silent or _explains(cause, lead):
            return event
    return None


def cause_of(event: Event) -> Cause | None:
    """What an event means where it concerns the run; None where it is only a consequence or context."""
    if event.kind is MachineEventKind.XID and event.code not in HARDWARE:
        return None
    if event.kind is MachineEventKind.GPU_FAULT and "page fault" in event.text:
        return Cause.GPU_ILLEGAL_ACCESS
    return _CAUSES.get(event.kind)


def by_pid(scene: Scene, event: Event) -> bool:
    """Whether log or launch name the process that the event names."""
    launch = scene.case.get(Launch)
    return event.pid is not None and (event.pid in scene.pids or (launch is not None and launch.pid == event.pid))


def concerns(scene: Scene, event: Event, *, silent: bool, fault: Fault | None = None) -> bool:
    """Whether an event belongs to this fault or to the end of this run."""
    if by_pid(scene, event):
        return _days_apart(event, _day(scene)) in (None, -1, 0, 1)
    if event.kind is MachineEventKind.OOM_KILL and not _looks_like_ours(scene, event):
        return False
    return _in_time(scene, event, _SILENT if silent else _AFTER, fault)


def pids(words: Sequence[Words]) -> frozenset[int]:
    """Process ids that lines name, in a prefix or as `pid 4711`: of a long run those near its ends."""
    found: set[int] = set()
    for line in (*words[:_ENDS], *words[-_ENDS:]):
        if line.pid is not None:
            found.add(line.pid)
        for groups in _PID.findall(line.body[:400]):
            found.update(int(group) for group in groups if group)
    return frozenset(found)


def _explains(cause: Cause, lead: Fault | None) -> bool:
    if lead is None:
        return True
    if cause is Cause.GPU_HARDWARE:
        return lead.cause in _WEAK or not lead.named
    if cause is Cause.HOST_OUT_OF_MEMORY:
        return lead.cause in (Cause.PROCESS_KILLED, Cause.COLLECTIVE_ERROR, Cause.COLLECTIVE_TIMEOUT)
    return lead.cause is Cause.SEGFAULT and lead.text.startswith(("Segmentation fault", "Aborted"))


def _looks_like_ours(scene: Scene, event: Event) -> bool:
    name = (event.process or "").lower()
    launch = scene.case.get(Launch)
    words = " ".join(launch.argv).lower() if launch else ""
    return bool(_OURS.match(name)) or (
        len(name) > 3 and (name[:12] in words or any(name[:8] in body.lower() for body in scene.bodies[:200]))
    )


def _in_time(scene: Scene, event: Event, after: timedelta, fault: Fault | None) -> bool:
    """Whether the kernel's clock and the log's own agree; both are taken as printed, in the host's zone."""
    printed = _STAMP.search(event.text)
    size = len(scene.run.lines)
    clocks = {_clock_at(scene, size), _clock_at(scene, fault.index + 1 if fault is not None else size)} - {None}
    if printed is None or not clocks:
        return _only_name(scene, event)
    days = _days_apart(event, _day(scene))
    return any(-_BEFORE <= _gap(printed["clock"], str(clock), days) <= after for clock in clocks)


def _gap(event: str, log: str, days: int | None) -> timedelta:
    """How long after the log's word the kernel's was; without dates the nearest that the clocks allow."""
    gap = _time(event) - _time(log)
    if days is not None:
        return gap + timedelta(days=days)
    half, day = timedelta(hours=12), timedelta(days=1)
    return gap + day if gap < -half else gap - day if gap > half else gap


def _only_name(scene: Scene, event: Event) -> bool:
    """Where the log has no clock: the last event of its kind that names the program that was launched."""
    launch = scene.case.get(Launch)
    name = (event.process or "").lower()
    programs = [PurePath(word).name.lower() for word in (launch.argv[:6] if launch else ())]
    programs.append(scene.run.knobs.get("program", ""))
    if len(name) < 4 or not any(program.startswith(name) for program in programs):
        return False
    return (
        event
        is [other for other in scene.machine.events if other.kind is event.kind and other.process == event.process][-1]
    )


def _clock_at(scene: Scene, end: int) -> str | None:
    """The clock of the last line before `end` that has one."""
    return next((line.clock for line in reversed(scene.words[max(0, end - 400) : end]) if line.clock), None)


def _day(scene: Scene) -> tuple[int, int] | None:
    for line in reversed(scene.run.lines[-400:]):
        match = _DATE.search(line.text[:200])
        if match:
            month, day = (int(group) for group in match.groups() if group)
            return month, day
    return None


def _days_apart(event: Event, day: tuple[int, int] | None) -> int | None:
    """Days from the log's last date to the event's, the year left aside; None where one has no date."""
    printed = _KERNEL_DATE.search(event.text)
    if printed is None or day is None:
        return None
    month = printed["month"]
    number = _MONTHS.index(month) + 1 if month in _MONTHS else int(month) if month.isdigit() else 0
    try:
        apart = (date(2024, number, int(printed["day"])) - date(2024, *day)).days
    except ValueError:
        return None
    return apart - 366 if apart > 183 else apart + 366 if apart < -183 else apart


def _time(clock: str) -> timedelta:
    try:
        at = datetime.strptime(clock, "%H:%M:%S")  # noqa: DTZ007 - a time of day
    except ValueError:
        return timedelta()
    return timedelta(hours=at.hour, minutes=at.minute, seconds=at.second)
