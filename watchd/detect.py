"""Whether something crashed: a pure fold of a target's events to a trigger.

`step(state, event)` returns the next state and, seldom, a trigger. Three witnesses are heard: the log, the health
endpoint, the process list. A line is fatal by itself only where its engine says so; a traceback at top level is a
suspicion until another witness settles it, or until two seconds pass without a line of work.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from watchd import health
from watchd.engines import reading as engines
from watchd.health import Standing
from watchd.model import (
    Block,
    Event,
    HealthCheck,
    HealthResult,
    HealthSample,
    MarkKind,
    Process,
    ProcessSample,
    Relaunch,
    Tick,
    Trigger,
    TriggerKind,
)
from watchd.parse import lines, pieces, quotes, uncaught
from watchd.parse.pieces import LINE_LIMIT

SILENCE = timedelta(seconds=2)
"""how long a top-level traceback may stand without a line of work before it counts as a crash"""
WITHIN = timedelta(seconds=10)
"""how long after it the other witnesses are asked each second"""
GOODBYE = timedelta(minutes=10)
"""how long a server that said that it was asked to stop is expected to go"""
UNFINISHED = timedelta(seconds=1)
"""how long a last line without its end may stand still before it is read as it is"""

GENERIC = "generic"
_EXCERPT = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspicion:
    """A top-level traceback that nobody has settled yet.

    start, offset  of its first line and of its exception line
    run            the launch that it belongs to, as far as the log tells
    stopping       the run had said before that it was asked to stop: this may be another launch's
    """

    run: int
    start: int
    offset: int
    text: str
    at: datetime
    stopping: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What the detector knows of a target.

    run         counts launches as they are seen: by the log, by its banners, by the process list
    tail        the incomplete last line, at most LINE_LIMIT bytes; it begins at `tail_offset`
    tail_at     when it last grew; None where it was read as it is, or is old
    position    byte offset up to which the log was taken
    began       the present run lies behind this offset: an earlier process was gone by then
    turned      offset at which the latest change of run was seen
    gone        its process was seen to end, and no other has been seen since
    old         old text was met and not yet judged
    stopping    the run said that it was asked to stop, at `stopping_at`
    attentive   every line is looked at, for a line of work may end an incident
    quote       somebody else's words are being repeated: how they will end, and at which offset they began
    """

    engine: str = GENERIC
    named: bool = False
    health: Standing
    check: HealthCheck | None = None
    run: int = 0
    generation: int = 0
    tail: bytes = b""
    tail_offset: int = 0
    tail_at: datetime | None = None
    position: int = 0
    began: int = 0
    turned: int = 0
    reading: uncaught.Readings = ()
    suspicion: Suspicion | None = None
    process: Process | None = None
    gone: bool = False
    old: bool = False
    stopping: bool = False
    stopping_at: datetime | None = None
    worked_at: datetime | None = None
    attentive: bool = False
    quote: tuple[quotes.Opened, int] | None = None


def begin(
    engine: str | None,
    check: HealthCheck | None,
    process: Process | None = None,
    place: tuple[int, int] | None = None,
) -> State:
    """The state before anything was seen; of an earlier watchd: `process` lived then, the log was read up to `place`."""
    generation, offset = place or (0, 0)
    return State(
        generation=generation,
        position=offset,
        tail_offset=offset,
        engine=engine or GENERIC,
        named=engine is not None,
        health=Standing(),
        check=check,
        process=process,
    )


def committed(state: State) -> tuple[int, int]:
    """Generation and byte offset up to which every line has had its effect."""
    starts = [state.tail_offset, *(reading.start for reading in state.reading)]
    if state.suspicion:
        starts.append(state.suspicion.start)
    if state.quote:
        starts.append(state.quote[1])
    return state.generation, min(starts)


def curious(state: State, now: datetime) -> bool:
    """Whether the process list and the health endpoint should be asked now, not at their usual time."""
    if state.stopping and state.process is not None:
        # Where its lines end and those of the next launch begin is seen only while it goes.
        return True
    return state.suspicion is not None and now - state.suspicion.at <= WITHIN


def step(state: State, event: Event) -> tuple[State, Trigger | None]:
    """Take one event in."""
    match event:
        case Block():
            return _block(state, event)
        case Relaunch():
            return _relaunch(state, event)
        case HealthSample():
            return _health(state, event)
        case ProcessSample():
            return _process(state, event)
        case Tick():
            return _tick(state, event.at)
        case _:
            return state, None


