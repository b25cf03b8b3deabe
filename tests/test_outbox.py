"""The outbox on a real store: who is owed what, when it is sent, and what becomes of it; all of it in virtual time."""

from __future__ import annotations

import asyncio
import heapq
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.founding import T0, climbing, final, resolved, target, withdrawn
from watchd import outbox
from watchd.model import Cause, Delivery, DeliveryState, Scope, Severity, Stage, Status, Told, Verdict
from watchd.outbox import Outbox, Route
from watchd.sinks.base import Answer, Result
from watchd.store import AsyncStore, Store

SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)
DRAIN_S = 10.25
SENT = Answer(result=Result.SENT)
LATER = Answer(result=Result.RETRY, reason="HTTP 503")

HOOK = Route(sink="hook", edits=True)
SLACK = Route(sink="slack", edits=False)


# Who is told


@pytest.mark.parametrize(
    ("route", "passes"),
    [
        (HOOK, True),
        (replace(HOOK, severity=Severity.CRITICAL), False),
        (replace(HOOK, severity=Severity.INFO), True),
        (replace(HOOK, targets=("eagle3",)), True),
        (replace(HOOK, targets=("other", "eag*")), True),
        (replace(HOOK, targets=("Eagle3",)), False),
        (replace(HOOK, labels={"team": "inference"}), True),
        (replace(HOOK, labels={"team": "training"}), False),
        (replace(HOOK, labels={"team": "inference", "rack": "r7"}), False),
        (replace(HOOK, targets=("eagle3",), labels={"team": "training"}), False),
    ],
)
def test_an_incident_goes_where_severity_target_and_labels_fit(route, passes):
    incident = replace(final(), target=target(team="inference"))
    assert outbox.leads(route, incident) is passes


def test_a_stop_in_order_is_told_only_where_everything_is_told():
    stopped = replace(resolved(), verdict=Verdict.STOPPED, severity=Severity.INFO)
    assert not outbox.leads(HOOK, stopped)
    assert outbox.leads(replace(HOOK, severity=Severity.INFO), stopped)


def test_a_lost_host_concerns_every_target_on_it():
    lost = replace(climbing(), scope=Scope.HOST, target=None)
    assert outbox.leads(replace(HOOK, targets=("eagle3",), labels={"team": "x"}), lost)


def heard(incident, **changes):
    fields = {
        "revision": incident.revision,
        "status": incident.status,
        "stage": incident.stage,
        "cause": incident.cause,
    }
    return Told(confirmed=True, **fields | changes)


FINAL_TWO = replace(final(), revision=3, cause=Cause.ASSERTION)
AGAIN = replace(final(), revision=3, stage=Stage.CLIMBING, occurrences=2)
REOPENED = replace(climbing(), revision=9)


@pytest.mark.parametrize(
    ("incident", "told", "edits", "cannot_edit"),
    [
        (climbing(), None, True, True),
        (withdrawn(), None, False, False),
        (withdrawn(), Told(confirmed=False), True, True),
        (resolved(), None, True, True),
        (final(), heard(final()), False, False),
        (final(), heard(climbing()), True, True),
        (FINAL_TWO, heard(final()), True, True),
        (AGAIN, heard(final()), True, False),
        (replace(AGAIN, stage=Stage.FINAL), heard(final()), True, False),
        (replace(AGAIN, stage=Stage.CLIMBING, cause=None), heard(final()), True, False),
        (resolved(), heard(final()), True, True),
        (resolved(climbing()), heard(climbing()), True, True),
        (replace(resolved(), revision=9), heard(resolved()), True, False),
        (replace(resolved(), revision=9), heard(resolved(), cause=None), True, True),
        (withdrawn(), heard(final()), True, True),
        (REOPENED, heard(resolved()), True, True),
    ],
)
def test_a_state_is_worth_telling_if_it_is_news_to_the_sink(incident, told, edits, cannot_edit):
    assert outbox.worth_telling(incident, told, HOOK) is edits
    assert outbox.worth_telling(incident, told, SLACK) is cannot_edit


def test_who_was_told_is_told_how_it_ends_even_when_it_has_become_harmless():
    harmless = withdrawn()
    assert not outbox.leads(HOOK, harmless)
    assert [d.sink for d in outbox.owed(None, harmless, [HOOK, SLACK], {"slack": heard(final())}, T0)] == ["slack"]
    assert [d.sink for d in outbox.owed(final(), harmless, [HOOK, SLACK], {}, T0)] == ["hook", "slack"]
    assert outbox.owed(None, harmless, [HOOK, SLACK], {}, T0) == ()


