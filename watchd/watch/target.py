"""One target watched: three readers feed the detector, a trigger starts a climb, and what comes of it is filed."""

from __future__ import annotations

import asyncio
import contextlib
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
    Diagnosis,
    Dialer,
    Event,
    Evidence,
    Gap,
    HealthCheck,
    HealthSample,
    Incident,
    IncidentHealth,
    LogStanding,
    LogState,
    ProcessSample,
    Stage,
    Target,
    Tick,
    Trigger,
    TriggerKind,
)
from watchd.watch.alarm import Alarm, bounded, case, queued, raised, taken_up
from watchd.watch.census import Census, choose
from watchd.watch.desk import Desk
from watchd.watch.launches import Launches
from watchd.watch.life import Life
from watchd.watch.link import Link
from watchd.watch.recent import Recent

GLANCE_S = 0.5
"""the shortest pause between two looks at the process list"""
HUNT_S = 10.0
"""seconds after a new run was seen to begin in which its process is looked for without a pause"""
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
        self._launches = Launches(target, means.desk)
        self._recent = Recent()
        self._alarms: deque[Alarm] = deque()
        self._read: deque[Event] = deque()
        self._grew_at = float("-inf")
        self._alarmed = asyncio.Event()
        self._curious = asyncio.Event()
        self._turned = asyncio.Event()
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
        finally:
            self._first_pass.set()

    async def settle(self) -> None:
        """Wait until what was begun is written, for `run` may have been cancelled in the midst of it."""
        async with self._fold:
            pass

    async def _resume(self) -> None:
        """Take up what an earlier process left: the place in the log, the open incident, the recorded launch."""
        target = self._target
        place = await self._desk.checkpoint(target.name, target.log)
        found = await self._life.resume()
        process = await self._launches.resume(self._means.now())
        at = (place.generation, place.offset) if place else None
        self._state = detect.begin(target.engine, target.health, process, at)
        self._follower = FileFollower(self._host, target.name, target.log, place)
        self._attend()
        if found and found.stage is Stage.CLIMBING:
            alarm = taken_up(found, at, run=self._state.run, launch=self._launches.present(), process=process)
            self._climb_for(alarm)

    # The three readers.

    async def _follow(self) -> None:
        while True:
            grew = await self._pull()
            self._pulled.set()
            await self._take(Tick(at=self._means.now()))
            await self._keep_place()
            if not grew:
                hot = self._state.suspicion is not None or bool(self._alarms)
                await asyncio.sleep(HOT_S if hot else LIVE_S)

    async def _pull(self) -> bool:
        """Take what the log holds; True where there is more at once."""
        assert self._follower is not None
        async with self._pulling:
            taken = 0
            # The follower hands nothing on twice: what a lost host kept from being taken waits here for its turn.
            self._read.extend(await self._follower.poll(self._means.now()))
            while self._read:
                event = self._read.popleft()
                if isinstance(event, Block):
                    self._recent.note(event)
                    taken += len(event.data)
                await self._take(event)
            if taken:
                self._grew_at = self._means.clock()
            return taken >= self._follower.turn

    async def _poll_health(self) -> None:
        assert self._target.health is not None
        check = self._target.health
        async for sample in health.poll(
            check, lambda: self._ask_health(check), now=self._means.now, early=self._curious
        ):
            await self._take(sample)

    async def _ask_health(self, check: HealthCheck) -> HealthSample:
        dial = self._dial if check.via == "host" else None
        return await health.sample(check, self._means.client, dial, self._means.now)

    async def _look_at_processes(self) -> None:
        interval = self._target.health.interval_s if self._target.health else 10.0
        looked = grown = turned = float("-inf")
        await self._pulled.wait()
        while True:
            age = self._means.clock() - looked
            unknown_and_growing = self._state.process is None and self._grew_at > grown
            if self._turned.is_set():
                self._turned.clear()
                turned = self._means.clock()
            # A launch that dies in its argument checks lives for seconds: its command line must be caught in them.
            hunting = self._state.process is None and self._means.clock() - turned < HUNT_S
            if hunting or self._curious.is_set() or age >= (2 if unknown_and_growing else interval):
                looked, grown = self._means.clock(), self._grew_at
                await self._look(not_older_s=0.2 if hunting else 0.5)
                self._first_pass.set()
            await self._glance()

    async def _glance(self) -> None:
        """Wait a moment, or until a new run was seen: its command line may not be there for long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GLANCE_S):
                await self._turned.wait()

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
        await self._take(sample)
        if sample.process is not None:
            # Not before: what the sample has ended had the launch that was recorded until now.
            await self._launches.record(sample.process, self._means.census.boot_id, at)

    # The fold, and what comes of it.

    async def _take(self, event: Event) -> None:
        self._means.observe(self._target.name, event)
        # Whoever waits here is cancelled when the host is lost; what the event does is done all the same.
        await asyncio.shield(self._fold_in(event))

    async def _fold_in(self, event: Event) -> None:
        async with self._fold:
            before, launch = self._state, self._launches.present()
            self._state, trigger = detect.step(before, event)
            self._note(event, before.run)
            if trigger is not None:
                await self._alarm(raised(trigger, before, self._state, launch))
            await self._life.resolve_if_back(event, self._state, self._launches.began)
            self._attend()
        if detect.curious(self._state, self._means.now()):
            self._curious.set()
        else:
            self._curious.clear()

    async def _alarm(self, alarm: Alarm) -> None:
        self._means.observe(self._target.name, alarm.trigger)
        quietly = self._state.stopping
        if await self._life.alarm(alarm, self._health(), self._means.now(), quietly=quietly):
            self._climb_for(alarm)

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
            self._launches.began = event.at
            self._alarms = deque(bounded(alarm, self._state) for alarm in self._alarms)
            self._turned.set()

    def _health(self) -> IncidentHealth:
        return incident.health(str(self._state.health.state), self._target.health, tuple(self._samples))

    # The climb.

    def _climb_for(self, alarm: Alarm) -> None:
        self._alarms = queued(self._alarms, alarm)
        self._alarmed.set()

    async def _climb_when_told(self) -> None:
        await self.settle()
        while True:
            while self._alarms:
                if self._life.knows(self._alarms[0]):
                    self._alarms.popleft()
                    continue
                try:
                    # It stays in the queue meanwhile: a new run bounds it, and a lost host leaves it there.
                    await self._climb(self._alarms[0].trigger)
                except HostError:
                    raise
                except Exception:
                    # A mistake of ours would be made again and again.
                    self._alarms.popleft()
                    raise
            self._alarmed.clear()
            await self._alarmed.wait()

    async def _climb(self, trigger: Trigger) -> None:
        await self._wait_for_last_words()
        check = self._target.health
        if check and not any(sample.at >= trigger.at for sample in self._samples):
            await self._take(await self._ask_health(replace(check, timeout_s=min(check.timeout_s, PATIENCE_S))))
        if trigger.kind is not TriggerKind.PROCESS_GONE:
            await self._look(not_older_s=0.0)
        alarm = self._alarms[0]
        generation = alarm.trigger.generation
        here = generation is None or generation == self._state.generation
        known = case(
            alarm,
            target=self._target,
            state=self._state,
            samples=self._samples,
            launch=self._launches.present(),
        )
        climbed, diagnosis = await investigate.investigate(
            self._host if here or generation is None else self._recent.host(self._host, generation),
            known,
            clock=self._means.clock,
            on_step=lambda step: self._means.observe(self._target.name, step),
        )
        if climbed.steps and all(step.outcome == "lost" for step in climbed.steps):
            raise HostLostError(self._host.name, "lost while the ladder was climbed")
        await asyncio.shield(self._conclude(climbed, diagnosis))

    async def _conclude(self, climbed: Case, diagnosis: Diagnosis) -> None:
        async with self._fold:
            alarm = self._alarms.popleft()
            await self._life.conclude(alarm, climbed, diagnosis, self._health(), self._means.now())
            self._attend()

    async def _wait_for_last_words(self) -> None:
        began = self._means.clock()
        while self._means.clock() - began < PATIENCE_S:
            await self._pull()
            if self._means.clock() - max(self._grew_at, began - QUIET_S / 2) >= QUIET_S:
                return
            await asyncio.sleep(HOT_S)

    # The place in the log.

    async def _place(self) -> Checkpoint | None:
        assert self._follower is not None
        generation, offset = detect.committed(self._state)
        return await self._follower.checkpoint(generation, offset)

    async def _keep_place(self) -> None:
        if self._alarms or self._unjudged():
            # An alarm that nobody was told of yet would not be found again behind this place.
            return
        if self._follower is not None and self._desk.wants_place(self._target.name, detect.committed(self._state)):
            place = await self._place()
            if place is not None:
                self._desk.note_place(place)

    def _unjudged(self) -> bool:
        """Whether old text was read and no witness has been heard of it: after a restart it would be old no more."""
        heard = self._first_pass.is_set() and (self._target.health is None or bool(self._samples))
        return self._state.old and not heard


def _first(group: ExceptionGroup[Exception]) -> Exception:
    """What ended the readers: a lost host before anything else, since the others fail in its wake."""
    found = [_first(error) if isinstance(error, ExceptionGroup) else error for error in group.exceptions]
    bugs = [error for error in found if not isinstance(error, HostError)]
    return (bugs or found)[0]
