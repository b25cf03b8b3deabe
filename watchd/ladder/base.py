"""The shape of a rung, and of a step of the ladder."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Literal

from watchd.model import Case, Finding, Question, Reply

Asking = Generator[tuple[Question, ...], tuple[Reply, ...], tuple[Finding, ...]]
"""Yields questions that may be asked together, receives their replies in order, returns what was learnt."""

Rung = Callable[[Case], Asking]
"""A rung never raises and never asks for more than it needs; with nothing learnt it returns an empty tuple."""

Show = Callable[[Case, Reply], tuple[str, int | None]]
"""What evidence shows of a reply, once the rung is done: an excerpt, and a number of lines or None."""


def as_it_is(case: Case, reply: Reply) -> tuple[str, int | None]:  # noqa: ARG001  the shape of a Show
    """All of the reply."""
    return reply.data.decode("utf-8", "replace"), reply.count


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One row of the ladder: a rung, or the part of one that can be asked by itself.

    name     unique
    rung     as configuration and evidence call it
    ask      its questions
    show     what evidence shows of the replies
    after    names of the steps whose findings it needs
    lane     steps of one lane are asked together and in turn; the lanes do not wait for each other
    limit_s  seconds that one round of its questions may take, or None: as long as the climb may
    """

    name: str
    rung: str
    ask: Rung
    show: Show = as_it_is
    after: tuple[str, ...] = ()
    lane: Literal["log", "machine"] = "log"
    limit_s: float | None = None