def test_nothing_is_owed_for_a_revision_that_was_filed_before():
    assert outbox.owed(final(), replace(final(), occurrences=1), [HOOK], {}, T0) == ()


# When


@pytest.mark.parametrize(
    ("incident", "told", "route", "after_s"),
    [
        (climbing(), None, HOOK, 2),
        (climbing(), None, SLACK, 5),
        (replace(climbing(), opened_at=T0 - 60 * SECOND), None, SLACK, 2),
        (final(), None, SLACK, 2),
        (resolved(), heard(final()), SLACK, 2),
        (replace(resolved(), stage=Stage.CLIMBING), heard(final()), SLACK, 2),
        (replace(resolved(), stage=Stage.CLIMBING), None, SLACK, 5),
        (REOPENED, heard(resolved()), SLACK, 7),
        (REOPENED, heard(resolved()), HOOK, 2),
    ],
)
def test_a_sink_that_cannot_edit_waits_for_the_climb_five_seconds_at_most(incident, told, route, after_s):
    known = {} if told is None else {route.sink: told}
    (delivery,) = outbox.owed(None, incident, [route], known, T0 + 2 * SECOND)
    assert delivery.due_at == T0 + after_s * SECOND
    assert (delivery.revision, delivery.state) == (incident.revision, DeliveryState.PENDING)


def leased(attempt, **fields):
    given = {"incident": "i", "sink": "hook", "revision": 1, "due_at": T0, "created_at": T0, "attempt": attempt}
    return Delivery(**given | {"state": DeliveryState.LEASED} | fields)


@pytest.mark.parametrize(("attempt", "longest"), [(1, 1), (2, 2), (5, 16), (10, 512), (11, 600), (500, 600)])
def test_the_back_off_doubles_from_a_second_to_ten_minutes_with_full_jitter(attempt, longest):
    for share in (0.0, 0.25, 1.0):
        after = outbox.next_attempt(leased(attempt), LATER, T0, lambda share=share: share)
        assert after.due_at == T0 + share * longest * SECOND
        assert (after.state, after.error) == (DeliveryState.PENDING, "HTTP 503")


def test_a_retry_after_is_a_floor_for_the_back_off():
    asked = replace(LATER, retry_after_s=30.0)
    assert outbox.next_attempt(leased(1), asked, T0, lambda: 1.0).due_at == T0 + 30 * SECOND
    assert outbox.next_attempt(leased(10), asked, T0, lambda: 1.0).due_at == T0 + 512 * SECOND


def test_a_delivery_is_given_up_after_a_day():
    for hours, state in ((23.9, DeliveryState.PENDING), (24, DeliveryState.DEAD)):
        assert outbox.next_attempt(leased(90), LATER, T0 + hours * HOUR, lambda: 1.0).state is state


def test_a_message_that_is_too_large_is_sent_once_more_and_smaller():
    shrink = Answer(result=Result.SHRINK, reason="HTTP 413")
    again = outbox.next_attempt(leased(1), shrink, T0, lambda: 1.0)
    assert (again.state, again.small, again.due_at) == (DeliveryState.PENDING, True, T0)
    gone = outbox.next_attempt(replace(again, attempt=2), shrink, T0, lambda: 1.0)
    assert (gone.state, gone.error) == (DeliveryState.DEAD, "HTTP 413")


@pytest.mark.parametrize(
    ("result", "state"),
    [(Result.SENT, DeliveryState.SENT), (Result.HOLD, DeliveryState.HELD), (Result.DEAD, DeliveryState.DEAD)],
)
def test_every_other_answer_settles_a_delivery(result, state):
    assert outbox.next_attempt(leased(1), Answer(result=result), T0, lambda: 1.0).state is state


# Virtual time


class Clock:
    """Time that passes only when told to, sleepers woken in order."""

    def __init__(self):
        self.at = T0
        self.sleepers = []
        self.numbers = count()

    def now(self):
        return self.at

    async def sleep(self, seconds):
        woken = asyncio.get_running_loop().create_future()
        heapq.heappush(self.sleepers, (self.at + timedelta(seconds=seconds), seconds, next(self.numbers), woken))
        await woken

    def asleep(self):
        """How many queues sleep; who drains the outbox sleeps besides."""
        return len([woken for _, seconds, _, woken in self.sleepers if not woken.done() and seconds != DRAIN_S])


