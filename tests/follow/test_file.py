"""A log is followed: what comes, where it begins, how it stands, and what is asked of the host for it."""

from __future__ import annotations

import asyncio
import os
import tracemalloc

import pytest

from watchd.errors import HostLostError
from watchd.follow.file import FileFollower
from watchd.follow.stream import PREFIX, RECENT
from watchd.model import Block, LogStanding, LogState


def append(path, data):
    with path.open("ab") as file:
        file.write(data)


# The first look.


async def test_of_a_log_that_was_never_seen_the_last_part_is_told_as_old(log):
    log.path.write_bytes(b"0123456789")
    log.begin(window=4)
    first = [e for e in await log.poll() if isinstance(e, Block)]
    assert [(b.generation, b.offset, b.data, b.old) for b in first] == [(1, 6, b"6789", True)]
    append(log.path, b"new")
    later = [e for e in await log.poll() if isinstance(e, Block)]
    assert [(b.offset, b.data, b.old) for b in later] == [(10, b"new", False)]


async def test_old_ends_exactly_where_the_log_ended_at_the_first_look(log):
    log.path.write_bytes(b"x" * 1000)
    log.begin(turn=300)
    await log.poll()
    append(log.path, b"y" * 1000)
    await log.poll(10)
    assert sum(len(b.data) for b in log.of(Block) if b.old) == 1000
    assert b"".join(b.data for b in log.of(Block) if not b.old) == b"y" * 1000


async def test_an_empty_log_has_nothing_old_in_it(log):
    log.path.write_bytes(b"")
    assert await log.text() == b""
    append(log.path, b"first\n")
    await log.poll()
    assert [(b.generation, b.offset, b.old) for b in log.of(Block)] == [(1, 0, False)]


async def test_a_log_that_appears_later_is_new_from_its_first_byte(log):
    await log.poll(3)
    log.path.write_bytes(b"x" * 3_000_000)
    await log.poll(2)
    assert log.story() == ["missing", "live", (1, 0, b"x" * 3_000_000)]
    assert not any(block.old for block in log.of(Block))


async def test_a_log_that_could_not_be_read_at_first_is_old_when_it_can_be(log):
    log.path.write_bytes(b"old text\n")
    log.host.refused[str(log.path)] = "user watchd may not read it"
    await log.poll(3)
    log.host.refused.clear()
    await log.poll()
    assert log.story() == ["denied", "live", (1, 0, b"old text\n")]
    assert log.of(Block)[0].old


# How it stands.


async def test_a_standing_is_told_when_it_changes_and_says_what_is_the_matter(log):
    await log.poll(3)
    log.path.write_bytes(b"x")
    await log.poll(3)
    log.path.unlink()
    await log.poll(5)
    log.path.write_bytes(b"again")
    log.host.refused[str(log.path)] = "user watchd may not read it: root root -rw-------"
    await log.poll(3)
    log.host.refused.clear()
    await log.poll(5)
    told = [(s.state, s.detail) for s in log.of(LogStanding)]
    assert [state.value for state, _ in told] == ["missing", "live", "missing", "denied", "live"]
    assert str(log.path) in told[0][1]
    assert told[3][1] == "user watchd may not read it: root root -rw-------"


async def test_between_the_steps_of_a_rotation_nothing_is_missing(log):
    log.path.write_bytes(b"x")
    await log.poll()
    log.path.rename(f"{log.path}.1")
    await log.poll()
    log.path.write_bytes(b"y")
    await log.poll(6)
    assert [s.state for s in log.of(LogStanding)] == [LogState.LIVE]


@pytest.mark.parametrize("make", [lambda path: path.mkdir(), lambda path: os.mkfifo(path)], ids=["folder", "fifo"])
async def test_what_is_no_regular_file_is_not_opened(log, make):
    make(log.path)
    await log.poll(2)
    assert log.story() == ["denied"]
    assert log.of(LogStanding)[0].detail == "not a regular file"


async def test_a_dangling_link_is_a_missing_log(log):
    log.path.symlink_to(log.path.with_name("nowhere"))
    await log.poll(3)
    assert log.story() == ["missing"]


async def test_bytes_that_cannot_be_read_are_said_and_come_when_they_can(log):
    log.path.write_bytes(b"one\n")
    await log.poll()
    append(log.path, b"two\n")
    log.host.broken.add(str(log.path))
    await log.poll(3)
    log.host.broken.clear()
    await log.poll(2)
    assert log.of(LogStanding)[1].detail == "Input/output error"
    assert log.story() == ["live", (1, 0, b"one\n"), "denied", "live", (1, 4, b"two\n")]


async def test_any_name_can_be_followed(log):
    log.path = log.path.with_name("-rf 'a b'\n\"$HOME\";é.log")
    log.path.write_bytes(b"odd\n")
    log.begin()
    assert await log.text() == b"odd\n"
    append(log.path, b"more\n")
    assert await log.text() == b"more\n"


