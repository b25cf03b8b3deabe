"""Where a database may lie: on a disk of this machine, readable by its owner, used by one process."""

from __future__ import annotations

import fcntl
import os
import re
from pathlib import Path

from watchd.errors import StoreError

NETWORK = frozenset(
    {"nfs", "nfs4", "cifs", "smb2", "smb3", "smbfs", "afs", "ceph", "lustre", "gpfs", "beegfs", "glusterfs", "ocfs2"}
    | {"gfs2", "pvfs2", "fuse.sshfs", "fuse.glusterfs", "fuse.ceph", "fuse.s3fs", "fuse.rclone", "fuse.gcsfuse"}
)
"""File systems of other machines. SQLite's locks and shared memory do not hold there: sqlite.org/wal.html, point 2."""

_OCTAL = re.compile(r"\\([0-7]{3})")  # proc(5): a space in a mount point is written as \040


def network_file_system(mounts: str, folder: Path) -> str | None:
    """The type of the network file system on which `folder` lies, or None; `mounts` is the text of /proc/mounts."""
    best, kind = "", None
    for row in mounts.splitlines():
        fields = row.split(" ")
        if len(fields) < 3:
            continue
        point = _OCTAL.sub(lambda code: chr(int(code[1], 8)), fields[1])
        # Of two mounts on one point the later one is seen.
        if folder.is_relative_to(point) and len(point) >= len(best):
            best, kind = point, fields[2]
    return kind if kind in NETWORK else None


def prepare(path: Path) -> None:
    """Make the folder (0700) and the file (0600) where they are missing. Raises StoreError."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _refuse_network(path)
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if os.fstat(file).st_mode & 0o077:
                os.fchmod(file, 0o600)
        finally:
            os.close(file)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise StoreError(f"{path}: {reason}; the store needs a folder in which watchd may write") from error


def claim(path: Path) -> int:
    """Take the store for this process alone; returns the open lock file. Raises StoreError if another has it.

    A lock of its own, since closing a second descriptor of the database would drop SQLite's locks on it
    (sqlite.org/howtocorrupt.html, 2.2). POSIX locks end with the process and are not handed to its children.
    """
    lock = path.with_name(path.name + ".lock")
    try:
        file = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreError(f"{lock}: {error.strerror or type(error).__name__}") from error
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        holder = os.read(file, 20).decode("ascii", "replace").strip()
        os.close(file)
        raise StoreError(f"{path}: another watchd (process {holder or 'unknown'}) is using this store") from error
    os.ftruncate(file, 0)
    os.write(file, f"{os.getpid()}\n".encode())
    return file


def _refuse_network(path: Path) -> None:
    try:
        mounts = Path("/proc/mounts").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return  # no /proc: nothing is known, and nothing is claimed
    kind = network_file_system(mounts, path.parent.resolve())
    if kind is not None:
        raise StoreError(f"{path}: lies on {kind}, a network file system, where SQLite loses data; use a local disk")
