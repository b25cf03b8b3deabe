"""One watch, with real files as its log and a machine that fails when a test says so."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import asyncssh
import pytest

from tests.support import daemon as watchd
from tests.support.receiver import Fault, Receiver
from tests.support.servelet import Servelet
from tests.support.sshd import QUIET_DMESG, Sshd, wait_until
from watchd.daemon import now
from watchd.errors import HostLostError, HttpRefusedError
from watchd.hosts import replies
from watchd.hosts.base import FileStat, LogHandle
from watchd.hosts.local import LocalHost
from watchd.hosts.ssh import SshAddress, SshHost
from watchd.http import HttpClient
from watchd.model import (
    BootId,
    ByteStream,
    FoundingGrep,
    HealthCheck,
    Incident,
    Process,
    Processes,
    Question,
    ReadLog,
    Reply,
    Stage,
    Status,
    Target,
    Verdict,
)
from watchd.outbox import Outbox
from watchd.store import AsyncStore, Store
from watchd.watch.census import Census, choose
from watchd.watch.desk import Desk
from watchd.watch.link import Link
from watchd.watch.target import Means, Seen, Watch

pytestmark = pytest.mark.timeout(60)

CRASH = (
    'Traceback (most recent call last):\n  File "/app/launch.py", line 18, in <module>\n    main()\n'
    "AssertionError: a guard\n"
)
PATTERN = "-m server"
INIT = Process(pid=1, parent=0, started=1, argv=("/sbin/init",))


def server(pid: int, *flags: str) -> Process:
    return Process(pid=pid, parent=1, started=pid, argv=("python3", "-m", "server", *flags))


def listing(seen: Sequence[Process]) -> bytes:
    """What a host answers that is asked for its processes."""
    stats = "".join(
        f"{one.pid} (python3) {one.state} {one.parent} {'0 ' * 17}{one.started} {'0 ' * 30}".rstrip() + "\n"
        for one in seen
    )
    lines = "".join(f"/proc/{one.pid}/cmdline:{word}\0" for one in seen for word in one.argv)
    return f"{stats}\nz\n{lines}".encode()


@dataclass(kw_only=True)
class Machine:
    """This machine's files, and processes as a test says.

    lost    the connection is gone: whatever is asked fails
    slow    seconds that a look at the processes takes
    stuck   the ladder's questions about the log wait for this
    """

    log: Path
    processes: list[Process] = field(default_factory=list)
    lost: bool = False
    slow: float = 0.0
    stuck: asyncio.Event | None = None
    asked: list[Question] = field(default_factory=list)
    name: str = "gpu-01"
    connected: bool = True
    local: LocalHost = field(default_factory=LocalHost)

    async def connect(self) -> None:
        """It is there."""

    async def ask(self, questions: tuple[Question, ...], *, limit_s: float) -> tuple[Reply, ...]:
        """Processes as a test says, the log as it is, and nothing else."""
        self.asked += questions
        if self.stuck is not None and any(isinstance(question, ReadLog) for question in questions):
            await self.stuck.wait()
        return tuple([await self._answer(question, limit_s) for question in questions])

    async def _answer(self, question: Question, limit_s: float) -> Reply:
        if isinstance(question, Processes):
            await asyncio.sleep(self.slow)
            return replies.small(question, "exec", listing((INIT, *self.processes)))
        if isinstance(question, BootId):
            return replies.small(question, "exec", b"b00t\n")
        if isinstance(question, ReadLog | FoundingGrep):
            (reply,) = await self.local.ask((question,), limit_s=limit_s)
            return reply
        return replies.unanswered(question, "exec", "not here")

    def _reach(self) -> None:
        if self.lost:
            raise HostLostError(self.name, "lost")

    async def open_log(self, path: str) -> LogHandle:
        self._reach()
        return await self.local.open_log(path)

    async def stat(self, path: str) -> FileStat | None:
        self._reach()
        return await self.local.stat(path)

    async def siblings(self, path: str) -> tuple[str, ...]:
        self._reach()
        return await self.local.siblings(path)

    async def close(self) -> None:
        """Nothing is held."""


async def refused(host: str, port: int) -> ByteStream:
    raise HttpRefusedError("nobody listens")


class Scene:
    """A watch over `machine`, its store, and what it told."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "server.log"
        self.machine = Machine(log=self.log)
        self.target = Target(name="one", host="gpu-01", log=str(self.log), process=PATTERN)
        self.told: list[Incident] = []
        self.seen: list[Seen] = []

    def poll_each_second(self) -> None:
        """Give it a health check, which nobody answers: a server that has not served yet."""
        check = HealthCheck(url="http://127.0.0.1:9/health", interval_s=1.0)
        self.target = replace(self.target, health=check)

    def write(self, text: str) -> None:
        with self.log.open("a") as log:
            log.write(text)

    def observe(self, _name: str, seen: Seen) -> None:
        self.seen.append(seen)
        if isinstance(seen, Incident):
            self.told.append(seen)

    @contextlib.asynccontextmanager
    async def store(self) -> AsyncIterator[AsyncStore]:
        ledger = AsyncStore(await asyncio.to_thread(Store, self.folder / "watchd.db"))
        try:
            yield ledger
        finally:
            await ledger.close()

    def watch(self, ledger: AsyncStore) -> Watch:
        desk = Desk(ledger, Outbox(ledger, ()))
        link = Link(self.machine, desk, way=contextlib.nullcontext, now=now)
        link.up.set()
        link.tried.set()
        self.desk = desk
        clock = asyncio.get_running_loop().time
        means = Means(
            desk=desk, link=link, client=HttpClient(), census=Census(self.machine, clock=clock), now=now, clock=clock,
            observe=self.observe,
        )  # fmt: skip
        return Watch(self.target, self.machine, refused, means)

    @contextlib.asynccontextmanager
    async def watching(self) -> AsyncIterator[Watch]:
        """The watch, running; cancelled at the end as by a stop."""
        async with self.store() as ledger:
            watch = self.watch(ledger)
            task = asyncio.create_task(watch.run())
            try:
                yield watch
            finally:
                task.cancel()
                await asyncio.wait([task])
                await watch.settle()
                await self.desk.flush()

    async def until(self, condition: Callable[[], bool], limit_s: float = 15) -> None:
        async with asyncio.timeout(limit_s):
            while not condition():
                await asyncio.sleep(0.02)

    def final(self) -> list[Incident]:
        """The newest state of each incident, of those whose climb has ended."""
        newest = {told.id: told for told in self.told}
        return [told for told in newest.values() if told.stage is Stage.FINAL]

    async def concluded(self, count: int = 1) -> list[Incident]:
        await self.until(lambda: len(self.final()) >= count)
        return self.final()


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


