"""A log that is renamed, truncated, copied, deleted or replaced while it is followed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from watchd.model import Block, Gap, Relaunch


def append(path, data):
    with open(path, "ab") as file:
        file.write(data)


def at(path, second):
    """The file was last written in this second."""
    os.utime(path, (1_700_000_000 + second, 1_700_000_000 + second))


def rotated(log, number=1):
    return Path(f"{log.path}.{number}")


def told(log, generation):
    return b"".join(block.data for block in log.of(Block) if block.generation == generation)


# Renamed.


async def test_the_rest_of_a_renamed_log_comes_before_its_successor(log):
    log.path.write_bytes(b"one\n")
    await log.poll()
    append(log.path, b"two\n")
    log.path.rename(rotated(log))
    append(rotated(log), b"late\n")
    log.path.write_bytes(b"new\n")
    await log.poll(6)
    assert log.story() == ["live", (1, 0, b"one\ntwo\nlate\n"), ("relaunch", 2), (2, 0, b"new\n")]


async def test_a_quiet_renamed_log_gives_way_after_two_polls(log):
    log.path.write_bytes(b"one\n")
    await log.poll()
    log.path.rename(rotated(log))
    log.path.write_bytes(b"newer\n")
    assert await log.text(2) == b""
    assert await log.text(1) == b"newer\n"


async def test_a_server_that_goes_on_in_the_renamed_file_is_followed_there_while_the_new_one_is_empty(log):
    """logrotate's `create` under a server that never opens its log again."""
    log.path.write_bytes(b"begin\n")
    await log.poll()
    log.path.rename(rotated(log))
    log.path.write_bytes(b"")
    for number in range(30):
        await log.poll(20)
        append(rotated(log), b"line %d\n" % number)
    await log.poll()
    assert told(log, 1).endswith(b"line 29\n")
    assert not log.of(Relaunch)
    append(log.path, b"another server\n")
    await log.poll(6)
    assert told(log, 2) == b"another server\n"


async def test_when_both_grow_the_one_with_the_name_counts_after_ten_seconds(log):
    log.path.write_bytes(b"begin\n")
    await log.poll()
    log.path.rename(rotated(log))
    log.path.write_bytes(b"")
    for _ in range(14):
        append(log.path, b"new\n")
        append(rotated(log), b"old\n")
        await log.poll()
    gap = log.of(Gap)[0]
    assert (gap.generation, gap.start, gap.end) == (1, len(told(log, 1)), None)
    assert "still written to" in gap.reason
    assert told(log, 2) == b"new\n" * 14


async def test_what_is_written_to_a_finished_file_is_told_as_a_gap_with_its_bounds(log):
    log.path.write_bytes(b"one\n")
    await log.poll()
    log.path.rename(rotated(log))
    log.path.write_bytes(b"new\n")
    await log.poll(4)
    append(rotated(log), b"late\n")
    await log.poll(12)
    gap = log.of(Gap)[0]
    assert (gap.generation, gap.start, gap.end) == (1, 4, 9)
    assert log.host.open_handles == 1


async def test_generations_that_came_and_went_between_two_polls_are_read_in_their_order(log):
    log.path.write_bytes(b"a\n")
    await log.poll()
    for text in (b"b\n", b"c\n", b"d\n"):
        for number in (2, 1):
            if rotated(log, number).exists():
                rotated(log, number).rename(rotated(log, number + 1))
        log.path.rename(rotated(log))
        log.path.write_bytes(text)
    await log.poll(8)
    assert log.story() == [
        "live", (1, 0, b"a\n"), ("relaunch", 2), (2, 0, b"b\n"), ("relaunch", 3), (3, 0, b"c\n"), ("relaunch", 4),
        (4, 0, b"d\n"),
    ]  # fmt: skip


async def test_a_log_of_the_same_size_in_the_place_of_a_renamed_one_is_another(log):
    log.path.write_bytes(b"launch 1 failed\n")
    at(log.path, 1)
    await log.poll()
    log.path.rename(rotated(log))
    log.path.write_bytes(b"launch 2 failed\n")
    at(log.path, 2)
    await log.poll(6)
    assert told(log, 2) == b"launch 2 failed\n"


