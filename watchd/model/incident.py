"""The incident as every other program sees it: the keys of `watchd.incident/1`.

Field names are JSON keys. Keys are added, never renamed. Times are aware datetimes in UTC, offsets and sizes bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Literal

SCHEMA = "watchd.incident/1"


class Scope(StrEnum):
    """What an incident is about; `jump`: watchd itself cannot see."""

    TARGET = "target"
    HOST = "host"
    BASTION = "bastion"
    JUMP = "jump"


class Status(StrEnum):
    """Whether it still goes on."""

    FIRING = "firing"
    RESOLVED = "resolved"


class Stage(StrEnum):
    """Whether the ladder is still being climbed."""

    CLIMBING = "climbing"
    FINAL = "final"


class Severity(StrEnum):
    """How loudly to tell it, in rising order of the list."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"


class Verdict(StrEnum):
    """What happened to the server."""

    CRASH = "crash"
    """it is gone, or can never serve"""
    HANG = "hang"
    """the process runs and does no work"""
    DEGRADED = "degraded"
    """it serves, but a part failed"""
    STOPPED = "stopped"
    """a person or a scheduler ended it in an orderly way"""
    OK = "ok"
    """alarming words, nothing wrong"""
    UNREACHABLE = "unreachable"
    """watchd could not see"""


class Cause(StrEnum):
    """Why, as one code."""

    LAUNCH_ARGUMENT = "launch_argument"
    CONFIG_INVALID = "config_invalid"
    MISSING_DEPENDENCY = "missing_dependency"
    MODEL_LOAD = "model_load"
    NETWORK = "network"
    PERMISSION = "permission"
    PORT_IN_USE = "port_in_use"
    DISK_FULL = "disk_full"
    FILE_LIMIT = "file_limit"
    HOST_OUT_OF_MEMORY = "host_out_of_memory"
    SHARED_MEMORY = "shared_memory"
    GPU_OUT_OF_MEMORY = "gpu_out_of_memory"
    KV_CACHE_EXHAUSTED = "kv_cache_exhausted"
    KERNEL_RESOURCE_LIMIT = "kernel_resource_limit"
    GPU_ILLEGAL_ACCESS = "gpu_illegal_access"
    GPU_HARDWARE = "gpu_hardware"
    DRIVER_MISMATCH = "driver_mismatch"
    COLLECTIVE_TIMEOUT = "collective_timeout"
    COLLECTIVE_ERROR = "collective_error"
    PROCESS_KILLED = "process_killed"
    SEGFAULT = "segfault"
    WATCHDOG_HANG = "watchdog_hang"
    ASSERTION = "assertion"
    UNHANDLED_EXCEPTION = "unhandled_exception"
    NONE = "none"


