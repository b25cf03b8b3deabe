"""The kernel log, as `dmesg -T` or `journalctl -k` prints it: which of its lines tell something, and about whom.

What a line means for a server is decided elsewhere: an Xid alone proves nothing, and most OOM kills hit others.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, tzinfo

from watchd.model import MachineEvent, MachineEventKind

_TEXT_LIMIT = 4 * 1024 * 1024
_LINE_LIMIT = 2048
_KEPT_PER_SORT = 200
"""A fault can repeat a hundred thousand times; the newest of each sort are kept, so that none hides the others."""

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
"""As the C library writes them; Python's own names would follow the locale of this process."""

# [Tue Jul 15 06:33:32 2025] Out of memory: …
_HUMAN = re.compile(r"\[\w{3} (\w{3}) {1,2}(\d{1,2}) (\d\d):(\d\d):(\d\d) (\d{4})\] ?")
# 2025-07-15T06:33:32,123456+00:00 Out of memory: …
# 2025-07-15T06:33:32+0000 host kernel: Out of memory: …
_ISO = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:[.,]\d{1,9})?(Z|[+-]\d\d:?\d\d)? ")
# [ 1234.567890] Out of memory: …
_UPTIME = re.compile(r"\[ {0,12}\d{1,12}\.\d{1,9}\] ?")
# Jul 15 06:33:32 host kernel: Out of memory: …
_JOURNAL = re.compile(r"\w{3} [ \d]\d \d\d:\d\d:\d\d ")
_SPEAKER = re.compile(r"\S{1,255} kernel: ")


def read(text: str, *, zone: tzinfo = UTC) -> tuple[MachineEvent, ...]:
    """The telling lines of a kernel log, in its order; `zone` is where the host's clock printed its times.

    Of a text over 4 MiB only the end is read.
    """
    begin = max(0, len(text) - _TEXT_LIMIT)
    found: list[MachineEvent] = []
    gpu: tuple[int, str] | None = None
    for number, raw in enumerate(text[begin:].split("\n"), text.count("\n", 0, begin) + 1):
        line = raw[:_LINE_LIMIT].strip()
        at, message = _split(line, zone)
        if match := _THE_GPU.match(message):
            gpu = number, match["gpu"].lower()
        event = _event(message, number=number, text=line, at=at)
        if event is None:
            continue
        if event.code == _LOST and event.gpu is None and gpu and number - gpu[0] <= _STATEMENT:
            event = replace(event, gpu=gpu[1])
        found.append(event)
    return _bounded(_without_echoes(found))


def _split(line: str, zone: tzinfo) -> tuple[datetime | None, str]:
    at: datetime | None = None
    if match := _HUMAN.match(line):
        at = _time(match, zone)
    elif match := _ISO.match(line):
        at = _iso(match, zone)
    else:
        match = _UPTIME.match(line) or _JOURNAL.match(line)
    if match is None:
        return None, line
    rest = line[match.end() :]
    speaker = _SPEAKER.match(rest)
    return at, rest[speaker.end() :] if speaker else rest