async def test_a_renamed_log_and_a_successor_with_the_very_same_text_are_two(log):
    log.path.write_bytes(b"usage: server --model\n")
    at(log.path, 1)
    await log.poll()
    log.path.rename(rotated(log))
    log.path.write_bytes(b"usage: server --model\n")
    at(log.path, 2)
    await log.poll(6)
    assert told(log, 1) == told(log, 2) == b"usage: server --model\n"


async def test_a_link_that_is_set_to_another_file_is_a_rotation(log):
    first, second = (log.path.with_name(f"run-{number}.log") for number in (1, 2))
    first.write_bytes(b"run 1\n")
    log.path.symlink_to(first)
    await log.poll()
    second.write_bytes(b"run 2\n")
    log.path.with_name("link").symlink_to(second)
    log.path.with_name("link").replace(log.path)
    append(first, b"end\n")
    await log.poll(6)
    assert log.story() == ["live", (1, 0, b"run 1\nend\n"), ("relaunch", 2), (2, 0, b"run 2\n")]


async def test_a_file_that_was_read_is_not_read_again_under_whatever_name(log):
    log.path.write_bytes(b"one\n")
    await log.poll()
    log.path.rename(rotated(log, 1))
    log.path.write_bytes(b"second\n")
    await log.poll(4)
    log.path.rename(rotated(log, 2))
    log.path.write_bytes(b"the third\n")
    await log.poll(4)
    assert log.story() == [
        "live", (1, 0, b"one\n"), ("relaunch", 2), (2, 0, b"second\n"), ("relaunch", 3), (3, 0, b"the third\n"),
    ]  # fmt: skip


# Truncated.


async def test_a_relaunch_over_the_log_begins_a_generation_and_says_what_may_be_lost(log):
    log.path.write_bytes(b"the first run\n")
    await log.poll()
    log.path.write_bytes(b"second\n")
    await log.poll(2)
    assert log.story() == [
        "live", (1, 0, b"the first run\n"), ("gap", 1, 14, None), ("relaunch", 2), (2, 0, b"second\n"),
    ]  # fmt: skip
    assert "truncated in place" in log.of(Relaunch)[0].reason


async def test_a_truncated_log_that_is_still_empty_is_believed_at_the_second_look(log):
    log.path.write_bytes(b"the first run\n")
    await log.poll()
    log.path.write_bytes(b"")
    await log.poll()
    assert not log.of(Relaunch)
    await log.poll()
    assert len(log.of(Relaunch)) == 1


async def test_a_size_that_comes_back_was_no_truncation(log):
    """A stale attribute cache of a network file system."""
    text = b"the first run\n"
    log.path.write_bytes(text)
    await log.poll()
    os.truncate(log.path, 5)
    await log.poll()
    log.path.write_bytes(text + b"more\n")
    await log.poll(2)
    assert log.story() == ["live", (1, 0, text + b"more\n")]


async def test_a_log_that_was_truncated_and_regrown_beyond_the_offset_is_another(log):
    log.path.write_bytes(b"x" * 100)
    await log.poll()
    log.path.write_bytes(b"y" * 500)
    await log.poll(2)
    assert told(log, 2) == b"y" * 500


async def test_a_log_that_was_truncated_and_regrown_to_the_same_size_is_another(log):
    log.path.write_bytes(b"x" * 100)
    at(log.path, 1)
    await log.poll()
    log.path.write_bytes(b"y" * 100)
    at(log.path, 2)
    await log.poll(2)
    assert told(log, 2) == b"y" * 100


async def test_the_same_within_one_second_is_found_when_the_log_has_been_quiet(log):
    log.path.write_bytes(b"x" * 100)
    at(log.path, 1)
    await log.poll()
    log.path.write_bytes(b"y" * 100)
    at(log.path, 1)
    await log.poll(4)
    assert told(log, 2) == b"y" * 100


async def test_touching_a_log_tells_nothing(log):
    log.path.write_bytes(b"text\n")
    await log.poll()
    for second in range(5):
        at(log.path, second)
        await log.poll(2)
    assert log.story() == ["live", (1, 0, b"text\n")]


async def test_a_log_that_is_truncated_every_second_is_seen_each_time(log):
    log.path.write_bytes(b"")
    await log.poll()
    for number in range(20):
        log.path.write_bytes(b"content %d\n" % number)
        at(log.path, number)
        await log.poll()
    assert b"".join(b.data for b in log.of(Block)) == b"".join(b"content %d\n" % number for number in range(20))
    assert [block.generation for block in log.of(Block)] == list(range(1, 21))


