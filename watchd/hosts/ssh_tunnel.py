"""A connection to a port of the host, through the SSH connection: no port listens on this machine for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import asyncssh

from watchd.errors import (
    HostLostError,
    HostRefusedError,
    HttpLostError,
    HttpRefusedError,
    HttpTimeoutError,
    WatchdError,
)
from watchd.hosts import ssh_errors
from watchd.hosts.ssh_bounded import opened

CONNECT_S = 10.0


class Channel:
    """One direct-tcpip channel; see `model.ByteStream`."""

    def __init__(
        self,
        host: str,
        reader: asyncssh.SSHReader[bytes],
        writer: asyncssh.SSHWriter[bytes],
        connected: Callable[[], bool],
    ) -> None:
        self._host, self._reader, self._writer, self._connected = host, reader, writer, connected

    async def read(self, limit: int) -> bytes:
        """At most `limit` bytes; empty at the end of the stream."""
        try:
            data = await self._reader.read(limit)
        except ssh_errors.FOREIGN as error:
            raise self._failure(error) from error
        # A connection that was given up looks like the end of the stream.
        if not data and not self._connected():
            raise HostLostError(self._host, "the connection broke")
        return data

    async def write(self, data: bytes) -> None:
        """Send all of `data`."""
        try:
            self._writer.write(data)
            await self._writer.drain()
        except ssh_errors.FOREIGN as error:
            raise self._failure(error) from error

    def _failure(self, error: BaseException) -> WatchdError:
        if self._connected():
            return HttpLostError(f"the connection ended: {ssh_errors.words(error)}")
        return ssh_errors.translated(self._host, error)

    async def close(self) -> None:
        """End the connection; never raises, never waits for the peer."""
        try:
            self._writer.channel.close()
        except ssh_errors.FOREIGN:
            return

    def at_end(self) -> bool:
        """Whether the peer has closed its side."""
        return self._reader.at_eof() or self._writer.is_closing() or not self._connected()


async def dial(
    name: str,
    connection: asyncssh.SSHClientConnection,
    connected: Callable[[], bool],
    host: str,
    port: int,
) -> Channel:
    """Connect to a port as the host sees it. Raises HttpRefusedError, HttpTimeoutError, HostLostError, HostRefusedError."""
    try:
        async with asyncio.timeout(CONNECT_S):
            opening = connection.open_connection(host, port, encoding=None)
            reader, writer = await opened(opening, lambda late: late[1].channel.close())
    except TimeoutError as error:
        raise HttpTimeoutError(f"no connection to port {port} of {name} within {CONNECT_S:g} s") from error
    except asyncssh.ChannelOpenError as error:
        raise _refused(name, host, port, error) from error
    except ssh_errors.FOREIGN as error:
        raise ssh_errors.translated(name, error) from error
    return Channel(name, reader, writer, connected)


def _refused(name: str, host: str, port: int, error: asyncssh.ChannelOpenError) -> WatchdError:
    """A refused port and an unknown name have the same code: the text tells them apart."""
    reason = ssh_errors.words(error)
    if ssh_errors.closed(error):
        return HostLostError(name, f"the connection broke: {reason}")
    if error.code == ssh_errors.PROHIBITED:
        return HostRefusedError(
            name,
            f"it does not let this user connect to {host}:{port} ({reason}): allow it by AllowTcpForwarding and, in the"
            f' key\'s line, port-forwarding,permitopen="{host}:{port}"',
        )
    lowered = reason.lower()
    if "refused" in lowered:
        return HttpRefusedError(f"nobody listens on port {port} of {name} ({reason})")
    if "timed out" in lowered:
        return HttpTimeoutError(f"port {port} of {name} did not answer ({reason})")
    if "name" in lowered or "resolution" in lowered or "unknown host" in lowered:
        return HttpRefusedError(f"{name} does not know the name in the URL ({reason})")
    return HttpRefusedError(f"{name} cannot connect to port {port} ({reason})")
