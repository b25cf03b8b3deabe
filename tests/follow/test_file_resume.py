"""A log is taken up from a checkpoint, whatever was done to it while nobody looked."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest

from watchd.model import Block, Checkpoint, Gap, Relaunch

TEXT = b"".join(b"line %05d\n" % number for number in range(500))


def append(path, data):
    with open(path, "ab") as file:
        file.write(data)


def rotated(log, number=1):
    return Path(f"{log.path}.{number}")


async def left_at(log, text=TEXT, offset=None):
    """The checkpoint of a follower that has read this text and was then closed."""
    log.path.write_bytes(text)
    await log.poll(2)
    found = await log.follower.checkpoint(1, len(text) if offset is None else offset)
    await log.follower.close()
    log.events.clear()
    return found


async def test_a_checkpoint_names_the_place_and_what_proves_it(log):
    assert await left_at(log, offset=1100) == Checkpoint(
        target="eagle3",
        path=str(log.path),
        generation=1,
        offset=1100,
        prefix=hashlib.sha256(TEXT[:1024]).hexdigest(),
        prefix_length=1024,
        witness=hashlib.sha256(TEXT[1036:1100]).hexdigest(),
        witness_length=64,
    )


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 1023, 1024, 1025])
async def test_a_log_of_any_size_goes_on_where_it_was_left(log, size):
    log.begin(await left_at(log, TEXT[:size]))
    append(log.path, b"new\n")
    await log.poll(2)
    assert log.story() == ["live", (1, size, b"new\n")]
    assert not log.of(Block)[0].old


async def test_what_was_told_but_had_no_effect_is_told_again_under_the_same_name(log):
    log.begin(await left_at(log, offset=2200))
    await log.poll()
    assert log.story() == ["live", (1, 2200, TEXT[2200:])]


async def test_a_place_far_back_is_proven_by_reading_it_again(log):
    text = TEXT * 20
    checkpoint = await left_at(log, text, offset=100)
    assert checkpoint.witness == hashlib.sha256(text[36:100]).hexdigest()


async def test_a_place_near_the_end_costs_no_request(log):
    log.path.write_bytes(TEXT)
    await log.poll()
    before = log.host.requests
    assert await log.follower.checkpoint(1, len(TEXT) - 1000) is not None
    assert log.host.requests == before


async def test_no_checkpoint_is_given_of_what_was_not_handed_on(log):
    log.path.write_bytes(TEXT)
    log.begin(window=1000)
    assert await log.follower.checkpoint(1, 0) is None
    await log.poll()
    size = len(TEXT)
    for generation, offset in ((0, 0), (1, 0), (1, size - 1001), (1, size + 1), (2, 0)):
        assert await log.follower.checkpoint(generation, offset) is None
    assert await log.follower.checkpoint(1, size - 1000) is not None


async def test_no_checkpoint_is_given_of_a_place_whose_text_is_gone(log):
    text = TEXT * 20
    log.path.write_bytes(text)
    await log.poll()
    log.path.write_bytes(b"y" * len(text))
    assert await log.follower.checkpoint(1, 100) is None


async def test_the_generation_before_can_be_kept_while_its_events_are_taken_in(log):
    log.path.write_bytes(b"one\n")
    await log.poll()
    append(log.path, b"two\n")
    shutil.copyfile(log.path, rotated(log))
    log.path.write_bytes(b"the next run\n")
    told = await log.poll()
    assert {event.generation for event in told if isinstance(event, Block)} == {1, 2}
    for generation, offset in ((1, 0), (1, 4), (1, 8), (2, 0), (2, 4)):
        checkpoint = await log.follower.checkpoint(generation, offset)
        assert checkpoint is not None, (generation, offset)
        assert (checkpoint.generation, checkpoint.offset) == (generation, offset)


# Rotated while nobody looked.


async def test_the_rest_of_a_log_that_was_renamed_meanwhile_comes_first(log):
    checkpoint = await left_at(log)
    append(log.path, b"crash\n")
    log.path.rename(rotated(log))
    log.path.write_bytes(b"new\n")
    log.begin(checkpoint)
    await log.poll(5)
    assert log.story() == ["live", (1, len(TEXT), b"crash\n"), ("relaunch", 2), (2, 0, b"new\n")]
    assert not any(block.old for block in log.of(Block))


@pytest.mark.parametrize("name", [".1", "-20260105", ".2026-01-05_10-00-00", ".old", ".crashed.bak"])
async def test_a_renamed_log_is_found_under_any_name_that_begins_with_its_own(log, name):
    checkpoint = await left_at(log)
    append(log.path, b"crash\n")
    log.path.rename(f"{log.path}{name}")
    log.path.write_bytes(b"new\n")
    log.begin(checkpoint)
    await log.poll(5)
    assert log.story()[1:] == [(1, len(TEXT), b"crash\n"), ("relaunch", 2), (2, 0, b"new\n")]


async def test_all_generations_that_came_and_went_meanwhile_are_read_oldest_first(log):
    checkpoint = await left_at(log)
    append(log.path, b"end\n")
    log.path.rename(rotated(log, 3))
    rotated(log, 2).write_bytes(b"second\n")
    rotated(log, 1).write_bytes(b"third\n")
    log.path.write_bytes(b"fourth\n")
    log.begin(checkpoint)
    await log.poll(6)
    assert log.story() == [
        "live", (1, len(TEXT), b"end\n"), ("relaunch", 2), (2, 0, b"second\n"), ("relaunch", 3), (3, 0, b"third\n"),
        ("relaunch", 4), (4, 0, b"fourth\n"),
    ]  # fmt: skip


async def test_older_generations_than_the_one_that_was_read_are_old_stories(log):
    rotated(log, 1).write_bytes(b"last month's crash\n")
    checkpoint = await left_at(log)
    rotated(log, 1).rename(rotated(log, 2))
    log.path.rename(rotated(log, 1))
    log.path.write_bytes(b"new\n")
    log.begin(checkpoint)
    await log.poll(5)
    assert log.story() == ["live", ("relaunch", 2), (2, 0, b"new\n")]


async def test_while_the_name_is_free_the_renamed_log_is_followed(log):
    checkpoint = await left_at(log)
    log.path.rename(rotated(log))
    log.begin(checkpoint)
    await log.poll(2)
    append(rotated(log), b"still here\n")
    await log.poll(2)
    log.path.write_bytes(b"new\n")
    await log.poll(6)
    assert log.story() == ["missing", (1, len(TEXT), b"still here\n"), "live", ("relaunch", 2), (2, 0, b"new\n")]


# Truncated while nobody looked.


async def test_the_rest_is_read_in_a_copy_that_was_made_before_the_log_was_truncated(log):
    checkpoint = await left_at(log)
    append(log.path, b"crash\n")
    shutil.copyfile(log.path, rotated(log))
    log.path.write_bytes(b"new\n")
    log.begin(checkpoint)
    await log.poll(5)
    assert log.story() == ["live", (1, len(TEXT), b"crash\n"), ("relaunch", 2), (2, 0, b"new\n")]


@pytest.mark.parametrize("size", [10, 10_000], ids=["shorter", "longer"])
async def test_a_log_that_was_truncated_meanwhile_is_new_text_and_a_gap_says_so(log, size):
    checkpoint = await left_at(log)
    log.path.write_bytes(b"y" * size)
    log.begin(checkpoint)
    await log.poll()
    assert log.story() == ["live", ("gap", 1, len(TEXT), None), ("relaunch", 2), (2, 0, b"y" * size)]
    assert not any(block.old for block in log.of(Block))
    assert "while nobody looked" in log.of(Relaunch)[0].reason


async def test_of_a_log_that_is_found_nowhere_the_present_one_is_read_from_a_window_before_its_end(log):
    checkpoint = await left_at(log)
    log.path.write_bytes(b"y" * 10_000)
    log.begin(checkpoint, window=1000)
    await log.poll()
    assert log.story() == [
        "live", ("gap", 1, len(TEXT), None), ("relaunch", 2), ("gap", 2, 0, 9000), (2, 9000, b"y" * 1000),
    ]  # fmt: skip
    assert all(gap.reason for gap in log.of(Gap))


async def test_a_log_that_was_deleted_meanwhile_is_waited_for(log):
    checkpoint = await left_at(log)
    log.path.unlink()
    log.begin(checkpoint)
    await log.poll(3)
    log.path.write_bytes(b"new\n")
    await log.poll()
    assert log.story() == ["missing", "live", ("gap", 1, len(TEXT), None), ("relaunch", 2), (2, 0, b"new\n")]


async def test_a_log_that_has_another_name_for_a_device_is_the_same(log):
    """After a reboot device numbers may differ; only the text counts."""
    checkpoint = await left_at(log)
    shutil.copyfile(log.path, log.path.with_name("copy"))
    log.path.with_name("copy").rename(log.path)
    append(log.path, b"new\n")
    log.begin(checkpoint)
    await log.poll()
    assert log.story() == ["live", (1, len(TEXT), b"new\n")]


async def test_a_log_that_begins_with_the_same_banner_is_told_by_the_bytes_before_the_offset(log):
    banner = b"#" * 2000
    checkpoint = await left_at(log, banner + b"first run\n" * 10)
    log.path.write_bytes(banner + b"second run\n" * 10)
    log.begin(checkpoint)
    await log.poll()
    assert [event.generation for event in log.of(Relaunch)] == [2]


async def test_an_unreadable_neighbour_does_not_hinder(log):
    checkpoint = await left_at(log)
    append(log.path, b"crash\n")
    log.path.rename(rotated(log, 2))
    rotated(log, 1).write_bytes(TEXT + b"?\n")
    log.host.refused[str(rotated(log, 1))] = "may not be read"
    log.path.write_bytes(b"new\n")
    log.begin(checkpoint)
    await log.poll(5)
    assert log.story() == [
        "live", ("gap", 2, 0, None), (1, len(TEXT), b"crash\n"), ("relaunch", 3), (3, 0, b"new\n"),
    ]  # fmt: skip


async def test_where_it_stands_is_known_before_a_byte_was_told(log):
    assert log.follower.position is None
    log.path.write_bytes(b"")
    await log.poll()
    assert log.follower.position == (1, 0)
    assert await log.follower.checkpoint(1, 0) is not None
