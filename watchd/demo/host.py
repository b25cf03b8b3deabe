"""A host to be watched, on this machine: an SSH server on the loopback that lives as long as its `async with`.

It lets in one key, made for it and thrown away with it, and only that key's holder may run anything; commands run as
the user who runs this process. Files can be read by SFTP and not written, connections go to the loopback alone, and
there is no shell, terminal, forwarded port or agent.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import os
import signal
import stat
from collections.abc import Awaitable
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, cast

import asyncssh

USER = "demo"
LOOPBACK = "127.0.0.1"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_CHUNK = 64 * 1024
_LAST_WORDS_S = 5.0
"""How long output may still come after a command has ended: a child that it left behind may hold its stdout open."""


class DemoHost:
    """The host. `folder` holds its keys and is the home of what runs on it; it must belong to this user alone."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.home = folder / "home"
        self.identity = folder / "id_ed25519"
        self.known_hosts = folder / "known_hosts"
        self.port = 0
        self._acceptor: asyncssh.SSHAcceptor | None = None
        self._connections: set[asyncssh.SSHServerConnection] = set()
        self._running: set[asyncio.Task[Any]] = set()

    async def __aenter__(self) -> DemoHost:
        """Make the keys, listen on a free port, and write known_hosts for it."""
        self.home.mkdir(mode=0o700, exist_ok=True)
        client, own = (asyncssh.generate_private_key("ssh-ed25519", comment="watchd demo") for _ in range(2))
        self.identity.touch(mode=0o600)
        client.write_private_key(str(self.identity))
        self._acceptor = await asyncssh.listen(
            LOOPBACK,
            0,
            server_factory=lambda: _Door(client.convert_to_public(), self._connections),
            server_host_keys=[own],
            process_factory=self._exec,
            sftp_factory=_ReadOnly,
            encoding=None,
            allow_pty=False,
            agent_forwarding=False,
            x11_forwarding=False,
            password_auth=False,
            kbdint_auth=False,
            host_based_auth=False,
            gss_host=None,
            login_timeout=20,
        )
        self.port = self._acceptor.get_port()
        self.known_hosts.write_bytes(f"[{LOOPBACK}]:{self.port} ".encode() + own.export_public_key())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        """Stop listening, end every connection and everything that runs for one."""
        if self._acceptor is not None:
            self._acceptor.close()
        for connection in tuple(self._connections):
            connection.abort()
        for task in tuple(self._running):
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        if self._acceptor is not None:
            await self._acceptor.wait_closed()

    async def _exec(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._running.add(task)
        try:
            if process.command is None or process.subsystem:
                process.stderr.write(b"this host runs single commands only\n")
                process.exit(1)
            else:
                await self._run(process, process.command)
        finally:
            self._running.discard(task)

    async def _run(self, process: asyncssh.SSHServerProcess[bytes], command: str) -> None:
        child = await asyncio.create_subprocess_exec(
            *("/bin/sh", "-c", command),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=self.home,
            env={"HOME": str(self.home), "PATH": PATH, "USER": USER, "LOGNAME": USER, "SHELL": "/bin/sh"},
            start_new_session=True,
        )
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stderr is not None
        feeding = asyncio.create_task(_feed(process.stdin, child.stdin))
        left = asyncio.create_task(process.channel.wait_closed())
        ending = asyncio.create_task(
            _ended(child, _pour(child.stdout, process.stdout), _pour(child.stderr, process.stderr))
        )
        try:
            # Whoever asked may go before the command has ended; then nobody is there to be told.
            done, _ = await asyncio.wait({ending, left}, return_when=asyncio.FIRST_COMPLETED)
            if ending in done:
                _say_end(process, ending.result())
        finally:
            for task in (feeding, left, ending):
                task.cancel()
            _kill_group(child.pid)
            await asyncio.gather(feeding, left, ending, return_exceptions=True)
            await child.wait()


class _Door(asyncssh.SSHServer):
    """Lets one key in, and its connections out to the loopback alone."""

    def __init__(self, key: asyncssh.SSHKey, connections: set[asyncssh.SSHServerConnection]) -> None:
        self._key = key
        self._connections = connections
        self._connection: asyncssh.SSHServerConnection | None = None

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connection = conn
        self._connections.add(conn)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._connections.discard(self._connection)

    def begin_auth(self, username: str) -> bool:  # noqa: ARG002
        return True

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        return username == USER and key == self._key

    def connection_requested(
        self,
        dest_host: str,
        dest_port: int,
        orig_host: str,  # noqa: ARG002
        orig_port: int,  # noqa: ARG002
    ) -> Awaitable[Any]:
        if not _is_loopback(dest_host):
            raise asyncssh.ChannelOpenError(
                asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED, "this host forwards to its loopback only"
            )
        assert self._connection is not None
        return _forwarded(self._connection, dest_host, dest_port)


async def _forwarded(connection: asyncssh.SSHServerConnection, host: str, port: int) -> Any:
    try:
        return await connection.forward_connection(host, port)
    except asyncssh.ChannelOpenError as error:
        # OpenSSH says why in words; asyncssh would give the text of its own exception.
        raise asyncssh.ChannelOpenError(asyncssh.OPEN_CONNECT_FAILED, "Connection refused") from error


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class _ReadOnly(asyncssh.SFTPServer):
    """What this user may read, and nothing else: each method that would change something says no."""

    def open(self, path: bytes, pflags: int, attrs: asyncssh.SFTPAttrs) -> Any:
        if pflags != asyncssh.FXF_READ:
            _deny()
        _regular(self.map_path(path))
        return super().open(path, pflags, attrs)

    def _denied(self, *_: object) -> NoReturn:
        _deny()

    # One refusal for all of them, whatever they are given.
    _never = cast("Any", _denied)
    open56 = write = setstat = lsetstat = fsetstat = fsync = _never
    remove = mkdir = rmdir = rename = posix_rename = symlink = link = lock = unlock = _never


def _deny() -> NoReturn:
    raise asyncssh.SFTPPermissionDenied("this host is read-only")


def _regular(path: bytes) -> None:
    """Opening a fifo would hang the server, and with it everything else in this process."""
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 -- a path of bytes
    except OSError:
        return  # the opening itself says what is wrong
    if not stat.S_ISREG(mode):
        raise asyncssh.SFTPPermissionDenied("no regular file")


async def _feed(source: asyncssh.SSHReader[bytes], pipe: asyncio.StreamWriter) -> None:
    """The channel's input, until it ends; a signal or a break that it brings ends it too."""
    with contextlib.suppress(
        asyncssh.BreakReceived, asyncssh.SignalReceived, asyncssh.TerminalSizeChanged, asyncssh.Error, OSError
    ):
        while data := await source.read(_CHUNK):
            pipe.write(data)
            await pipe.drain()
    pipe.close()


async def _pour(pipe: asyncio.StreamReader, sink: asyncssh.SSHWriter[bytes]) -> None:
    while data := await pipe.read(_CHUNK):
        sink.write(data)
        await sink.drain()


async def _ended(child: asyncio.subprocess.Process, *outputs: Awaitable[None]) -> int:
    """The command's return code, once all of its output has been handed on."""
    pouring = [asyncio.ensure_future(output) for output in outputs]
    try:
        code = await child.wait()
        await asyncio.wait(pouring, timeout=_LAST_WORDS_S)
    finally:
        for task in pouring:
            task.cancel()
        await asyncio.gather(*pouring, return_exceptions=True)
    return code


def _say_end(process: asyncssh.SSHServerProcess[bytes], code: int) -> None:
    if code >= 0:
        process.exit(code)
    else:
        process.exit_with_signal(signal.Signals(-code).name.removeprefix("SIG"))


def _kill_group(leader: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
