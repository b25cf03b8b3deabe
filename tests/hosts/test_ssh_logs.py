"""Logs over SFTP: exact offsets through a held handle, and a reason for what cannot be read."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from tests.support.sshd import wait_until
from watchd.errors import HostLostError, HostRefusedError, LogUnreadableError
from watchd.hosts.ssh import SshHost


@pytest.fixture
async def host(sshd):
    host = SshHost(sshd.address())
    await host.connect()
    yield host
    await host.close()


async def test_a_held_handle_sees_what_is_written_and_stays_with_its_file(host, sshd):
    path = Path(sshd.write_log("grow.log", b"one\n"))
    log = await host.open_log(str(path))
    assert (await log.size(), await log.read(0, 100)) == (4, b"one\n")
    with path.open("ab") as file:
        file.write(b"two\n")
    assert (await log.size(), await log.read(4, 100)) == (8, b"two\n")
    path.rename(path.with_suffix(".log.1"))
    path.write_bytes(b"new file\n")
    with path.with_suffix(".log.1").open("ab") as file:
        file.write(b"late\n")
    assert await log.read(8, 100) == b"late\n"
    os.truncate(path.with_suffix(".log.1"), 2)
    assert (await log.size(), await log.read(0, 100), await log.read(8, 100)) == (2, b"on", b"")
    path.with_suffix(".log.1").unlink()
    assert await log.read(0, 100) == b"on"
    await log.close()
    await log.close()


async def test_a_large_range_comes_back_exactly(host, sshd):
    data = os.urandom(9_000_001)
    log = await host.open_log(sshd.write_log("large.log", data))
    assert await log.read(0, len(data)) == data
    assert await log.read(1234, 7_000_000) == data[1234:7_001_234]
    assert await log.read(len(data) - 5, 1 << 20) == data[-5:]
    assert await log.read(5, 0) == b""
    await log.close()


async def test_a_file_that_shrinks_and_grows_while_it_is_read_gives_no_hole(host, sshd):
    """asyncssh's own parallel reader fills the hole with NUL bytes."""
    path = Path(sshd.write_log("shrink.log", b"x" * 5_000_000))
    log = await host.open_log(str(path))
    for _ in range(20):
        path.write_bytes(b"x" * 5_000_000)
        reading = asyncio.create_task(log.read(0, 5_000_000))
        await asyncio.sleep(0.002)
        os.truncate(path, 300_000)
        os.truncate(path, 300_000)
        assert set(await reading) <= {ord("x")}
    await log.close()


async def test_what_is_no_regular_file_is_refused_without_being_opened(host, sshd):
    folder = sshd.logs
    os.mkfifo(folder / "fifo.log")
    (folder / "folder.log").mkdir()
    (folder / "link-to-fifo.log").symlink_to(folder / "fifo.log")
    for name, words in (
        (folder / "fifo.log", "a fifo"),
        (folder / "link-to-fifo.log", "a fifo"),
        (folder / "folder.log", "a directory"),
        (Path("/dev/null"), "a device"),
        (folder / "missing.log", "no such file"),
        (folder / "folder.log" / "x" / "y", "no such file"),
    ):
        with pytest.raises(LogUnreadableError, match=words) as raised:
            await host.open_log(str(name))
        assert (raised.value.host, raised.value.path) == (host.name, str(name))
    for path in ("", "a\0b"):
        with pytest.raises(LogUnreadableError):
            await host.open_log(path)
    # The session still serves.
    log = await host.open_log(sshd.write_log("after.log", b"fine"))
    assert await log.read(0, 10) == b"fine"
    await log.close()


async def test_a_link_to_a_log_is_followed(host, sshd):
    target = sshd.write_log("run-5.log", b"fifth")
    (sshd.logs / "current.log").symlink_to(target)
    log = await host.open_log(str(sshd.logs / "current.log"))
    assert await log.read(0, 10) == b"fifth"
    await log.close()


async def test_a_denied_log_tells_user_mode_and_owner(host, sshd):
    """Root's own file with 0640 is closed to the test's user; whoever is not root closes one to himself."""
    mode = 0o640 if os.getuid() == 0 else 0
    path = Path(sshd.write_log("secret.log", b"x"))
    path.chmod(mode)
    with pytest.raises(LogUnreadableError) as raised:
        await host.open_log(str(path))
    for words in (sshd.user, f"{mode:04o}", f"uid {os.getuid()}", f"gid {os.getgid()}"):
        assert words in str(raised.value)
    closed = sshd.logs / "closed"
    closed.mkdir()
    (closed / "server.log").write_bytes(b"x")
    closed.chmod(0o700 if os.getuid() == 0 else 0)
    with pytest.raises(LogUnreadableError, match="a folder above it"):
        await host.open_log(str(closed / "server.log"))
    with pytest.raises(LogUnreadableError):
        await host.stat(str(closed / "server.log"))
    closed.chmod(0o700)


async def test_stat_follows_links_and_knows_no_file_as_none(host, sshd):
    path = sshd.write_log("stat.log", b"12345")
    os.utime(path, (1, 1_700_000_000))
    (sshd.logs / "stat-link.log").symlink_to(path)
    for name in (path, str(sshd.logs / "stat-link.log")):
        found = await host.stat(name)
        assert (found.size, found.mtime, found.inode) == (5, 1_700_000_000, None)
    assert await host.stat(str(sshd.logs / "no.log")) is None
    assert await host.stat(path + "/below-a-file") is None


async def test_siblings_are_the_rotated_logs_newest_first(host, sshd):
    folder = sshd.logs / "rotated"
    folder.mkdir()
    for i, name in enumerate(
        ("server.log", "server.log.1", "server.log.2.gz", "server.log-2026", "other.log", "a.server.log")
    ):
        (folder / name).write_bytes(b"x")
        os.utime(folder / name, (i, i))
    found = await host.siblings(str(folder / "server.log"))
    assert [Path(name).name for name in found] == ["server.log-2026", "server.log.2.gz", "server.log.1"]
    for i in range(100):
        (folder / f"server.log.{i + 10}").write_bytes(b"x")
    assert len(await host.siblings(str(folder / "server.log"))) == 50
    assert await host.siblings("/no/such/folder/server.log") == ()


async def test_many_logs_share_one_session(make_sshd):
    sshd = make_sshd(MaxSessions=1)
    host = SshHost(sshd.address())
    await host.connect()
    logs = await asyncio.gather(*(host.open_log(sshd.write_log(f"{i}.log", b"%d" % i)) for i in range(20)))
    assert [await log.read(0, 9) for log in logs] == [b"%d" % i for i in range(20)]
    await host.close()


async def test_handles_end_with_their_connection(make_sshd):
    sshd = make_sshd()
    host = SshHost(sshd.address())
    await host.connect()
    log = await host.open_log(sshd.write_log("server.log", b"x"))
    sshd.kill_connections()
    assert await asyncio.to_thread(wait_until, lambda: not host.connected)
    for operation in (log.size(), log.read(0, 1), host.open_log("/x"), host.stat("/x")):
        with pytest.raises(HostLostError):
            await operation
    await host.connect()
    with pytest.raises(HostLostError):
        await log.read(0, 1)
    await log.close()
    again = await host.open_log(str(sshd.logs / "server.log"))
    assert await again.read(0, 1) == b"x"
    await host.close()


async def test_a_host_without_sftp_says_so(make_sshd):
    sshd = make_sshd(Subsystem=None)
    host = SshHost(sshd.address())
    await host.connect()
    with pytest.raises(HostRefusedError, match="opens no further session"):
        await host.open_log(sshd.write_log("server.log", b"x"))
    await host.close()