async def test_a_crash_is_told_and_concluded(scene: Scene) -> None:
    scene.machine.processes = [server(100)]
    scene.write("serves\n")
    async with scene.watching() as watch:
        await watch.looked()
        scene.write(CRASH)
        scene.machine.processes = []
        (told,) = await scene.concluded()
    assert told.exception is not None
    assert told.exception.type == "AssertionError"
    assert told.launch is not None


async def test_a_host_that_is_lost_while_the_ladder_is_climbed_leaves_no_incident_half_told(scene: Scene) -> None:
    """The watch is run again as by its supervisor, and climbs again."""
    scene.machine.processes = [server(100)]
    scene.write("serves\n")
    scene.machine.stuck = asyncio.Event()
    async with scene.store() as ledger:
        watch = scene.watch(ledger)
        first = asyncio.create_task(watch.run())
        await watch.looked()
        scene.write(CRASH)
        scene.machine.processes = []
        await scene.until(lambda: any(isinstance(question, ReadLog) for question in scene.machine.asked))
        scene.machine.lost = True
        with pytest.raises(HostLostError):
            await first
        scene.machine.lost, scene.machine.stuck = False, None
        again = asyncio.create_task(watch.run())
        (told,) = await scene.concluded()
        again.cancel()
        await asyncio.wait([again])
    assert told.exception is not None


