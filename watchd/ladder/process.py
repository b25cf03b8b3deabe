"""Which process of a host is the target's."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from watchd.engines import registry
from watchd.model import Process, Target

# Programs that carry a server's command line without being the server.
_CARRIERS = frozenset(
    {
        "ash",
        "bash",
        "busybox",
        "conmon",
        "containerd-shim",
        "dash",
        "docker",
        "env",
        "fish",
        "grep",
        "ionice",
        "ksh",
        "less",
    }
    | {
        "nano",
        "nice",
        "nohup",
        "podman",
        "runc",
        "screen",
        "setsid",
        "sh",
        "srun",
        "ssh",
        "sshd",
        "stdbuf",
        "su",
        "sudo",
    }
    | {"systemd-run", "tail", "tee", "time", "timeout", "tmux", "vi", "vim", "watch", "zsh"}
)


def find(seen: Sequence[Process], target: Target, engine: str) -> tuple[Process | None, str]:
    """The target's process among these, and how it was told, or why it was not.

    By its `process` pattern; else by the port of its health check on the command line; else by its engine's name where
    that is unique.
    """
    alive = [p for p in seen if p.argv and p.state not in "ZX" and PurePosixPath(p.argv[0]).name not in _CARRIERS]
    if target.process is not None:
        pattern = re.compile(target.process)
        matching = [p for p in alive if pattern.search(" ".join(p.argv))]
        return _head(matching, newest=True), f"process `{target.process}`"
    port = urlsplit(target.health.url).port if target.health else None
    if port is not None:
        matching = [p for p in alive if any(_names_port(word, port) for word in p.argv[1:])]
        if matching:
            return _head(matching, newest=True), f"port {port} on its command line"
    look = registry.named(engine).process
    if look is None:
        return None, "nothing tells its process from others: set `process`"
    found = _head([p for p in alive if look.search(" ".join(p.argv))], newest=False)
    return found, f"{engine} by name" if found else f"no single process looks like {engine}"


def _names_port(word: str, port: int) -> bool:
    return word == str(port) or word.endswith((f":{port}", f"={port}"))


def _head(matching: list[Process], *, newest: bool) -> Process | None:
    """The head of the one family that matches; of several families the newest, or none."""
    pids = {process.pid for process in matching}
    heads = [process for process in matching if process.parent not in pids]
    if not heads or (len(heads) > 1 and not newest):
        return None
    return max(heads, key=lambda process: process.started)
