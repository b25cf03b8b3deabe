"""One target watched: three readers feed the detector, a trigger starts a climb, and what comes of it is filed."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

import structlog

from watchd import detect, health, incident, investigate
from watchd.errors import HostError, HostLostError
from watchd.follow.file import FileFollower
from watchd.hosts.base import LogHost
from watchd.http import HttpClient
from watchd.model import (
    Block,
    Case,
    Checkpoint,
    Dialer,
    Event,
    Evidence,
    Gap,
    HealthSample,
    Incident,
    IncidentHealth,
    Launch,
    LaunchOrigin,
    LogStanding,
    LogState,
    Process,
    ProcessSample,
    Stage,
    Target,
    Tick,
    Trigger,
    TriggerKind,
)
from watchd.watch.census import Census, choose
from watchd.watch.desk import Desk, process_of
from watchd.watch.life import Life
from watchd.watch.link import Link

LIVE_S = 1.0
"""seconds between two looks at a quiet log"""
HOT_S = 0.25
"""the same while a crash is suspected or being looked into"""
QUIET_S = 1.0
"""a log that has not grown for this long is taken to have said what it had to say"""
PATIENCE_S = 3.0
"""how long a climb waits for that at most"""
log = structlog.get_logger()

Seen = Event | Trigger | Evidence | Incident
Observer = Callable[[str, Seen], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What a watch works with; time is an argument.

    link     the connection to the target's host
    now      the time of day, aware, UTC
    clock    seconds that only rise
    observe  told everything that happens, for those who look on
    """

    desk: Desk
    link: Link
    client: HttpClient
    census: Census
    now: Callable[[], datetime]
    clock: Callable[[], float]
    observe: Observer = lambda _name, _seen: None