class ScriptedSink:
    """Answers by a function of the attempt's number; remembers what it was told, and when."""

    def __init__(self, clock, name, *, edits, answer=lambda _: SENT):
        self.clock, self.name, self.edits, self.answer = clock, name, edits, answer
        self.attempts = []
        self.told = []
        self.open = 0
        self.meanwhile = None

    async def send(self, incident, *, first, small):
        self.open += 1
        assert self.open == 1, "two messages at once"
        self.attempts.append((self.clock.at, incident, first, small))
        if self.meanwhile is not None:
            work, self.meanwhile = self.meanwhile, None
            await work()
        self.open -= 1
        answer = self.answer(len(self.attempts))
        if isinstance(answer, Exception):
            raise answer
        if answer.result is Result.SENT:
            self.told.append((round((self.clock.at - T0).total_seconds(), 3), incident.revision, first))
        return answer


class Desk:
    """An outbox with a clock, a store and two sinks."""

    def __init__(self, path, **routes):
        self.clock = Clock()
        self.path = path
        self.hook = ScriptedSink(self.clock, "hook", edits=True)
        self.slack = ScriptedSink(self.clock, "slack", edits=False)
        self.outlets = [(replace(HOOK, **routes), self.hook), (replace(SLACK, **routes), self.slack)]

    @asynccontextmanager
    async def running(self):
        self.store = AsyncStore(Store(self.path))
        clock = self.clock
        self.box = Outbox(self.store, self.outlets, now=clock.now, sleep=clock.sleep, random=lambda: 1.0)
        task = asyncio.ensure_future(self.box.run())
        try:
            await self.settled()
            yield self
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            await self.store.close()

    async def file(self, before, after):
        await self.box.file(before, after)
        await self.settled()

    async def pass_time(self, seconds):
        """Let so much time pass, stopping at every moment for which somebody sleeps."""
        end = self.clock.at + timedelta(seconds=seconds)
        while self.clock.sleepers and self.clock.sleepers[0][0] <= end:
            due, _, _, woken = heapq.heappop(self.clock.sleepers)
            if not woken.done():
                self.clock.at = max(self.clock.at, due)
                woken.set_result(None)
                await self.settled()
        self.clock.at = end

    async def settled(self):
        """Wait until every queue rests: for its bell, or for a time to come."""
        async with asyncio.timeout(20):
            while not self._rests():
                await asyncio.sleep(0.001)

    def _rests(self):
        outlets = self.box._outlets
        waiting = [outlet for outlet in outlets if outlet.resting and not outlet.bell.is_set()]
        return len(waiting) == len(outlets) and self.clock.asleep() >= sum(o.due is not None for o in outlets)

    async def states(self, incident):
        return [(d.sink, d.revision, d.state.value) for d in await self.store.deliveries(incident.id)]


@pytest.fixture
async def desk(tmp_path):
    async with Desk(tmp_path / "watchd.db").running() as running:
        yield running


async def test_a_sink_that_edits_hears_every_revision_and_one_that_cannot_hears_two_messages(desk):
    await desk.file(None, climbing())
    await desk.pass_time(1.2)
    await desk.file(climbing(), final())
    await desk.pass_time(250.8)
    await desk.file(final(), resolved())
    await desk.pass_time(3600)
    assert desk.hook.told == [(0, 1, True), (1.2, 2, False), (252, 3, False)]
    assert desk.slack.told == [(1.2, 2, True), (252, 3, False)]


async def test_a_long_climb_is_told_after_five_seconds_and_again_when_the_cause_is_known(desk):
    await desk.file(None, climbing())
    await desk.pass_time(12)
    await desk.file(climbing(), final(after_s=12))
    await desk.pass_time(60)
    assert desk.slack.told == [(5, 1, True), (12, 2, False)]


async def test_a_climb_that_ends_without_a_cause_is_not_told_twice(desk):
    await desk.file(None, climbing())
    await desk.pass_time(12)
    await desk.file(climbing(), replace(final(after_s=12), cause=None))
    await desk.pass_time(60)
    assert desk.slack.told == [(5, 1, True)]
    assert (await desk.states(final()))[-1] == ("slack", 2, "dropped")


async def test_what_is_over_before_it_was_told_is_one_message_with_both_times(desk):
    await desk.file(None, climbing())
    await desk.pass_time(3)
    await desk.file(climbing(), resolved(climbing(), after_s=3))
    await desk.pass_time(60)
    assert desk.slack.told == [(3, 2, True)]


