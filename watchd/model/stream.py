"""A connection as a room sees it that does not care what carries it."""

from __future__ import annotations

from typing import Protocol


class ByteStream(Protocol):
    """A connection to a port of the host, as the HTTP client uses it. Raises HostLostError."""

    async def read(self, limit: int) -> bytes:
        """At most `limit` bytes; empty at the end of the stream."""

    async def write(self, data: bytes) -> None:
        """Send all of `data`."""

    async def close(self) -> None:
        """End the connection; never raises, never waits for the peer."""

    def at_end(self) -> bool:
        """Whether the peer has closed its side."""


class Dialer(Protocol):
    """Opens a connection to a port as seen from a host. Raises HttpRefusedError, HttpTimeoutError, HostError."""

    async def __call__(self, host: str, port: int) -> ByteStream:
        """Connect to `host`:`port`."""
