"""A real HTTP server in the test's own loop: it answers by a script, and knows the ways in which servers fail."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import TracebackType


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request as it came; header names in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


Doing = Callable[[asyncio.StreamWriter], Awaitable[None]]


class Web:
    """Use it in an `async with`. Requests are answered by `doings` in turn, the last one again and again.

    `greeting` is sent before anything was asked, as servers of other protocols do.

    asked        requests so far
    connections  connections so far
    """

    def __init__(self, *doings: Doing, tls: ssl.SSLContext | None = None, greeting: bytes = b"") -> None:
        self.doings = doings or (answer(200, b"ok"),)
        self.asked: list[Asked] = []
        self.connections = 0
        self._tls = tls
        self._greeting = greeting
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Web:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    @property
    def port(self) -> int:
        """Where it listens."""
        assert self._server is not None
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    def url(self, path: str = "/health") -> str:
        """The address of a page of it."""
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}{path}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        try:
            writer.write(self._greeting)
            while True:
                self.asked.append(await _request(reader))
                await self.doings[min(len(self.asked), len(self.doings)) - 1](writer)
                if writer.is_closing():
                    return
        except (asyncio.IncompleteReadError, OSError, asyncio.CancelledError):
            return  # gone, or the test is over
        finally:
            self._serving.discard(task)
            if self._tls is None:
                writer.close()
            else:
                writer.transport.abort()  # the goodbye of TLS would be waited for
            with contextlib.suppress(OSError):
                await writer.wait_closed()


async def _request(reader: asyncio.StreamReader) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.rstrip().split("\r\n")
    method, path, _ = first.split(" ", 2)
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Asked(method=method, path=path, headers=headers, body=body)


def answer(status: int = 200, body: bytes = b"ok", **headers: str) -> Doing:
    """An orderly answer."""

    async def act(writer: asyncio.StreamWriter) -> None:
        lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(body)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        await writer.drain()

    return act


def say(data: bytes) -> Doing:
    """Exactly these bytes, and the end: what is not HTTP, or is cut short."""

    async def act(writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()
        writer.close()

    return act


def hang() -> Doing:
    """Nothing, for ever."""

    async def act(writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    return act


def drip(pause_s: float = 0.01) -> Doing:
    """A body without end, a byte at a time: every single wait is short."""

    async def act(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b".")
            await writer.drain()
            await asyncio.sleep(pause_s)

    return act


def close() -> Doing:
    """The connection is closed without a word."""
    return say(b"")


def reset() -> Doing:
    """The connection is reset."""

    async def act(writer: asyncio.StreamWriter) -> None:
        raw: socket.socket = writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    return act


def refusing_port() -> int:
    """A port on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
