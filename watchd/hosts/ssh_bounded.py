"""Await what a peer may never answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import asyncssh

from watchd.hosts import ssh_errors

T = TypeVar("T")

PAUSES_S = (0.05, 0.1, 0.2, 0.4)
"""A session slot is free on the host only when the process behind it has been reaped: a little after we let it go."""


async def session(start: Callable[[], Coroutine[Any, Any, T]], let_go: Callable[[T], None]) -> T:
    """What `start` opens: a session, for which the host may have no slot for a moment."""
    for pause in PAUSES_S:
        try:
            return await opened(start(), let_go)
        except asyncssh.ChannelOpenError as error:
            if ssh_errors.closed(error) or error.code != ssh_errors.CONNECT_FAILED:
                raise
        await asyncio.sleep(pause)
    return await opened(start(), let_go)


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