async def test_an_alarm_withdrawn_before_anybody_heard_of_it_stays_unheard(desk):
    await desk.file(None, climbing())
    await desk.pass_time(3)
    await desk.file(climbing(), withdrawn(climbing()))
    await desk.pass_time(60)
    assert desk.slack.attempts == []
    assert desk.hook.told == [(0, 1, True), (3, 2, False)]


async def test_an_alarm_withdrawn_after_it_was_told_is_taken_back(desk):
    await desk.file(None, climbing())
    await desk.pass_time(8)
    await desk.file(climbing(), withdrawn(climbing(), after_s=8))
    assert desk.slack.told == [(5, 1, True), (8, 2, False)]


async def test_what_happens_again_while_it_is_open_is_no_news_where_nothing_can_be_edited(desk):
    await desk.file(None, final())
    before = final()
    for revision in range(3, 9):
        after = replace(before, revision=revision, stage=Stage.CLIMBING if revision % 2 else Stage.FINAL)
        await desk.file(before, after)
        await desk.pass_time(30)
        before = after
    assert [told[1] for told in desk.slack.told] == [2]
    assert [told[1] for told in desk.hook.told] == [2, 3, 4, 5, 6, 7, 8]


async def test_what_happens_again_after_its_end_is_told_again(desk):
    await desk.file(None, final())
    await desk.file(final(), resolved())
    reopened = replace(final(), revision=4, stage=Stage.CLIMBING, status=Status.FIRING)
    await desk.file(resolved(), reopened)
    await desk.pass_time(2)
    await desk.file(reopened, replace(reopened, revision=5, stage=Stage.FINAL))
    await desk.pass_time(60)
    assert desk.slack.told == [(0, 2, True), (0, 3, False), (2, 5, False)]


async def test_after_an_hour_without_an_answer_only_the_newest_state_is_sent(desk):
    desk.hook.answer = desk.slack.answer = lambda _: LATER if desk.clock.at < T0 + HOUR else SENT
    before = None
    for number, state in enumerate((climbing(), final(), resolved())):
        await desk.file(before, state)
        before = state
        await desk.pass_time(60 if number < 2 else 2 * 3600)
    for sink in (desk.hook, desk.slack):
        assert [(revision, first) for _, revision, first in sink.told] == [(3, True)]
        assert 3600 <= sink.told[0][0] <= 3600 + 600
        assert len(sink.attempts) < 40
    states = [state for _, _, state in await desk.states(climbing())]
    assert sorted(set(states)) == ["dropped", "sent"]


async def test_a_first_success_wakes_everything_that_waits_at_the_same_sink(desk):
    desk.hook.answer = lambda _: LATER if desk.clock.at < T0 + HOUR else SENT
    for number in range(1, 6):
        await desk.file(None, climbing(number))
        await desk.pass_time(7)
    await desk.pass_time(2 * 3600)
    times = [at for at, _, _ in desk.hook.told]
    assert len(times) == 5
    assert times[0] == times[4]


async def test_retry_after_holds_for_the_whole_sink_and_for_no_other(desk):
    limited = replace(LATER, retry_after_s=30.0)
    desk.hook.answer = lambda attempt: limited if attempt == 1 else SENT
    await desk.file(None, final(climbing(1)))
    await desk.pass_time(3)
    await desk.file(None, final(climbing(2)))
    await desk.pass_time(60)
    assert [at for at, _, _ in desk.hook.told] == [30, 30]
    assert [at for at, _, _ in desk.slack.told] == [0, 3]


async def test_retry_after_outlives_the_process(tmp_path):
    desk = Desk(tmp_path / "watchd.db")
    desk.hook.answer = lambda attempt: replace(LATER, retry_after_s=30.0) if attempt == 1 else SENT
    async with desk.running():
        await desk.file(None, final(climbing(1)))
    async with desk.running():
        await desk.file(None, final(climbing(2)))
        await desk.pass_time(60)
    assert [at for at, _, _ in desk.hook.told] == [30, 30]


async def test_a_slow_sink_holds_up_no_other(desk):
    release = asyncio.Event()
    desk.slack.meanwhile = release.wait
    await desk.box.file(None, final())
    async with asyncio.timeout(20):
        while not (desk.hook.told and desk.slack.attempts):
            await asyncio.sleep(0.001)
    assert desk.slack.told == []
    release.set()
    await desk.settled()
    assert desk.slack.told == [(0, 2, True)]