def _time(match: re.Match[str], zone: tzinfo) -> datetime | None:
    month, day, hour, minute, second, year = match.groups()
    try:
        return datetime(
            int(year), _MONTHS.index(month) + 1, int(day), int(hour), int(minute), int(second), tzinfo=zone
        ).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _iso(match: re.Match[str], zone: tzinfo) -> datetime | None:
    try:
        at = datetime.fromisoformat(match[1] + (match[2] or ""))
        return (at if at.tzinfo else at.replace(tzinfo=zone)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


_OOM, _XID, _GPU = MachineEventKind.OOM_KILL, MachineEventKind.XID, MachineEventKind.GPU_FAULT
_SEGFAULT, _HUNG = MachineEventKind.SEGFAULT, MachineEventKind.HUNG_TASK
_FILES, _OTHER = MachineEventKind.FILE_SYSTEM, MachineEventKind.OTHER
_PCI = r"(?P<gpu>(?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2})(?:\.\d)?"

_FORMS: tuple[tuple[MachineEventKind, re.Pattern[str]], ...] = (
    # Out of memory: Killed process 239 (VLLM::Worker_TP) total-vm:244841728kB, anon-rss:104004008kB, …
    # Memory cgroup out of memory: Killed process 388102 (pt_data_worker) total-vm:43711906kB, …
    # Out of memory: Kill process 2210 (python) score 912 or sacrifice child
    (_OOM, re.compile(r"(?:Memory cgroup out|Out) of memory(?: \([^)]{1,40}\))?: Kill(?:ed)? process (?P<pid>\d+) \((?P<process>[^)]{0,64})\)")),
    # oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0-1,global_oom,task=python3,pid=239,uid=0
    (_OOM, re.compile(r"oom-kill:constraint=[^\n]{0,1500}?,task=(?P<process>[^,]{1,64}),pid=(?P<pid>\d+),uid=")),
    # systemd-oomd[812]: Killed /system.slice/serve.service due to memory pressure for /system.slice being 81.2% > 60.00% …
    (_OOM, re.compile(r"(?:\S{1,255} )?systemd-oomd(?:\[\d+\])?: Killed (?P<process>/\S{1,255}) due to memory")),
    # NVRM: Xid (PCI:0000:c7:00): 94, pid=771204, name=python3, Contained: SM (0x1). RST: No, D-RST: No
    # NVRM: Xid (PCI:0000:81:00): 95, pid='<unknown>', name=<unknown>, Uncontained: FBHUB. RST: Yes, D-RST: No
    # NVRM: Xid (0000:03:00): 31, Ch 00000008, engmask 00000101, intr 10000000
    (_XID, re.compile(r"NVRM: Xid \((?:PCI:)?" + _PCI + r"[^)]{0,64}\): (?P<code>\d{1,4}),(?: pid='?(?P<pid>\d+|<unknown>)'?,)?(?: name=(?P<process>[^,]{0,64}),)?")),
    # nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 34 LTSSM Fault Up
    (_GPU, re.compile(r"nvidia-nvswitch\d{1,3}: SXid \(PCI:" + _PCI + r"\): \d{1,6}, Fatal")),
    # nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error
    (_OTHER, re.compile(r"nvidia-nvswitch\d{1,3}: SXid \(PCI:" + _PCI + r"\): ")),
    # NVRM: GPU 0000:c1:00.0: GPU has fallen off the bus.
    (_GPU, re.compile(r"NVRM: GPU (?:at PCI:)?" + _PCI + r": GPU has fallen off the bus")),
    # NVRM: fallen off the bus and is not responding to commands.
    (_GPU, re.compile(r"NVRM: {1,8}(?:GPU has )?fallen off the bus")),
    # amdgpu 0000:c1:00.0: amdgpu: [gfxhub] page fault (src_id:0 ring:24 vmid:8 pasid:32770, for process python3 pid 1234 thread …)
    # amdgpu 0000:c1:00.0: amdgpu: [gfxhub0] no-retry page fault (src_id:0 ring:0 vmid:8 pasid:32769, for process serve pid 88 …)
    (_GPU, re.compile(r"amdgpu " + _PCI + r": (?:amdgpu: )?\[\w{1,16}\] (?:no-retry |retry )?page fault \(src_id(?:[^)]{0,80} for process (?P<process>\S{0,64}) pid (?P<pid>\d+))?")),
    # amdgpu 0000:c1:00.0: amdgpu: GPU reset(2) failed
    # amdgpu 0000:c1:00.0: amdgpu: GPU reset begin!
    # amdgpu 0000:c1:00.0: amdgpu: VRAM is lost due to GPU reset!
    # amdgpu 0000:c1:00.0: amdgpu: Fatal error during GPU init
    # amdgpu 0000:c1:00.0: amdgpu: ring comp_1.0.0 timeout, signaled seq=4410, emitted seq=4412
    (_GPU, re.compile(r"amdgpu " + _PCI + r": (?:amdgpu: )?(?:GPU reset\(\d{1,6}\) failed|GPU reset begin|VRAM is lost|Fatal error during GPU init|ring \S{1,32} timeout, signaled|GPU detected ECC Fatal Error|qcm fence wait loop timeout)")),
    # amdgpu 0000:c1:00.0: amdgpu: 3 uncorrectable hardware errors detected in total in umc block
    # (not: amdgpu 0000:c1:00.0: amdgpu: no uncorrectable hardware errors detected …, nor 0 or the 1048560 of one tool's bug)
    (_GPU, re.compile(r"amdgpu " + _PCI + r": (?:amdgpu: )?[1-9]\d{0,5} uncorrectable hardware errors detected")),
    # [drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring gfx timeout, signaled seq=12, emitted seq=14
    (_GPU, re.compile(r"\[drm:amdgpu_job_timedout \[amdgpu\]\] \*ERROR\* (?:Process information: process (?P<process>\S{0,64}) pid (?P<pid>\d+)|ring )")),
    # llama-server[31877]: segfault at 0 ip 000073d2c1a4be60 sp 00007ffd2c5b1e28 error 6 in libggml-cuda.so[73d2bf000000+7a41000]
    (_SEGFAULT, re.compile(r"(?P<process>[^\[]{1,64})\[(?P<pid>\d+)\]: segfault at ")),
    # traps: python3[4410] general protection fault ip:7f81b0a1e2f7 sp:7f81aa1fe0a0 error:0 in libtorch_cpu.so[…]
    # traps: python3[4410] trap invalid opcode ip:7f81b0a1e2f7 sp:7f81aa1fe0a0 error:0 in libtorch_cpu.so[…]
    (_SEGFAULT, re.compile(r"traps: (?P<process>[^\[]{1,64})\[(?P<pid>\d+)\] (?:general protection|trap )")),
    # INFO: task kworker/u256:4:90122 blocked for more than 120 seconds.
    (_HUNG, re.compile(r"INFO: task (?P<process>\S{1,64}):(?P<pid>\d+) blocked for more than \d+ seconds")),
    # watchdog: BUG: soft lockup - CPU#5 stuck for 22s! [python3:1234]
    (_HUNG, re.compile(r"(?:watchdog: )?BUG: soft lockup - CPU#\d{1,5} stuck for \d+s! \[(?P<process>[^\]]{1,64}):(?P<pid>\d+)\]")),
    # EXT4-fs error (device sda1): ext4_find_entry:1455: inode #2: comm python3: reading directory lblock 0
    # EXT4-fs (sda1): Remounting filesystem read-only
    # XFS (dm-0): metadata I/O error in "xfs_imap_to_bp+0x5c" at daddr 0x40 len 32 error 5
    # XFS (dm-0): Corruption of in-memory data detected.  Shutting down filesystem
    # BTRFS error (device sda1: state A): Transaction aborted
    (_FILES, re.compile(r"EXT4-fs error \(device|EXT4-fs \([^)]{1,64}\): Remounting filesystem read-only|BTRFS (?:error|critical) \(device")),
    (_FILES, re.compile(r"XFS \([^)]{1,64}\): (?:metadata I/O error|log I/O error|Corruption|Internal error|[^\n]{0,80}Shutting down filesystem|xfs_do_force_shutdown)")),
    # blk_update_request: I/O error, dev nvme1n1, sector 8123344 op 0x0:(READ)
    # Buffer I/O error on dev dm-3, logical block 1, lost async page write
    # nvme nvme1: I/O 3 QID 5 timeout, aborting
    # nfs: server nas not responding, still trying
    (_FILES, re.compile(r"(?:blk_update_request: )?I/O error, dev |Buffer I/O error on dev|nvme nvme\d{1,4}: (?:I/O \d+ |I/O tag [^\n]{0,40})QID \d+ timeout|nvme nvme\d{1,4}: controller is down|nfs: server \S{1,255} not responding")),
    # cgroup: fork rejected by pids controller in /system.slice/serve.service
    # VFS: file-max limit 1024 reached
    # pcieport 0000:c0:01.1: AER: Uncorrectable (Fatal) error message received from 0000:c0:01.1
    # mce: [Hardware Error]: CPU 3: Machine Check: 0 Bank 5: be00000000800400
    # EDAC MC1: 1 UE memory read error on CPU_SrcID#0_MC#1_Chan#0_DIMM#0
    # Kernel panic - not syncing: Fatal exception
    # BUG: unable to handle page fault for address: ffffc90001234000
    (_OTHER, re.compile(r"cgroup: fork rejected by pids controller|VFS: file-max limit \d+ reached|pcieport \S{1,32}: AER: Uncorrectable|mce: \[Hardware Error\]|EDAC MC\d{1,3}: \d+ UE |Kernel panic - |BUG: ")),
)  # fmt: skip


# NVRM: The NVIDIA GPU 0000:3b:00.0
# NVRM: (PCI ID: 10de:2331) installed in this system has
# NVRM: fallen off the bus and is not responding to commands.
_THE_GPU = re.compile(r"NVRM: The NVIDIA GPU " + _PCI)
_STATEMENT = 3
"""Lines over which the driver spreads that statement."""
_LOST = 79
"""NVIDIA's Xid catalogue: a GPU has fallen off the bus; the driver may print the text without the code."""


def _event(message: str, *, number: int, text: str, at: datetime | None) -> MachineEvent | None:
    for kind, pattern in _FORMS:
        if match := pattern.match(message):
            said = match.groupdict()
            code = _LOST if "fallen off the bus" in message else _integer(said.get("code"))
            return MachineEvent(
                kind=kind,
                text=text,
                number=number,
                at=at,
                pid=_integer(said.get("pid")),
                process=_name(said.get("process")),
                gpu=(said.get("gpu") or "").lower() or None,
                code=code,
            )
    return None


def _integer(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) < 12 else None


def _name(text: str | None) -> str | None:
    return None if text in (None, "", "<unknown>") else text


def _without_echoes(events: list[MachineEvent]) -> list[MachineEvent]:
    """One event for one fault: the kernel announces an OOM kill before it does it, and a lost GPU before its Xid."""
    killed = {event.pid for event in events if event.kind is _OOM and "Kill" in event.text and event.pid is not None}
    lost = {event.gpu for event in events if event.kind is _XID and event.code == _LOST}
    return [
        event
        for event in events
        if not (event.kind is _OOM and "oom-kill:" in event.text and event.pid in killed)
        and not (event.kind is _GPU and event.code == _LOST and event.gpu in lost)
    ]


def _bounded(events: list[MachineEvent]) -> tuple[MachineEvent, ...]:
    seen: Counter[tuple[MachineEventKind, int | None]] = Counter()
    kept: list[MachineEvent] = []
    for event in reversed(events):
        sort = (event.kind, event.code)
        seen[sort] += 1
        if seen[sort] <= _KEPT_PER_SORT:
            kept.append(event)
    return tuple(reversed(kept))
