"""Which process is the target's: one look at a host's process list, shared by all targets on it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from datetime import datetime
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from watchd.engines import registry
from watchd.hosts.base import Host
from watchd.model import BootId, Outcome, Process, Processes, ProcessSample, Reply, Target
from watchd.parse import processes as listing

LOOK_S = 8.0
"""seconds that one look may take"""

# Programs that carry a server's command line without being the server.
_CARRIERS = frozenset(
    (  # noqa: SIM905  a word list reads better than a list of words
        "sh bash dash zsh ash ksh fish busybox sudo su env nohup setsid timeout time nice ionice stdbuf tee tail less grep "
        "watch screen tmux ssh sshd vi vim nano docker podman runc containerd-shim conmon srun systemd-run"
    ).split()
)


class Census:
    """The process list of one host, not older than asked for."""

    def __init__(self, host: Host, *, clock: Callable[[], float]) -> None:
        self._host = host
        self._clock = clock
        self._lock = asyncio.Lock()
        self._seen: tuple[Process, ...] | None = None
        self._why = ""
        self._at = float("-inf")
        self.boot_id = ""
        """The id of the boot in which the processes were seen."""

    async def look(self, *, not_older_s: float) -> tuple[tuple[Process, ...] | None, str]:
        """Every process, or None and why they cannot be seen."""
        asked = self._clock()
        async with self._lock:
            # Whoever waited here while another looked takes what that one saw.
            if self._at < asked - not_older_s:
                started = self._clock()
                reply, boot = await self._host.ask((Processes(), BootId()), limit_s=LOOK_S)
                self._seen, self._why = _read(reply)
                self.boot_id = boot.data.decode("ascii", "replace").strip()[:64]
                self._at = started
            return self._seen, self._why


def _read(reply: Reply) -> tuple[tuple[Process, ...] | None, str]:
    if reply.outcome is not Outcome.ANSWERED:
        return None, reply.detail or f"the process list: {reply.outcome}"
    seen = listing.processes(reply.data)
    if not any(process.pid == 1 for process in seen):
        return None, "the host hides other users' processes (hidepid)"
    return seen, ""


def choose(
    seen: tuple[Process, ...], target: Target, engine: str, known: Process | None, *, at: datetime
) -> ProcessSample:
    """The target's process among these.

    By its `process` pattern; else by the port of its health check on the command line; else by its engine's name where
    that is unique. A process that was known and is not there has gone; one that was never seen is merely unknown.
    """
    found, why = _find(seen, target, engine)
    if found is not None:
        return ProcessSample(at=at, known=True, process=found, detail=why)
    if known is not None:
        still = next((p for p in seen if (p.pid, p.started) == (known.pid, known.started) and p.state != "Z"), None)
        return ProcessSample(at=at, known=True, process=still, detail="as recorded")
    return ProcessSample(at=at, known=target.process is not None, detail=why)


def _find(seen: tuple[Process, ...], target: Target, engine: str) -> tuple[Process | None, str]:
    alive = [p for p in seen if p.argv and p.state not in "ZX" and PurePosixPath(p.argv[0]).name not in _CARRIERS]
    if target.process is not None:
        pattern = re.compile(target.process)
        matching = [p for p in alive if pattern.search(" ".join(p.argv))]
        return _eldest(matching, newest=True), f"no process matches `{target.process}`"
    port = urlsplit(target.health.url).port if target.health else None
    if port is not None:
        matching = [p for p in alive if any(_names_port(word, port) for word in p.argv[1:])]
        if matching:
            return _eldest(matching, newest=True), f"port {port} on its command line"
    look = registry.named(engine).process
    if look is not None:
        matching = [p for p in alive if look.search(" ".join(p.argv))]
        eldest = _eldest(matching, newest=False)
        return eldest, f"{engine} by name" if eldest else f"no single process looks like {engine}"
    return None, "nothing tells its process from others: set `process`"


def _names_port(word: str, port: int) -> bool:
    number = str(port)
    return word == number or word.endswith((f":{number}", f"={number}"))


def _eldest(matching: list[Process], *, newest: bool) -> Process | None:
    """The head of the one family that matches; of several families the newest, or none."""
    pids = {process.pid for process in matching}
    heads = [process for process in matching if process.parent not in pids]
    if not heads or (len(heads) > 1 and not newest):
        return None
    return max(heads, key=lambda process: process.started)