class Confidence(StrEnum):
    """How sure.

    `certain` is earned: a guard was read on the host and fails for the recorded arguments, or log and host evidence
    agree by pid.
    """

    CERTAIN = "certain"
    LIKELY = "likely"
    GUESS = "guess"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentTarget:
    """The target as an incident names it; `host` is null for a bundle."""

    name: str
    host: str | None
    log: str
    engine: str | None = None
    engine_version: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentRunnerUp:
    """The next best cause and what would flip the verdict to it."""

    cause: Cause
    flip: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentRoot:
    """The deciding line; `line` counts `\\n` from 1 and is null where the beginning of the file was not read."""

    file: str
    line: int | None
    text: str
    offset: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentException:
    """The root exception as logged."""

    type: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentFrame:
    """The innermost frame of the root traceback that lies in a file."""

    file: str
    line: int
    function: str
    code: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentGuard:
    """The check that failed; `requires` are attribute names."""

    condition: str
    names: tuple[str, ...]
    requires: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentSource:
    """The source around the frame, as it lies on the host."""

    path: str
    first_line: int
    lines: tuple[str, ...]
    guard: IncidentGuard | None
    sha256: str
    matches_log: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentEdit:
    """One difference between the command as launched and as corrected."""

    flag: str
    action: Literal["add", "drop", "set"]
    value: str | None
    basis: Literal["proven", "derived", "suggestion"]


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentChecks:
    """How many of the checks that could be evaluated the corrected command passes."""

    passed: int
    evaluated: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentLaunch:
    """The launch command of the failing run, secrets as `"$NAME"`."""

    command: str
    argv: tuple[str, ...]
    origin: Literal["recorded", "process", "unit", "container", "log", "bundle"]
    corrected: str | None = None
    edits: tuple[IncidentEdit, ...] = ()
    checks: IncidentChecks | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostEvent:
    """One telling line of the host's kernel log."""

    kind: str
    at: datetime | None
    text: str
    pid: int | None = None
    gpu: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostDisk:
    """How full a mounted file system is."""

    mount: str
    used_percent: int
    inodes_percent: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostGpu:
    """One GPU of the host."""

    index: int
    name: str
    memory_used_mib: int | None = None
    memory_total_mib: int | None = None
    utilisation_percent: int | None = None
    power_w: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentHost:
    """What the machine said."""

    events: tuple[HostEvent, ...] = ()
    disk: tuple[HostDisk, ...] = ()
    gpus: tuple[HostGpu, ...] = ()
    boot_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentSample:
    """One sample of the health endpoint."""

    at: datetime
    result: Literal["up", "down", "slow", "blind"]
    http_status: int | None = None
    latency_ms: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentHealth:
    """The last samples, and the state that follows from them."""

    state: str = "unknown"
    url: str | None = None
    via: str | None = None
    samples: tuple[IncidentSample, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """Something that happened to the incident."""

    at: datetime
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One question asked on the host, and what became of it; `count` is a number of lines."""

    rung: str
    command: str
    outcome: Literal["answered", "empty", "refused", "timed_out", "lost"]
    count: int | None = None
    excerpt: str = ""
    elapsed_ms: float = 0.0
    via: Literal["exec", "sftp", "local", "bundle"] = "exec"
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogGap:
    """Bytes that were not read; written with the keys `from`, `to` and `reason`."""

    start: int
    end: int | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentLog:
    """Whether every byte of the run was read."""

    complete: bool = True
    gaps: tuple[LogGap, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """One thing that happened, from the first word to the all-clear.

    id           time-ordered (UUIDv7)
    fingerprint  what happened: cause, exception type, innermost project frame without its line; null while climbing
    key          identity towards other systems: hex SHA-256 of scope, NUL, name; fixed at opening
    revision     rises with every change that is told
    occurrences  how often it happened while open, or again within the reopening window
    """

    schema: Literal["watchd.incident/1"] = "watchd.incident/1"
    id: str
    fingerprint: str | None = None
    key: str
    scope: Scope = Scope.TARGET
    status: Status = Status.FIRING
    stage: Stage = Stage.CLIMBING
    severity: Severity = Severity.ERROR
    target: IncidentTarget | None
    opened_at: datetime
    updated_at: datetime
    resolved_at: datetime | None = None
    acknowledged_at: datetime | None = None
    occurrences: int = 1
    revision: int = 1
    verdict: Verdict
    cause: Cause | None = None
    confidence: Confidence = Confidence.UNKNOWN
    summary: str
    because: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    runner_up: IncidentRunnerUp | None = None
    root: IncidentRoot | None = None
    exception: IncidentException | None = None
    frame: IncidentFrame | None = None
    rank: int | str | None = None
    traceback: tuple[str, ...] = ()
    source: IncidentSource | None = None
    launch: IncidentLaunch | None = None
    host: IncidentHost = field(default_factory=IncidentHost)
    health: IncidentHealth = field(default_factory=IncidentHealth)
    timeline: tuple[Moment, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    look: str | None = None
    log: IncidentLog = field(default_factory=IncidentLog)
    redactions: Mapping[str, int] = field(default_factory=dict)
