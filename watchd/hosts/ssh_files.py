"""Files over SFTP: logs on a session that is kept, everything that a log names on a session of its own.

asyncssh's parallel reader fills what it did not get with NUL bytes when a file shrinks under it, so the ranges are
read and put together here. A request on a session that is being closed is never sent and never answered: every wait
is bounded.
"""

from __future__ import annotations

import asyncio
import posixpath
import stat
from collections.abc import Coroutine
from typing import Any, TypeVar

import asyncssh

from watchd.errors import HostLostError, LogUnreadableError, WatchdError
from watchd.hosts import ssh_bounded, ssh_errors
from watchd.hosts.base import FileStat
from watchd.hosts.ssh_bounded import opened

OPERATION_S = 10.0
"""One request and its answer; a link that takes longer is given up."""

REQUEST_BYTES = 256 * 1024
IN_FLIGHT = 16
MAX_SIBLINGS = 50
MAX_NAMES = 10_000

T = TypeVar("T")


class SftpLog:
    """An open log; see `hosts.base.LogHandle`."""

    def __init__(self, files: Files, path: str, file: asyncssh.SFTPClientFile, request: int) -> None:
        self._files, self._path, self._file, self._request = files, path, file, request

    async def size(self) -> int:
        """Size in bytes now."""
        attributes = await self._files.bounded(self._file.stat(), self._path)
        return attributes.size or 0

    async def read(self, offset: int, length: int) -> bytes:
        """At most `length` bytes from `offset` on, without a hole; fewer where the file ends or shrinks meanwhile."""
        data = bytearray()
        while len(data) < length:
            room = min(length - len(data), IN_FLIGHT * self._request)
            ranges = [(offset + len(data) + i, min(self._request, room - i)) for i in range(0, room, self._request)]
            parts = await self._files.bounded(self._parts(ranges), self._path)
            for part, (_, wanted) in zip(parts, ranges, strict=True):
                data += part
                if len(part) < wanted:
                    return bytes(data)
        return bytes(data)

    async def _parts(self, ranges: list[tuple[int, int]]) -> list[bytes]:
        parts: list[Any] = await asyncio.gather(*(self._file.read(size, offset) for offset, size in ranges))
        return parts

    async def close(self) -> None:
        """Let go of it; never raises."""
        try:
            await self._files.bounded(self._file.close(), self._path)
        except (WatchdError, ValueError):
            # The connection is gone, and the handle with it.
            return