async def test_what_was_read_when_the_host_was_lost_is_not_forgotten(scene: Scene) -> None:
    """Cancelled between two events of one look at the log, the watch takes the rest when it runs again."""
    scene.machine.processes = [server(100)]
    scene.write("serves\n")
    async with scene.store() as ledger:
        watch = scene.watch(ledger)
        first = asyncio.create_task(watch.run())
        await watch.looked()
        async with watch._fold:
            # Whoever reads waits here with its hands full.
            scene.write("x" * 600_000 + "\n" + CRASH)
            await scene.until(lambda: len(watch._read) > 0)
            scene.machine.processes = []
            first.cancel()
            await asyncio.wait([first])
        again = asyncio.create_task(watch.run())
        (told,) = await scene.concluded()
        again.cancel()
        await asyncio.wait([again])
    assert told.exception is not None
    assert told.exception.type == "AssertionError"


async def test_an_alarm_is_filed_though_its_reader_is_cancelled_meanwhile(scene: Scene) -> None:
    scene.machine.processes = [server(100)]
    scene.write("serves\n")
    async with scene.store() as ledger:
        watch = scene.watch(ledger)
        first = asyncio.create_task(watch.run())
        await watch.looked()
        filing = scene.desk.file
        begun = asyncio.Event()

        async def slowly(before: Incident | None, after: Incident, place: object = None) -> None:
            begun.set()
            await asyncio.sleep(0.3)
            await filing(before, after, place)  # type: ignore[arg-type]

        scene.desk.file = slowly  # type: ignore[method-assign,assignment]
        scene.write(CRASH)
        scene.machine.processes = []
        await asyncio.wait_for(begun.wait(), 10)
        first.cancel()
        await asyncio.wait([first])
        await watch.settle()
        assert [found.stage for found in await ledger.open_incidents()] == [Stage.CLIMBING]


async def test_the_launch_of_the_process_that_died_is_told_not_that_of_the_next(scene: Scene) -> None:
    """A supervisor has started it again, with other flags, before anybody looked."""
    scene.machine.processes = [server(100, "--wrong")]
    scene.write("serves\n")
    async with scene.watching() as watch:
        await watch.looked()
        await asyncio.sleep(0.7)
        scene.machine.processes = [server(101, "--right")]
        scene.write(CRASH)
        (told,) = await scene.concluded()
    assert told.launch is not None
    assert "--wrong" in told.launch.command


async def test_an_incident_of_before_a_restart_keeps_its_launch_and_its_run(scene: Scene) -> None:
    """watchd ended in the midst of the climb; by now the next run is in the same log, and serves."""
    scene.machine.processes = [server(100, "--wrong")]
    scene.write("=== launch 1 ===\nserves\n")
    scene.machine.stuck = asyncio.Event()
    async with scene.watching() as watch:
        await watch.looked()
        await asyncio.sleep(0.7)
        scene.write(CRASH)
        scene.machine.processes = []
        await scene.until(lambda: any(isinstance(question, ReadLog) for question in scene.machine.asked))
    scene.write("=== launch 2 ===\nstep 1 loss 0.5\nstep 2 loss 0.4\n")
    scene.machine.processes = [server(101, "--right")]
    scene.machine.stuck = None
    scene.told.clear()
    async with scene.watching():
        (told,) = await scene.concluded()
    assert told.exception is not None
    assert told.launch is not None
    assert "--wrong" in told.launch.command


async def test_an_incident_of_before_a_restart_resolves_when_a_new_process_works(scene: Scene) -> None:
    scene.machine.processes = [server(100)]
    scene.write("serves\n")
    async with scene.watching() as watch:
        await watch.looked()
        scene.write(CRASH)
        scene.machine.processes = []
        await scene.concluded()
    scene.machine.processes = [server(101)]
    async with scene.watching() as watch:
        await watch.looked()
        scene.write("step 1 loss 0.5\n")
        await scene.until(lambda: scene.told[-1].status is Status.RESOLVED)
    assert scene.told[-1].verdict is Verdict.CRASH


