"""Keeping work alive: when it is begun again, what is said, and what must not be survived."""

from __future__ import annotations

import asyncio

import pytest
import structlog

from tests.support.clock import Clock
from watchd import supervise
from watchd.errors import (
    HostKeyChangedError,
    HostLostError,
    HostRefusedError,
    HostUnreachableError,
    SettingsError,
    StoreError,
)

LOST = HostLostError("gpu-01", "the connection broke")


class Kept:
    """Work under supervision in virtual time: `ends` are how its runs end, (seconds after the start, exception)."""

    def __init__(self, *ends, random=lambda: 1.0, on_down=None):
        self.clock = Clock()
        self.ends = list(ends)
        self.begun = []
        self.said = []
        self.heard = []
        self.task = asyncio.create_task(
            supervise.keep(
                "eagle3", self.work, sleep=self.clock.sleep, random=random, log=self, on_down=on_down or self.hear,
                clock=self.clock.monotonic,
            )
        )  # fmt: skip

    async def work(self):
        self.begun.append(self.clock.seconds)
        seconds, error = self.ends.pop(0) if len(self.ends) > 1 else self.ends[0]
        if seconds:
            await self.clock.sleep(seconds)
        if error is not None:
            raise error

    async def hear(self, error):
        self.heard.append(str(error))

    def warning(self, event, **fields):
        self.said.append((event, fields["error"]))

    def error(self, event, **fields):
        self.said.append((event, fields["exc_info"]))

    async def end(self):
        self.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await self.task


async def test_the_pause_doubles_from_one_second_to_a_minute():
    kept = Kept((0, LOST))
    await kept.clock.advance(183)
    assert kept.begun == [0, 1, 3, 7, 15, 31, 63, 123, 183]
    await kept.end()


async def test_the_pause_is_a_random_part_of_that():
    parts = iter((0.5, 0.0, 0.25, 1.0))
    kept = Kept((0, LOST), random=lambda: next(parts))
    await kept.clock.advance(9.4)
    assert kept.begun == [0, 0.5, 0.5, 1.5]
    await kept.clock.advance(0.1)
    assert kept.begun[-1] == 9.5
    kept.task.cancel()
    await asyncio.gather(kept.task, return_exceptions=True)


@pytest.mark.parametrize(
    "error",
    [HostRefusedError("gpu-01", "key refused"), HostKeyChangedError("gpu-01", "changed", "SHA256:x")],
)
async def test_who_says_no_is_asked_every_five_minutes(error):
    kept = Kept((0, error))
    await kept.clock.advance(3000)
    assert kept.begun[:10] == [0, 1, 3, 7, 15, 31, 63, 127, 255, 511]
    assert kept.begun[10:13] == [811, 1111, 1411]
    await kept.end()


async def test_a_healthy_stretch_begins_the_pauses_anew():
    kept = Kept((0, LOST), (0, LOST), (0, LOST), (59, LOST), (60, LOST), (0, LOST))
    await kept.clock.advance(7 + 59 + 8 + 60 + 1 + 2)
    assert kept.begun == [0, 1, 3, 7, 74, 135, 137]
    await kept.end()


async def test_work_that_ends_by_itself_is_begun_again():
    kept = Kept((5, None))
    await kept.clock.advance(6)
    assert kept.begun == [0, 6]
    assert kept.said == [("restarting", "it ended by itself")]
    await kept.end()


async def test_a_reason_is_said_once_and_again_when_it_changes():
    other = HostUnreachableError("gpu-01", "no route")
    kept = Kept((0, LOST), (0, LOST), (0, other), (0, other), (0, LOST), (0, LOST))
    await kept.clock.advance(63)
    assert [text for _, text in kept.said] == [str(LOST), str(other), str(LOST)]
    assert len(kept.heard) == 7
    await kept.end()


