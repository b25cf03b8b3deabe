"""Random programs against a model: every byte once, at its place, or in a gap that says so."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.support.localhost import LocalHost
from tests.support.logworld import Witness, World
from watchd.errors import HostError
from watchd.follow.file import FileFollower
from watchd.model import Checkpoint

SIZE = st.integers(9, 120)
HAPPENING = st.one_of(
    st.tuples(st.just("write"), SIZE, st.booleans()),
    st.tuples(st.just("write"), SIZE, st.booleans()),
    st.tuples(st.just("relaunch"), st.just(0) | SIZE),
    st.tuples(st.just("rotate"), st.booleans()),
    st.tuples(st.just("copytruncate"), st.booleans()),
    st.tuples(st.just("late"), SIZE),
    st.tuples(st.just("delete")),
    st.tuples(st.just("replace")),
)
STEP = st.one_of(
    HAPPENING,
    HAPPENING,
    st.tuples(st.just("poll"), st.sampled_from((0, 0.25, 1, 1, 3, 11))),
    st.tuples(st.just("poll"), st.sampled_from((0, 0.25, 1, 1, 3, 11))),
    st.tuples(st.just("during"), st.integers(1, 12), HAPPENING),
    st.tuples(st.just("lose"), st.integers(1, 12)),
    st.tuples(st.just("cancel"), st.integers(1, 12)),
    st.tuples(st.just("restart"), st.booleans()),
)
PROGRAM = st.lists(STEP, min_size=1, max_size=40)


class Run:
    """One program, run."""

    def __init__(self, folder: Path, *, inodes: bool) -> None:
        self.world = World(folder, inodes=inodes)
        self.host = LocalHost(inodes=inodes)
        self.witness = Witness()
        self.clock = 0.0
        self.stored: Checkpoint | None = None
        self.follower = self._new_follower()

    def _new_follower(self) -> FileFollower:
        return FileFollower(self.host, "eagle3", str(self.world.path), self.stored, turn=400)

    def happen(self, name: str, *arguments: object) -> None:
        self.world.now += 1
        world = self.world
        match name, arguments:
            case "write", (int(size), bool(newline)):
                world.write(size, newline=newline)
            case "relaunch", (int(size),):
                world.relaunch(size)
            case "rotate", (bool(create),):
                world.rotate(create=create)
            case "copytruncate", (bool(append),):
                world.copytruncate(append=append)
            case "late", (int(size),):
                world.late(size)
            case "delete", ():
                world.delete()
            case "replace", ():
                world.replace()

    def at_request(self, number: int, act: Callable[[], None]) -> None:
        left = number

        def count() -> None:
            nonlocal left
            left -= 1
            if left == 0:
                act()

        self.host.on_request = count

    async def poll(self, seconds: float = 1) -> None:
        self.clock += seconds
        self.world.now += int(seconds)
        found = self.world.look()
        try:
            events = await self.follower.poll(datetime.fromtimestamp(1_700_000_000 + self.clock, UTC))
        except (HostError, asyncio.CancelledError):
            self.world.broke_off()
        else:
            self.witness.take(events)
            if self.host.lost:
                self.world.broke_off()
            if self.host.open_handles and not self.host.lost:
                self.world.looked(found)
        self.host.on_request = lambda: None
        self.host.lost = False
        await self._store()

    async def _store(self) -> None:
        if self.witness.next is not None:
            self.stored = await self.follower.checkpoint(*self.witness.next) or self.stored

    async def restart(self, *, back: bool) -> None:
        if self.stored is None:
            return
        if back and self.witness.next is not None:
            generation, offset = self.witness.next
            start = min((b.offset for b in self.witness.blocks.get(generation, ())), default=offset)
            self.stored = await self.follower.checkpoint(generation, (start + offset) // 2) or self.stored
        await self.follower.close()
        self.world.broke_off()
        self.witness.rewound(self.stored.generation, self.stored.offset)
        self.follower = self._new_follower()

    async def run(self, program: list[tuple[object, ...]]) -> None:
        for step in program:
            match step:
                case "poll", (int() | float()) as seconds:
                    await self.poll(seconds)
                case "during", int(number), tuple(happening):
                    self.at_request(number, lambda happening=happening: self.happen(*happening))
                    await self.poll()
                case "lose", int(number):
                    self.at_request(number, self.host.lose)
                    await self.poll()
                case "cancel", int(number):
                    self.at_request(number, _cancel)
                    await self.poll()
                case "restart", bool(back):
                    await self.restart(back=back)
                case _:
                    self.happen(*step)
        await self.come_to_rest()

    async def come_to_rest(self) -> None:
        self.world.forget()
        for _ in range(3):
            self.happen("write", 20, True)
            for _ in range(8):
                await self.poll(3)
        for _ in range(100):
            await self.poll(1)
            await self.poll(1)
            if self.host.open_handles == 1:
                break
        await self.poll(11)
        await self.follower.close()
        assert self.host.open_handles == 0, "handles were left open"
        self.witness.check(self.world)


def _cancel() -> None:
    raise asyncio.CancelledError


def check(program: list[tuple[object, ...]], *, inodes: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(Run(Path(folder), inodes=inodes).run(program))


QUICK = settings(
    max_examples=400,
    derandomize=True,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.generate, Phase.shrink),
)
LONG = settings(QUICK, max_examples=5_000, derandomize=False)


@pytest.mark.parametrize("inodes", [False, True], ids=["as SFTP shows files", "with inodes"])
def test_every_byte_is_told_once_or_named_in_a_gap(inodes: bool) -> None:
    QUICK(given(PROGRAM)(lambda program: check(program, inodes=inodes)))()


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("inodes", [False, True], ids=["as SFTP shows files", "with inodes"])
def test_every_byte_is_told_once_or_named_in_a_gap_in_many_programs(inodes: bool) -> None:
    LONG(given(PROGRAM)(lambda program: check(program, inodes=inodes)))()
