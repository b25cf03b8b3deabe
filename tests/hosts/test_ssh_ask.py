"""Every question, asked of a real sshd as an unprivileged user."""

from __future__ import annotations

import asyncio
import hashlib
import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.sshd import wait_until
from watchd.hosts import commands
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
from watchd.parse.processes import arguments, processes

LOG = b"starting\nINFO fine\nTraceback (most recent call last):\nAssertionError: speculative_num_steps\nerror: gone"
LISTENERS = ("Assert",)


@pytest.fixture
async def host(sshd):
    host = SshHost(sshd.address())
    await host.connect()
    yield host
    await host.close()


async def one(host, question, limit_s=20):
    (reply,) = await host.ask((question,), limit_s=limit_s)
    assert reply.question == question
    assert reply.command == commands.shown(question)
    assert reply.elapsed_ms > 0
    return reply


async def test_the_founding_commands_are_answered_with_their_counts(host, sshd):
    log = sshd.write_log("founding.log", LOG)
    broad = await one(host, FoundingGrep(step="broad", log=log))
    assert (broad.outcome, broad.via, broad.count) == (Outcome.ANSWERED, "exec", 3)
    assert broad.data == b"".join(line + b"\n" for line in LOG.split(b"\n")[2:])
    asserts = await one(host, FoundingGrep(step="assert", log=log, start=9))
    assert (asserts.outcome, asserts.count) == (Outcome.ANSWERED, 1)
    assert asserts.data == b"".join(line + b"\n" for line in LOG.split(b"\n")[1:4])


async def test_one_ask_answers_everything_in_order_and_in_one_session(make_sshd):
    sshd = make_sshd(MaxSessions=2)
    host = SshHost(sshd.address())
    await host.connect()
    log = sshd.write_log("server.log", LOG)
    asked = (
        FoundingGrep(step="broad", log=log), ReadLog(log=log, start=0, length=8), KernelLog(), Disk(), BootId(),
        FoundingGrep(step="assert", log=log), ReadLog(log=log, start=None, length=4), Processes(), Gpus(),
    )  # fmt: skip
    replies = await host.ask(asked, limit_s=20)
    assert tuple(reply.question for reply in replies) == asked
    assert [reply.outcome for reply in replies[:8]] == [Outcome.ANSWERED] * 8
    assert sshd.server_log().count("Starting session: command") == 1
    await host.close()


@pytest.mark.parametrize(
    "name", ["a b.log", "it's $(touch x); `y`.log", "line\nbreak.log", "-rf.log", b"\xff\xfe.log".decode("utf-8", "surrogateescape")]
)  # fmt: skip
async def test_a_hostile_path_reaches_the_host_as_one_word(host, sshd, name):
    log = sshd.write_log(name, LOG)
    found, read = await host.ask(
        (FoundingGrep(step="broad", log=log), ReadLog(log=log, start=None, length=4)), limit_s=20
    )
    assert (found.outcome, found.count) == (Outcome.ANSWERED, 3)
    assert read.data == b"gone"


async def test_bytes_of_a_log_come_from_where_they_were_asked(host, sshd):
    data = os.urandom(3_000_000)
    log = sshd.write_log("bytes.log", data)
    middle = await one(host, ReadLog(log=log, start=1_000_001, length=1_500_000))
    assert (middle.outcome, middle.via, middle.offset, middle.size, middle.truncated) == (
        Outcome.ANSWERED, "sftp", 1_000_001, 3_000_000, True,
    )  # fmt: skip
    assert middle.data == data[1_000_001:2_500_001]
    newest = await one(host, ReadLog(log=log, start=None, length=1000))
    assert (newest.offset, newest.data, newest.truncated) == (2_999_000, data[-1000:], True)
    whole = await one(host, ReadLog(log=log, start=0, length=10_000_000))
    assert (whole.offset, whole.data, whole.truncated) == (0, data, False)
    behind = await one(host, ReadLog(log=log, start=3_000_001, length=10))
    assert (behind.outcome, behind.data) == (Outcome.EMPTY, b"")


async def test_the_process_list_holds_the_servers_and_none_of_our_own_sessions(host, sshd):
    log = sshd.write_log("listed.log", LOG)
    _, reply = await host.ask((FoundingGrep(step="broad", log=log), Processes()), limit_s=20)
    found = {process.pid: process for process in processes(reply.data)}
    mine = found[os.getpid()]
    assert mine.argv == arguments(Path("/proc/self/cmdline").read_bytes())
    assert mine.parent == os.getppid()
    assert not any(log in word for process in found.values() for word in process.argv)


async def test_a_command_line_is_read_by_pid(host):
    reply = await one(host, CommandLine(pid=os.getpid()))
    assert reply.data == Path("/proc/self/cmdline").read_bytes()
    gone = await one(host, CommandLine(pid=4_194_305))
    assert (gone.outcome, gone.data) == (Outcome.REFUSED, b"")
    assert "no such process" in gone.detail


