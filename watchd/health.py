"""Health checks: one sample, when to take the next, and what a row of them means."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from watchd.errors import HostError, HttpError, HttpLostError, HttpRefusedError, HttpTimeoutError
from watchd.http import HttpClient
from watchd.model import Dialer, HealthCheck, HealthResult, HealthSample

EARLY_S = 1.0
"""seconds between two samples while somebody wants to know early"""

Now = Callable[[], datetime]
Sleep = Callable[[float], Awaitable[None]]


async def sample(check: HealthCheck, client: HttpClient, dial: Dialer | None, now: Now) -> HealthSample:
    """Ask the endpoint once. Never raises.

    A refusal, a reset and an unexpected status are `down`, no answer in time is `slow`. It is `blind` where the question
    could not be put: the SSH connection is gone or forwards nothing, or URL, header or CA file cannot be used.
    """
    at = now()
    try:
        reply = await client.request(
            "GET", check.url, headers=check.headers, timeout_s=check.timeout_s, ca=check.ca, dial=dial, limit=1024
        )
    except HttpTimeoutError as error:
        return HealthSample(at=at, result=HealthResult.SLOW, detail=str(error))
    except (HttpRefusedError, HttpLostError) as error:
        return HealthSample(at=at, result=HealthResult.DOWN, detail=str(error))
    except (HttpError, HostError) as error:
        return HealthSample(at=at, result=HealthResult.BLIND, detail=str(error))
    expected = reply.status in check.expect
    return HealthSample(
        at=at,
        result=HealthResult.UP if expected else HealthResult.DOWN,
        http_status=reply.status,
        latency_ms=reply.elapsed_ms,
        detail="" if expected else f"HTTP {reply.status}",
    )


async def poll(
    check: HealthCheck,
    ask: Callable[[], Awaitable[HealthSample]],
    *,
    now: Now,
    early: asyncio.Event | None = None,
    sleep: Sleep = asyncio.sleep,
) -> AsyncIterator[HealthSample]:
    """A sample every interval, counted from start to start, one in flight.

    A due sample that finds one open counts as `slow`, once; an open one that then ends without an answer is not counted
    again. Whatever it was that made a sample late, the next one starts when it is due. While `early` is set, samples
    start a second after one another, where the one before has ended.
    """
    while True:
        asking = asyncio.ensure_future(ask())
        second = asyncio.ensure_future(sleep(min(EARLY_S, check.interval_s)))
        due = asyncio.ensure_future(sleep(check.interval_s))
        try:
            counted = False
            while not asking.done():
                await asyncio.wait((asking, due), return_when=asyncio.FIRST_COMPLETED)
                if asking.done():
                    break
                if not counted:
                    counted = True
                    late = f"no answer within {check.interval_s:g} s"
                    yield HealthSample(at=now(), result=HealthResult.SLOW, detail=late)
                due = asyncio.ensure_future(sleep(check.interval_s))
            found = asking.result()
            if not (counted and found.result is HealthResult.SLOW):
                yield found
            await _until_due(due, second, early)
        finally:
            for task in (asking, second, due):
                task.cancel()


async def _until_due(due: asyncio.Future[None], second: asyncio.Future[None], early: asyncio.Event | None) -> None:
    """Wait for the interval to pass, or for a second where somebody wants to know early."""
    if early is None:
        await due
        return
    await asyncio.wait((due, second), return_when=asyncio.FIRST_COMPLETED)
    wanted = asyncio.ensure_future(early.wait())
    try:
        await asyncio.wait((due, wanted), return_when=asyncio.FIRST_COMPLETED)
    finally:
        wanted.cancel()


class State(StrEnum):
    """What a row of samples means."""

    UNKNOWN = "unknown"
    STARTING = "starting"
    UP = "up"
    SUSPECT = "suspect"
    DOWN = "down"
    RECOVERING = "recovering"
    BLIND = "blind"


class Change(StrEnum):
    """What a sample changed, for those who act on it."""

    NONE = "none"
    CAME_UP = "came_up"
    """for the first time in this run"""
    WENT_DOWN = "went_down"
    RECOVERED = "recovered"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A target's health, as one vote after the other made it.

    downs           samples `down` in a row; `slow` does not break it, for it is no sign of life
    ups             samples `up` in a row
    was_up          it answered in this run: from then on nothing is excused as a start
    starting_since  when the first sample of this run was taken that was not `up`
    before          the state behind `blind`
    """

    state: State = State.UNKNOWN
    downs: int = 0
    ups: int = 0
    was_up: bool = False
    starting_since: datetime | None = None
    before: State = State.UNKNOWN


def relaunched(standing: Standing) -> Standing:
    """A new run: every count begins anew. A target that was down stays so until it answers."""
    blind = standing.state is State.BLIND
    down = (standing.before if blind else standing.state) in (State.DOWN, State.RECOVERING)
    fresh = Standing(state=State.DOWN if down else State.UNKNOWN, was_up=down)
    return replace(fresh, state=State.BLIND, before=fresh.state) if blind else fresh


def step(standing: Standing, found: HealthSample, check: HealthCheck | None) -> tuple[Standing, Change]:
    """Take one sample in. Of what lay before a `blind` one no row goes on: nobody knows what happened meanwhile."""
    check = check or HealthCheck(url="")
    if found.result is HealthResult.BLIND:
        before = standing.before if standing.state is State.BLIND else standing.state
        return replace(standing, state=State.BLIND, before=before, downs=0, ups=0), Change.NONE
    if standing.state is State.BLIND:
        standing = replace(standing, state=standing.before)
    if found.result is HealthResult.UP:
        return _up(replace(standing, ups=standing.ups + 1, downs=0), check)
    standing = replace(standing, ups=0, starting_since=standing.starting_since or found.at)
    if found.result is HealthResult.DOWN:
        return _down(replace(standing, downs=standing.downs + 1), check, found.at)
    return replace(standing, state=_SLOW.get(standing.state, standing.state)), Change.NONE


_SLOW = {State.UNKNOWN: State.STARTING, State.UP: State.SUSPECT}
"""What `slow` makes of a state: it is never down by that, and never up."""


def _up(standing: Standing, check: HealthCheck) -> tuple[Standing, Change]:
    if standing.state in (State.DOWN, State.RECOVERING):
        if standing.ups < check.success:
            return replace(standing, state=State.RECOVERING), Change.NONE
        return replace(standing, state=State.UP, was_up=True), Change.RECOVERED
    change = Change.NONE if standing.was_up else Change.CAME_UP
    return replace(standing, state=State.UP, was_up=True), change


def _down(standing: Standing, check: HealthCheck, at: datetime) -> tuple[Standing, Change]:
    if standing.state in (State.DOWN, State.RECOVERING):
        return replace(standing, state=State.DOWN), Change.NONE
    if not standing.was_up:
        assert standing.starting_since is not None
        starting = at - standing.starting_since < timedelta(seconds=check.start_s)
        if starting or standing.downs < check.fail:
            return replace(standing, state=State.STARTING), Change.NONE
    elif standing.downs < check.fail:
        return replace(standing, state=State.SUSPECT), Change.NONE
    return replace(standing, state=State.DOWN), Change.WENT_DOWN
