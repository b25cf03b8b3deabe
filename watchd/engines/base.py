"""The shape of what is known about one engine."""

from __future__ import annotations

import re
from dataclasses import dataclass

Patterns = tuple[re.Pattern[str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """One inference server or training launcher, as data.

    Patterns are searched in lines whose prefix, ANSI codes and carriage returns were removed.

    name      as written in incidents and configuration
    marks     lines that only this engine writes: the engine is recognised by them
    banner    lines with which a launch begins
    loading   lines of a start that goes on (weights, graph capture, warm-up)
    ready     lines that say that it serves
    work      lines that say that it serves or trains: progress
    request   lines that say that one request failed and the server goes on
    fatal     lines after which the process cannot go on
    stopping  lines of an orderly end
    cleanup   lines with which it ends its own children
    version   a pattern with one group: its version
    process   a pattern that the command line of its main process matches, or None
    """

    name: str
    marks: Patterns = ()
    banner: Patterns = ()
    loading: Patterns = ()
    ready: Patterns = ()
    work: Patterns = ()
    request: Patterns = ()
    fatal: Patterns = ()
    stopping: Patterns = ()
    cleanup: Patterns = ()
    version: Patterns = ()
    process: re.Pattern[str] | None = None