class Watch:
    """The watch over one target. `run` may end by a HostError and be run again: what was learnt is kept."""

    def __init__(self, target: Target, host: LogHost, dial: Dialer, means: Means) -> None:
        self._target = target
        self._host = host
        self._dial = dial
        self._means = means
        self._desk = means.desk
        self._state = detect.begin(target.engine, target.health)
        self._follower: FileFollower | None = None
        self._samples: deque[HealthSample] = deque(maxlen=12)
        self._life = Life(
            target,
            means.desk,
            place=self._place,
            observe=lambda found: means.observe(target.name, found),
        )
        self._run_began: datetime | None = None
        self._launch: Launch | None = None
        self._failed_launch: Launch | None = None
        self._failed_process: Process | None = None
        self._launch_seen: datetime | None = None
        self._grew_at = float("-inf")
        self._pending: Trigger | None = None
        self._wake_climb = asyncio.Event()
        self._curious = asyncio.Event()
        self._pulled = asyncio.Event()
        self._first_pass = asyncio.Event()
        self._standing = LogState.STALLED
        self._fold = asyncio.Lock()
        self._pulling = asyncio.Lock()

    @property
    def name(self) -> str:
        """The target's name."""
        return self._target.name

    @property
    def sees(self) -> bool:
        """Whether its log is being followed at present."""
        return self._means.link.up.is_set() and self._standing is LogState.LIVE

    @property
    def firing(self) -> bool:
        """Whether an incident of it is open."""
        return self._life.incident is not None

    async def looked(self) -> None:
        """Return once the target was looked at, or could not be: the daemon is ready when all are."""
        await self._means.link.tried.wait()
        if self._means.link.up.is_set():
            await self._first_pass.wait()

    async def run(self) -> None:
        """Watch until cancelled. Raises HostError when the host is lost: run again, it waits for the host."""
        await self._means.link.up.wait()
        if self._follower is None:
            await self._resume()
        try:
            async with asyncio.TaskGroup() as readers:
                readers.create_task(self._follow())
                readers.create_task(self._look_at_processes())
                readers.create_task(self._climb_when_told())
                if self._target.health:
                    readers.create_task(self._poll_health())
        except ExceptionGroup as group:
            raise _first(group) from group

    async def close(self) -> None:
        """Let go of the log."""
        if self._follower:
            await self._follower.close()

    async def _resume(self) -> None:
        """Take up what an earlier process left: the place in the log, the open incident, the recorded launch."""
        target = self._target
        self._follower = FileFollower(
            self._host, target.name, target.log, await self._desk.checkpoint(target.name, target.log)
        )
        found = await self._life.resume()
        self._launch = await self._desk.last_launch(target)
        if self._launch:
            self._launch_seen = self._means.now()
            self._state = replace(self._state, process=process_of(self._launch))
        self._attend()
        if found and found.stage is Stage.CLIMBING:
            self._ask_for_climb(Trigger(kind=TriggerKind.ASKED, summary=found.summary, at=found.opened_at))

    # The three readers.

    async def _follow(self) -> None:
        while True:
            grew = await self._pull()
            self._pulled.set()
            await self._take(Tick(at=self._means.now()))
            await self._keep_place()
            if not grew:
                hot = self._state.suspicion is not None or self._pending is not None
                await asyncio.sleep(HOT_S if hot else LIVE_S)

    async def _pull(self) -> bool:
        """Take what the log holds; True where there is more at once."""
        assert self._follower is not None
        async with self._pulling:
            taken = 0
            for event in await self._follower.poll(self._means.now()):
                await self._take(event)
                taken += len(event.data) if isinstance(event, Block) else 0
            if taken:
                self._grew_at = self._means.clock()
            return taken >= self._follower.turn

    async def _poll_health(self) -> None:
        assert self._target.health is not None
        check = self._target.health
        async for sample in health.poll(
            check, lambda: self._ask_health(), now=self._means.now, early=self._curious
        ):  # pragma: no branch
            await self._take(sample)

    async def _ask_health(self) -> HealthSample:
        assert self._target.health is not None
        dial = self._dial if self._target.health.via == "host" else None
        return await health.sample(self._target.health, self._means.client, dial, self._means.now)

    async def _look_at_processes(self) -> None:
        interval = self._target.health.interval_s if self._target.health else 10.0
        last_grown = self._grew_at
        due = 0.0
        await self._pulled.wait()
        while True:
            now = self._means.clock()
            curious = detect.curious(self._state, self._means.now())
            unknown_and_growing = self._state.process is None and self._grew_at > last_grown
            if curious or now >= due or (unknown_and_growing and now >= due - interval + 2):
                last_grown = self._grew_at
                await self._look(not_older_s=0.5)
                due = now + interval
                self._first_pass.set()
            await self._sleep_unless_curious(1.0 if not curious else 0.5)

    async def _sleep_unless_curious(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._curious.wait()
        except TimeoutError:
            return

    async def _look(self, *, not_older_s: float) -> None:
        seen, why = await self._means.census.look(not_older_s=not_older_s)
        at = self._means.now()
        if seen is None:
            await self._take(ProcessSample(at=at, known=False, detail=why))
            return
        sample = choose(seen, self._target, self._state.engine, self._state.process, at=at)
        if sample.known and sample.process != self._state.process:
            # Its last words may lie in the log, unread.
            await self._pull()
        if sample.process is not None:
            await self._record(sample)
        await self._take(sample)

    async def _record(self, sample: ProcessSample) -> None:
        process = sample.process
        assert process is not None
        self._launch_seen = sample.at
        if self._launch is None or (self._launch.pid, self._launch.started) != (process.pid, process.started):
            self._launch = Launch(
                argv=process.argv, origin=LaunchOrigin.RECORDED, pid=process.pid, started=process.started
            )
            await self._desk.record_launch(self._target, self._launch, self._means.census.boot_id, sample.at)

    # The fold, and what comes of it.

    async def _take(self, event: Event) -> None:
        self._means.observe(self._target.name, event)
        async with self._fold:
            before, launch = self._state, self._launch_of_run()
            self._state, trigger = detect.step(before, event)
            self._note(event, before.run)
            if trigger is not None:
                # A process that had said goodbye is not the one whose traceback follows.
                said_goodbye = before.suspicion is not None and before.suspicion.stopping
                self._failed_launch = None if said_goodbye else launch
                self._failed_process = before.process
                self._means.observe(self._target.name, trigger)
                if await self._life.alarm(trigger, self._state, self._health(), self._means.now()):
                    self._ask_for_climb(trigger)
            await self._life.resolve_if_back(event, self._state, self._run_began)
            self._attend()
        if detect.curious(self._state, self._means.now()):
            self._curious.set()
        else:
            self._curious.clear()

    def _attend(self) -> None:
        self._state = replace(self._state, attentive=self._life.incident is not None)

    def _note(self, event: Event, run_before: int) -> None:
        self._life.note(event)
        if isinstance(event, HealthSample):
            self._samples.append(event)
        elif isinstance(event, Gap):
            log.warning("log_gap", target=self.name, start=event.start, end=event.end, reason=event.reason)
        elif isinstance(event, LogStanding):
            self._standing = event.state
            say = log.info if event.state is LogState.LIVE else log.error
            say("log_" + event.state.value, target=self.name, log=self._target.log, detail=event.detail)
        if self._state.run != run_before:
            self._run_began = event.at
            if self._pending and self._pending.end is None and self._pending.generation == self._state.generation:
                # The climb must not take the next run's lines for those of the one that failed.
                self._pending = replace(self._pending, end=self._state.turned)

    def _launch_of_run(self) -> Launch | None:
        """The recorded launch, if its process was seen after the present run began: else it is an earlier one's."""
        stale = self._run_began and self._launch_seen and self._launch_seen < self._run_began
        return None if stale else self._launch

    def _health(self) -> IncidentHealth:
        return incident.health(str(self._state.health.state), self._target.health, tuple(self._samples))

    # The climb.

    def _ask_for_climb(self, trigger: Trigger) -> None:
        self._pending = trigger
        self._wake_climb.set()

    async def _climb_when_told(self) -> None:
        while True:
            await self._wake_climb.wait()
            self._wake_climb.clear()
            if self._pending is not None:
                climbed = await self._climb(self._pending)
                if self._pending is climbed:
                    self._pending = None

    async def _climb(self, trigger: Trigger) -> Trigger:
        """Climb for this trigger; returns it as it was understood in the end."""
        await self._wait_for_last_words()
        if self._target.health and not any(s.at >= trigger.at for s in self._samples):
            await self._take(await self._ask_health())
        if trigger.kind is not TriggerKind.PROCESS_GONE:
            await self._look(not_older_s=0.0)
        trigger = self._pending or trigger
        case, diagnosis = await investigate.investigate(
            self._host,
            self._case(trigger),
            clock=self._means.clock,
            on_step=lambda step: self._means.observe(self._target.name, step),
        )
        if case.steps and all(step.outcome == "lost" for step in case.steps):
            raise HostLostError(self._host.name, "lost while the ladder was climbed")
        async with self._fold:
            await self._life.conclude(
                trigger, case, diagnosis, run=self._state.run, health=self._health(), now=self._means.now()
            )
            self._attend()
        return trigger

    async def _wait_for_last_words(self) -> None:
        began = self._means.clock()
        while self._means.clock() - began < PATIENCE_S:
            await self._pull()
            if self._means.clock() - max(self._grew_at, began - QUIET_S / 2) >= QUIET_S:
                return
            await asyncio.sleep(HOT_S)

    def _case(self, trigger: Trigger) -> Case:
        failed, process = self._failed_process, self._state.process
        if failed is not None:
            alive: bool | None = process is not None and (process.pid, process.started) == (failed.pid, failed.started)
        else:
            alive = process is not None if process or self._target.process else None
        last = self._samples[-1].result.value if self._samples else None
        if last is not None and alive is False:
            last = "down"  # whoever answers now is another process
        launch = self._failed_launch or (self._launch_of_run() if alive else None)
        return Case(
            target=self._target,
            trigger=trigger,
            health=None if last == "blind" else last,
            samples=tuple(self._samples),
            alive=alive,
            findings=(launch,) if launch else (),
        )

    # The place in the log.

    async def _place(self) -> Checkpoint | None:
        assert self._follower is not None
        generation, offset = detect.committed(self._state)
        return await self._follower.checkpoint(generation, offset)

    async def _keep_place(self) -> None:
        if self._follower is not None and self._desk.wants_place(self._target.name, detect.committed(self._state)):
            place = await self._place()
            if place is not None:
                self._desk.note_place(place)


def _first(group: ExceptionGroup[Exception]) -> Exception:
    """What ended the readers: a lost host before anything else, since the others fail in its wake."""
    found = [_first(error) if isinstance(error, ExceptionGroup) else error for error in group.exceptions]
    bugs = [error for error in found if not isinstance(error, HostError)]
    return (bugs or found)[0]
