"""The HTTP door: answers, and every way in which none comes, told apart over TCP and over a dialer alike."""

from __future__ import annotations

import asyncio
import datetime
import gzip
import ipaddress
import ssl
import traceback

import httpcore
import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.support.web import Web, answer, close, drip, hang, refusing_port, reset, say
from watchd import http
from watchd.errors import HostLostError, HostRefusedError, HttpError, HttpLostError, HttpRefusedError, HttpTimeoutError
from watchd.hosts.ssh import SshHost
from watchd.http import HttpClient

LONG = 20.0


class Tcp:
    """A dialer over plain TCP, which counts what it opened and what is open."""

    def __init__(self):
        self.dialled = []
        self.streams = []

    async def __call__(self, host, port):
        self.dialled.append((host, port))
        try:
            reader, writer = await asyncio.open_connection(host, port)
        except ConnectionRefusedError as error:
            raise HttpRefusedError("nobody listens on it") from error
        self.streams.append(Stream(reader, writer))
        return self.streams[-1]


class Stream:
    def __init__(self, reader, writer):
        self.reader, self.writer, self.closed = reader, writer, False

    async def read(self, limit):
        return await self.reader.read(limit)

    async def write(self, data):
        self.writer.write(data)
        await self.writer.drain()

    async def close(self):
        self.closed = True
        self.writer.close()

    def at_end(self):
        return self.reader.at_eof()


@pytest.fixture
async def client():
    found = HttpClient()
    yield found
    await found.close()


@pytest.fixture(params=["over TCP", "over a dialer"])
def dial(request):
    return Tcp() if request.param == "over a dialer" else None


async def test_an_answer_comes_with_status_headers_and_body(client, dial):
    async with Web(answer(503, b"busy", Retry_After="7")) as web:
        reply = await client.request(
            "POST", web.url("/x?y=1"), headers=[("X-Key", "käse")], body=b"{}", timeout_s=LONG, dial=dial
        )
        assert (reply.status, reply.body, reply.headers["retry-after"]) == (503, b"busy", "7")
        assert reply.elapsed_ms > 0
    asked = web.asked[0]
    assert (asked.method, asked.path, asked.body) == ("POST", "/x?y=1", b"{}")
    assert asked.headers["x-key"].encode("latin-1").decode() == "käse"


async def test_a_redirect_is_an_answer_and_is_not_followed(client, dial):
    async with Web(answer(302, b"", Location="http://127.0.0.1:1/")) as web:
        reply = await client.request("GET", web.url(), timeout_s=LONG, dial=dial)
    assert reply.status == 302
    assert len(web.asked) == 1


async def test_no_more_of_a_body_is_read_than_was_allowed(client, dial):
    async with Web(answer(200, b"x" * 10_000_000)) as web:
        reply = await client.request("GET", web.url(), timeout_s=LONG, dial=dial, limit=100)
    assert reply.body == b"x" * 100


async def test_a_body_is_not_unpacked(client, dial):
    bomb = gzip.compress(bytes(10_000_000))
    async with Web(answer(200, bomb, Content_Encoding="gzip")) as web:
        reply = await client.request("GET", web.url(), timeout_s=LONG, dial=dial)
    assert reply.body == bomb
    assert web.asked[0].headers["accept-encoding"] == "identity"


