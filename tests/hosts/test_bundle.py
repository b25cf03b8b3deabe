"""A bundle answers what it holds, and nothing outside it."""

from __future__ import annotations

import hashlib
import os

import pytest

from watchd.errors import BundleError
from watchd.hosts import commands
from watchd.hosts.bundle import BundleHost
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

LOG = b"starting\nTraceback\nAssertionError: x\nerror: gone"


@pytest.fixture
def folder(tmp_path):
    bundle = tmp_path / "a case"
    (bundle / "host").mkdir(parents=True)
    (bundle / "source/opt/env/lib/python3.11/site-packages/kit").mkdir(parents=True)
    (bundle / "server.log").write_bytes(LOG)
    (bundle / "host/dmesg.txt").write_bytes(b"[1.0] Out of memory\n")
    (bundle / "host/df.txt").write_bytes(b"Filesystem\n")
    (bundle / "host/nvidia-smi.txt").write_bytes(b"| H100 |\n")
    (bundle / "host/cmdline.txt").write_bytes(b"python -m kit --name 'two words'\n")
    (bundle / "source/opt/env/lib/python3.11/site-packages/kit/args.py").write_bytes(b"assert a\n")
    (bundle / "source/opt/app.py").write_bytes(b"KEY = 1\ndef f():\n    assert b\n")
    return bundle


async def ask(folder, *questions):
    return await BundleHost(folder).ask(questions, limit_s=20)


async def test_what_it_holds_is_answered(folder):
    asked = (
        FoundingGrep(step="broad", log="/data/server.log"), FoundingGrep(step="assert", log="server.log", start=9),
        ReadLog(log="server.log", start=None, length=4), KernelLog(), Disk(), Gpus(), CommandLine(pid=None),
    )  # fmt: skip
    replies = await ask(folder, *asked)
    assert tuple(reply.question for reply in replies) == asked
    assert {reply.via for reply in replies} == {"bundle"}
    assert {reply.outcome for reply in replies} == {Outcome.ANSWERED}
    assert all(reply.command == commands.shown(reply.question) and reply.elapsed_ms > 0 for reply in replies)
    broad, asserts, newest, kernel, disk, gpus, line = replies
    assert (broad.count, broad.data) == (3, b"Traceback\nAssertionError: x\nerror: gone\n")
    assert (asserts.count, asserts.data) == (1, b"Traceback\nAssertionError: x\n")
    assert (newest.data, newest.offset, newest.size) == (b"gone", len(LOG) - 4, len(LOG))
    assert (kernel.data, disk.data, gpus.data) == (b"[1.0] Out of memory\n", b"Filesystem\n", b"| H100 |\n")
    assert line.data == b"python\0-m\0kit\0--name\0two words\0"


async def test_source_is_read_by_the_rule_of_hosts(folder):
    path = "/opt/env/lib/python3.11/site-packages/kit/args.py"
    package, own, unquoted, absent, closed = await ask(
        folder,
        ReadSource(path=path, line=1, code=None),
        ReadSource(path="/opt/app.py", line=3, code="assert b"),
        ReadSource(path="/opt/app.py", line=3, code="assert c"),
        ReadSource(path="/opt/none.py", line=3, code="assert c"),
        ReadSource(path="/etc/x.py", line=1, code="x"),
    )
    assert (package.data, package.size) == (b"assert a\n", 9)
    assert package.detail == f"sha256={hashlib.sha256(b'assert a' + bytes([10])).hexdigest()}"
    assert (own.data, own.truncated) == (b"\ndef f():\n    assert b\n", True)
    assert (unquoted.outcome, absent.outcome, closed.outcome) == (Outcome.REFUSED,) * 3
    assert absent.detail == "not in the bundle"
    assert "never read under /etc" in closed.detail


async def test_what_it_does_not_hold_is_refused(folder):
    for name in ("dmesg.txt", "df.txt", "nvidia-smi.txt", "cmdline.txt"):
        (folder / "host" / name).unlink()
    (folder / "host").rmdir()
    asked = (KernelLog(), Disk(), Gpus(), CommandLine(pid=None), CommandLine(pid=7), Processes(), BootId())
    for reply in await ask(folder, *asked):
        assert (reply.outcome, reply.detail, reply.data) == (Outcome.REFUSED, "not in the bundle", b"")


async def test_no_path_leaves_the_folder(folder, tmp_path):
    (tmp_path / "outside.py").write_bytes(b"assert z\n")
    (folder / "source/opt/link.py").symlink_to(tmp_path / "outside.py")
    (folder / "source/linked").symlink_to(tmp_path)
    (folder / "source/opt/inner.py").symlink_to("app.py")
    os.mkfifo(folder / "source/opt/fifo.py")
    (folder / "host/dmesg.txt").unlink()
    (folder / "host/dmesg.txt").symlink_to("/etc/passwd")
    for path in (
        "/opt/link.py", "/linked/outside.py", "/opt/inner.py", "/opt/fifo.py", "/../../outside.py",
        "/opt/../../../outside.py", "/opt//app.py", "/./opt/app.py",
    ):  # fmt: skip
        for code in ("assert z", "assert b"):
            (reply,) = await ask(folder, ReadSource(path=path, line=1, code=code))
            assert (reply.outcome, reply.data) == (Outcome.REFUSED, b""), path
    (reply,) = await ask(folder, KernelLog())
    assert (reply.outcome, reply.data) == (Outcome.REFUSED, b"")


async def test_large_files_are_bounded(folder):
    (folder / "host/dmesg.txt").write_bytes(b"old\n" * 100_000 + b"new\n")
    (folder / "source/opt/app.py").write_bytes(b"assert b\n" + b"#" * (1 << 20))
    kernel, code = await ask(folder, KernelLog(), ReadSource(path="/opt/app.py", line=1, code="assert b"))
    assert kernel.truncated
    assert len(kernel.data) <= 256 * 1024
    assert kernel.data.endswith(b"old\nnew\n")
    assert (code.outcome, code.detail) == (Outcome.REFUSED, "larger than 1 MiB")


async def test_its_log_can_be_opened_like_any(folder):
    host = BundleHost(str(folder))
    assert host.name == "a case"
    log = await host.open_log("whatever")
    assert (await log.size(), await log.read(0, 8)) == (len(LOG), b"starting")
    found = await host.stat("whatever")
    assert found is not None
    assert found.size == len(LOG)
    assert await host.siblings("whatever") == ()
    await log.close()
    await host.close()


@pytest.mark.parametrize("make", ["nothing", "link", "folder", "file"])
def test_a_folder_without_a_log_of_its_own_is_no_bundle(tmp_path, make):
    bundle = tmp_path / "bundle"
    if make == "file":
        bundle.write_bytes(b"")
    else:
        bundle.mkdir()
    if make == "link":
        (bundle / "server.log").symlink_to("/etc/passwd")
    if make == "folder":
        (bundle / "server.log").mkdir()
    with pytest.raises(BundleError, match=r"no bundle: server\.log"):
        BundleHost(bundle)
    with pytest.raises(BundleError):
        BundleHost(tmp_path / "none")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"python a.py --x=1", b"python\0a.py\0--x=1\0"),
        (b"python 'unbalanced --x", b"python\0'unbalanced\0--x\0"),
        (b"python\0a b\0", b"python\0a b\0"),
        (b"", b""),
    ],
)
async def test_a_launch_command_comes_as_words(folder, text, words):
    (folder / "host/cmdline.txt").write_bytes(text)
    (reply,) = await ask(folder, CommandLine(pid=None))
    assert reply.data == words
