"""What is watched: a log on a host, and the health endpoint beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from watchd.model.signature import Signature

RUNGS = ("broad", "context", "traceback", "source", "launch", "machine", "stack")
"""The rungs of the ladder, from broad to narrow, as they are named in configuration and evidence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthCheck:
    """One endpoint that is asked again and again.

    url         what to ask, `http://` or `https://`; seen from the host unless `via` says otherwise
    interval_s  seconds from the start of one sample to the start of the next
    timeout_s   seconds that one sample may take; it may exceed the interval, since one sample is in flight at most
    fail        samples `down` in a row that make the target down
    success     samples `up` in a row that make it up again
    start_s     seconds that a start may take before `down` counts
    via         `host`: through the SSH connection; `jump`: from the machine on which watchd runs
    expect      HTTP statuses that mean `up`
    headers     header names and values to send; the values may be secrets and are kept out of `repr`
    ca          path of a CA file for https, or empty
    """

    url: str
    interval_s: float = 10.0
    timeout_s: float = 25.0
    fail: int = 3
    success: int = 2
    start_s: float = 1800.0
    via: Literal["host", "jump"] = "host"
    expect: tuple[int, ...] = (200,)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    ca: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One server whose log is followed.

    name            unique in the configuration; the identity of its incidents
    host            name of the host on which it runs; None for a bundle
    log             absolute path of the log on that host
    engine          name of the engine, or None to recognise it from the log
    process         regular expression that its command line matches, or None
    labels          the user's own, passed on with every incident
    health          its endpoint, or None
    rungs           which rungs a climb may use
    climb_budget_s  seconds that one climb may take
    source_roots    folders from which source may be read; empty means the rule of the ladder
    signatures      the user's own, asked before those of watchd
    """

    name: str
    host: str | None
    log: str
    engine: str | None = None
    process: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    health: HealthCheck | None = None
    rungs: tuple[str, ...] = RUNGS
    climb_budget_s: float = 30.0
    source_roots: tuple[str, ...] = ()
    signatures: tuple[Signature, ...] = field(default=(), repr=False)
