"""The shape of what is known about one engine."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

Patterns = tuple[re.Pattern[str], ...]


def patterns(*texts: str) -> Patterns:
    """Compile what stands in an engine's tables."""
    return tuple(re.compile(text) for text in texts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """One inference server or training launcher, as data.

    Patterns are searched in lines whose prefix, ANSI codes and carriage returns were removed.

    name      as written in incidents and configuration
    marks     lines that only this engine writes: the engine is recognised by them
    banner    lines with which a launch begins; each holds a literal text
    opening   lines that stand before anything of a launch: the echoed command, a separator; each holds a literal text
    ending    lines with which something outside says that the server is gone; each holds a literal text
    farewell  last words of a process that ends by itself; what follows after a while is another run
    loading   lines of a start that goes on (weights, graph capture, warm-up)
    ready     lines that say that it serves
    work      lines that say that it serves or trains: progress
    idle      lines that look like work and are none: health checks, statistics that say nothing moves
    busy      lines of work that say that requests are running or waiting
    quoting   lines that repeat what a user sent: nothing in them is the server's own word
    request   lines that say that one request failed; the server goes on
    fatal     lines after which the process cannot go on
    stopping  lines of an orderly end
    finished  lines with which a job ends well by itself
    cleanup   lines with which it ends its own children
    version   a pattern with one group: its version
    process   a pattern that the command line of its main process matches, or None
    knobs     what this engine calls the things that advice may speak of: `memory_share` -> `--gpu-memory-utilization`
    arguments  files below the packages' folder in which its flags are defined
    """

    name: str
    marks: Patterns = ()
    banner: Patterns = ()
    opening: Patterns = ()
    ending: Patterns = ()
    farewell: Patterns = ()
    loading: Patterns = ()
    ready: Patterns = ()
    work: Patterns = ()
    idle: Patterns = ()
    busy: Patterns = ()
    quoting: Patterns = ()
    request: Patterns = ()
    fatal: Patterns = ()
    stopping: Patterns = ()
    finished: Patterns = ()
    cleanup: Patterns = ()
    version: Patterns = ()
    process: re.Pattern[str] | None = None
    knobs: Mapping[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
