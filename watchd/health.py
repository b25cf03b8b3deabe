"""Health checks: one sample, when to take the next, and what a row of them means."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from watchd.errors import HostError, HttpError, HttpTimeoutError
from watchd.http import HttpClient
from watchd.model import Dialer, HealthCheck, HealthResult, HealthSample

Now = Callable[[], datetime]


async def sample(check: HealthCheck, client: HttpClient, dial: Dialer | None, now: Now) -> HealthSample:
    """Ask the endpoint once. Never raises: `blind` where the SSH connection could not carry the question."""
    at = now()
    try:
        reply = await client.request(
            "GET", check.url, headers=check.headers, timeout_s=check.timeout_s, ca=check.ca, dial=dial, limit=1024
        )
    except HttpTimeoutError as error:
        return HealthSample(at=at, result=HealthResult.SLOW, detail=str(error))
    except HttpError as error:
        return HealthSample(at=at, result=HealthResult.DOWN, detail=str(error))
    except HostError as error:
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
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> AsyncIterator[HealthSample]:
    """A sample every interval, counted from start to start, one in flight.

    A due sample that finds one open counts once as `slow`. `early`, while set, makes one due each second.
    """
    while True:
        asking = asyncio.ensure_future(ask())
        try:
            pause = asyncio.ensure_future(_until_due(check.interval_s, early, sleep))
            try:
                done, _ = await asyncio.wait((asking, pause), return_when=asyncio.FIRST_COMPLETED)
                if asking not in done:
                    yield HealthSample(
                        at=now(), result=HealthResult.SLOW, detail=f"no answer within {check.interval_s:g} s"
                    )
                found = await asking
                yield found
                await pause
            finally:
                pause.cancel()
        finally:
            asking.cancel()


async def _until_due(interval_s: float, early: asyncio.Event | None, sleep: Callable[[float], Awaitable[None]]) -> None:
    waited = 0.0
    while waited < interval_s:
        step = min(1.0, interval_s - waited)
        await sleep(step)
        waited += step
        if early is not None and early.is_set():
            return


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
    """A target's health: `downs` and `ups` in a row, since when it starts, and whether it was up in this run.

    `slow` breaks neither row: alone it never means down. `before` is the state behind `blind`.
    """

    state: State = State.UNKNOWN
    downs: int = 0
    ups: int = 0
    was_up: bool = False
    starting_since: datetime | None = None
    before: State = State.UNKNOWN


def relaunched(standing: Standing) -> Standing:
    """A new run: every count begins anew. A target that was down stays so until it answers."""
    kept = standing.state in (State.DOWN, State.RECOVERING)
    return Standing(state=State.DOWN if kept else State.UNKNOWN, was_up=kept)


def step(standing: Standing, found: HealthSample, check: HealthCheck | None) -> tuple[Standing, Change]:
    """Take one sample in."""
    check = check or HealthCheck(url="")
    if found.result is HealthResult.BLIND:
        before = standing.before if standing.state is State.BLIND else standing.state
        return replace(standing, state=State.BLIND, before=before), Change.NONE
    if standing.state is State.BLIND:
        standing = replace(standing, state=standing.before)
    if found.result is HealthResult.UP:
        return _up(replace(standing, ups=standing.ups + 1, downs=0), check)
    if found.result is HealthResult.DOWN:
        return _down(replace(standing, downs=standing.downs + 1, ups=0), check, found.at)
    suspicious = standing.state is State.UP
    return replace(standing, state=State.SUSPECT if suspicious else standing.state), Change.NONE


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
        since = standing.starting_since or at
        standing = replace(standing, starting_since=since)
        if at - since < timedelta(seconds=check.start_s):
            return replace(standing, state=State.STARTING), Change.NONE
    if standing.downs < check.fail:
        return replace(standing, state=State.SUSPECT if standing.was_up else State.STARTING), Change.NONE
    return replace(standing, state=State.DOWN), Change.WENT_DOWN
