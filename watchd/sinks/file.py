"""A file with one incident a line, as JSON: for archives and for whoever reads logs.

The file is opened for each line, so it may be rotated away at any moment.
"""

from __future__ import annotations

import asyncio
import errno
import os
import stat
from pathlib import Path

from watchd.model import Incident, wire
from watchd.sinks.base import Answer, Result

MODE = 0o640

_PASSES = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EINTR})
"""What may pass by itself; anything else (missing folder, no permission) waits for a person."""


class FileSink:
    """Appends every revision as a line of its own, flushed to the disk."""

    edits = True

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self._path = path

    async def send(self, incident: Incident, *, first: bool, small: bool) -> Answer:  # noqa: ARG002 a line is a line
        """Append this revision."""
        line = wire.to_json(incident).encode("utf-8", "replace") + b"\n"
        try:
            await asyncio.to_thread(append, self._path, line)
        except OSError as error:
            result = Result.RETRY if error.errno in _PASSES else Result.HOLD
            return Answer(result=result, reason=error.strerror or type(error).__name__)
        return Answer(result=Result.SENT)


def append(path: Path, line: bytes) -> None:
    """Write a line at the end and flush it to the disk: whole or, if that fails, not at all. Raises OSError."""
    # Without O_NONBLOCK, opening a fifo that nobody reads would wait for ever.
    file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, MODE)
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "is no regular file")
        if found.st_size and os.pread(file, 1, found.st_size - 1) != b"\n":
            line = b"\n" + line  # somebody died in the middle of a line
        try:
            written = 0
            while written < len(line):
                written += os.write(file, line[written:])
            os.fsync(file)
        except OSError:
            os.ftruncate(file, found.st_size)
            raise
    finally:
        os.close(file)
