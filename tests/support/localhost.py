"""A log host over this machine's own files, which shows as much of a file as SFTP does, or inodes as well."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from watchd.errors import HostLostError, LogUnreadableError
from watchd.hosts.base import FileStat
from watchd.model import Outcome, Question, Reply


class LocalHandle:
    """An open file; it is of no use any more once its host was lost, as a handle over a connection."""

    def __init__(self, host: LocalHost, path: str) -> None:
        self._host = host
        self._path = path
        self._connection = host.connection
        self._file = os.open(path, os.O_RDONLY)
        host.open_handles += 1

    async def size(self) -> int:
        self._host.request(self._connection)
        return os.fstat(self._file).st_size

    async def read(self, offset: int, length: int) -> bytes:
        self._host.request(self._connection)
        if self._path in self._host.broken:
            raise LogUnreadableError(self._host.name, self._path, "Input/output error")
        data = os.pread(self._file, length, offset)
        self._host.bytes_read += len(data)
        return data

    async def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._host.open_handles -= 1
        self._file = -1


class LocalHost:
    """Files of this machine.

    inodes      whether device and inode are told
    on_request  called before every request, so that things happen between two of them
    lost        True while no connection stands
    connection  counts connections: handles of an earlier one are lost
    broken      paths whose bytes cannot be read, though they can be opened
    refused     paths that cannot be opened
    requests, bytes_read, open_handles  what was asked so far
    """

    def __init__(self, *, inodes: bool) -> None:
        self.name = "local-test"
        self.inodes = inodes
        self.on_request: Callable[[], None] = lambda: None
        self.lost = False
        self.connection = 0
        self.broken: set[str] = set()
        self.refused: dict[str, str] = {}
        self.requests = 0
        self.bytes_read = 0
        self.open_handles = 0

    def lose(self) -> None:
        """The connection breaks, and stays away until `lost` is False."""
        self.lost = True
        self.connection += 1

    def request(self, connection: int | None = None) -> None:
        """One request goes out."""
        self.requests += 1
        self.on_request()
        if self.lost or (connection is not None and connection != self.connection):
            raise HostLostError(self.name, "the connection was lost")

    async def ask(self, questions: tuple[Question, ...], *, limit_s: float) -> tuple[Reply, ...]:
        return tuple(Reply(question=q, outcome=Outcome.REFUSED, command="", via="local") for q in questions)

    async def close(self) -> None:
        return

    async def open_log(self, path: str) -> LocalHandle:
        self.request()
        if path in self.refused:
            raise LogUnreadableError(self.name, path, self.refused[path])
        try:
            if not Path(path).is_file():
                raise LogUnreadableError(self.name, path, "not a regular file")
            return LocalHandle(self, path)
        except OSError as error:
            raise LogUnreadableError(self.name, path, error.strerror or "unreadable") from error

    async def stat(self, path: str) -> FileStat | None:
        self.request()
        try:
            found = Path(path).stat()
        except OSError:
            return None
        inode = (found.st_dev, found.st_ino) if self.inodes else None
        return FileStat(size=found.st_size, mtime=int(found.st_mtime), inode=inode)

    async def siblings(self, path: str) -> tuple[str, ...]:
        self.request()
        log = Path(path)
        names = sorted(each.name for each in log.parent.iterdir() if each.name.startswith(log.name))
        return tuple(str(log.parent / name) for name in names if name != log.name)[:50]