# Copied and truncated.


async def test_what_was_not_read_before_the_log_was_copied_and_truncated_is_read_in_the_copy(log):
    log.path.write_bytes(b"one\n")
    await log.poll()
    append(log.path, b"two\n")
    shutil.copyfile(log.path, rotated(log))
    log.path.write_bytes(b"new\n")
    await log.poll(3)
    assert log.story() == ["live", (1, 0, b"one\ntwo\n"), ("relaunch", 2), (2, 0, b"new\n")]


async def test_a_copy_of_the_log_beside_it_is_not_told_again(log):
    log.path.write_bytes(b"one\n")
    await log.poll()
    for name in (".1", "-20260105", ".bak"):
        shutil.copyfile(log.path, f"{log.path}{name}")
        await log.poll(4)
    assert log.story() == ["live", (1, 0, b"one\n")]


async def test_a_hole_of_forty_gigabytes_is_skipped_and_told(log):
    log.path.write_bytes(b"one\n")
    await log.poll()
    size = 40 * 1024**3
    os.truncate(log.path, 0)
    with log.path.open("r+b") as file:
        file.seek(size)
        file.write(b"after the hole\n")
    before = log.host.bytes_read
    await log.poll(3)
    assert log.story()[-2:] == [("gap", 2, 0, size), (2, size, b"after the hole\n")]
    assert log.host.bytes_read - before < 1_000_000
    append(log.path, b"and on\n")
    assert await log.text() == b"and on\n"


async def test_a_small_hole_is_told_as_well(log):
    log.path.write_bytes(b"\0\0\0text\n")
    await log.poll()
    assert log.story() == ["live", ("gap", 1, 0, 3), (1, 3, b"text\n")]


async def test_nuls_within_a_log_are_its_bytes(log):
    log.path.write_bytes(b"text\n")
    await log.poll()
    append(log.path, b"\0" * 10_000 + b"more\n")
    assert await log.text() == b"\0" * 10_000 + b"more\n"


# Deleted and replaced.


async def test_a_deleted_log_is_read_to_its_end_and_its_name_waited_for(log):
    log.path.write_bytes(b"one\n")
    with log.path.open("ab") as writer:
        await log.poll()
        log.path.unlink()
        writer.write(b"last words\n")
        writer.flush()
        await log.poll(3)
    log.path.write_bytes(b"new\n")
    await log.poll(5)
    assert log.story() == [
        "live", (1, 0, b"one\nlast words\n"), "missing", "live", ("relaunch", 2), (2, 0, b"new\n"),
    ]  # fmt: skip


async def test_a_new_file_under_the_old_ones_inode_is_another(log):
    """On ext4 the number of a deleted file is given to the next one."""
    log.path.write_bytes(b"the first run\n")
    await log.poll()
    await log.follower.close()
    log.path.unlink()
    log.path.write_bytes(b"second\n")
    await log.poll(2)
    assert told(log, 2) == b"second\n"


async def test_a_copy_that_takes_the_logs_place_is_the_same_log(log):
    log.path.write_bytes(b"one\n")
    await log.poll()
    other = log.path.with_name("other")
    other.write_bytes(b"one\ntwo\n")
    other.replace(log.path)
    await log.poll(2)
    append(log.path, b"three\n")
    await log.poll(2)
    assert log.story() == ["live", (1, 0, b"one\ntwo\nthree\n")]


async def test_an_empty_log_gives_way_to_another_file_without_delay(log):
    log.path.write_bytes(b"")
    await log.poll()
    log.path.rename(rotated(log))
    log.path.write_bytes(b"new\n")
    await log.poll(2)
    assert b"".join(block.data for block in log.of(Block)) == b"new\n"


async def test_generations_are_never_used_again(log):
    for number in range(1, 8):
        log.path.write_bytes(b"run %d, of its own length %s\n" % (number, b"." * number))
        await log.poll(2)
        if number % 2:
            log.path.rename(rotated(log, number))
            log.path.write_bytes(b"")
        await log.poll(5)
    generations = [event.generation for event in log.of(Relaunch)]
    assert generations == sorted(set(generations))