async def test_the_machine_says_what_its_programs_print(make_sshd):
    sshd = make_sshd()
    sshd.script("dmesg", "#!/bin/sh\n[ \"$1\" = -T ] && echo '[Mon] Out of memory: Killed process 7'\n")
    sshd.script("nvidia-smi", "#!/bin/sh\necho '| 0  NVIDIA H100 |'\n")
    sshd.script("df", '#!/bin/sh\necho "table of $*"\n')
    host = SshHost(sshd.address())
    await host.connect()
    kernel, gpus, disk, boot = await host.ask((KernelLog(), Gpus(), Disk(), BootId()), limit_s=20)
    assert kernel.data == b"[Mon] Out of memory: Killed process 7\n"
    assert gpus.data == b"| 0  NVIDIA H100 |\n"
    assert disk.data == b"table of -P\n\ntable of -Pi\n"
    assert boot.data == Path("/proc/sys/kernel/random/boot_id").read_bytes()
    await host.close()


async def test_a_refused_kernel_log_falls_back_to_the_journal_and_then_says_why(make_sshd):
    sshd = make_sshd()
    sshd.script("dmesg", "#!/bin/sh\necho 'dmesg: read kernel buffer failed' >&2; exit 1\n")
    sshd.script("journalctl", '#!/bin/sh\necho "journal of $*"\n')
    host = SshHost(sshd.address())
    await host.connect()
    assert (await one(host, KernelLog())).data == b"journal of -k -n 2000 --no-pager\n"
    sshd.script(
        "journalctl", "#!/bin/sh\necho 'No journal files were opened due to insufficient permissions.' >&2; exit 1\n"
    )
    refused = await one(host, KernelLog())
    assert refused.outcome is Outcome.REFUSED
    assert "insufficient permissions" in refused.detail
    await host.close()


async def test_of_a_long_kernel_log_the_newest_part_is_kept(make_sshd):
    sshd = make_sshd()
    sshd.script("dmesg", "#!/bin/sh\nseq 1 200000\n")
    host = SshHost(sshd.address())
    await host.connect()
    reply = await one(host, KernelLog())
    assert reply.truncated
    assert reply.data.endswith(b"\n199999\n200000\n")
    assert len(reply.data) <= 256 * 1024
    await host.close()


async def test_a_missing_and_a_denied_log_are_refused_with_different_words(host, sshd):
    closed = sshd.write_log("closed.log", LOG)
    Path(closed).chmod(0o600)
    os.chown(closed, 0, 0) if os.getuid() == 0 else Path(closed).chmod(0)
    for question in (FoundingGrep(step="broad", log=closed), FoundingGrep(step="broad", log=closed, start=5)):
        denied = await one(host, question)
        assert denied.outcome is Outcome.REFUSED
        assert "Permission denied" in denied.detail
        missing = await one(host, replace(question, log=closed + ".not"))
        assert missing.outcome is Outcome.REFUSED
        assert "No such file" in missing.detail
    denied = await one(host, ReadLog(log=closed, start=None, length=10))
    assert denied.outcome is Outcome.REFUSED
    assert sshd.user in denied.detail


async def test_a_source_file_outside_the_packages_gives_the_function_and_not_its_secrets(host, sshd):
    text = b'KEY = "hunter2"\n\n\ndef check(args):\n    assert args.steps, "no steps"\n\n\nTOKEN = "s3cret"\n'
    path = sshd.write_log("args.py", text)
    reply = await one(host, ReadSource(path=path, line=6, code='assert args.steps, "no steps"'))
    assert (reply.outcome, reply.via, reply.size) == (Outcome.ANSWERED, "sftp", len(text))
    assert reply.data == b'\n\n\ndef check(args):\n    assert args.steps, "no steps"\n\n\n\n'
    assert reply.detail == f"sha256={hashlib.sha256(text).hexdigest()}"
    assert reply.truncated


async def test_a_source_file_below_a_root_comes_whole(host, sshd):
    path = sshd.write_log("whole.py", b"A = 1\n")
    reply = await one(host, ReadSource(path=path, line=1, code=None, roots=(str(sshd.logs),)))
    assert (reply.outcome, reply.data, reply.truncated) == (Outcome.ANSWERED, b"A = 1\n", False)


