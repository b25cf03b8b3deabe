"""The one door to httpx: a request, its answer or one of our errors, over TCP or over whatever a dialer opens.

httpx has no public place for a network backend, so a dialled request sets the pool of a transport (`_pool` of
`httpx.AsyncHTTPTransport`, 0.28.1); a test holds this to the library that is installed. A dialled connection is never
kept: at one request in ten seconds both ends would have closed it by the next.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeVar

import httpcore
import httpx

from watchd.errors import HttpError, HttpLostError, HttpRefusedError, HttpTimeoutError
from watchd.model import ByteStream, Dialer

FOREIGN = (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, httpcore.NetworkError, httpcore.TimeoutException)
CHUNK = 65536

R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpReply:
    """An answer: header names in lower case, at most `limit` bytes of the body, milliseconds until its end."""

    status: int
    headers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    body: bytes = b""
    elapsed_ms: float = 0.0


class HttpClient:
    """Asks servers. One for the whole process; `close` it."""

    def __init__(self) -> None:
        self._direct: dict[str, httpx.AsyncClient] = {}

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Sequence[tuple[str, str]] = (),
        body: bytes = b"",
        timeout_s: float,
        ca: str = "",
        dial: Dialer | None = None,
        limit: int = 65536,
    ) -> HttpReply:
        """One request, bounded by `timeout_s` from dialling to the end of the body. Redirects are not followed.

        With `dial` the connection is opened by it and no proxy of the environment is asked. Raises HttpRefusedError,
        HttpTimeoutError, HttpLostError; a HostError of the dialer passes through.
        """
        began = time.perf_counter()
        try:
            async with asyncio.timeout(timeout_s):
                if dial is None:
                    found = await _ask(self._client(ca), method, url, headers, body, limit)
                else:
                    async with _dialled(dial, ca) as client:
                        found = await _ask(client, method, url, headers, body, limit)
        except TimeoutError as error:
            raise HttpTimeoutError(f"no answer within {timeout_s:g} s") from error
        except FOREIGN as error:
            raise translated(error) from error
        return HttpReply(
            status=found.status, headers=found.headers, body=found.body, elapsed_ms=(time.perf_counter() - began) * 1000
        )

    async def close(self) -> None:
        """Let go of every connection."""
        clients, self._direct = list(self._direct.values()), {}
        for client in clients:
            await client.aclose()

    def _client(self, ca: str) -> httpx.AsyncClient:
        if ca not in self._direct:
            self._direct[ca] = httpx.AsyncClient(
                verify=_trust(ca), timeout=None, follow_redirects=False  # noqa: S113  the request as a whole is bounded
            )
        return self._direct[ca]


def translated(error: BaseException) -> HttpError:
    """One of our errors for one of the library's. No word of it is kept that could hold a URL."""
    if isinstance(error, httpx.TimeoutException | httpcore.TimeoutException):
        return HttpTimeoutError("no answer in time")
    if isinstance(error, httpx.ConnectError | httpcore.ConnectError):
        return HttpRefusedError(_why_not_connected(error))
    if isinstance(error, httpx.InvalidURL | httpx.UnsupportedProtocol | httpcore.UnsupportedProtocol):
        return HttpRefusedError("the URL is not one of http:// or https://")
    if isinstance(error, httpx.RemoteProtocolError | httpcore.RemoteProtocolError):
        return HttpLostError("what came back is not HTTP, or it ended early")
    if isinstance(error, httpx.ProxyError | httpcore.ProxyError):
        return HttpLostError("the proxy refused")
    return HttpLostError("the connection ended before the answer did")


def _why_not_connected(error: BaseException) -> str:
    text = str(error).lower()
    if "certificate" in text or "ssl" in text or "tls" in text:
        return "the server's certificate, or its TLS, is not accepted"
    if "name" in text or "address family" in text or "nodename" in text:
        return "the name in the URL is unknown"
    return "nobody listens there (connection refused)" if "refused" in text else "no connection could be made"


