"""What every way to reach a machine offers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from watchd.model import Question, Reply


class Host(Protocol):
    """A machine that answers questions. What it cannot answer is a Reply that says so, never an exception."""

    @property
    def name(self) -> str:
        """Its name in the configuration."""

    async def ask(self, questions: tuple[Question, ...], *, limit_s: float) -> tuple[Reply, ...]:
        """Answer these questions, asked together, within `limit_s` seconds: one reply each, in order."""

    async def close(self) -> None:
        """Let go of the machine; never raises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStat:
    """A path as it is now: size in bytes, mtime in whole seconds since 1970, and device and inode where known."""

    size: int
    mtime: int
    inode: tuple[int, int] | None = None


class LogHandle(Protocol):
    """An open log: it stays the same file when its name moves. Raises HostLostError and LogUnreadableError."""

    async def size(self) -> int:
        """Size in bytes now."""

    async def read(self, offset: int, length: int) -> bytes:
        """At most `length` bytes from `offset` on; empty at the end."""

    async def close(self) -> None:
        """Let go of it; never raises."""


class LogHost(Host, Protocol):
    """A machine whose logs can be followed."""

    async def open_log(self, path: str) -> LogHandle:
        """Open a regular file. Raises LogUnreadableError (missing, denied, no regular file), HostError."""

    async def stat(self, path: str) -> FileStat | None:
        """The file that the path names now, links followed; None where there is none. Raises HostError."""

    async def siblings(self, path: str) -> tuple[str, ...]:
        """Paths in the same folder whose names begin with that of `path`, without it: rotated logs, at most 50."""
