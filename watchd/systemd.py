"""What the service manager is told (sd_notify(3)); silent where there is none.

A datagram to the socket that NOTIFY_SOCKET names. Libraries for this exist; none of them is kept better than these
lines are.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping


def notify(*lines: str, environ: Mapping[str, str] = os.environ) -> bool:
    """Send these `KEY=value` lines in one datagram; True where somebody listens."""
    address = environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return False
    if address.startswith("@"):
        address = "\0" + address[1:]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as door:
        try:
            door.connect(address)
            door.sendall("\n".join(lines).encode())
        except OSError:
            # Whoever started us has gone; the watch goes on all the same.
            return False
    return True


def under_journal(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether standard error goes to the journal."""
    return "JOURNAL_STREAM" in environ
