"""This machine answers as a host does."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from watchd.errors import LogUnreadableError
from watchd.hosts import commands
from watchd.hosts.local import LocalHost
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

LOG = b"starting\nTraceback (most recent call last):\nAssertionError: x\nerror: gone"


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "it's a server.log"
    path.write_bytes(LOG)
    return str(path)


async def test_every_question_is_answered_in_order(log, tmp_path):
    source = tmp_path / "code.py"
    source.write_text("SECRET = 1\ndef f():\n    assert x\n")
    asked = (
        FoundingGrep(step="broad", log=log), ReadLog(log=log, start=None, length=4), BootId(), Disk(), Processes(),
        ReadSource(path=str(source), line=3, code="assert x"), CommandLine(pid=os.getpid()),
        FoundingGrep(step="assert", log=log, start=5), FoundingGrep(step="broad", log=log + "x"), KernelLog(), Gpus(),
    )  # fmt: skip
    replies = await LocalHost().ask(asked, limit_s=20)
    assert tuple(reply.question for reply in replies) == asked
    assert {reply.via for reply in replies} == {"local"}
    assert all(reply.elapsed_ms > 0 and reply.command == commands.shown(reply.question) for reply in replies)
    broad, newest, boot, disk, listed, code, line, asserts, missing, *machine = replies
    assert (broad.count, broad.data.count(b"\n")) == (3, 3)
    assert (newest.data, newest.offset, newest.size, newest.truncated) == (b"gone", len(LOG) - 4, len(LOG), True)
    assert boot.data == Path("/proc/sys/kernel/random/boot_id").read_bytes()
    assert disk.data.startswith(b"Filesystem")
    assert b"\n\nFilesystem" in disk.data
    assert code.data == b"\ndef f():\n    assert x\n"
    assert line.data == Path("/proc/self/cmdline").read_bytes()
    assert (asserts.count, asserts.outcome) == (1, Outcome.ANSWERED)
    assert missing.outcome is Outcome.REFUSED
    assert {process.pid for process in processes(listed.data)} >= {os.getpid(), os.getppid()}
    assert all(reply.outcome in (Outcome.ANSWERED, Outcome.EMPTY, Outcome.REFUSED) for reply in machine)


async def test_the_process_list_has_the_layout_that_a_host_gives(tmp_path):
    (reply,) = await LocalHost().ask((Processes(),), limit_s=20)
    assert b"\n\nz\n/proc/" in reply.data
    mine = {process.pid: process for process in processes(reply.data)}[os.getpid()]
    assert mine.argv == arguments(Path("/proc/self/cmdline").read_bytes())


async def test_paths_that_begin_with_a_dash_or_lie_here_are_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("-rf").write_bytes(LOG)
    found, read = await LocalHost().ask(
        (FoundingGrep(step="assert", log="-rf"), ReadLog(log="-rf", start=0, length=8)), limit_s=20
    )
    assert (found.count, read.data) == (1, b"starting")


async def test_a_question_that_takes_too_long_is_ended_with_all_that_it_started(tmp_path, monkeypatch):
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\nsleep 3599 | cat\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    boot, gpus, disk = await LocalHost().ask((BootId(), Gpus(), Disk()), limit_s=2)
    assert (boot.outcome, gpus.outcome, disk.outcome) == (Outcome.ANSWERED, Outcome.TIMED_OUT, Outcome.ANSWERED)
    (listed,) = await LocalHost().ask((Processes(),), limit_s=20)
    assert not [p for p in processes(listed.data) if "3599" in p.argv and p.state != "Z"]


async def test_a_cancelled_ask_leaves_nothing(tmp_path, monkeypatch):
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\ntouch started; exec sleep 3598\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    asking = asyncio.create_task(LocalHost().ask((Gpus(),), limit_s=600))
    async with asyncio.timeout(20):
        while not Path("started").exists():
            await asyncio.sleep(0.01)
    asking.cancel()
    await asyncio.wait([asking])
    (listed,) = await LocalHost().ask((Processes(),), limit_s=20)
    assert not [p for p in processes(listed.data) if "3598" in p.argv and p.state != "Z"]


async def test_a_log_is_followed_by_its_handle(log):
    host = LocalHost()
    handle = await host.open_log(log)
    assert (await handle.size(), await handle.read(0, 8), await handle.read(len(LOG), 8)) == (
        len(LOG),
        b"starting",
        b"",
    )
    Path(log).rename(log + ".1")
    assert await handle.read(0, 8) == b"starting"
    assert await host.stat(log) is None
    found = await host.stat(log + ".1")
    assert found is not None
    there = Path(log + ".1").stat()
    assert found.inode == (there.st_dev, there.st_ino)
    assert await host.siblings(log) == (log + ".1",)
    await handle.close()
    await handle.close()
    await host.close()


async def test_what_is_no_regular_file_is_refused_and_blocks_nothing(tmp_path):
    os.mkfifo(tmp_path / "fifo.log")
    for path, words in ((tmp_path / "fifo.log", "a fifo"), (tmp_path, "a directory"), (tmp_path / "no", "no such file"), (Path("/dev/null"), "a device")):  # fmt: skip
        with pytest.raises(LogUnreadableError, match=words):
            await LocalHost().open_log(str(path))
    with pytest.raises(LogUnreadableError):
        await LocalHost().open_log("a\0b")


async def test_source_is_refused_where_the_rule_says_so(tmp_path):
    os.mkfifo(tmp_path / "fifo.py")
    (tmp_path / "link.py").symlink_to("/etc/hostname")
    (tmp_path / "plain.py").write_text("assert x\n")
    for path, line, code, words in (
        ("/etc/x.py", 1, "x", "never read under /etc"),
        (str(tmp_path / "link.py"), 1, "x", "/etc/hostname: not a .py file"),
        (str(tmp_path / "fifo.py"), 1, "x", "a fifo"),
        (str(tmp_path / "none.py"), 1, "x", "no such file"),
        (str(tmp_path / "plain.py"), 1, "assert y", "does not stand"),
    ):
        (reply,) = await LocalHost().ask((ReadSource(path=path, line=line, code=code),), limit_s=20)
        assert (reply.outcome, reply.data) == (Outcome.REFUSED, b"")
        assert words in reply.detail
