"""From bytes of a log to its current run: the engine recognised, the run cut, and its telling lines marked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from watchd.engines import registry
from watchd.engines.base import Engine
from watchd.model import Mark, MarkKind, Run
from watchd.parse import lines as prefixes
from watchd.parse import run as runs
from watchd.parse.needle import needle

_SAMPLE = 262_144
"""Bytes at either end of the log in which an engine's own lines are looked for."""

# What argparse, clap and the like print when a command line is refused.
_REFUSALS = (
    re.compile(r"^usage: \S"),
    re.compile(r"error: unrecognized arguments: "),
    re.compile(r"error: the following arguments are required: "),
    re.compile(r"error: unexpected argument "),
    re.compile(r"error: invalid argument: "),
)
#   File "/opt/x/launch.py", line 18, in <module>
_MODULES = (
    re.compile(r'^\s+File "[^"]{1,400}", line \d+, in <module>'),
    re.compile(r'^\s+File "[^"]{1,400}", line \d+, in _run_module_as_main'),
)
_TRACE = re.compile(
    r'^\s*(?:File "[^"]{1,400}", line \d|Traceback \(most recent call last\))|^[\w.]{0,120}(?:Error|Exception)\b'
)

_KINDS = (
    (MarkKind.QUOTED, "quoting"),
    (MarkKind.FATAL, "fatal"),
    (MarkKind.STOPPING, "stopping"),
    (MarkKind.REQUEST, "request"),
    (MarkKind.CLEANUP, "cleanup"),
    (MarkKind.BANNER, "banner"),
    (MarkKind.BANNER, "opening"),
    (MarkKind.IDLE, "idle"),
    (MarkKind.LOADING, "loading"),
    (MarkKind.READY, "ready"),
    (MarkKind.WORK, "work"),
    (MarkKind.BUSY, "busy"),
    (MarkKind.FINISHED, "finished"),
)  # fmt: skip
_SILENCED = {
    MarkKind.QUOTED: frozenset(MarkKind) - {MarkKind.WORK},
    MarkKind.IDLE: frozenset((MarkKind.WORK, MarkKind.BUSY)),
    MarkKind.LOADING: frozenset((MarkKind.WORK, MarkKind.BUSY)),
}
"""What a line cannot be beside: the words of a user say nothing, a check of the pulse is no work."""

Table = tuple[tuple[str, re.Pattern[str], MarkKind], ...]


def read_run(data: bytes, *, offset: int, number: int | None, engine: str | None = None) -> Run:
    """Read the current run out of `data`, bytes of a log from `offset` on.

    `number` is the number of the first line in `data`, None where it is unknown; where `offset` is not 0 that line is
    taken to be torn and dropped. `engine` names the engine where it is known; otherwise it is recognised.
    """
    known = registry.named(engine) if engine else recognise(data)
    piece = runs.read(data, offset=offset, number=number, edges=_edges(known.name))
    bodies = tuple(prefixes.split(line.text).body for line in piece.lines)
    return Run(
        lines=piece.lines,
        marks=tuple(_marks(bodies, piece.quoted, _table(known.name))),
        engine=engine or known.name,
        engine_version=_version(bodies, known),
        complete=piece.begins,
        earlier=piece.earlier,
        knobs=known.knobs,
        arguments=known.arguments,
    )


def recognise(data: bytes) -> Engine:
    """The engine of which most telling lines are there; of several, the more particular one."""
    sample = data if len(data) <= 2 * _SAMPLE else data[:_SAMPLE] + b"\n" + data[-_SAMPLE:]
    texts = {prefixes.clean(raw.decode("utf-8", "replace"))[:1000] for raw in sample.split(b"\n")}
    texts |= {prefixes.split(text).body for text in texts}
    best, most = registry.GENERIC, 0
    for engine in registry.ENGINES:
        if best in registry.ENGINES and engine in registry.EVERYWHERE:
            break
        hits = sum(any(pattern.search(text) for text in texts) for pattern in engine.marks)
        if hits > most:
            best, most = engine, hits
    return best


def mark(line: str, engine: str) -> tuple[MarkKind, ...]:
    """What the engine says about one raw line of its log."""
    return tuple(_kinds(prefixes.split(line).body, _table(engine)))


def _marks(bodies: tuple[str, ...], quoted: frozenset[int], table: Table) -> Iterator[Mark]:
    for index, body in enumerate(bodies):
        if index in quoted:
            yield Mark(index, MarkKind.QUOTED)
            continue
        for kind in _kinds(body, table):
            yield Mark(index, kind)


def _kinds(body: str, table: Table) -> Iterator[MarkKind]:
    silent: frozenset[MarkKind] = frozenset()
    for literal, pattern, kind in table:
        if literal in body and kind not in silent and pattern.search(body):
            silent |= _SILENCED.get(kind, frozenset()) | {kind}
            yield kind


@cache
def _table(name: str) -> Table:
    engines = _layers(name)
    return tuple(
        (needle(pattern.pattern), pattern, kind)
        for kind, field in _KINDS
        for engine in engines
        for pattern in getattr(engine, field)
    )


@cache
def _edges(name: str) -> runs.Edges:
    layers = _layers(name)
    table = tuple(
        row
        for row in _table(name)
        if row[2] in (MarkKind.WORK, MarkKind.FATAL, MarkKind.STOPPING, MarkKind.REQUEST, MarkKind.CLEANUP)
    )

    endings = tuple(p for engine in layers for p in engine.ending)

    def lived(body: str) -> bool:
        return (
            bool(_TRACE.search(body))
            or next(_kinds(body, table), None) is not None
            or any(pattern.search(body) for pattern in endings)
        )

    return runs.Edges(
        openings=tuple(p for engine in layers for p in engine.opening),
        banners=tuple(p for engine in layers for p in engine.banner),
        endings=endings,
        farewells=tuple(p for engine in layers for p in engine.farewell),
        refusals=_REFUSALS,
        restarts=_MODULES,
        lived=lived,
    )


def _layers(name: str) -> tuple[Engine, ...]:
    engine = registry.named(name)
    return (engine, *(other for other in registry.EVERYWHERE if other is not engine))


def _version(bodies: tuple[str, ...], engine: Engine) -> str | None:
    for pattern in engine.version:
        for body in bodies[:2000]:
            found = pattern.search(body)
            if found:
                return found[1]
    return None


@cache
def needles(engine: str) -> tuple[bytes, ...]:
    """Literals of which each fatal, stopping, banner or opening line of this engine's log holds at least one."""
    telling = (MarkKind.FATAL, MarkKind.STOPPING, MarkKind.BANNER)
    return tuple(sorted({literal.encode() for literal, _, kind in _table(engine) if kind in telling}))
