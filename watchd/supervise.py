"""Keeps one coroutine alive until told to stop: again after a back-off, whatever ended it.

One target's trouble must not take the others along, and TaskGroups are contagious by design; so each lives in here.
The only user of tenacity.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import tenacity

from watchd.errors import HostRefusedError, WatchdError

FIRST_S = 1.0
LAST_S = 60.0
REFUSED_LAST_S = 300.0
"""A host that says no says no again in a minute."""
HEALTHY_S = 60.0
"""What ran for so long had a fresh start behind it."""

Work = Callable[[], Awaitable[None]]
OnDown = Callable[[Exception], Awaitable[None]]


class Log(Protocol):
    """Where events go."""

    def warning(self, event: str, **fields: Any) -> Any:
        """Something went wrong and is tried again."""

    def exception(self, event: str, **fields: Any) -> Any:
        """Something went wrong that should not have: with its traceback."""


async def keep(
    name: str,
    work: Work,
    *,
    sleep: Callable[[float], Awaitable[None]],
    random: Callable[[], float],
    log: Log,
    on_down: OnDown | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Run `work` until cancelled, with full jitter between the runs; `on_down` hears of every end.

    A reason is logged once, and again when it changes. A programming error is logged with its traceback and tried
    again too. `random` gives numbers from 0 to 1.
    """
    attempt = 0
    said = ""
    while True:
        began = clock()
        try:
            await work()
            problem: Exception = RuntimeError("it ended by itself")
        except Exception as error:  # noqa: BLE001  the one place that must outlive any of them
            problem = error
        attempt = 1 if clock() - began >= HEALTHY_S else attempt + 1
        if str(problem) != said:
            said = str(problem)
            say = log.warning if isinstance(problem, WatchdError) else log.exception
            say("restarting", name=name, error=said, kind=type(problem).__name__)
        if on_down is not None:
            await on_down(problem)
        await sleep(pause(attempt, refused=isinstance(problem, HostRefusedError), random=random()))


def pause(attempt: int, *, refused: bool, random: float) -> float:
    """Seconds before the attempt after this one, by full jitter: `random` (0 to 1) of an exponential ceiling."""
    ceiling = tenacity.wait_exponential(multiplier=FIRST_S, max=REFUSED_LAST_S if refused else LAST_S)
    state = tenacity.RetryCallState(tenacity.AsyncRetrying(), None, (), {})
    state.attempt_number = attempt
    return random * ceiling(state)
