"""Keeps one coroutine alive until told to stop: again after a back-off, whatever ended it.

One target's trouble must not take the others along, and TaskGroups are contagious by design; so each lives in here.
The only user of tenacity.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import asynccontextmanager
from typing import Any, Protocol

import tenacity

from watchd.errors import StoreError, WatchdError

FIRST_S = 1.0
LAST_S = 60.0
REFUSED_LAST_S = 300.0
"""What says no says no again in a minute: a refused key, an unknown host key."""
HEALTHY_S = 60.0
"""What ran for so long had a fresh start behind it."""
HANDSHAKES = 8
"""SSH handshakes at a time on one way in: of more than ten, sshd drops some (MaxStartups 10:30:100)."""

Work = Callable[[], Awaitable[None]]
OnDown = Callable[[Exception], Awaitable[None]]


class Log(Protocol):
    """Where events go."""

    def warning(self, event: str, **fields: Any) -> Any:
        """Something went wrong and is tried again."""

    def error(self, event: str, **fields: Any) -> Any:
        """Something went wrong that should not have; `exc_info` is the exception."""


class EndedError(WatchdError):
    """The work ended, which it is not supposed to do."""

    retryable = True


async def keep(
    name: str,
    work: Work,
    *,
    sleep: Callable[[float], Awaitable[None]],
    random: Callable[[], float],
    log: Log,
    on_down: OnDown | None = None,
    clock: Callable[[], float] = time.monotonic,
    most_s: float = REFUSED_LAST_S,
) -> None:
    """Run `work` until cancelled, with full jitter between the runs; `on_down` hears of every end, before the pause.

    No pause is longer than `most_s`: less for work that waits for somebody else's back-off as it is.

    A reason is logged once, and again when it changes. A programming error is logged with its traceback, each time, and
    tried again too. `random` gives numbers from 0 to 1. Raises StoreError, alone or within the ExceptionGroup in which
    it came: without its store the process must end. What `on_down` raises comes through as well.
    """
    backoff = _Backoff(name, random=random, log=log, on_down=on_down, clock=clock, most_s=most_s)

    async def once() -> None:
        backoff.begin()
        await work()
        raise EndedError("it ended by itself")

    retrying = tenacity.AsyncRetrying(
        sleep=sleep,
        wait=backoff.pause,
        before_sleep=backoff.tell,
        retry=tenacity.retry_if_exception(is_kept_alive),
        stop=tenacity.stop_never,
        reraise=True,
    )
    await retrying(once)


def is_kept_alive(error: BaseException) -> bool:
    """Whether work that ended by this is begun again."""
    if isinstance(error, BaseExceptionGroup):
        return all(is_kept_alive(each) for each in error.exceptions)
    return isinstance(error, Exception) and not isinstance(error, StoreError)


def ceiling(failures: int, error: BaseException) -> float:
    """The longest pause after so many failures in a row: doubled from 1 s, up to 60 s, or 5 min where somebody said no."""
    refused = isinstance(error, WatchdError) and not error.retryable
    last = REFUSED_LAST_S if refused else LAST_S
    return min(FIRST_S * 2.0 ** min(failures - 1, 30), last)


class _Backoff:
    """How often it failed in a row, and what was said of it."""

    def __init__(
        self,
        name: str,
        *,
        random: Callable[[], float],
        log: Log,
        on_down: OnDown | None,
        clock: Callable[[], float],
        most_s: float,
    ) -> None:
        self._name, self._most_s = name, most_s
        self._random, self._clock, self._log, self._on_down = random, clock, log, on_down
        self._began = clock()
        self._failures = 0
        self._said = ""

    def begin(self) -> None:
        self._began = self._clock()

    def pause(self, state: tenacity.RetryCallState) -> float:
        """Seconds before the next attempt, by full jitter."""
        if self._clock() - self._began >= HEALTHY_S:
            self._failures, self._said = 0, ""
        self._failures += 1
        return self._random() * min(ceiling(self._failures, _error(state)), self._most_s)

    async def tell(self, state: tenacity.RetryCallState) -> None:
        """Say why it ended."""
        error = _error(state)
        fields = {"name": self._name, "error": str(error), "kind": type(error).__name__}
        if not isinstance(error, WatchdError):
            self._log.error("restarting", exc_info=error, **fields)
        elif str(error) != self._said:
            self._log.warning("restarting", **fields)
        self._said = str(error)
        if self._on_down is not None:
            await self._on_down(error)


def _error(state: tenacity.RetryCallState) -> Exception:
    error = state.outcome.exception() if state.outcome else None
    assert isinstance(error, Exception)
    return error


class Gate:
    """Lets at most `width` through at a time on each way: so many handshakes a bastion bears at once."""

    def __init__(self, width: int = HANDSHAKES) -> None:
        self._width = width
        self._ways: dict[Hashable, asyncio.Semaphore] = {}

    @asynccontextmanager
    async def through(self, way: Hashable) -> AsyncIterator[None]:
        """Wait until there is room on this way; room is made again at the end of the `async with`."""
        async with self._ways.setdefault(way, asyncio.Semaphore(self._width)):
            yield