async def test_a_revision_filed_while_one_is_on_its_way_follows_it(desk):
    async def news():
        await desk.box.file(climbing(), final())

    desk.hook.meanwhile = news
    await desk.file(None, climbing())
    assert [(revision, first) for _, revision, first in desk.hook.told] == [(1, True), (2, False)]


async def test_a_cause_found_while_the_first_message_is_on_its_way_is_told_after_it(desk):
    async def news():
        await desk.box.file(climbing(), final(after_s=5))

    desk.slack.meanwhile = news
    await desk.file(None, climbing())
    await desk.pass_time(60)
    assert desk.slack.told == [(5, 1, True), (5, 2, False)]


async def test_an_alarm_withdrawn_while_its_message_is_on_its_way_is_taken_back(desk):
    async def news():
        await desk.box.file(final(), withdrawn(final()))

    desk.slack.meanwhile = news
    await desk.file(None, final())
    assert desk.slack.told == [(0, 2, True), (0, 3, False)]


async def test_what_may_have_been_heard_is_taken_back_though_it_was_never_confirmed(desk):
    desk.slack.answer = lambda attempt: LATER if attempt == 1 else SENT
    await desk.file(None, final())
    await desk.file(final(), withdrawn(final()))
    assert desk.slack.told == [(0, 3, True)]


async def test_what_may_have_been_heard_after_an_all_clear_is_cleared_again(desk):
    await desk.file(None, final())
    await desk.file(final(), resolved())
    desk.slack.answer = lambda _: LATER
    reopened = replace(final(), revision=4)
    await desk.file(resolved(), reopened)
    desk.slack.answer = lambda _: SENT
    await desk.file(reopened, replace(resolved(), revision=5))
    assert desk.slack.told == [(0, 2, True), (0, 3, False), (0, 5, False)]


async def test_a_held_delivery_waits_for_the_next_start(tmp_path):
    desk = Desk(tmp_path / "watchd.db")
    desk.hook.answer = lambda _: Answer(result=Result.HOLD, reason="HTTP 404 no_service")
    async with desk.running():
        await desk.file(None, climbing())
        await desk.pass_time(3600)
        assert len(desk.hook.attempts) == 1
        (held, _) = await desk.store.deliveries(climbing().id)
        assert (held.state, held.error) == (DeliveryState.HELD, "HTTP 404 no_service")
    desk.hook.answer = lambda _: SENT
    async with desk.running():
        assert desk.hook.told == [(3600, 1, True)]


async def test_a_message_found_too_large_goes_out_small_at_once(desk):
    desk.hook.answer = lambda attempt: Answer(result=Result.SHRINK) if attempt == 1 else SENT
    await desk.file(None, climbing())
    assert [small for _, _, _, small in desk.hook.attempts] == [False, True]
    assert desk.hook.told == [(0, 1, True)]


async def test_a_sink_that_raises_is_tried_again_and_the_others_go_on(desk):
    desk.hook.answer = lambda attempt: ValueError("https://secret.example/") if attempt == 1 else SENT
    await desk.file(None, final())
    (failed, _) = await desk.store.deliveries(final().id)
    assert failed.error == "ValueError"
    assert desk.slack.told == [(0, 2, True)]
    await desk.pass_time(1)
    assert desk.hook.told == [(1, 2, True)]


async def test_a_delivery_that_nobody_takes_for_a_day_is_dead_and_the_next_revision_lives(desk):
    desk.hook.answer = lambda _: LATER
    await desk.file(None, final())
    await desk.pass_time(25 * 3600)
    assert ("hook", 2, "dead") in await desk.states(final())
    desk.hook.answer = lambda _: SENT
    await desk.file(final(), resolved(after_s=25 * 3600))
    assert [(revision, first) for _, revision, first in desk.hook.told] == [(3, True)]


async def test_a_sink_below_whose_severity_it_stays_hears_nothing(tmp_path):
    async with Desk(tmp_path / "watchd.db", severity=Severity.CRITICAL).running() as desk:
        await desk.file(None, final())
        await desk.file(final(), resolved())
        assert await desk.states(final()) == []
        assert desk.hook.attempts == []


async def test_what_turned_out_harmless_before_it_was_told_is_not_told(desk):
    await desk.file(None, climbing())
    await desk.pass_time(2)
    await desk.file(climbing(), replace(final(), verdict=Verdict.DEGRADED, severity=Severity.WARNING))
    await desk.pass_time(60)
    assert desk.slack.attempts == []
    assert [revision for _, revision, _ in desk.hook.told] == [1, 2]


