"""The one door to httpx: a request, its answer or one of our errors, over TCP or over whatever a dialer opens.

httpx has no public place for a network backend, so a dialled request sets the pool of a transport (`_pool` of
`httpx.AsyncHTTPTransport`, 0.28.1); a test holds this to the library that is installed. A dialled connection is never
kept: at one request in ten seconds both ends would have closed it by the next.
"""

from __future__ import annotations

import asyncio
import errno
import os
import re
import socket
import ssl
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from types import MappingProxyType
from typing import Any, TypeVar

import httpcore
import httpx

from watchd.errors import HttpError, HttpLostError, HttpRefusedError, HttpTimeoutError
from watchd.model import ByteStream, Dialer

FOREIGN = (
    httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, httpx.CookieConflict,
    httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError, httpcore.ProxyError,
    httpcore.UnsupportedProtocol, httpcore.ConnectionNotAvailable, OSError,
)  # fmt: skip
_QUOTING = (
    httpx.ProtocolError, httpx.UnsupportedProtocol, httpx.InvalidURL, httpcore.ProtocolError, UnicodeError
)  # fmt: skip
"""What quotes the URL, a header, or what came back, so that nothing may be chained to it."""
CHUNK = 65536

# Authorization
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}\Z")
_UNSENDABLE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]|^[ \t]|[ \t]$")

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

    def __init__(self, *, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
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
        HttpTimeoutError, HttpLostError for what the other side did, and HttpError itself where the request could not be
        made (URL, header, CA file). A HostError of the dialer passes through.
        """
        began = self._clock()
        progress = _Progress()
        target, sending = _target(url), [(b"accept-encoding", b"identity"), *_sendable(headers)]
        try:
            async with asyncio.timeout(timeout_s), self._open(dial, ca) as client:
                asking = client.stream(
                    method, target, headers=sending, content=body, extensions={"trace": progress.note}
                )  # fmt: skip
                async with asking as answer:
                    kept = await _read(answer, limit)
        except TimeoutError as error:
            what = "it took the connection, but no answer came" if progress.connected else "no connection came about"
            raise HttpTimeoutError(f"{what} within {timeout_s:g} s") from error
        except _QUOTING as error:
            raise translated(error) from None
        except FOREIGN as error:
            raise translated(error) from error
        found = MappingProxyType(dict(answer.headers))
        elapsed_ms = (self._clock() - began) * 1000
        return HttpReply(status=answer.status_code, headers=found, body=kept, elapsed_ms=elapsed_ms)

    async def close(self) -> None:
        """Let go of every connection."""
        clients, self._direct = list(self._direct.values()), {}
        for client in clients:
            await client.aclose()

    @asynccontextmanager
    async def _open(self, dial: Dialer | None, ca: str) -> AsyncIterator[httpx.AsyncClient]:
        if dial is not None:
            async with _client(_over(dial, _trust(ca))) as client:
                yield client
            return
        if ca not in self._direct:
            self._direct[ca] = _client(None, verify=_trust(ca))
        yield self._direct[ca]


class _Progress:
    """How far a request has come; httpcore calls `note` with the name of each step."""

    def __init__(self) -> None:
        self.connected = False

    async def note(self, event: str, detail: Mapping[str, Any]) -> None:
        del detail
        self.connected = self.connected or event.endswith(("connect_tcp.complete", "send_request_headers.started"))


def _target(url: str) -> httpx.URL:
    """The URL, read. Raises HttpError where it is none that can be asked, without quoting it."""
    try:
        target = httpx.URL(url)
    except (httpx.InvalidURL, ValueError):
        raise HttpError("the URL cannot be read") from None
    named = target.host and "%" not in target.host
    if target.scheme not in ("http", "https") or not named or not 0 < (target.port or 1) < 65536:
        raise HttpError("the URL is not one of http:// or https://")
    return target


def _sendable(headers: Sequence[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    """The headers as bytes. Raises HttpError that names the header and keeps its value to itself."""
    for name, value in headers:
        if not _NAME.match(name) or _UNSENDABLE.search(value):
            raise HttpError(f"the header {name[:80]!r} cannot be sent: its name or value holds a character it must not")
    return [(name.encode(), value.encode()) for name, value in headers]


async def _read(answer: httpx.Response, limit: int) -> bytes:
    """The body as it was sent, at most `limit` bytes: unpacked, a few bytes could become gigabytes."""
    kept = bytearray()
    async for chunk in answer.aiter_raw(CHUNK):
        kept += chunk[: limit - len(kept)]
        if len(kept) >= limit:
            break
    return bytes(kept)


def translated(error: BaseException) -> HttpError:
    """One of our errors for one of the libraries'. No word of it is kept that could hold a URL or a secret."""
    if isinstance(error, httpx.TimeoutException | httpcore.TimeoutException | TimeoutError):
        return HttpTimeoutError("no answer in time")
    if isinstance(error, httpx.RemoteProtocolError | httpcore.RemoteProtocolError):
        return HttpLostError(_how_it_ended(str(error)))
    if isinstance(error, httpx.ProxyError | httpcore.ProxyError):
        return HttpRefusedError("the proxy of the environment refused")
    if isinstance(error, httpx.DecodingError):
        return HttpLostError("what came back is not what it says it is")
    if isinstance(error, httpx.NetworkError | httpcore.NetworkError | httpcore.ConnectionNotAvailable | OSError):
        return _network(error)
    if isinstance(error, httpx.UnsupportedProtocol | httpcore.UnsupportedProtocol | httpx.InvalidURL | UnicodeError):
        return HttpError("the URL cannot be used")
    return HttpError("the request cannot be made")


def _how_it_ended(text: str) -> str:
    # Server disconnected without sending a response.
    if text.startswith("Server disconnected"):
        return "the connection was closed without an answer"
    # peer closed connection without sending complete message body (received 1 bytes, expected 100)
    if text.startswith("peer closed connection"):
        return "the connection was closed in the middle of the answer"
    return "what came back is not HTTP"


def _network(error: BaseException) -> HttpError:
    """What stands behind a failed connection: the libraries wrap it several times over."""
    connecting = isinstance(error, httpx.ConnectError | httpcore.ConnectError)
    for cause in _causes(error):
        match cause:
            case ssl.SSLCertVerificationError():
                return HttpLostError(f"TLS: the certificate is not accepted ({_verdict(cause)})")
            case ssl.SSLError():
                return HttpLostError(f"TLS: {(cause.reason or 'no agreement').lower().replace('_', ' ')[:80]}")
            case socket.gaierror():
                return HttpRefusedError("the name in the URL is unknown")
            case ConnectionRefusedError():
                return HttpRefusedError("nobody listens there (connection refused)")
            case ConnectionResetError() | BrokenPipeError() | ConnectionAbortedError():
                return HttpLostError("the connection was reset")
            case TimeoutError():
                return HttpTimeoutError("no connection came about in time")
            case OSError() if cause.errno in _UNREACHABLE:
                return HttpRefusedError(f"it cannot be reached ({os.strerror(cause.errno)})")
    if connecting:
        return HttpRefusedError("no connection could be made")
    return HttpLostError("the connection ended before the answer did")


_UNREACHABLE = (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EACCES, errno.EPERM, errno.EADDRNOTAVAIL, errno.ENETDOWN)
_OTHER_NAME = (62, 64)
"""X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH: their text quotes the name"""


def _verdict(error: ssl.SSLCertVerificationError) -> str:
    return "it is another name's" if error.verify_code in _OTHER_NAME else str(error.verify_message)[:80]


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error, what it was raised from, and the members of groups, outermost first."""
    waiting: list[BaseException | None] = [error]
    seen: set[int] = set()
    while waiting:
        found = waiting.pop(0)
        if found is None or id(found) in seen or len(seen) > 50:
            continue
        seen.add(id(found))
        yield found
        members = found.exceptions if isinstance(found, BaseExceptionGroup) else ()
        waiting += [found.__cause__, found.__context__, *members]


@cache
def _trust(ca: str) -> ssl.SSLContext:
    """Certificates that are accepted: the file's alone, or this machine's and those that httpx comes with.

    Raises HttpError where the file cannot be used; made once, since reading them takes 20 ms.
    """
    if not ca:
        context = httpx.create_ssl_context()
        context.load_default_certs()
        return context
    try:
        return ssl.create_default_context(cafile=ca)
    except OSError as error:
        reason = "it holds no certificate" if isinstance(error, ssl.SSLError) else error.strerror
        raise HttpError(f"the CA file {ca} cannot be used: {reason}") from error


def _client(transport: httpx.AsyncHTTPTransport | None, verify: ssl.SSLContext | bool = True) -> httpx.AsyncClient:
    # No cookies: one server's answer must not change what the next one is sent.
    nothing = CookieJar(policy=DefaultCookiePolicy(allowed_domains=[]))
    return httpx.AsyncClient(
        transport=transport, verify=verify, trust_env=transport is None, cookies=nothing,
        headers={"user-agent": "watchd"}, follow_redirects=False, timeout=None,  # noqa: S113  the whole is bounded
    )  # fmt: skip


def _over(dial: Dialer, trust: ssl.SSLContext) -> httpx.AsyncHTTPTransport:
    transport = httpx.AsyncHTTPTransport(verify=trust, trust_env=False)
    transport._pool = httpcore.AsyncConnectionPool(  # noqa: SLF001  see the top of this file
        ssl_context=trust, max_keepalive_connections=0, network_backend=_Backend(dial)
    )
    return transport


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
        try:
            await secured.handshake()
        except BaseException:
            await self._raw.close()
            raise
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
        """Agree on keys, and check the certificate. Raises ssl.SSLError."""
        await self._pump(self._tls.do_handshake)

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """At most `max_bytes`; empty at the end."""
        del timeout
        try:
            return await self._pump(lambda: self._tls.read(max_bytes))
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            return b""  # most servers end without a goodbye; whether the answer is whole, its length says

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
            except ssl.SSLError:
                await self._flush()  # the alert that tells the server why
                raise
            else:
                await self._flush()
                return found

    async def _flush(self) -> None:
        data = self._outgoing.read()
        if data:
            await self._raw.write(data)
