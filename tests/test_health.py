"""Health: what one sample sees, when the next one starts, and what a row of them means."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from tests.support.clock import Clock
from tests.support.web import Web, answer, close, drip, hang, refusing_port, reset, say
from watchd import health
from watchd.errors import HostLostError, HostRefusedError, HostUnreachableError
from watchd.health import Change, Standing, State
from watchd.hosts.ssh import SshHost
from watchd.http import HttpClient
from watchd.model import HealthCheck, HealthResult, HealthSample

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
UP, DOWN, SLOW, BLIND = HealthResult.UP, HealthResult.DOWN, HealthResult.SLOW, HealthResult.BLIND


@pytest.fixture
async def client():
    found = HttpClient()
    yield found
    await found.close()


async def ask(client, url, dial=None, **check):
    check.setdefault("timeout_s", 20.0)
    return await health.sample(HealthCheck(url=url, **check), client, dial, lambda: NOON)


# One sample.

SEEN = [
    (answer(200), UP, ""),
    (answer(204, b""), DOWN, "HTTP 204"),
    (answer(302, b"", Location="/"), DOWN, "HTTP 302"),
    (answer(503), DOWN, "HTTP 503"),
    (reset(), DOWN, "the connection was reset"),
    (close(), DOWN, "the connection was closed without an answer"),
    (say(b"\x00\x01\r\n\r\n"), DOWN, "what came back is not HTTP"),
    (hang(), SLOW, "it took the connection, but no answer came within 0.3 s"),
    (drip(), SLOW, "it took the connection, but no answer came within 0.3 s"),
]


@pytest.mark.parametrize(("doing", "result", "detail"), SEEN)
async def test_a_sample_says_what_the_server_did(client, doing, result, detail):
    async with Web(doing) as web:
        sample = await ask(client, web.url(), timeout_s=0.3 if result is SLOW else 20.0)
    assert (sample.at, sample.result, sample.detail) == (NOON, result, detail)
    answered = result is UP or detail.startswith("HTTP")
    assert (sample.http_status is not None, sample.latency_ms is not None) == (answered, answered)


async def test_any_expected_status_is_up_and_headers_are_sent(client):
    async with Web(answer(401)) as web:
        sample = await ask(client, web.url(), expect=(200, 401), headers=(("Authorization", "Bearer x"),))
    assert sample.result is UP
    assert web.asked[0].headers["authorization"] == "Bearer x"


async def test_a_port_on_which_nobody_listens_is_down(client):
    sample = await ask(client, f"http://127.0.0.1:{refusing_port()}/")
    assert (sample.result, sample.detail) == (DOWN, "nobody listens there (connection refused)")


@pytest.mark.parametrize(
    "error",
    [
        HostLostError("gpu-01", "the connection broke"),
        HostUnreachableError("gpu-01", "no route"),
        HostRefusedError("gpu-01", "it forwards nothing: allow it by AllowTcpForwarding"),
    ],
)
async def test_where_the_host_carries_no_question_nothing_is_said_of_the_server(client, error):
    async def dial(host, port):
        raise error

    sample = await ask(client, "http://127.0.0.1:1/", dial)
    assert (sample.result, sample.detail) == (BLIND, str(error))


async def test_a_check_that_cannot_be_put_is_no_fault_of_the_server(client):
    sample = await ask(client, "https://127.0.0.1/", ca="/no/such/file")
    assert sample.result is BLIND
    assert "/no/such/file" in sample.detail


async def test_through_a_real_host_up_refused_slow_and_lost_are_told_apart(client, make_sshd):
    sshd = make_sshd()
    host = SshHost(sshd.address())
    await host.connect()
    dial = host.tunnel()
    async with Web(answer(200), hang()) as web:
        assert (await ask(client, web.url(), dial)).result is UP
        assert (await ask(client, web.url(), dial, timeout_s=0.5)).result is SLOW
        refused = await ask(client, f"http://127.0.0.1:{refusing_port()}/", dial)
        assert (refused.result, "nobody listens" in refused.detail) == (DOWN, True)
        sshd.kill_connections()
        assert (await ask(client, web.url(), dial)).result is BLIND
    await host.close()


async def test_a_host_that_forwards_nothing_is_blind_and_says_what_to_change(client, make_sshd):
    host = SshHost(make_sshd(AllowTcpForwarding="no").address())
    await host.connect()
    async with Web() as web:
        sample = await ask(client, web.url(), host.tunnel())
    await host.close()
    assert sample.result is BLIND
    assert "AllowTcpForwarding" in sample.detail


# When samples are taken.


class Polling:
    """A poll in virtual time, of a server whose answers take as long as `takes` says."""

    def __init__(self, *takes, early=None, **check):
        self.clock = Clock()
        self.takes = list(takes)
        self.begun = []
        self.seen = []
        self.open = 0
        check = HealthCheck(url="", **check)
        self.samples = health.poll(check, self.ask, now=self.clock.now, sleep=self.clock.sleep, early=early)
        self.task = asyncio.create_task(self.take())

    async def ask(self):
        self.begun.append(self.clock.seconds)
        at = self.clock.now()
        seconds, result = self.takes.pop(0) if self.takes else (0.5, UP)
        self.open += 1
        try:
            await self.clock.sleep(seconds)
        finally:
            self.open -= 1
        return HealthSample(at=at, result=result)

    async def take(self):
        async for sample in self.samples:
            self.seen.append((self.clock.seconds, sample.result.value))

    async def end(self):
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        await self.samples.aclose()
        await self.clock.settle()


async def test_a_sample_starts_every_interval_however_long_the_one_before_took():
    polling = Polling((0.5, UP), (9.5, UP), (0.5, DOWN))
    await polling.clock.advance(35)
    assert polling.begun == [0, 10, 20, 30]
    assert polling.seen == [(0.5, "up"), (19.5, "up"), (20.5, "down"), (30.5, "up")]
    await polling.end()


async def test_a_due_sample_that_finds_one_open_counts_once_as_slow():
    polling = Polling((25, SLOW), (0.5, UP))
    await polling.clock.advance(45)
    assert polling.begun == [0, 30, 40]
    assert polling.seen == [(10, "slow"), (30.5, "up"), (40.5, "up")]
    await polling.end()


async def test_an_answer_that_comes_late_counts_beside_the_slow_one():
    polling = Polling((12, UP), (13, DOWN))
    await polling.clock.advance(39)
    assert polling.begun == [0, 20]
    assert polling.seen == [(10, "slow"), (12, "up"), (30, "slow"), (33, "down")]
    await polling.end()


async def test_no_two_samples_are_in_flight():
    polling = Polling((100, SLOW))
    await polling.clock.advance(99)
    assert (polling.begun, polling.open) == ([0], 1)
    await polling.end()


async def test_who_wants_to_know_early_gets_a_sample_a_second():
    early = asyncio.Event()
    polling = Polling((0.5, UP), (0.2, DOWN), (0.2, DOWN), (0.2, DOWN), early=early)
    await polling.clock.advance(4)
    early.set()
    await polling.clock.advance(2.5)
    assert polling.begun == [0, 4, 5, 6]
    early.clear()
    await polling.clock.advance(10)
    assert polling.begun == [0, 4, 5, 6, 16]
    await polling.end()


async def test_a_sample_that_is_open_is_not_slow_before_its_time_because_somebody_wants_to_know_early():
    early = asyncio.Event()
    early.set()
    polling = Polling((4, UP), early=early)
    await polling.clock.advance(4.1)
    assert (polling.begun, polling.seen) == ([0, 4], [(4, "up")])
    await polling.end()


async def test_who_stops_listening_leaves_nothing_behind():
    polling = Polling((100, UP))
    await polling.clock.advance(15)
    await polling.end()
    assert polling.open == 0
    assert len(asyncio.all_tasks()) == 1


async def test_a_programming_error_in_a_sample_is_not_swallowed():
    async def fail():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        async for _ in health.poll(HealthCheck(url=""), fail, now=lambda: NOON):
            pass


# What a row of samples means.


def fold(results, standing=None, *, every=10.0, begin=0.0, **check):
    """Letters u, d, s and b, one sample each: the last standing, the states, and the changes."""
    standing, states, changes = standing or Standing(), [], []
    for number, letter in enumerate(results):
        at = NOON + timedelta(seconds=begin + number * every)
        result = {"u": UP, "d": DOWN, "s": SLOW, "b": BLIND}[letter]
        standing, change = health.step(standing, HealthSample(at=at, result=result), HealthCheck(url="", **check))
        states.append(standing.state)
        changes += [change] if change is not Change.NONE else []
    return standing, states, changes


LIVED, _, _ = fold("u")


def test_nothing_is_known_before_the_first_sample():
    assert Standing().state is State.UNKNOWN


@pytest.mark.parametrize(
    ("samples", "states", "changes"),
    [
        ("u", "up", "came_up"),
        ("uu", "up up", "came_up"),
        ("uddd", "up suspect suspect down", "came_up went_down"),
        ("uddu", "up suspect suspect up", "came_up"),
        ("uddudd", "up suspect suspect up suspect suspect", "came_up"),
        ("udddd", "up suspect suspect down down", "came_up went_down"),
        ("uddduu", "up suspect suspect down recovering up", "came_up went_down recovered"),
        ("uddduduu", "up suspect suspect down recovering down recovering up", "came_up went_down recovered"),
        ("udddusuu", "up suspect suspect down recovering recovering recovering up", "came_up went_down recovered"),
    ],
)
def test_three_down_in_a_row_are_down_and_two_up_in_a_row_are_back(samples, states, changes):
    _, seen, told = fold(samples)
    assert (" ".join(seen), " ".join(told)) == (states, changes)


def test_slow_alone_is_never_down():
    _, states, changes = fold("s" * 1000, LIVED)
    assert (set(states), changes) == ({State.SUSPECT}, [])
    _, states, changes = fold("s" * 1000)
    assert (set(states), changes) == ({State.STARTING}, [])


def test_slow_between_two_down_is_no_sign_of_life():
    assert fold("dsdsd", LIVED)[2] == [Change.WENT_DOWN]
    assert fold("dsudsd", LIVED)[2] == []


def test_while_a_server_starts_down_does_not_count():
    _, states, changes = fold("d" * 179)
    assert (set(states), changes) == ({State.STARTING}, [])


def test_a_start_that_takes_too_long_is_down():
    _, states, changes = fold("d" * 181)
    assert changes == [Change.WENT_DOWN]
    assert states.index(State.DOWN) == 180


def test_after_the_first_answer_nothing_is_excused_as_a_start():
    assert fold("dddduddd")[2] == [Change.CAME_UP, Change.WENT_DOWN]


def test_the_counts_are_the_configurations():
    assert fold("d", LIVED, fail=1)[2] == [Change.WENT_DOWN]
    assert fold("dddd", LIVED, fail=5)[2] == []
    assert fold("dddu", LIVED, success=1)[1][-1] is State.UP
    assert fold("ddd", start_s=20)[2] == [Change.WENT_DOWN]


def test_a_relaunch_begins_every_count_anew():
    standing, _, _ = fold("dd", LIVED)
    _, states, changes = fold("d" * 180, health.relaunched(standing), begin=1000)
    assert (set(states), changes) == ({State.STARTING}, [])


def test_a_relaunch_of_a_server_that_was_down_is_no_recovery_before_it_answers():
    standing, _, _ = fold("ddd", LIVED)
    _, states, changes = fold("ddduu", health.relaunched(standing))
    assert " ".join(states) == "down down down recovering up"
    assert changes == [Change.RECOVERED]


def test_blind_is_no_vote_and_hides_the_state_only_while_it_lasts():
    assert " ".join(fold("ubbu")[1]) == "up blind blind up"
    assert " ".join(fold("udddbd")[1]) == "up suspect suspect down blind down"
    assert fold("b" * 1000, LIVED)[2] == []


def test_no_row_goes_on_across_a_time_in_which_nothing_was_seen():
    assert fold("ddbd", LIVED)[2] == []
    assert fold("ddbddd", LIVED)[2] == [Change.WENT_DOWN]
    assert fold("dddubuu", LIVED)[1][-2:] == [State.RECOVERING, State.UP]


def test_a_relaunch_while_blind_is_remembered():
    standing, _, _ = fold("dddb", LIVED)
    again = health.relaunched(standing)
    assert (again.state, again.before) == (State.BLIND, State.DOWN)
    assert fold("d", again)[1] == [State.DOWN]