async def test_no_place_is_kept_behind_an_alarm_that_nobody_was_told_of(scene: Scene) -> None:
    """A process that is gone is told once the climb has said what it was; watchd may be killed before that."""
    scene.poll_each_second()
    scene.machine.processes = [server(100)]
    scene.write("serves\n")
    async with scene.watching() as watch:
        await watch.looked()
        await asyncio.sleep(1.5)
        await scene.desk.flush()
        before = await scene.desk.checkpoint("one", str(scene.log))
        scene.machine.stuck = asyncio.Event()
        scene.machine.processes = []
        await scene.until(lambda: any(isinstance(question, ReadLog) for question in scene.machine.asked))
        scene.write("some last words\n")
        await asyncio.sleep(1.5)
        await scene.desk.flush()
        assert before is not None
        assert await scene.desk.checkpoint("one", str(scene.log)) == before


async def test_a_crash_behind_a_server_that_starts_is_an_old_one(scene: Scene) -> None:
    """First sight of a log: the health check fails since the server still loads; what the log holds is of before."""
    scene.poll_each_second()
    scene.machine.slow = 1.5
    scene.machine.processes = [server(101)]
    scene.write(CRASH + "loading weights\n")
    async with scene.watching() as watch:
        await watch.looked()
        await asyncio.sleep(5)
    assert scene.told == []


async def test_a_silent_death_that_is_explained_later_gets_its_cause(scene: Scene) -> None:
    """The log's last words come late, through a pipe: the incident is there already and learns them."""
    scene.poll_each_second()
    scene.machine.processes = [server(100)]
    scene.write("serves\n")
    async with scene.watching() as watch:
        await watch.looked()
        scene.machine.processes = []
        await scene.concluded()
        scene.write(CRASH)
        await scene.until(lambda: scene.told[-1].exception is not None)
    assert len({told.id for told in scene.told}) == 1


async def test_a_server_that_dies_faster_than_anybody_climbs_has_a_cause(scene: Scene) -> None:
    scene.write("serves\n")
    scene.machine.processes = [server(100)]
    async with scene.watching() as watch:
        await watch.looked()
        for pid in range(101, 113):
            scene.write(CRASH)
            scene.machine.processes = [server(pid)]
            await asyncio.sleep(0.7)
        causes = [told.exception for told in scene.told]
        assert any(causes), [(told.stage, told.occurrences) for told in scene.told]
        scene.machine.processes = []
        await scene.until(lambda: scene.told[-1].stage is Stage.FINAL)
        assert len(watch._alarms) <= 8
    assert len({told.id for told in scene.told}) == 1


def test_a_process_that_lives_is_the_one_whatever_else_looks_like_it() -> None:
    """Somebody runs the server's program once more, for its help: the server has not gone."""
    target = Target(name="one", host="gpu-01", log="/l", process=PATTERN)
    known, other = server(100), server(200, "--help")
    at = datetime(2026, 1, 5, tzinfo=UTC)
    assert choose((INIT, known, other), target, "generic", known, at=at).process == known
    assert choose((INIT, other), target, "generic", known, at=at).process == other


# The daemon, over a real sshd.


def ends_within(daemon: watchd.Daemon, limit_s: float) -> int:
    """Its exit status after SIGTERM; fails where that takes too long."""
    began = time.monotonic()
    status = daemon.stop()
    assert time.monotonic() - began < limit_s
    return status


async def test_a_failure_in_the_moment_of_a_stop_does_not_undo_the_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """`asyncio.wait_for` of Python 3.11, with which asyncssh connects, gives the failure and drops the cancellation."""

    async def swallows(*_: object, **__: object) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise asyncssh.ConnectionLost("at that very moment") from None

    monkeypatch.setattr(asyncssh, "connect", swallows)
    address = SshAddress(name="gpu-01", address="127.0.0.1", port=9, user="x", config="")
    task = asyncio.create_task(SshHost(address).connect())
    await asyncio.sleep(0.3)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()