async def test_draining_waits_for_what_can_still_be_sent_and_no_longer(desk):
    desk.hook.answer = lambda attempt: LATER if attempt < 3 else SENT
    desk.slack.answer = lambda _: replace(LATER, retry_after_s=600.0)
    await desk.file(None, final())
    draining = asyncio.ensure_future(desk.box.drain(DRAIN_S))
    await desk.settled()
    assert not draining.done()
    await desk.pass_time(4)
    async with asyncio.timeout(20):
        await draining
    assert desk.hook.told == [(3, 2, True)]
    assert desk.slack.told == []


async def test_draining_ends_when_its_time_is_over(desk):
    desk.hook.meanwhile = asyncio.Event().wait
    await desk.box.file(None, climbing())
    draining = asyncio.ensure_future(desk.box.drain(DRAIN_S))
    async with asyncio.timeout(20):
        while not any(seconds == DRAIN_S for _, seconds, _, _ in desk.clock.sleepers):
            await asyncio.sleep(0.001)
        (limit,) = [woken for _, seconds, _, woken in desk.clock.sleepers if seconds == DRAIN_S]
        assert not draining.done()
        limit.set_result(None)
        await draining
    assert desk.hook.told == []


async def test_a_clock_set_back_by_an_hour_delays_nothing_that_is_new(desk):
    await desk.file(None, climbing(1))
    desk.clock.at -= HOUR
    await desk.file(None, replace(final(climbing(2)), opened_at=desk.clock.at, updated_at=desk.clock.at))
    assert [told[1] for told in desk.hook.told] == [1, 2]


async def test_a_store_that_fails_ends_the_outbox(tmp_path):
    store = AsyncStore(Store(tmp_path / "watchd.db"))
    box = Outbox(store, [(HOOK, ScriptedSink(Clock(), "hook", edits=True))])
    store._store._db.execute("DROP TABLE sinks")
    with pytest.raises(ExceptionGroup) as raised:
        await box.run()
    assert "no such table" in str(raised.value.exceptions[0])
    await store.close()


# The whole of it, against a model


STATES = st.sampled_from(["climb", "final", "resolve", "withdraw", "again", "other cause"])
FATES = st.sampled_from(["sent", "failed", "lost", "not yet"])


def changed(before, what):
    crashed = replace(before, verdict=Verdict.CRASH, severity=Severity.ERROR)
    match what:
        case "climb":
            return replace(crashed, stage=Stage.CLIMBING, status=Status.FIRING)
        case "final":
            return replace(crashed, stage=Stage.FINAL, cause=Cause.LAUNCH_ARGUMENT)
        case "other cause":
            return replace(crashed, stage=Stage.FINAL, cause=Cause.ASSERTION)
        case "resolve":
            return replace(before, stage=Stage.FINAL, status=Status.RESOLVED, resolved_at=T0)
        case "withdraw":
            return withdrawn(before)
        case _:
            return replace(crashed, stage=Stage.CLIMBING, status=Status.FIRING, occurrences=before.occurrences + 1)


@given(st.lists(st.tuples(STATES, FATES), min_size=1, max_size=12), st.booleans())
def test_whatever_happens_each_sink_ends_up_knowing_the_newest_state_that_is_news(steps, edits):
    """An attempt is confirmed, or heard and not confirmed, or fails; in any order with what happens."""
    route = Route(sink="s", edits=edits)
    told, known, incident, pending = None, None, None, False

    def attempt(fate):
        nonlocal told, known, pending
        if not pending or fate == "not yet":
            return
        if not outbox.worth_telling(incident, told, route):
            pending = False
            return
        if fate in ("sent", "lost"):
            known = incident
        pending = fate != "sent"
        told = replace(told or Told(confirmed=False), confirmed=False) if pending else heard(incident)

    for what, fate in steps:
        before, incident = incident, changed(incident or climbing(), what)
        incident = replace(incident, revision=before.revision + 1 if before else 1)
        pending |= bool(outbox.owed(before, incident, [route], {} if told is None else {"s": told}, T0))
        attempt(fate)
    attempt("sent")
    if known is None:
        assert incident.verdict is Verdict.OK
        return
    assert known.status is incident.status
    if edits:
        assert known.revision == incident.revision
    elif incident.stage is Stage.FINAL:
        assert known.cause == incident.cause
