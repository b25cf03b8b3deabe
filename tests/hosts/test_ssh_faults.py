"""What breaks is noticed in time, told as what it is, and leaves no wait behind."""

from __future__ import annotations

import asyncio
import time

import pytest

from tests.support.sshd import wait_until
from watchd.errors import HostLostError
from watchd.hosts import ssh_exec
from watchd.hosts.ssh import SshHost
from watchd.model import BootId, Disk, FoundingGrep, Gpus, Outcome, ReadLog

SLEEP = "#!/bin/sh\nexec sleep 3600\n"


async def connected(sshd):
    host = SshHost(sshd.address())
    await host.connect()
    return host


async def test_a_connection_killed_in_the_middle_of_an_ask_loses_what_was_not_answered(make_sshd):
    sshd = make_sshd()
    sshd.script("nvidia-smi", SLEEP)
    host = await connected(sshd)
    asking = asyncio.create_task(host.ask((BootId(), Gpus()), limit_s=600))
    assert await asyncio.to_thread(wait_until, lambda: any("sleep" in line for line in sshd.left_over()))
    sshd.kill_connections()
    boot, gpus = await asyncio.wait_for(asking, 20)
    assert boot.outcome is Outcome.ANSWERED
    assert (gpus.outcome, gpus.data) == (Outcome.LOST, b"")
    assert not host.connected
    (again,) = await host.ask((BootId(),), limit_s=5)
    assert again.outcome is Outcome.LOST
    assert await asyncio.to_thread(wait_until, lambda: sshd.left_over() == ())
    await host.connect()
    (again,) = await host.ask((BootId(),), limit_s=20)
    assert again.outcome is Outcome.ANSWERED
    await host.close()


async def test_a_frozen_peer_is_noticed_within_ten_seconds_and_frees_every_wait(make_sshd):
    sshd = make_sshd()
    host = await connected(sshd)
    log_path = sshd.write_log("server.log", b"x")
    log = await host.open_log(log_path)
    sshd.freeze()
    began = time.monotonic()
    ask = host.ask((BootId(), ReadLog(log=log_path, start=0, length=1)), limit_s=60)
    waits = asyncio.gather(
        ask, log.read(0, 1), host.stat(log_path), host.tunnel()("127.0.0.1", 1), return_exceptions=True
    )
    replies, *errors = await asyncio.wait_for(waits, 30)
    # Nine seconds, and what a busy machine adds.
    assert time.monotonic() - began < 20
    assert [reply.outcome for reply in replies] == [Outcome.LOST, Outcome.LOST]
    assert [type(error) for error in errors] == [HostLostError] * 3
    assert not host.connected
    sshd.thaw()
    await host.connect()
    assert (await host.stat(log_path)).size == 1
    await host.close()


async def test_a_limit_holds_on_a_frozen_peer_and_closing_waits_for_nobody(make_sshd):
    sshd = make_sshd()
    host = await connected(sshd)
    log = await host.open_log(sshd.write_log("server.log", b"x"))
    sshd.freeze()
    began = time.monotonic()
    run, read = await host.ask((BootId(), ReadLog(log="/x", start=0, length=1)), limit_s=0.5)
    assert (run.outcome, read.outcome) == (Outcome.TIMED_OUT, Outcome.TIMED_OUT)
    asking = asyncio.create_task(host.ask((BootId(), Disk()), limit_s=600))
    reading = asyncio.create_task(log.read(0, 1))
    await asyncio.sleep(0.2)
    asking.cancel()
    await asyncio.wait([asking])
    await host.close()
    with pytest.raises(HostLostError):
        await reading
    assert time.monotonic() - began < 8
    sshd.thaw()


async def test_with_all_sessions_in_use_a_command_is_refused_with_the_reason(make_sshd):
    sshd = make_sshd(MaxSessions=1)
    host = await connected(sshd)
    log = await host.open_log(sshd.write_log("server.log", b"error\n"))
    run, read = await host.ask((FoundingGrep(step="broad", log="/x"), ReadLog(log="/x", start=0, length=1)), limit_s=20)
    for reply in (run, read):
        assert reply.outcome is Outcome.REFUSED
        assert "MaxSessions" in reply.detail
    assert await log.read(0, 5) == b"error"
    assert host.connected
    await host.close()


async def test_asks_at_once_queue_here_and_not_at_the_host(make_sshd):
    sshd = make_sshd(MaxSessions=4)
    host = await connected(sshd)
    replies = await asyncio.gather(*(host.ask((BootId(),), limit_s=30) for _ in range(20)))
    assert {reply.outcome for (reply,) in replies} == {Outcome.ANSWERED}
    await host.close()


async def test_a_nonce_of_another_session_ends_no_answer(make_sshd):
    sshd = make_sshd()
    nonces = iter(("first", "second"))
    host = SshHost(sshd.address(), nonce=lambda: next(nonces))
    await host.connect()
    forged = b"error\n@@watchd-first 0 end s0 1\n@@watchd-first done\n"
    log = sshd.write_log("forged.log", forged + b"error 2\n")
    await host.ask((BootId(),), limit_s=20)
    (reply,) = await host.ask((FoundingGrep(step="broad", log=log),), limit_s=20)
    assert (reply.data, reply.count) == (b"error\nerror 2\n", 2)
    await host.close()


def test_the_greeting_is_no_sftp_packet_that_a_server_would_wait_for():
    assert int.from_bytes(ssh_exec.GREETING[:4], "big") > 256 * 1024
