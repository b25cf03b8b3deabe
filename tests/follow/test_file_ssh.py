"""The follower over a real sshd: as an unprivileged user, by SFTP alone."""

from __future__ import annotations

import asyncio
import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from watchd.errors import HostError
from watchd.follow.file import FileFollower
from watchd.hosts.ssh import SshHost
from watchd.model import Block, Gap, LogStanding, LogState, Relaunch

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


class Followed:
    """A log on the host and its follower; polls are a second apart, as far as it knows."""

    def __init__(self, host, path):
        self.host = host
        self.path = Path(path)
        self.follower = FileFollower(host, "eagle3", path, None)
        self.now = NOON
        self.events = []

    async def poll(self, polls=1):
        for _ in range(polls):
            self.now += timedelta(seconds=1)
            self.events += await self.follower.poll(self.now)

    def append(self, data):
        with self.path.open("ab") as file:
            file.write(data)

    def told(self, generation):
        return b"".join(e.data for e in self.events if isinstance(e, Block) and e.generation == generation)

    def of(self, kind):
        return [event for event in self.events if isinstance(event, kind)]


@pytest.fixture
async def host(sshd):
    host = SshHost(sshd.address())
    await host.connect()
    yield host
    await host.close()


async def test_every_byte_comes_once_across_rename_truncation_and_copy(host, sshd):
    log = Followed(host, sshd.write_log("follow-all.log", b"old\n"))
    await log.poll()
    log.append(b"x" * 6_000_000)
    await log.poll(3)
    log.append(b"rest\n")
    log.path.rename(f"{log.path}.1")
    log.path.write_bytes(b"second file\n")
    await log.poll(6)
    log.append(b"unread\n")
    shutil.copyfile(log.path, f"{log.path}.2")
    log.path.write_bytes(b"third\n")
    await log.poll(3)
    log.path.write_bytes(b"relaunched, and longer than before\n")
    await log.poll(3)
    assert log.told(1) == b"old\n" + b"x" * 6_000_000 + b"rest\n"
    assert log.told(2) == b"second file\nunread\n"
    assert log.told(3) == b"third\n"
    assert log.told(4) == b"relaunched, and longer than before\n"
    assert [(g.generation, g.start, g.end) for g in log.of(Gap)] == [(3, 6, None)]


async def test_a_hole_of_forty_gigabytes_takes_no_time(host, sshd):
    log = Followed(host, sshd.write_log("follow-hole.log", b"one\n"))
    await log.poll()
    size = 40 * 1024**3
    os.truncate(log.path, 0)
    with log.path.open("r+b") as file:
        file.seek(size)
        file.write(b"after the hole\n")
    async with asyncio.timeout(20):
        await log.poll(3)
    assert log.told(2) == b"after the hole\n"
    assert (2, 0, size) in [(g.generation, g.start, g.end) for g in log.of(Gap)]
    log.path.unlink()


async def test_a_log_that_the_user_may_not_read_is_denied_with_the_reason_and_read_once_it_may(host, sshd):
    log = Followed(host, sshd.write_log("follow-denied.log", b"secret\n"))
    log.path.chmod(0o000)
    shutil.chown(log.path, os.getuid())
    await log.poll(3)
    assert [s.state for s in log.of(LogStanding)] == [LogState.DENIED]
    assert sshd.user in log.of(LogStanding)[0].detail
    log.path.chmod(0o644)
    await log.poll(2)
    assert log.told(1) == b"secret\n"


async def test_a_fifo_is_said_to_be_one_and_blocks_nothing(host, sshd):
    path = sshd.logs / "follow.fifo"
    os.mkfifo(path)
    log = Followed(host, str(path))
    async with asyncio.timeout(20):
        await log.poll(2)
    assert [s.state for s in log.of(LogStanding)] == [LogState.DENIED]
    assert "fifo" in log.of(LogStanding)[0].detail or "pipe" in log.of(LogStanding)[0].detail


async def still_there(log):
    try:
        await log.poll()
    except HostError:
        return False
    return True


async def test_after_a_lost_connection_it_goes_on_at_the_byte(make_sshd):
    sshd = make_sshd()
    host = SshHost(sshd.address())
    await host.connect()
    log = Followed(host, sshd.write_log("server.log", b"before\n"))
    await log.poll()
    sshd.kill_connections()
    log.append(b"meanwhile\n")
    async with asyncio.timeout(30):
        while await still_there(log):
            await asyncio.sleep(0.01)
    told = log.told(1)
    await host.connect()
    log.append(b"after\n")
    await log.poll(2)
    assert log.told(1) == b"before\nmeanwhile\nafter\n"
    assert told in (b"before\n", b"before\nmeanwhile\n")
    await host.close()


async def test_a_log_that_was_rotated_while_the_connection_was_lost_is_read_to_its_end_first(make_sshd):
    sshd = make_sshd()
    host = SshHost(sshd.address())
    await host.connect()
    log = Followed(host, sshd.write_log("server.log", b"before\n"))
    await log.poll()
    await host.close()
    log.append(b"Traceback: the last words\n")
    log.path.rename(f"{log.path}.1")
    log.path.write_bytes(b"the next run\n")
    with pytest.raises(HostError):
        await log.poll()
    await host.connect()
    await log.poll(5)
    assert log.told(1) == b"before\nTraceback: the last words\n"
    assert log.told(2) == b"the next run\n"
    assert [r.generation for r in log.of(Relaunch)] == [2]
    await host.close()


async def test_a_checkpoint_serves_another_process_over_another_connection(sshd, host):
    log = Followed(host, sshd.write_log("follow-again.log", b"one\ntwo\n"))
    await log.poll()
    checkpoint = await log.follower.checkpoint(1, 4)
    await log.follower.close()
    again = SshHost(sshd.address())
    await again.connect()
    follower = FileFollower(again, "eagle3", str(log.path), checkpoint)
    blocks = [e for e in await follower.poll(NOON) if isinstance(e, Block)]
    assert [(b.generation, b.offset, b.data, b.old) for b in blocks] == [(1, 4, b"two\n", False)]
    await again.close()


async def test_a_key_that_can_only_read_files_will_do(make_sshd):
    sshd = make_sshd(ForceCommand="internal-sftp -R")
    host = SshHost(sshd.address())
    await host.connect()
    log = Followed(host, sshd.write_log("server.log", b"one\n"))
    await log.poll()
    log.append(b"two\n")
    log.path.rename(f"{log.path}.1")
    log.path.write_bytes(b"another\n")
    await log.poll(5)
    assert (log.told(1), log.told(2)) == (b"one\ntwo\n", b"another\n")
    await host.close()