# Bounds.


async def test_a_line_of_fifty_megabytes_flows_through_in_bounded_memory(log):
    log.path.write_bytes(b"")
    await log.poll()
    append(log.path, b"x" * 50_000_000)
    tracemalloc.start()
    total = 0
    while True:
        blocks = [e for e in await log.follower.poll(log.now) if isinstance(e, Block)]
        if not blocks:
            break
        taken = sum(len(block.data) for block in blocks)
        assert taken <= log.follower.turn
        assert all(len(block.data) <= 256 * 1024 and block.offset >= total for block in blocks)
        assert set(b"".join(block.data for block in blocks)) == {ord("x")}
        total += taken
        blocks.clear()
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert total == 50_000_000
    assert peak < 4 * log.follower.turn
    assert held < 4 * (RECENT + PREFIX)


async def test_a_poll_takes_no_more_than_its_turn(log):
    log.path.write_bytes(b"")
    log.begin(turn=1000)
    await log.poll()
    append(log.path, b"x" * 2500)
    assert [len(await log.text()) for _ in range(4)] == [1000, 1000, 500, 0]


async def test_a_quiet_poll_costs_two_requests_and_no_bytes(log):
    log.path.write_bytes(b"x" * 5000)
    await log.poll(5)
    before = log.host.requests, log.host.bytes_read
    await log.poll(100)
    assert (log.host.requests - before[0], log.host.bytes_read - before[1]) == (200, 0)


async def test_a_poll_that_finds_a_line_costs_one_request_more(log):
    log.path.write_bytes(b"x" * 5000)
    await log.poll(5)
    append(log.path, b"line\n")
    before = log.host.requests
    await log.poll()
    assert log.host.requests - before == 3


async def test_nothing_is_held_after_close(log):
    log.path.write_bytes(b"x")
    await log.poll()
    log.path.rename(f"{log.path}.1")
    log.path.write_bytes(b"y")
    await log.poll()
    assert log.host.open_handles > 0
    await log.follower.close()
    await log.follower.close()
    assert log.host.open_handles == 0


# Lost hosts.


async def test_a_lost_host_is_said_and_then_it_goes_on_at_the_byte(log):
    log.path.write_bytes(b"one\n")
    await log.poll()
    log.host.lose()
    with pytest.raises(HostLostError):
        await log.poll()
    append(log.path, b"two\n")
    with pytest.raises(HostLostError):
        await log.poll()
    log.host.lost = False
    await log.poll(2)
    assert log.story() == ["live", (1, 0, b"one\ntwo\n")]


async def test_what_was_read_before_the_host_was_lost_in_mid_poll_is_told(log):
    log.path.write_bytes(b"")
    await log.poll()
    append(log.path, b"x" * 1_000_000)
    requests = 0

    def lose_at_third():
        nonlocal requests
        requests += 1
        if requests == 4:
            log.host.lose()

    log.host.on_request = lose_at_third
    told = await log.text()
    assert 0 < len(told) < 1_000_000
    log.host.on_request = lambda: None
    with pytest.raises(HostLostError):
        await log.poll()
    log.host.lost = False
    assert len(told) + len(await log.text(3)) == 1_000_000
    assert b"".join(b.data for b in log.of(Block)) == b"x" * 1_000_000


async def test_a_cancelled_poll_has_told_nothing_and_loses_nothing(log):
    log.path.write_bytes(b"")
    await log.poll()
    append(log.path, b"x" * 1_000_000)
    requests = 0

    def cancel_at_third():
        nonlocal requests
        requests += 1
        if requests == 3:
            raise asyncio.CancelledError

    log.host.on_request = cancel_at_third
    with pytest.raises(asyncio.CancelledError):
        await log.poll()
    log.host.on_request = lambda: None
    assert await log.text(2) == b"x" * 1_000_000
    assert log.host.open_handles == 1


async def test_a_log_that_was_old_before_the_host_was_lost_stays_old(log):
    log.path.write_bytes(b"x" * 1000)
    log.begin(turn=300)
    await log.poll()
    log.host.lose()
    with pytest.raises(HostLostError):
        await log.poll()
    log.host.lost = False
    append(log.path, b"new")
    await log.poll(5)
    assert b"".join(b.data for b in log.of(Block) if b.old) == b"x" * 1000
    assert b"".join(b.data for b in log.of(Block) if not b.old) == b"new"


async def test_two_followers_of_one_log_do_not_disturb_each_other(log):
    log.path.write_bytes(b"x")
    other = FileFollower(log.host, "other", str(log.path), None)
    await log.poll()
    await other.poll(log.now)
    append(log.path, b"y")
    assert await log.text() == b"y"
    assert [e.data for e in await other.poll(log.now) if isinstance(e, Block)] == [b"y"]
