"""Await what a peer may never answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def opened(opening: Coroutine[Any, Any, T], let_go: Callable[[T], None]) -> T:
    """What `opening` returns. Where the caller gives up first, what opens later after all is let go at once.

    A cancelled opening would leave its channel, and the session slot on the host, behind.
    """
    task = asyncio.ensure_future(opening)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.add_done_callback(lambda done: _drop(done, let_go))
        raise


def _drop(done: asyncio.Task[T], let_go: Callable[[T], None]) -> None:
    # Asking for the exception marks it as seen.
    if not done.cancelled() and done.exception() is None:
        let_go(done.result())
