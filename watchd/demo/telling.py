"""What a person sees while the story goes on: one row for each thing that happens, as it happens."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from watchd.model import (
    Block,
    Event,
    Evidence,
    Gap,
    HealthResult,
    HealthSample,
    Incident,
    LogStanding,
    ProcessSample,
    Relaunch,
    Stage,
    Status,
    Tick,
    Trigger,
)
from watchd.sinks import draw, layout, page
from watchd.sinks.draw import Row, Span, Style

Seen = Event | Trigger | Evidence | Incident

_HEAD = 19
"""Columns of the time and the word in front of each row."""


class Telling:
    """Events to rows; what was said already is not said again."""

    def __init__(self, *, width: int) -> None:
        self._width = width
        self._rest = b""
        self._pid: int | None = None
        self._standing = ""
        self._told: set[tuple[str, Stage, Status]] = set()

    def rows(self, seen: Seen, now: datetime) -> Iterator[Row]:
        """The rows for what was seen; `now` is for what carries no time of its own."""
        at = now if isinstance(seen, (Evidence, Incident)) else seen.at
        for word, text, style in self._words(seen):
            yield self.row(at, word, text, style)

    def row(self, at: datetime, word: str, text: str, style: Style = Style.PLAIN) -> Row:
        """One row in the screen's width: a time, one word for what it is, and the rest."""
        return (*self._head(at, word), Span(draw.cut(draw.plain(text), self._room), style))

    def command(self, at: datetime, word: str, command: str, marked: set[str]) -> list[Row]:
        """A command in as many rows as it takes; the flags in `marked` stand out."""
        rows = layout.command(command, marked, Style.STRONG, self._room)
        indent = Span(" " * (self._width - self._room))
        return [(*(self._head(at, word) if not n else (indent,)), *row) for n, row in enumerate(rows)]

    @property
    def _room(self) -> int:
        return self._width - _HEAD

    def _head(self, at: datetime, word: str) -> Row:
        return (
            Span(f"{at.astimezone(UTC):%H:%M:%S}  ", Style.FAINT),
            Span(word.ljust(_HEAD - 10), Style.NAME),
        )

    def _words(self, seen: Seen) -> Iterator[tuple[str, str, Style]]:
        match seen:
            case Block(data=data):
                yield from (("log", line, Style.FAINT) for line in self._lines(data))
            case HealthSample():
                yield "health", _health(seen), Style.GOOD if seen.result is HealthResult.UP else Style.WRONG
            case Relaunch(reason=reason):
                self._rest = b""
                yield "log", f"(begins anew: {reason})", Style.WARNING
            case Gap(start=start, end=end, reason=reason):
                yield "log", f"(bytes {start} to {'?' if end is None else end} were not read: {reason})", Style.WARNING
            case LogStanding(state=state, detail=detail) if state.value != self._standing:
                self._standing = state.value
                yield "log", f"({state.value}{f': {detail}' if detail else ''})", Style.WARNING
            case ProcessSample():
                yield from self._process(seen)
            case Trigger(summary=summary):
                yield "trigger", summary, Style.ALARM
            case Evidence():
                yield "ladder", f"{seen.rung}: {page.answer(seen)}: {seen.command}", Style.PLAIN
            case Incident():
                yield from self._incident(seen)
            case LogStanding() | Tick():
                return

    def _lines(self, data: bytes) -> list[str]:
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [line.decode("utf-8", "replace") for line in lines]

    def _process(self, sample: ProcessSample) -> Iterator[tuple[str, str, Style]]:
        pid = sample.process.pid if sample.process else None
        if sample.known and pid != self._pid:
            self._pid = pid
            if pid is None:
                yield "process", "gone", Style.WRONG
            else:
                yield "process", f"pid {pid} lives; its launch command is recorded", Style.PLAIN

    def _incident(self, incident: Incident) -> Iterator[tuple[str, str, Style]]:
        key = (incident.id, incident.stage, incident.status)
        if key in self._told:
            return
        self._told.add(key)
        if incident.status is Status.RESOLVED:
            yield "incident", f"resolved, {incident.verdict.value}: {incident.summary}", Style.GOOD
        elif incident.stage is Stage.CLIMBING:
            yield "incident", f"opened, {incident.verdict.value}: {incident.summary}", Style.ALARM
        else:
            cause = incident.cause.value if incident.cause else "cause unknown"
            yield "incident", f"{incident.verdict.value}, {cause}, {incident.confidence.value}", Style.ALARM


def _health(sample: HealthSample) -> str:
    latency = "" if sample.latency_ms is None else f" in {sample.latency_ms:.0f} ms"
    if sample.http_status is not None:
        return f"{sample.http_status}{latency}"
    return f"{sample.result.value}: {sample.detail}" if sample.detail else sample.result.value