def _relaunch(state: State, event: Relaunch) -> tuple[State, Trigger | None]:
    if state.tail_at is not None:
        # The last line of the file that was replaced will not get its end.
        state, _ = _unfinished(state, event.at)
    trigger = _speak(state, TriggerKind.TRACEBACK, "and the log began anew", event.at) if state.suspicion else None
    fresh = replace(
        state, run=state.run + 1, generation=event.generation, tail=b"", tail_offset=0, position=0, began=0, turned=0,
        tail_at=None,
        reading=(), suspicion=None, stopping=False, quote=None, health=health.relaunched(state.health),
    )  # fmt: skip
    return fresh, trigger


def _block(state: State, block: Block) -> tuple[State, Trigger | None]:
    if block.generation != state.generation or block.offset != state.position:
        # Another file, or bytes that nobody could read lie between: an unfinished line cannot be completed.
        state = replace(
            state, generation=block.generation, tail=b"", tail_offset=block.offset, position=block.offset, reading=()
        )
    trigger: Trigger | None = None
    whole, tail = pieces.cut((state.tail_offset, state.tail), block.offset, block.data)
    if whole:
        state = _recognise(state, whole)
        if not block.old and _matters(state, whole):
            state, trigger = _lines(state, whole, at=block.at)
        tail_offset = block.offset + len(block.data) - len(tail)
    else:
        tail, tail_offset = state.tail + tail, state.tail_offset
    tail_at = block.at if tail and not block.old else None
    state = replace(
        state, tail=pieces.shown(tail), tail_offset=tail_offset, tail_at=tail_at, old=state.old or block.old
    )  # fmt: skip
    return replace(state, position=block.offset + len(block.data)), trigger


def _recognise(state: State, whole: tuple[tuple[int, bytes], ...]) -> State:
    if state.named:
        return state
    engine = engines.recognise(b"\n".join(line[:LINE_LIMIT] for _, line in whole)).name
    return replace(state, engine=engine, named=engine != GENERIC)


def _matters(state: State, whole: tuple[tuple[int, bytes], ...]) -> bool:
    if state.reading or state.suspicion or state.attentive or state.quote:
        return True
    # This gate is what keeps a line that nobody needs from costing more than its bytes.
    data = b"\n".join(line for _, line in whole)
    needles = (uncaught.HEADER.encode(), *quotes.OPENING_NEEDLES, *engines.needles(state.engine))
    return any(needle in data for needle in needles)


def _lines(state: State, whole: tuple[tuple[int, bytes], ...], at: datetime) -> tuple[State, Trigger | None]:
    first: Trigger | None = None
    for offset, raw in whole:
        text = pieces.shown(raw.rstrip(b"\r")).decode("utf-8", "replace")
        state, trigger = _line(state, offset, text, at)
        first = first or trigger
    return state, first


def _line(state: State, offset: int, text: str, at: datetime) -> tuple[State, Trigger | None]:
    kinds = engines.mark(text, state.engine)
    words = lines.split(text)
    quote, quoted = quotes.follow(state.quote, offset, words.body)
    state = replace(state, quote=quote)
    if quoted or MarkKind.QUOTED in kinds:
        # What a user wrote is no word of the server's.
        return state, None
    state = _read_traceback(state, offset, words, at)
    if MarkKind.BANNER in kinds:
        standing = health.relaunched(state.health)
        state = replace(state, run=state.run + 1, turned=offset, stopping=False, health=standing)
    if MarkKind.STOPPING in kinds:
        state = replace(state, stopping=True, stopping_at=at)
    past = state.suspicion is not None and offset > state.suspicion.offset
    if past and (MarkKind.WORK in kinds or MarkKind.FINISHED in kinds):
        state = replace(state, suspicion=None)
    if MarkKind.WORK in kinds:
        state = replace(state, worked_at=at)
    return state, _fatal(state, offset, words.body, at) if MarkKind.FATAL in kinds else None


def _fatal(state: State, offset: int, body: str, at: datetime) -> Trigger:
    return Trigger(
        kind=TriggerKind.FATAL_LINE,
        summary=body.strip()[:_EXCERPT],
        at=at,
        generation=state.generation,
        offset=offset,
        begin=state.began,
    )


def _read_traceback(state: State, offset: int, words: lines.Words, at: datetime) -> State:
    reading, begun = uncaught.follow(state.reading, offset, words)
    state = replace(state, reading=reading)
    if begun is None:
        return state
    if state.suspicion:
        return replace(state, suspicion=replace(state.suspicion, at=at))
    text = words.body[:_EXCERPT]
    found = Suspicion(run=state.run, start=begun, offset=offset, text=text, at=at, stopping=state.stopping)
    return replace(state, suspicion=found, worked_at=None)