async def test_source_is_refused_where_the_rule_says_so(host, sshd):
    outside = sshd.folder / "outside.py"
    outside.write_bytes(b"assert x\n")
    (sshd.home / ".config").mkdir(exist_ok=True)
    (sshd.home / ".config" / "secret.py").write_bytes(b"assert x\n")
    os.mkfifo(sshd.logs / "fifo.py")
    (sshd.logs / "folder.py").mkdir()
    (sshd.logs / "link.py").symlink_to("/etc/passwd")
    (sshd.logs / "sneaky.py").symlink_to(sshd.home / ".config" / "secret.py")
    (sshd.logs / "big.py").write_bytes(b"assert x\n" + b"#" * 1024 * 1024)
    quoted = ReadSource(path=str(outside), line=1, code="assert x")
    for question, words in (
        (replace(quoted, path="/etc/passwd"), "not a .py file"),
        (replace(quoted, path="/etc/secret.py"), "never read under /etc"),
        (replace(quoted, path="/proc/self/environ.py"), "never read under /proc"),
        (replace(quoted, path="outside.py"), "not an absolute path"),
        (replace(quoted, path=str(sshd.logs / "fifo.py")), "a fifo"),
        (replace(quoted, path=str(sshd.logs / "folder.py")), "a directory"),
        (replace(quoted, path=str(sshd.logs / "link.py")), "/etc/passwd: not a .py file"),
        (replace(quoted, path=str(sshd.logs / "sneaky.py")), "dot folder"),
        (replace(quoted, path=str(sshd.logs / "big.py")), "larger than 1 MiB"),
        (replace(quoted, path=str(sshd.logs / "none.py")), "no such file"),
        (replace(quoted, code="assert y"), "does not stand within 3 lines"),
        (replace(quoted, line=9), "does not stand within 3 lines"),
        (replace(quoted, code=None), "quotes no line"),
        (replace(quoted, roots=(str(sshd.logs),)), "outside the configured source roots"),
        (replace(quoted, path=str(outside) + "\0.py"), "no path"),
    ):
        reply = await one(host, question) if "\0" not in question.path else (await host.ask((question,), limit_s=20))[0]
        assert (reply.outcome, reply.data) == (Outcome.REFUSED, b""), question
        assert words in reply.detail
    # None of it has blocked anything.
    assert (await one(host, quoted)).outcome is Outcome.ANSWERED


async def test_a_shell_that_prints_at_start_up_changes_no_answer(make_sshd):
    sshd = make_sshd(rc="echo 'Traceback: conda'; echo warning >&2; printf no-newline")
    host = SshHost(sshd.address())
    await host.connect()
    log = sshd.write_log("server.log", LOG)
    reply = await one(host, FoundingGrep(step="assert", log=log))
    assert (reply.outcome, reply.count, reply.detail) == (Outcome.ANSWERED, 1, "")
    assert reply.data.startswith(b"starting\n")
    await host.close()


async def test_a_question_that_takes_too_long_is_timed_out_and_the_others_are_answered(make_sshd):
    sshd = make_sshd()
    sshd.script("nvidia-smi", "#!/bin/sh\nexec sleep 3600\n")
    host = SshHost(sshd.address())
    await host.connect()
    boot, gpus, disk = await host.ask((BootId(), Gpus(), Disk()), limit_s=3)
    assert (boot.outcome, disk.outcome) == (Outcome.ANSWERED, Outcome.ANSWERED)
    assert gpus.outcome is Outcome.TIMED_OUT
    assert "3 s" in gpus.detail
    assert host.connected
    assert await asyncio.to_thread(wait_until, lambda: sshd.left_over() == ())
    assert (await one(host, BootId())).outcome is Outcome.ANSWERED
    await host.close()


async def test_nothing_is_left_on_the_host_when_the_asker_is_cancelled(make_sshd):
    sshd = make_sshd(MaxSessions=2)
    sshd.script("nvidia-smi", "#!/bin/sh\nsleep 3600 | cat; sleep 3600\n")
    host = SshHost(sshd.address())
    await host.connect()
    for _ in range(3):
        asking = asyncio.create_task(host.ask((Gpus(),), limit_s=600))
        assert await asyncio.to_thread(wait_until, lambda: any("sleep 3600" in line for line in sshd.left_over()))
        asking.cancel()
        await asyncio.wait([asking])
        assert await asyncio.to_thread(wait_until, lambda: sshd.left_over() == ())
    assert (await one(host, BootId())).outcome is Outcome.ANSWERED
    await host.close()


async def test_nothing_is_left_on_the_host_when_the_connection_is_given_up(make_sshd):
    sshd = make_sshd()
    sshd.script("nvidia-smi", "#!/bin/sh\nexec sleep 3600\n")
    host = SshHost(sshd.address())
    await host.connect()
    asking = asyncio.create_task(host.ask((Gpus(),), limit_s=600))
    assert await asyncio.to_thread(wait_until, lambda: any("sleep 3600" in line for line in sshd.left_over()))
    await host.close()
    (reply,) = await asking
    assert reply.outcome is Outcome.LOST
    assert await asyncio.to_thread(wait_until, lambda: sshd.left_over() == ())


async def test_a_start_up_file_that_blocks_is_named(make_sshd, monkeypatch):
    monkeypatch.setattr("watchd.hosts.ssh_exec.FIRST_FRAME_S", 1.0)
    sshd = make_sshd(rc="sleep 3600")
    host = SshHost(sshd.address())
    await host.connect()
    reply = await one(host, BootId())
    assert reply.outcome is Outcome.TIMED_OUT
    assert "start-up files" in reply.detail
    await host.close()
