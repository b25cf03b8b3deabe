"""Which families of trouble a log speaks of: for retrieval, never a verdict.

A line counts for the first family of which it holds a phrase. Phrases are literal, since a pattern with as many
alternatives takes ten times as long over a log.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from watchd.model import Line

TEXT_LIMIT = 64 * 1024
_SHOWN = 400
"""Characters of a line that a survey shows."""
_LOOKED_AT = 4096
"""Characters of a line in which phrases are looked for."""

FAMILIES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("arguments", ("unrecognized arguments", "unexpected argument", "invalid choice", "expected one argument", "arguments are required")),
    ("assertion", ("assert",)),
    ("missing piece", ("no module named", "cannot open shared object", "undefined symbol", "no such file", "not installed", "glibc")),
    ("device memory", ("cuda out of memory", "hip out of memory", "outofmemoryerror", "alloc_failed", "resource_exhausted")),
    ("host memory", ("cannot allocate memory", "memoryerror", "bad_alloc", "oom-kill", "oom_kill", "out of memory")),
    ("disk", ("no space left", "quota exceeded", "iostream error", "unexpected pos", "read-only file system")),
    ("shared memory", ("shared memory", "bus error", "dev/shm")),
    ("device", ("illegal memory access", "device-side assert", "misaligned address", "nvrm: xid", "ecc error", "fallen off the bus", "cuda error", "hip error", "launch failure")),
    ("driver", ("driver version", "driver on your system", "no cuda gpus", "fabric manager", "fabricmanager", "unsupported toolchain")),
    ("collective", ("nccl error", "nccl warn", "rendezvous", "distbackenderror", "closed by peer", "remote peer")),
    ("watchdog", ("watchdog", "heartbeat", "broadcast block")),
    ("time", ("timed out", "timeout", "time out", "deadline")),
    ("network", ("connection refused", "connection reset", "name resolution", "no route to host", "unreachable", "max retries")),
    ("port", ("address already in use", "eaddrinuse", "port is already")),
    ("permission", ("permission denied", "operation not permitted", "unauthorized", "forbidden", "gated repo")),
    ("limit", ("too many open files", "can't start new thread", "resource temporarily unavailable")),
    ("signal", ("killed", "sigkill", "sigterm", "sigsegv", "sigabrt", "sigbus", "sigquit", "segfault", "segmentation fault", "core dumped", "exit code", "exitcode", "died")),
    ("exception", ("traceback", "exception", "error:")),
    ("failure", ("error", "fail", "fatal", "panic", "abort", "unable", "cannot", "could not", "mismatch", "denied")),
)  # fmt: skip

# torch.OutOfMemoryError: CUDA out of memory. …        AssertionError        Traceback (most recent call last):
_RAISED = re.compile(
    r"Traceback \(most recent call last\)|\b[A-Z][A-Za-z]{0,63}(?:Error|Exception|Interrupt|Exit)(?::|$)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Lines of one family: how many, the first, the last."""

    name: str
    count: int
    first: Line
    last: Line


def raised(text: str) -> bool:
    """Whether a line looks like the beginning or the end of a traceback."""
    return bool(_RAISED.search(text[:_LOOKED_AT]))


def families(lines: Iterable[Line]) -> tuple[Family, ...]:
    """The families of which these lines speak, in the order in which they first do."""
    found: dict[str, Family] = {}
    for line in lines:
        name = _family(line.text[:_LOOKED_AT].lower())
        if name is None:
            continue
        before = found.get(name)
        found[name] = (
            replace(before, count=before.count + 1, last=line)
            if before
            else Family(name=name, count=1, first=line, last=line)
        )
    return tuple(found.values())


def _family(lowered: str) -> str | None:
    for name, phrases in FAMILIES:
        for phrase in phrases:
            if phrase in lowered:
                return name
    return None


def text(found: tuple[Family, ...]) -> str:
    """The survey as a person reads it; at most 64 KiB."""
    rows: list[str] = []
    for family in found:
        rows.append(f"{family.name}: {family.count} line{'s' if family.count > 1 else ''}")
        ends = (family.first, family.last) if family.count > 1 else (family.first,)
        rows += [f"  {_where(line)}: {line.text.strip()[:_SHOWN]}" for line in ends]
    return "\n".join(rows)[:TEXT_LIMIT]


def _where(line: Line) -> str:
    return f"line {line.number}" if line.number is not None else f"byte {line.offset}"