def _health(state: State, sample: HealthSample) -> tuple[State, Trigger | None]:
    standing, change = health.step(state.health, sample, state.check)
    state = replace(state, health=standing)
    if sample.result is HealthResult.BLIND:
        return state, None
    fresh = state.suspicion is not None and sample.at >= state.suspicion.at
    if sample.result is HealthResult.DOWN and (fresh or state.old):
        return _settle(state, "and its health check is refused", sample.at)
    if sample.result is HealthResult.UP:
        return replace(state, suspicion=None if fresh else state.suspicion, old=False), None
    if change is health.Change.WENT_DOWN:
        return state, _speak(state, TriggerKind.HEALTH_DOWN, f"its health check fails: {sample.detail}", sample.at)
    return state, None


def _process(state: State, sample: ProcessSample) -> tuple[State, Trigger | None]:
    if not sample.known:
        return state, None
    before, after = state.process, sample.process
    if after is None and before is None:
        return (
            _settle(state, "and no process of it lives", sample.at) if state.suspicion or state.old else (state, None)
        )
    if after is not None and (before is None or before.same(after)):
        state = replace(state, process=after, old=False)
        return (_another(state), None) if state.gone else (state, None)
    assert before is not None
    why = f"process {before.pid} is gone"
    if state.suspicion or state.old:
        state, trigger = _settle(state, f"and {why}", sample.at)
    else:
        trigger = _speak(state, TriggerKind.PROCESS_GONE, why, sample.at)
    if after is not None:
        trigger = replace(trigger, end=state.position if trigger.end is None else trigger.end)
    return replace(_another(state), process=after, gone=after is None, began=state.position), trigger


def _another(state: State) -> State:
    """What is written from here on is another process's, and so is what the health check will say."""
    standing = health.relaunched(state.health)
    return replace(state, run=state.run + 1, turned=state.position, stopping=False, gone=False, health=standing)


def _tick(state: State, now: datetime) -> tuple[State, Trigger | None]:
    state = _in_time(state, now)
    if state.tail_at is not None and now - state.tail_at >= UNFINISHED:
        state, trigger = _unfinished(state, state.tail_at)
        if trigger:
            return state, trigger
    if state.suspicion and now - state.suspicion.at >= SILENCE:
        return _settle(state, "and no line of work after it", now)
    return state, None


def _in_time(state: State, now: datetime) -> State:
    """What is measured by the clock, where that was set back; and a goodbye that came to nothing is forgotten."""
    if state.suspicion and now < state.suspicion.at:
        state = replace(state, suspicion=replace(state.suspicion, at=now))
    if state.tail_at is not None and now < state.tail_at:
        state = replace(state, tail_at=now)
    if state.stopping_at is not None and not timedelta() <= now - state.stopping_at <= GOODBYE:
        return replace(state, stopping=False, stopping_at=None)
    return state


def _unfinished(state: State, at: datetime) -> tuple[State, Trigger | None]:
    """Read the last line as it is: whoever dies while it writes leaves no end behind it."""
    state = replace(state, tail_at=None)
    text = pieces.shown(state.tail.rstrip(b"\r")).decode("utf-8", "replace")
    kinds = engines.mark(text, state.engine)
    if state.quote or MarkKind.QUOTED in kinds:
        return state, None
    words = lines.split(text)
    state = _read_traceback(state, state.tail_offset, words, at)
    return state, _fatal(state, state.tail_offset, words.body, at) if MarkKind.FATAL in kinds else None


def _settle(state: State, why: str, at: datetime) -> tuple[State, Trigger]:
    """The suspicion, or the old text, has become a trigger."""
    kind = TriggerKind.TRACEBACK if state.suspicion else TriggerKind.FIRST_LOOK
    return replace(state, suspicion=None, old=False), _speak(state, kind, why, at)


def _speak(state: State, kind: TriggerKind, why: str, at: datetime) -> Trigger:
    suspicion = state.suspicion
    if suspicion is None:
        summary = why.removeprefix("and ")
        return Trigger(kind=kind, summary=summary, at=at, generation=state.generation, begin=state.began)
    return Trigger(
        kind=kind,
        summary=f"{suspicion.text}, {why}",
        at=at,
        generation=state.generation,
        offset=suspicion.offset,
        begin=state.began if state.began <= suspicion.start else 0,
        end=state.turned if state.turned > suspicion.offset else None,
    )