class Files:
    """One SFTP session on one connection, opened when it is first needed.

    Where the session for logs does not answer in time, the connection is aborted: whatever else waits on it must not
    wait any longer. A session `beside` it reads what a log names, which may be a trap: that session alone is given up.
    """

    def __init__(self, host: str, user: str, connection: asyncssh.SSHClientConnection, *, beside: bool = False) -> None:
        self._host, self._user, self._connection, self._beside = host, user, connection, beside
        self._lock = asyncio.Lock()
        self._sftp: asyncssh.SFTPClient | None = None

    async def bounded(self, asking: Coroutine[Any, Any, T], path: str) -> T:
        """The answer to one request. Raises HostLostError, LogUnreadableError and, on a session beside, TimeoutError."""
        try:
            async with asyncio.timeout(OPERATION_S):
                return await asking
        except TimeoutError as error:
            if self._beside:
                self.close()
                raise
            self._connection.abort()
            raise HostLostError(
                self._host, f"no answer within {OPERATION_S:g} s; the connection was given up"
            ) from error
        except ssh_errors.FOREIGN as error:
            raise self._failure(error, path) from error

    def _failure(self, error: BaseException, path: str) -> WatchdError:
        if isinstance(error, ssh_errors.FILE_ERRORS) and not isinstance(error, ssh_errors.FILE_LOST):
            if isinstance(error, ssh_errors.MISSING):
                return LogUnreadableError(self._host, path, "there is no such file")
            if isinstance(error, ssh_errors.DENIED):
                return LogUnreadableError(self._host, path, f"user {self._user} may not read it, or a folder above it")
            return LogUnreadableError(self._host, path, ssh_errors.words(error))
        return ssh_errors.translated(self._host, error)

    async def session(self) -> asyncssh.SFTPClient:
        """The open session. Raises HostLostError, and HostRefusedError where the host opens none."""
        async with self._lock:
            if self._sftp is None:
                self._sftp = await self.bounded(ssh_bounded.session(self._start, _exit), "sftp")
            return self._sftp

    async def _start(self) -> asyncssh.SFTPClient:
        return await self._connection.start_sftp_client(path_errors="surrogateescape")

    def close(self) -> None:
        """End the session without waiting for the host."""
        sftp, self._sftp = self._sftp, None
        if sftp is not None:
            sftp.exit()

    async def open_log(self, path: str) -> SftpLog:
        """Open a regular file, links followed. Raises LogUnreadableError, HostError."""
        if "\0" in path or not path:
            raise LogUnreadableError(self._host, path.replace("\0", "?"), "no path that could be a file's")
        sftp = await self.session()
        before = await self.bounded(sftp.stat(path), path)
        # Opening a fifo would block this session, and every log that is read through it.
        self._must_be_regular(before, path)
        try:
            file = await self._opened(sftp, path)
        except LogUnreadableError as error:
            if isinstance(error.__cause__, ssh_errors.DENIED):
                reason = f"user {self._user} may not read it: {_rights(before)}"
                raise LogUnreadableError(self._host, path, reason) from error
            raise
        log = SftpLog(self, path, file, min(sftp.limits.max_read_len or REQUEST_BYTES, REQUEST_BYTES))
        self._must_be_regular(await self.bounded(file.stat(), path), path)
        return log

    async def _opened(self, sftp: asyncssh.SFTPClient, path: str) -> asyncssh.SFTPClientFile:
        async def opening() -> asyncssh.SFTPClientFile:
            # block_size 0: one call is one request.
            return await sftp.open(path, "rb", block_size=0)

        return await self.bounded(opened(opening(), _close_later), path)

    def _must_be_regular(self, attributes: asyncssh.SFTPAttrs, path: str) -> None:
        kind = kind_of(attributes)
        if kind != "a regular file":
            raise LogUnreadableError(self._host, path, f"it is {kind}, and only regular files are read")

    async def stat(self, path: str) -> FileStat | None:
        """The file that the path names now, links followed; None where there is none. Raises as `open_log` does."""
        sftp = await self.session()
        try:
            attributes = await self.bounded(sftp.stat(path), path)
        except LogUnreadableError as error:
            if isinstance(error.__cause__, ssh_errors.MISSING):
                return None
            raise
        return FileStat(size=attributes.size or 0, mtime=attributes.mtime or 0)

    async def lstat(self, path: str) -> asyncssh.SFTPAttrs:
        """The attributes of the path itself: a link is a link. Raises as `open_log` does."""
        return await self.bounded((await self.session()).lstat(path), path)

    async def real_path(self, path: str) -> str:
        """The path behind all links, absolute. Raises as `open_log` does."""
        return str(await self.bounded((await self.session()).realpath(path), path))

    async def siblings(self, path: str) -> tuple[str, ...]:
        """Paths beside it whose names begin with its own, newest first; none where the folder may not be listed."""
        folder, name = posixpath.split(path)
        sftp = await self.session()
        try:
            found = await self.bounded(_named_like(sftp, folder or ".", name), path)
        except LogUnreadableError:
            return ()
        found.sort(reverse=True)
        return tuple(posixpath.join(folder, other) for _, other in found[:MAX_SIBLINGS])


def _exit(sftp: asyncssh.SFTPClient) -> None:
    sftp.exit()


def _close_later(file: asyncssh.SFTPClientFile) -> None:
    # The host keeps a handle until its session ends; this answer, too, may never come.
    task = asyncio.ensure_future(file.close())
    task.add_done_callback(lambda done: done.cancelled() or done.exception())


async def _named_like(sftp: asyncssh.SFTPClient, folder: str, name: str) -> list[tuple[int, str]]:
    found: list[tuple[int, str]] = []
    seen = 0
    async for entry in sftp.scandir(folder):
        seen += 1
        other = entry.filename if isinstance(entry.filename, str) else entry.filename.decode("utf-8", "surrogateescape")
        if other.startswith(name) and other != name and other not in (".", ".."):
            found.append((entry.attrs.mtime or 0, other))
        if seen >= MAX_NAMES:
            break
    return found


def kind_of(attributes: asyncssh.SFTPAttrs) -> str:
    """What the attributes say it is, with its article."""
    mode = attributes.permissions
    if mode is None or stat.S_IFMT(mode) == 0:
        return "of unknown kind"
    return {
        stat.S_IFREG: "a regular file",
        stat.S_IFDIR: "a directory",
        stat.S_IFLNK: "a link",
        stat.S_IFIFO: "a fifo",
        stat.S_IFSOCK: "a socket",
        stat.S_IFCHR: "a device",
        stat.S_IFBLK: "a device",
    }.get(stat.S_IFMT(mode), "of unknown kind")


def _rights(attributes: asyncssh.SFTPAttrs) -> str:
    mode = "unknown" if attributes.permissions is None else f"{stat.S_IMODE(attributes.permissions):04o}"
    return f"its mode is {mode}, its owner uid {attributes.uid}, its group gid {attributes.gid}"
