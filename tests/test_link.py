"""The connection to a host: how many handshakes at a time one way bears."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from functools import partial

from tests.support.daemon import host
from watchd import daemon, settings, supervise
from watchd.errors import HostUnreachableError
from watchd.outbox import Outbox
from watchd.store import AsyncStore, Store
from watchd.watch.desk import Desk
from watchd.watch.link import Link


class Bastion:
    """Counts the handshakes that are under way at the same time."""

    def __init__(self) -> None:
        self.inside = self.most = 0
        self.room = asyncio.Event()

    async def shake_hands(self) -> None:
        self.inside += 1
        self.most = max(self.most, self.inside)
        try:
            await self.room.wait()
        finally:
            self.inside -= 1


class Behind:
    """A host behind the bastion that then turns out to be away."""

    connected = False

    def __init__(self, name: str, bastion: Bastion) -> None:
        self.name = name
        self._bastion = bastion

    async def connect(self) -> None:
        await self._bastion.shake_hands()
        raise HostUnreachableError(self.name, "away")


async def test_eight_handshakes_at_a_time_on_one_way(tmp_path) -> None:  # type: ignore[no-untyped-def]
    """sshd's MaxStartups drops some of more than ten; all are made in the end."""
    bastion, gate = Bastion(), supervise.Gate()
    store = AsyncStore(Store(tmp_path / "watchd.db"))
    desk = Desk(store, Outbox(store, ()))
    links = [
        Link(Behind(f"gpu-{n}", bastion), desk, way=partial(gate.through, "bastion"), now=lambda: datetime.now(UTC))
        for n in range(20)
    ]
    holding = [asyncio.create_task(link.hold()) for link in links]
    for _ in range(50):
        await asyncio.sleep(0)
    assert (bastion.inside, bastion.most) == (8, 8)
    bastion.room.set()
    ended = await asyncio.gather(*holding, return_exceptions=True)
    assert bastion.most == 8
    assert all(isinstance(error, HostUnreachableError) for error in ended)
    await store.close()


async def test_hosts_behind_one_bastion_share_its_way(tmp_path, sshd) -> None:  # type: ignore[no-untyped-def]
    """The daemon asks for room by bastion; a host that is reached directly has a way of its own."""
    config = tmp_path / "watchd.toml"
    tables = [host(sshd, "bastion"), host(sshd, "a", via="bastion"), host(sshd, "b", via="bastion")]
    targets = [f'[[targets]]\nname = "{name}"\nhost = "{name}"\nlog = "/l"' for name in ("a", "b")]
    config.write_text("\n\n".join((*tables, *targets)) + "\n")
    loaded = settings.load(config)
    assert {name: daemon.way(loaded, name) for name in ("a", "b", "bastion", "elsewhere")} == {
        "a": "bastion",
        "b": "bastion",
        "bastion": "bastion",
        "elsewhere": "elsewhere",
    }
