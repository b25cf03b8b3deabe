"""Files of this machine, opened so that nothing but a regular file can be read and nothing can block."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from watchd.errors import LogUnreadableError
from watchd.hosts.base import FileStat

MAX_SIBLINGS = 50
HOST = "here"


class HereLog:
    """An open regular file of this machine; see `hosts.base.LogHandle`."""

    def __init__(self, descriptor: int, path: str) -> None:
        self._descriptor, self._path = descriptor, path

    async def size(self) -> int:
        """Size in bytes now."""
        return self.size_now()

    def size_now(self) -> int:
        """The same, for callers on a thread of their own."""
        return os.fstat(self._descriptor).st_size

    async def read(self, offset: int, length: int) -> bytes:
        """At most `length` bytes from `offset` on; empty at the end."""
        return await asyncio.to_thread(self.read_now, offset, length)

    def read_now(self, offset: int, length: int) -> bytes:
        """The same, for callers on a thread of their own."""
        parts: list[bytes] = []
        try:
            while length > 0 and (part := os.pread(self._descriptor, min(length, 1 << 20), offset)):
                parts.append(part)
                offset, length = offset + len(part), length - len(part)
        except OSError as error:
            raise LogUnreadableError(HOST, self._path, error.strerror or "cannot be read") from error
        return b"".join(parts)

    async def close(self) -> None:
        """Let go of it; never raises."""
        self.close_now()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close_now()

    def close_now(self) -> None:
        """The same, for callers on a thread of their own; a second call does nothing."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def open_regular(path: str, *, links: bool = True, folder: int | None = None) -> HereLog:
    """Open a regular file; `links` allows the path to be one, `folder` is where a relative path begins.

    Raises LogUnreadableError. A fifo does not block: it is opened without waiting, and refused once it is seen.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if links else os.O_NOFOLLOW)
    try:
        descriptor = os.open(path, flags, dir_fd=folder)
    except (OSError, ValueError) as error:
        raise LogUnreadableError(HOST, path.replace("\0", "?"), _why(error, path)) from error
    kind = kind_of(os.fstat(descriptor).st_mode)
    if kind != "a regular file":
        os.close(descriptor)
        raise LogUnreadableError(HOST, path, f"it is {kind}, and only regular files are read")
    return HereLog(descriptor, path)


def open_below(root: str, parts: Sequence[str]) -> HereLog:
    """Open a regular file below a folder, without following any link on the way. Raises LogUnreadableError."""
    path = "/".join(parts)
    if not parts or any(part in ("", ".", "..") or "/" in part or "\0" in part for part in parts):
        raise LogUnreadableError(HOST, path.replace("\0", "?"), "no path below the folder")
    with contextlib.ExitStack() as folders:
        folder = None
        for part in (root, *parts[:-1]):
            # Only the folder itself may be reached by a link.
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | (0 if folder is None else os.O_NOFOLLOW)
            try:
                folder = os.open(part, flags, dir_fd=folder)
            except OSError as error:
                raise LogUnreadableError(HOST, path, _why(error, part)) from error
            folders.callback(os.close, folder)
        return open_regular(parts[-1], links=False, folder=folder)


def _why(error: OSError | ValueError, path: str) -> str:
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    if isinstance(error, PermissionError):
        try:
            found = Path(path).stat()
        except OSError:
            return "you may not read it, or a folder above it"
        return f"you may not read it: its mode is {stat.S_IMODE(found.st_mode):04o}, its owner uid {found.st_uid}"
    if isinstance(error, OSError) and error.errno in (errno.ELOOP, errno.ENOTDIR):
        return "a link, or below one, and links are not followed here"
    return getattr(error, "strerror", None) or "no path that could be a file's"


def kind_of(mode: int) -> str:
    """What a mode says it is, with its article."""
    kinds = (
        (stat.S_ISREG, "a regular file"),
        (stat.S_ISDIR, "a directory"),
        (stat.S_ISLNK, "a link"),
        (stat.S_ISFIFO, "a fifo"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISCHR, "a device"),
        (stat.S_ISBLK, "a device"),
    )
    return next((kind for matches, kind in kinds if matches(mode)), "of unknown kind")


def file_stat(path: str) -> FileStat | None:
    """The file that the path names now, links followed; None where there is none."""
    try:
        found = Path(path).stat()
    except (OSError, ValueError):
        return None
    return FileStat(size=found.st_size, mtime=int(found.st_mtime), inode=(found.st_dev, found.st_ino))


def siblings(path: str) -> tuple[str, ...]:
    """Paths beside it whose names begin with its own, newest first, at most 50."""
    own = Path(path)
    try:
        beside = (other for other in own.parent.iterdir() if other.name.startswith(own.name) and other.name != own.name)
        found = [(other.lstat().st_mtime, str(other)) for other in beside]
    except OSError:
        return ()
    return tuple(name for _, name in sorted(found, reverse=True)[:MAX_SIBLINGS])