def test_a_stop_before_all_targets_were_looked_at_is_a_stop(tmp_path: Path) -> None:
    """A host that hangs up or says nothing must not hold up the end, whatever is being tried in that moment."""
    with socket.create_server(("127.0.0.1", 0)) as mute:
        host = f'[hosts.mute]\naddress = "127.0.0.1"\nport = {mute.getsockname()[1]}\nuser = "nobody"'
        target = '[[targets]]\nname = "one"\nhost = "mute"\nlog = "/var/log/server.log"'
        with watchd.Daemon(tmp_path, host, target) as daemon:
            daemon.launch()
            mute.settimeout(20)
            mute.accept()[0].close()
            assert ends_within(daemon, 10) == 0


def test_a_stop_in_the_midst_of_a_climb_is_taken_up_at_the_next_start(
    tmp_path: Path, make_sshd: Callable[..., Sshd]
) -> None:
    sshd = make_sshd()
    sshd.script("dmesg", "#!/bin/sh\necho came >> $HOME/asked; exec sleep 25\n")
    with Servelet(sshd) as served, Receiver() as hook:
        tables = (watchd.host(sshd), watchd.target(served), watchd.webhook(hook.url))
        with watchd.Daemon(tmp_path, *tables) as daemon:
            served.serve()
            daemon.start()
            served.fail()
            assert wait_until((sshd.home / "asked").exists, 30)
            assert ends_within(daemon, 10) == 0
            sshd.script("dmesg", QUIET_DMESG)
            daemon.start()
            assert wait_until(lambda: any(told.json["stage"] == "final" for told in hook.received), 30)
            assert daemon.stop() == 0
    last = hook.received[-1].json
    assert last["exception"]["type"] == "KeyError"
    assert last["launch"]["origin"] == "recorded"
    assert len({told.json["id"] for told in hook.received}) == 1


def test_a_connection_that_is_lost_in_the_midst_of_a_climb_is_climbed_again(
    tmp_path: Path, make_sshd: Callable[..., Sshd]
) -> None:
    sshd = make_sshd()
    sshd.script("dmesg", "#!/bin/sh\necho came >> $HOME/asked; exec sleep 25\n")
    with Servelet(sshd) as served, Receiver() as hook:
        tables = (watchd.host(sshd), watchd.target(served), watchd.webhook(hook.url))
        with watchd.Daemon(tmp_path, *tables) as daemon:
            served.serve()
            daemon.start()
            served.fail()
            assert wait_until((sshd.home / "asked").exists, 30)
            sshd.script("dmesg", QUIET_DMESG)
            sshd.kill_connections()
            assert wait_until(lambda: any(told.json["stage"] == "final" for told in hook.received), 40), daemon.events()
            assert daemon.stop() == 0
    assert hook.received[-1].json["exception"]["type"] == "KeyError"


def test_a_sink_that_hangs_holds_up_no_stop_and_loses_nothing(tmp_path: Path, sshd: Sshd) -> None:
    with Servelet(sshd, "hanging-sink") as served:
        with Receiver(Fault.HANG, Fault.HANG, Fault.HANG) as hook:
            tables = (watchd.host(sshd), watchd.target(served), watchd.webhook(hook.url))
            with watchd.Daemon(tmp_path, *tables) as daemon:
                served.serve()
                daemon.start()
                served.fail()
                hook.wait(1)
                assert ends_within(daemon, 15) == 0
        with Receiver() as hook:
            tables = (watchd.host(sshd), watchd.target(served), watchd.webhook(hook.url))
            with watchd.Daemon(tmp_path, *tables) as daemon:
                daemon.start()
                assert wait_until(lambda: any(told.json["stage"] == "final" for told in hook.received), 30)
                assert daemon.stop() == 0
