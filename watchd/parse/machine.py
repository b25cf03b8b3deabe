"""What a machine's own tools print: the kernel log, `df`, `nvidia-smi`."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, tzinfo

from watchd.model import GpuUse, MachineEvent, MountUse
from watchd.parse import kernel_log

_TABLE_LIMIT = 256 * 1024
_ROW_LIMIT = 1024
_MOUNTS = 500


def events(text: str, *, zone: tzinfo = UTC) -> tuple[MachineEvent, ...]:
    """The telling lines of a kernel log; `zone` is where the host's clock printed its times."""
    return kernel_log.read(text, zone=zone)


# /dev/nvme1n1    7501476528 7501476528         0     100% /data
# nas:/models    41943040000 30112204800 11830835200      72% /mnt/models
_MOUNT = re.compile(r"\s\d+\s+\d+\s+-?\d+\s+(?P<percent>\d{1,9})%\s+(?P<mount>/.*)$")
# Filesystem     1024-blocks      Used Available Capacity Mounted on
# Filesystem        Inodes   IUsed     IFree IUse% Mounted on
_INODES_HEADER = re.compile(r"Filesystem\s+Inodes\s")


def mounts(text: str) -> tuple[MountUse, ...]:
    """How full each file system is, from `df -P` and, where it follows, `df -Pi`; in the order of the first table."""
    found: dict[str, MountUse] = {}
    inodes = False
    for raw in text[:_TABLE_LIMIT].split("\n"):
        row = raw[:_ROW_LIMIT].rstrip()
        if row.startswith("Filesystem"):
            inodes = bool(_INODES_HEADER.match(row))
        elif (match := _MOUNT.search(row)) and len(found) < _MOUNTS:
            mount, percent = match["mount"], int(match["percent"])
            if not inodes:
                found[mount] = MountUse(mount=mount, used_percent=percent)
            elif mount in found:
                found[mount] = replace(found[mount], inodes_percent=percent)
    return tuple(found.values())


# |   0  NVIDIA H200                    On  |   00000000:1B:00.0 Off |                    0 |
# |   0  Tesla V100-SXM2...  Off  | 00000000:00:1E.0 Off |                    0 |
_GPU = re.compile(
    r"\|\s{1,6}(?P<index>\d{1,4})\s{1,4}(?P<name>\S.{0,60}?)\s{1,40}(?:On|Off|N/A)\s{1,4}\|\s{1,6}"
    r"(?P<bus>[0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d)\s"
)
# | N/A   29C    P0             70W /  700W |       1MiB / 143771MiB |      0%      Default |
# | N/A   61C    P0            520W /  700W |  12449... / 143771MiB |     99%      Default |
_USE = re.compile(
    r"\|[^|]{0,40}?\s(?P<power>\S{1,12})\s{0,6}/\s{0,6}\S{1,12}\s{1,4}\|\s{1,12}"
    r"(?P<used>\S{1,16})\s{0,6}/\s{0,6}(?P<total>\S{1,16})\s{1,4}\|\s{1,8}(?P<busy>\S{1,8})\s"
)
# |    0   N/A  N/A     66120      C   /usr/local/bin/ollama                        8120MiB |
# |    0     12345      C   python3                                     1024MiB |
_PROCESS = re.compile(
    r"\|\s{1,6}(?P<index>\d{1,4})\s{1,6}(?:\S{1,4}\s{1,4}\S{1,4}\s{1,24})?(?P<pid>\d{1,10})\s{1,8}[A-Z+]{1,4}\s{1,6}"
    r"(?P<name>\S.{0,80}?)\s{1,80}(?P<used>\d{1,9}MiB|N/A|\d{0,9}\.\.\.)\s{0,4}\|"
)


def gpus(text: str) -> tuple[GpuUse, ...]:
    """The GPUs in `nvidia-smi`'s table, with the processes that it lists on each."""
    found: dict[int, GpuUse] = {}
    last: int | None = None
    for raw in text[:_TABLE_LIMIT].split("\n"):
        row = raw[:_ROW_LIMIT].rstrip()
        if match := _GPU.match(row):
            last = int(match["index"])
            found[last] = GpuUse(index=last, name=match["name"], bus=_bus(match["bus"]))
        elif last is not None and found[last].memory_total_mib is None and (match := _USE.match(row)):
            found[last] = replace(
                found[last],
                power_w=_number(match["power"], "W"),
                memory_used_mib=_whole(match["used"], "MiB"),
                memory_total_mib=_whole(match["total"], "MiB"),
                utilisation_percent=_whole(match["busy"], "%"),
            )
        elif (match := _PROCESS.match(row)) and int(match["index"]) in found:
            gpu = found[int(match["index"])]
            process = (int(match["pid"]), match["name"], _whole(match["used"], "MiB"))
            found[gpu.index] = replace(gpu, processes=(*gpu.processes[:255], process))
    return tuple(found.values())


def boot_id(text: str) -> str | None:
    """The id of a boot, or None where the text holds none."""
    found = text.strip()
    return found if re.fullmatch(r"[0-9a-f-]{32,36}", found) else None


def _bus(text: str) -> str:
    """`00000000:C7:00.0` as the kernel log writes it: `0000:c7:00`."""
    return text[4:].partition(".")[0].lower()


def _number(text: str, unit: str) -> float | None:
    digits = text.removesuffix(unit)
    try:
        return float(digits) if text.endswith(unit) and len(digits) < 10 else None
    except ValueError:
        return None


def _whole(text: str, unit: str) -> int | None:
    digits = text.removesuffix(unit)
    return int(digits) if text.endswith(unit) and digits.isascii() and digits.isdecimal() else None
