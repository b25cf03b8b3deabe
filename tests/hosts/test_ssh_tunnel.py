"""Ports of the host through the SSH connection: refused, unknown, forbidden, silent and lost are told apart."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import pytest

from tests.support.sshd import wait_until
from watchd.errors import HostLostError, HostRefusedError, HttpRefusedError, HttpTimeoutError
from watchd.hosts import ssh_tunnel
from watchd.hosts.ssh import SshHost


@pytest.fixture
async def host(sshd):
    host = SshHost(sshd.address())
    await host.connect()
    yield host
    await host.close()


@pytest.fixture
async def echo() -> AsyncIterator[int]:
    """A server that sends back what it gets and closes after `bye`."""

    writers: list[asyncio.StreamWriter] = []

    async def serve(reader, writer):
        writers.append(writer)
        while (data := await reader.read(1 << 16)) and not data.endswith(b"bye"):
            writer.write(data)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1]
    server.close()
    for writer in writers:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def test_bytes_pass_both_ways_and_the_end_is_seen(host, echo):
    stream = await host.tunnel()("127.0.0.1", echo)
    await stream.write(b"hello")
    assert await stream.read(100) == b"hello"
    assert not stream.at_end()
    await stream.write(b"bye")
    assert await stream.read(100) == b""
    assert stream.at_end()
    await stream.close()
    await stream.close()


async def test_much_data_passes(host, echo):
    stream = await host.tunnel()("localhost", echo)
    sent = bytes(range(256)) * 8192

    async def send():
        for i in range(0, len(sent), 100_000):
            await stream.write(sent[i : i + 100_000])

    sending = asyncio.create_task(send())
    received = b""
    while len(received) < len(sent):
        received += await stream.read(65536)
    await sending
    assert received == sent
    await stream.close()


async def test_each_call_opens_a_channel_of_its_own_and_none_is_left(host, echo):
    dial = host.tunnel()
    streams = [await dial("127.0.0.1", echo) for _ in range(15)]
    for i, stream in enumerate(streams):
        await stream.write(b"%d" % i)
    assert [await stream.read(9) for stream in streams] == [b"%d" % i for i in range(15)]
    for stream in streams:
        await stream.close()


async def test_a_port_on_which_nobody_listens_is_refused(host):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(HttpRefusedError, match="nobody listens"):
            await host.tunnel()("127.0.0.1", unused.getsockname()[1])
    assert host.connected


async def test_a_name_that_the_host_does_not_know_is_told_apart_from_a_refused_port(host):
    with pytest.raises(HttpRefusedError, match="does not know the name"):
        await host.tunnel()("no-such-name.invalid", 80)


@pytest.mark.parametrize("options", [{"AllowTcpForwarding": "no"}, {"PermitOpen": "127.0.0.1:1"}])
async def test_forbidden_forwarding_says_what_to_allow(make_sshd, echo, options):
    sshd = make_sshd(**options)
    host = SshHost(sshd.address())
    await host.connect()
    with pytest.raises(HostRefusedError, match=f'permitopen="127.0.0.1:{echo}"'):
        await host.tunnel()("127.0.0.1", echo)
    await host.close()


async def test_the_health_port_stays_open_to_a_key_that_cannot_run_anything(make_sshd, echo):
    sshd = make_sshd(ForceCommand="internal-sftp -R", PermitOpen=f"127.0.0.1:{echo}")
    host = SshHost(sshd.address())
    await host.connect()
    stream = await host.tunnel()("127.0.0.1", echo)
    await stream.write(b"ok")
    assert await stream.read(9) == b"ok"
    await host.close()


async def test_a_lost_connection_is_not_taken_for_the_end_of_an_answer(make_sshd, echo):
    sshd = make_sshd()
    host = SshHost(sshd.address())
    await host.connect()
    dial = host.tunnel()
    killed, given_up = await dial("127.0.0.1", echo), await dial("127.0.0.1", echo)
    waiting = asyncio.create_task(killed.read(9))
    await asyncio.sleep(0)
    sshd.kill_connections()
    with pytest.raises(HostLostError):
        await waiting
    assert await asyncio.to_thread(wait_until, lambda: not host.connected)
    with pytest.raises(HostLostError):
        await given_up.read(9)
    with pytest.raises(HostLostError):
        await given_up.write(b"x")
    assert killed.at_end()
    assert given_up.at_end()
    await killed.close()
    with pytest.raises(HostLostError):
        await dial("127.0.0.1", echo)
    await host.connect()
    again = await dial("127.0.0.1", echo)
    reading = asyncio.create_task(again.read(9))
    await asyncio.sleep(0.05)
    await host.close()
    with pytest.raises(HostLostError):
        await reading


async def test_a_host_that_does_not_open_the_channel_in_time_is_a_time_out(make_sshd, monkeypatch):
    monkeypatch.setattr(ssh_tunnel, "CONNECT_S", 0.3)
    sshd = make_sshd()
    host = SshHost(sshd.address())
    await host.connect()
    sshd.freeze()
    with pytest.raises(HttpTimeoutError, match=r"within 0\.3 s"):
        await host.tunnel()("127.0.0.1", 1)
    sshd.thaw()
    await host.close()
