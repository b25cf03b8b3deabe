"""The host around a server: what its kernel, disks and GPUs say."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class MachineEventKind(StrEnum):
    """What a kernel log line tells."""

    OOM_KILL = "oom_kill"
    XID = "xid"
    GPU_FAULT = "gpu_fault"
    SEGFAULT = "segfault"
    HUNG_TASK = "hung_task"
    FILE_SYSTEM = "file_system"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineEvent:
    """One telling line of the kernel log: `number` is its 1-based line in what was read, `code` an Xid where it has one."""

    kind: MachineEventKind
    text: str
    number: int
    at: datetime | None = None
    pid: int | None = None
    process: str | None = None
    gpu: str | None = None
    code: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MountUse:
    """How full a mounted file system is, in percent of blocks and of inodes."""

    mount: str
    used_percent: int
    inodes_percent: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuUse:
    """One GPU as nvidia-smi shows it; None where the table does not say or cuts the number.

    bus         its PCI id as the kernel log writes it: `0000:c7:00`
    """

    index: int
    name: str
    memory_used_mib: int | None = None
    memory_total_mib: int | None = None
    utilisation_percent: int | None = None
    power_w: float | None = None
    processes: tuple[tuple[int, str, int | None], ...] = ()
    """(pid, name, MiB) of each process that the table lists on this GPU"""
    bus: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The host around the server: what its kernel, disks and GPUs say."""

    events: tuple[MachineEvent, ...] = ()
    mounts: tuple[MountUse, ...] = ()
    gpus: tuple[GpuUse, ...] = ()
    boot_id: str | None = None