FAILURES = [
    (reset, HttpLostError, "the connection was reset"),
    (close, HttpLostError, "the connection was closed without an answer"),
    (lambda: say(b"SSH-2.0-OpenSSH_9.2\r\n\r\n"), HttpLostError, "what came back is not HTTP"),
    (lambda: say(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\no"), HttpLostError, "in the middle of the answer"),
    (hang, HttpTimeoutError, "it took the connection, but no answer came within 0.2 s"),
    (drip, HttpTimeoutError, "no answer came within 0.2 s"),
]


@pytest.mark.parametrize(("doing", "kind", "words"), FAILURES, ids=[words for _, _, words in FAILURES])
async def test_every_failure_has_its_class_and_its_words(client, dial, doing, kind, words):
    limit_s = 0.2 if kind is HttpTimeoutError else LONG
    async with Web(doing()) as web:
        with pytest.raises(HttpError, match=words) as caught:
            await client.request("GET", web.url(), timeout_s=limit_s, dial=dial)
    assert type(caught.value) is kind


async def test_a_port_on_which_nobody_listens_is_refused(client, dial):
    with pytest.raises(HttpRefusedError, match="nobody listens"):
        await client.request("GET", f"http://127.0.0.1:{refusing_port()}/", timeout_s=LONG, dial=dial)


async def test_a_name_that_nobody_knows_is_said_to_be_unknown(client):
    with pytest.raises(HttpRefusedError, match="the name in the URL is unknown"):
        await client.request("GET", "http://no-such-host.invalid/", timeout_s=LONG)


async def test_a_dialer_that_takes_too_long_is_a_time_out_of_the_connection(client):
    async def never(host, port):
        await asyncio.Event().wait()

    with pytest.raises(HttpTimeoutError, match=r"no connection came about within 0\.1 s"):
        await client.request("GET", "http://127.0.0.1:1/", timeout_s=0.1, dial=never)


SECRETS = ("s3cr3t", "t0k3n", "k3y", "v4lue")


@pytest.mark.parametrize("doing", [reset, close, hang, lambda: say(b"t0k3n k3y\r\n\r\n"), None])
async def test_no_url_and_no_header_shows_in_an_error_or_what_it_was_raised_from(client, dial, doing):
    async with Web(doing() if doing else answer()) as web:
        port = web.port if doing else refusing_port()
        url = f"http://user:s3cr3t@127.0.0.1:{port}/t0k3n?a=k3y"
        with pytest.raises(HttpError) as caught:
            await client.request("GET", url, headers=[("Authorization", "v4lue")], timeout_s=0.2, dial=dial)
    told = _told(caught.value)
    assert not any(secret in told for secret in SECRETS)


BAD = [
    ("http://127.0.0.1/", [("X", "v4lue\r\nY: z")]),
    ("http://127.0.0.1/", [("X s3cr3t\n", "v")]),
    ("ftp://s3cr3t.example/", []),
    ("not a url s3cr3t", []),
    ("http://[s3cr3t/", []),
    ("http://s3cr3t:99999/", []),
    ("http:///t0k3n", []),
    ("", []),
]


@pytest.mark.parametrize(("url", "headers"), BAD)
async def test_a_request_that_cannot_be_made_is_our_own_fault_and_quotes_nothing(client, dial, url, headers):
    with pytest.raises(HttpError) as caught:
        await client.request("GET", url, headers=headers, timeout_s=LONG, dial=dial)
    assert type(caught.value) is HttpError
    assert "v4lue" not in _told(caught.value)
    if not headers:
        assert not any(secret in _told(caught.value) for secret in SECRETS)


def _told(error):
    """Every word of an error and of all that it was raised from; tracebacks hold source lines, not values."""
    words, waiting = [], [error]
    while waiting:
        found = waiting.pop()
        words += [str(found), repr(found.args)]
        waiting += [
            each for each in (found.__cause__, None if found.__suppress_context__ else found.__context__) if each
        ]
    return "\n".join([*words, "".join(traceback.format_exception_only(error))])


@pytest.mark.parametrize("error", [HostLostError("gpu-01", "gone"), HostRefusedError("gpu-01", "no forwarding")])
async def test_what_a_dialer_says_of_its_host_comes_through_unchanged(client, error):
    async def refuse(host, port):
        raise error

    with pytest.raises(type(error)) as caught:
        await client.request("GET", "http://127.0.0.1:1/", timeout_s=LONG, dial=refuse)
    assert caught.value is error


async def test_a_host_that_is_lost_during_a_request_is_no_answer_of_the_server(client):
    lost = HostLostError("gpu-01", "the connection broke")

    class Lost(Stream):
        async def read(self, limit):
            raise lost

    async with Web() as web:

        async def dial(host, port):
            return Lost(*await asyncio.open_connection(host, port))

        with pytest.raises(HostLostError) as caught:
            await client.request("GET", web.url(), timeout_s=LONG, dial=dial)
    assert caught.value is lost


async def test_each_dialled_request_has_a_connection_of_its_own_and_closes_it(client):
    dial = Tcp()
    async with Web(answer(), answer(), hang()) as web:
        for _ in range(2):
            await client.request("GET", web.url(), timeout_s=LONG, dial=dial)
        with pytest.raises(HttpTimeoutError):
            await client.request("GET", web.url(), timeout_s=0.1, dial=dial)
        assert dial.dialled == [("127.0.0.1", web.port)] * 3
    assert all(stream.closed for stream in dial.streams)


async def test_the_environments_proxy_is_asked_for_direct_requests_alone(client, monkeypatch):
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{refusing_port()}")
    async with Web() as web:
        assert (await client.request("GET", web.url(), timeout_s=LONG, dial=Tcp())).status == 200
        with pytest.raises(HttpRefusedError):
            await client.request("GET", web.url(), timeout_s=LONG)


async def test_cookies_are_not_kept(client):
    async with Web(answer(200, b"", Set_Cookie="session=1")) as web:
        for _ in range(2):
            await client.request("GET", web.url(), timeout_s=LONG)
    assert "cookie" not in web.asked[1].headers


async def test_cancelling_a_request_closes_its_connection(client):
    dial = Tcp()
    async with Web(hang()) as web:
        asking = asyncio.create_task(client.request("GET", web.url(), timeout_s=LONG, dial=dial))
        while not web.asked:
            await asyncio.sleep(0.01)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
    assert dial.streams[0].closed


# TLS


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """A server's context for 127.0.0.1 and the path of the file that vouches for it; and those of another name."""
    folder = tmp_path_factory.mktemp("tls")
    return {name: _certificate(folder, name) for name in ("127.0.0.1", "192.0.2.1")}


def _certificate(folder, address):
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now = datetime.datetime.now(datetime.UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    public, private = folder / f"{address}.crt", folder / f"{address}.key"
    public.write_bytes(built.public_bytes(serialization.Encoding.PEM))
    form = serialization.PrivateFormat.PKCS8
    private.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(public, private)
    return context, str(public)


async def test_a_server_whose_certificate_the_ca_file_vouches_for_is_answered(client, dial, certificates):
    context, ca = certificates["127.0.0.1"]
    async with Web(answer(200, b"x" * 200_000), tls=context) as web:
        reply = await client.request(
            "POST", web.url(), body=b"y" * 200_000, timeout_s=LONG, dial=dial, ca=ca, limit=1_000_000
        )
    assert reply.body == b"x" * 200_000
    assert web.asked[0].body == b"y" * 200_000


async def test_a_certificate_that_nobody_vouches_for_is_said_to_be_that(client, dial, certificates):
    async with Web(tls=certificates["127.0.0.1"][0]) as web:
        with pytest.raises(HttpLostError, match=r"TLS: the certificate is not accepted \(self.signed certificate\)"):
            await client.request("GET", web.url(), timeout_s=LONG, dial=dial)


async def test_a_certificate_for_another_name_is_said_to_be_that_without_the_name(client, dial, certificates):
    context, ca = certificates["192.0.2.1"]
    async with Web(tls=context) as web:
        with pytest.raises(HttpLostError, match="it is another name's") as caught:
            await client.request("GET", web.url(), timeout_s=LONG, dial=dial, ca=ca)
    assert "127.0.0.1" not in str(caught.value)


async def test_a_server_without_tls_is_told_from_one_that_is_away(client, dial):
    async with Web(greeting=b"SSH-2.0-OpenSSH_9.2\r\n") as web:
        with pytest.raises(HttpLostError, match="TLS: "):
            await client.request("GET", web.url().replace("http:", "https:"), timeout_s=LONG, dial=dial)


@pytest.mark.parametrize("content", [None, b"no certificate"])
async def test_a_ca_file_that_cannot_be_used_is_named(client, dial, tmp_path, content):
    path = tmp_path / "ca.crt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(HttpError, match=f"the CA file {path} cannot be used") as caught:
        await client.request("GET", "https://127.0.0.1/", timeout_s=LONG, dial=dial, ca=str(path))
    assert type(caught.value) is HttpError


# What the door is built on.


def _public(library):
    found = [getattr(library, name) for name in dir(library) if not name.startswith("_")]
    return [each for each in found if isinstance(each, type) and issubclass(each, Exception)]


@pytest.mark.parametrize(
    "kind", [*_public(httpx), *_public(httpcore)], ids=lambda kind: f"{kind.__module__}.{kind.__name__}"
)
def test_every_exception_of_both_libraries_becomes_one_of_ours(kind):
    assert issubclass(kind, http.FOREIGN)
    error = kind.__new__(kind)
    error.args = ("https://user:s3cr3t@example/t0k3n",)
    told = http.translated(error)
    assert isinstance(told, HttpError)
    assert not any(secret in str(told) for secret in ("s3cr3t", "t0k3n", "example"))


async def test_the_hook_by_which_a_request_is_dialled_is_where_httpx_has_it(client):
    """The one private name that is used: were it moved, requests would go out from this machine, unseen."""
    transport = httpx.AsyncHTTPTransport()
    assert isinstance(transport._pool, httpcore.AsyncConnectionPool)
    await transport.aclose()
    dial = Tcp()
    async with Web() as web:
        await client.request("GET", web.url(), timeout_s=LONG, dial=dial)
        assert web.connections == len(dial.streams) == 1


# Through a real sshd.


@pytest.fixture
async def tunnel(sshd):
    host = SshHost(sshd.address())
    await host.connect()
    yield host.tunnel()
    await host.close()


async def test_through_ssh_an_answer_comes(client, tunnel):
    async with Web(answer(200, b"x" * 100_000)) as web:
        reply = await client.request("GET", web.url(), timeout_s=LONG, dial=tunnel, limit=200_000)
    assert reply.body == b"x" * 100_000


async def test_through_ssh_tls_is_spoken_with_the_server_and_not_with_the_host(client, tunnel, certificates):
    context, ca = certificates["127.0.0.1"]
    async with Web(tls=context) as web:
        assert (await client.request("GET", web.url(), timeout_s=LONG, dial=tunnel, ca=ca)).status == 200


@pytest.mark.parametrize(("doing", "kind"), [(reset, HttpLostError), (close, HttpLostError), (hang, HttpTimeoutError)])
async def test_through_ssh_a_failing_server_is_told_from_a_failing_connection(client, tunnel, doing, kind):
    async with Web(doing()) as web:
        with pytest.raises(kind):
            await client.request("GET", web.url(), timeout_s=0.5 if kind is HttpTimeoutError else LONG, dial=tunnel)


async def test_through_ssh_a_refused_port_is_refused(client, tunnel):
    with pytest.raises(HttpRefusedError, match="nobody listens"):
        await client.request("GET", f"http://127.0.0.1:{refusing_port()}/", timeout_s=LONG, dial=tunnel)


async def test_without_a_connection_to_the_host_nothing_is_said_of_the_server(client, sshd):
    with pytest.raises(HostLostError):
        await client.request("GET", "http://127.0.0.1:1/", timeout_s=LONG, dial=SshHost(sshd.address()).tunnel())