async def test_after_a_healthy_stretch_the_same_reason_is_news():
    kept = Kept((0, LOST), (100, LOST))
    await kept.clock.advance(101)
    assert len(kept.said) == 2
    await kept.end()


async def test_a_programming_error_is_said_with_its_traceback_and_survived():
    bug = ZeroDivisionError("division by zero")
    kept = Kept((0, bug))
    await kept.clock.advance(1)
    assert kept.begun == [0, 1]
    assert kept.said == [("restarting", bug)] * 2
    assert bug.__traceback__ is not None
    await kept.end()


@pytest.mark.parametrize("error", [LOST, KeyError("bug"), SettingsError("watchd.toml", ())])
async def test_whatever_ended_it_is_told_before_the_pause(error):
    kept = Kept((0, error))
    await kept.clock.settle()
    assert kept.heard == [str(error)]
    await kept.end()


BROKEN = StoreError("the disk is full")


@pytest.mark.parametrize("error", [BROKEN, ExceptionGroup("readers", [LOST, ExceptionGroup("deeper", [BROKEN])])])
async def test_a_broken_store_is_not_survived(error):
    kept = Kept((0, error))
    await kept.clock.settle()
    assert kept.task.exception() is error
    assert kept.begun == [0]


async def test_a_group_of_other_errors_is_survived():
    kept = Kept((0, ExceptionGroup("readers", [LOST, ValueError("bug")])))
    await kept.clock.advance(1)
    assert kept.begun == [0, 1]
    await kept.end()


async def test_what_goes_wrong_while_an_end_is_told_comes_through():
    async def tell(error):
        raise BROKEN

    kept = Kept((0, LOST), on_down=tell)
    await kept.clock.settle()
    assert kept.task.exception() is BROKEN


@pytest.mark.parametrize("seconds", [0.5, 5.0], ids=["during a pause", "during the work"])
async def test_cancelling_ends_it_at_once(seconds):
    kept = Kept((0, LOST), (100, None))
    await kept.clock.advance(seconds)
    begun = list(kept.begun)
    await kept.end()
    await kept.clock.advance(1000)
    assert kept.begun == begun


async def test_no_pause_is_longer_than_the_work_bears():
    clock = Clock()

    async def work():
        raise LOST

    keeping = supervise.keep(
        "x", work, sleep=clock.sleep, random=lambda: 1.0, log=structlog.get_logger(), clock=clock.monotonic, most_s=5.0
    )
    task = asyncio.create_task(keeping)
    await clock.advance(100)
    task.cancel()
    assert clock.slept[:5] == [1.0, 2.0, 4.0, 5.0, 5.0]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, asyncio.CancelledError])
def test_what_is_no_exception_is_never_survived(error):
    assert not supervise.is_kept_alive(error())
    assert not supervise.is_kept_alive(BaseExceptionGroup("", [error(), LOST]))


async def test_the_others_go_on_while_one_fails():
    failing, working = Kept((0, ValueError("bug"))), Kept((1000, None))
    await failing.clock.advance(10)
    await working.clock.advance(10)
    assert not working.task.done()
    assert len(failing.begun) == 4
    await failing.end()
    await working.end()


async def test_a_gate_lets_so_many_through_on_each_way():
    gate, clock, inside = supervise.Gate(2), Clock(), []

    async def shake(way):
        async with gate.through(way):
            inside.append(way)
            await clock.sleep(1)

    tasks = [asyncio.create_task(shake(way)) for way in ("bastion", "bastion", "bastion", None, "bastion")]
    await clock.settle()
    assert inside == ["bastion", "bastion", None]
    await clock.advance(1)
    assert inside == ["bastion", "bastion", None, "bastion", "bastion"]
    await clock.advance(1)
    await asyncio.gather(*tasks)


async def test_a_gate_has_room_again_after_a_failure():
    gate = supervise.Gate(1)
    for _ in range(3):
        with pytest.raises(ValueError, match="refused"):
            async with gate.through("bastion"):
                raise ValueError("refused")
