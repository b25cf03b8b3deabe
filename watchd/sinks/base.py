"""The shape of a sink."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from watchd.model import Incident


class Result(StrEnum):
    """What a destination's answer means for a delivery."""

    SENT = "sent"
    RETRY = "retry"
    """not now: refused for the moment, unreachable, or timed out"""
    HOLD = "hold"
    """not until a person mends the configuration: key, channel or permission"""
    SHRINK = "shrink"
    """too large or not understood: once more, smaller"""
    DEAD = "dead"
    """never"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A destination's answer; `reason` holds no URL and no secret, `retry_after_s` is a floor for the whole sink."""

    result: Result
    reason: str = ""
    retry_after_s: float | None = None


class Sink(Protocol):
    """One destination.

    name   its key in the configuration
    edits  True where a later revision may follow at once; False where each message stays as it is: then it waits for
           the climb (at most 5 s), and a second one goes out only if the cause changes
    """

    @property
    def name(self) -> str:
        """Its key in the configuration."""

    @property
    def edits(self) -> bool:
        """Whether a later revision may follow at once."""

    async def send(self, incident: Incident, *, first: bool, small: bool) -> Answer:
        """Tell this incident. `first`: nothing of it was told here before. `small`: a shorter form is asked for.

        Never raises: whatever goes wrong is an Answer.
        """
