"""A key that cannot run anything still tells what files tell, and says why it does not tell the rest."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from watchd.hosts.ssh import SshHost
from watchd.model import (
    BootId,
    CommandLine,
    Disk,
    FoundingGrep,
    Gpus,
    KernelLog,
    Outcome,
    Processes,
    ReadLog,
    ReadSource,
)

LOG = b"a\nb\nc\nd\ne\nf\nError: \0 x\nAssertionError: y\r\nfine\n" + b"cuda graph: True\n" * 30 + b"Assert"


@pytest.fixture
async def files_only(make_sshd):
    sshd = make_sshd(ForceCommand="internal-sftp -R")
    host = SshHost(sshd.address())
    await host.connect()
    yield host, sshd
    await host.close()


@pytest.fixture
async def shell(sshd):
    host = SshHost(sshd.address())
    await host.connect()
    yield host
    await host.close()


@pytest.mark.parametrize("step", ["broad", "assert"])
@pytest.mark.parametrize("start", [0, 7, 10_000])
async def test_the_founding_commands_are_emulated_with_the_same_answer(files_only, shell, step, start):
    host, sshd = files_only
    question = FoundingGrep(step=step, log=sshd.write_log("server.log", LOG), start=start)
    (emulated,) = await host.ask((question,), limit_s=20)
    (real,) = await shell.ask((question,), limit_s=20)
    assert (emulated.via, real.via) == ("sftp", "exec")
    for key in ("outcome", "command", "count", "data", "truncated"):
        assert getattr(emulated, key) == getattr(real, key), key


async def test_what_only_a_command_can_tell_is_refused_in_the_hosts_own_words(files_only):
    host, _ = files_only
    for _ in range(2):
        for reply in await host.ask((KernelLog(), Disk(), Gpus(), Processes()), limit_s=20):
            assert (reply.outcome, reply.via, reply.data) == (Outcome.REFUSED, "exec", b"")
            assert "runs no commands" in reply.detail
            assert "sftp" in reply.detail


async def test_what_files_tell_is_answered(files_only):
    host, sshd = files_only
    log = sshd.write_log("server.log", LOG)
    source = sshd.write_log("code.py", b"def f():\n    assert x\n")
    newest, code, boot, line = await host.ask(
        (
            ReadLog(log=log, start=None, length=6),
            ReadSource(path=source, line=2, code="assert x"),
            BootId(),
            CommandLine(pid=os.getpid()),
        ),
        limit_s=20,
    )
    assert {reply.outcome for reply in (newest, code, boot, line)} == {Outcome.ANSWERED}
    assert {reply.via for reply in (newest, code, boot, line)} == {"sftp"}
    assert newest.data == b"Assert"
    assert boot.data == Path("/proc/sys/kernel/random/boot_id").read_bytes()
    assert line.data == Path("/proc/self/cmdline").read_bytes()


async def test_a_missing_log_is_refused_and_not_empty(files_only):
    host, sshd = files_only
    (reply,) = await host.ask((FoundingGrep(step="broad", log=str(sshd.logs / "no.log")),), limit_s=20)
    assert (reply.outcome, reply.count) == (Outcome.REFUSED, None)
    assert "no such file" in reply.detail


async def test_a_command_that_the_host_puts_in_place_of_ours_is_no_answer(make_sshd):
    sshd = make_sshd(ForceCommand="/bin/echo This account is currently not available.")
    host = SshHost(sshd.address())
    await host.connect()
    (reply,) = await host.ask((Disk(),), limit_s=20)
    assert reply.outcome is Outcome.REFUSED
    assert "This account is currently not available." in reply.detail
    await host.close()


async def test_a_log_larger_than_the_window_is_searched_at_its_end(files_only):
    host, sshd = files_only
    log = sshd.write_log("big.log", b"")
    with Path(log).open("r+b") as file:
        file.write(b"error at the beginning\n")
        file.truncate(70 * 1024 * 1024)
        file.seek(0, os.SEEK_END)
        file.write(b"\nerror at the end\n")
    (reply,) = await host.ask((FoundingGrep(step="broad", log=log),), limit_s=60)
    assert (reply.outcome, reply.count, reply.data) == (Outcome.ANSWERED, 1, b"error at the end\n")
    assert reply.truncated
    assert "newest 64 MiB" in reply.detail