async def _ask(
    client: httpx.AsyncClient, method: str, url: str, headers: Sequence[tuple[str, str]], body: bytes, limit: int
) -> HttpReply:
    async with client.stream(method, url, headers=list(headers), content=body) as answer:
        kept = bytearray()
        async for chunk in answer.aiter_bytes(CHUNK):
            kept += chunk
            if len(kept) >= limit:
                break
        return HttpReply(
            status=answer.status_code, headers=MappingProxyType(dict(answer.headers)), body=bytes(kept[:limit])
        )


def _trust(ca: str) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=ca or None)


def _dialled(dial: Dialer, ca: str) -> httpx.AsyncClient:
    transport = httpx.AsyncHTTPTransport(verify=False)
    transport._pool = httpcore.AsyncConnectionPool(  # noqa: SLF001  see the top of this file
        ssl_context=_trust(ca), max_keepalive_connections=0, network_backend=_Backend(dial)
    )
    return httpx.AsyncClient(transport=transport, timeout=None, follow_redirects=False, trust_env=False)  # noqa: S113


class _Backend(httpcore.AsyncNetworkBackend):
    """Opens connections by a dialer."""

    def __init__(self, dial: Dialer) -> None:
        self._dial = dial

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Any = None,
    ) -> httpcore.AsyncNetworkStream:
        """A stream to `host`:`port`, as the dialer sees it."""
        del timeout, local_address, socket_options
        return _Stream(await self._dial(host, port))

    async def sleep(self, seconds: float) -> None:
        """Wait before another try, of which there is none."""
        await asyncio.sleep(seconds)


class _Stream(httpcore.AsyncNetworkStream):
    """A dialled connection. Time is bounded by the request as a whole."""

    def __init__(self, raw: ByteStream) -> None:
        self._raw = raw

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """At most `max_bytes`; empty at the end."""
        del timeout
        return await self._raw.read(max_bytes)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send everything."""
        del timeout
        if buffer:
            await self._raw.write(buffer)

    async def aclose(self) -> None:
        """End it."""
        await self._raw.close()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.AsyncNetworkStream:
        """The same connection, with TLS over it."""
        del timeout
        secured = _Tls(self._raw, ssl_context, server_hostname)
        await secured.handshake()
        return secured

    def get_extra_info(self, info: str) -> Any:
        """httpcore asks an idle connection whether it `is_readable`: then its peer has closed it."""
        return self._raw.at_end() if info == "is_readable" else None


class _Tls(_Stream):
    """TLS in memory over a dialled connection."""

    def __init__(self, raw: ByteStream, context: ssl.SSLContext, name: str | None) -> None:
        super().__init__(raw)
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=name)

    async def handshake(self) -> None:
        """Agree on keys, and check the certificate."""
        try:
            await self._pump(self._tls.do_handshake)
        except ssl.SSLError as error:
            raise httpcore.ConnectError(f"TLS: {error.reason}") from error

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """At most `max_bytes`; empty at the end."""
        del timeout
        try:
            return await self._pump(lambda: self._tls.read(max_bytes))
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            return b""
        except ssl.SSLError as error:
            raise httpcore.ReadError("TLS") from error

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send everything."""
        del timeout
        left = memoryview(buffer)
        while left:
            sent = await self._pump(lambda: self._tls.write(left))  # noqa: B023  awaited in this very turn
            left = left[sent:]

    def get_extra_info(self, info: str) -> Any:
        """`ssl_object` tells httpcore which protocol was agreed on."""
        return self._tls if info == "ssl_object" else super().get_extra_info(info)

    async def _pump(self, step: Callable[[], R]) -> R:
        """Take `step` again and again, carrying what it wants to send and to read."""
        while True:
            try:
                found = step()
            except ssl.SSLWantReadError:
                await self._flush()
                data = await self._raw.read(CHUNK)
                if data:
                    self._incoming.write(data)
                else:
                    self._incoming.write_eof()
            else:
                await self._flush()
                return found

    async def _flush(self) -> None:
        data = self._outgoing.read()
        if data:
            await self._raw.write(data)
