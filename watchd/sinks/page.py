"""An incident as the rows of a page, most important first: what, why, where, in which source, and what to do.

Every text that comes from outside goes through `draw.plain` here, once, before it is measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from watchd.model import Evidence, Incident, IncidentLaunch, IncidentSource, Scope, Severity, Status, Verdict
from watchd.sinks.draw import Row, Span, Style, columns, cut, cut_front, plain, wrap
from watchd.sinks.layout import Layout, command, whole_plain

_HEAD_ROWS = 6
_COMMAND_ROWS = 2
_SOURCE_ABOVE, _SOURCE_BELOW = 9, 3
_TRACEBACK_ROWS = 8
_MOMENTS = 12
_QUESTIONS = 16
_RUNG = 10
_SAMPLES = 5
_FULL_DISK = 90

_LOUD = {
    Severity.CRITICAL: Style.ALARM,
    Severity.ERROR: Style.ALARM,
    Severity.WARNING: Style.WARNING,
    Severity.INFO: Style.NAME,
}
_ORIGINS = {
    "recorded": "recorded while the process lived",
    "process": "read from the process",
    "unit": "from the unit's definition",
    "container": "from the container's definition",
    "log": "as the log echoes it",
    "bundle": "as the bundle has it",
}
_OUTCOMES = {"answered": "answered", "empty": "nothing", "refused": "refused", "timed_out": "timed out", "lost": "lost"}
_SCOPES = {Scope.TARGET: "a target", Scope.HOST: "a host", Scope.BASTION: "a bastion", Scope.JUMP: "watchd itself"}
_SIGNS = {"add": "+", "set": "+", "drop": "-"}


def climbing(incident: Incident, *, width: int) -> list[Row]:
    """One row: something happened, and the ladder is being climbed."""
    row = _told(incident, incident.opened_at, incident.verdict.value.upper(), _LOUD[incident.severity])
    return [_fitted((*row, Span(": " + _flat(incident.summary))), width)]


def resolved(incident: Incident, *, width: int) -> list[Row]:
    """Two rows: that it is over, how long it took, and what it was."""
    at = incident.resolved_at or incident.updated_at
    row = _told(incident, at, "RESOLVED", Style.GOOD)
    if incident.verdict in {Verdict.OK, Verdict.STOPPED}:
        end = f": {incident.verdict.value}"
    else:
        cause = f", {incident.cause.value}" if incident.cause else ""
        end = f" after {_lasted(at - incident.opened_at)} ({incident.verdict.value}{cause})"
    first = _fitted((*row, Span(end)), width)
    return [first, _fitted((Span(" " * 10 + _flat(incident.summary), Style.FAINT),), width)]


def again(incident: Incident, *, width: int) -> list[Row]:
    """One row: nothing new is known of an incident that was told in full."""
    row = _told(incident, incident.updated_at, "STILL", _LOUD[incident.severity])
    cause = incident.cause.value if incident.cause else incident.verdict.value
    return [_fitted((*row, Span(f": {cause}, {_times(incident.occurrences)}")), width)]


def whole(incident: Incident, *, width: int) -> list[Row]:
    """Everything that helps a person, in about a screen."""
    layout = Layout(width)
    rows = [*_head(incident, width), (), *_summary(incident, width)]
    for part in (_why, _where, _code, _launch, _advice, _machine, _asked, _history, _look):
        found = part(incident, layout)
        rows += [(), *found] if found else []
    return rows


def _head(incident: Incident, width: int) -> list[Row]:
    loud = Style.GOOD if incident.status is Status.RESOLVED else _LOUD[incident.severity]
    left, right = f"━━ {incident.verdict.value.upper()} ", f" {incident.severity.value} ━━"
    who = cut(_who(incident), width - columns(left) - columns(right) - 4)
    fill = width - columns(left) - columns(who) - columns(right) - 3
    bar: Row = (Span(left, loud), Span(f" {who} ", Style.STRONG), Span("━" * (fill + 1) + right, loud))
    notes = [f"{_day(incident.opened_at)} {_clock(incident.opened_at)} UTC"]
    if incident.target is not None:
        known = incident.target.engine not in {None, "generic"}
        engine = " ".join(filter(None, (incident.target.engine, incident.target.engine_version)))
        notes = [*([engine] if known else []), incident.target.log, *notes]
    if incident.occurrences > 1:
        notes.append(_times(incident.occurrences))
    if incident.acknowledged_at is not None:
        notes.append(f"acknowledged {_clock(incident.acknowledged_at)}")
    if incident.resolved_at is not None:
        notes.append(f"resolved {_clock(incident.resolved_at)}")
    faint = [(Span("  "), Span(row, Style.FAINT)) for row in wrap(_flat(" · ".join(notes)), width - 2, rows=_HEAD_ROWS)]
    return [bar, *faint]


def _summary(incident: Incident, width: int) -> list[Row]:
    return [(Span("  "), Span(row, Style.STRONG)) for row in wrap(_flat(incident.summary), width - 2, rows=_HEAD_ROWS)]


def _why(incident: Incident, layout: Layout) -> list[Row]:
    cause = incident.cause.value if incident.cause else "not known yet"
    rows = layout.section("cause", [(Span(cause, Style.STRONG), Span(f", {incident.confidence.value}"))])
    rows += layout.section("because", [row for text in incident.because for row in layout.text(text, mark="- ")])
    if incident.runner_up is not None:
        other = f"{incident.runner_up.cause.value}: {incident.runner_up.flip}"
        rows += layout.section("or else", layout.text(other, Style.FAINT))
    return rows


def _where(incident: Incident, layout: Layout) -> list[Row]:
    rows: list[Row] = []
    if incident.root is not None:
        root = incident.root
        place = root.file if root.line is None else f"{root.file}:{root.line}"
        place += "" if root.line is not None or root.offset is None else f", byte {root.offset}"
        rows += layout.section("line", [*_path(place, layout), *layout.text(root.text, Style.ALARM)])
    if incident.exception is not None:
        message = f": {incident.exception.message}" if incident.exception.message else ", no message"
        rows += layout.section("raised", layout.text(incident.exception.type + message))
    if incident.frame is not None:
        frame = incident.frame
        where = _path(f"{frame.file}:{frame.line}", layout)
        rows += layout.section("frame", [*where, *layout.text(f"in {frame.function}")])
    if incident.rank is not None:
        rows += layout.section("rank", layout.text(str(incident.rank)))
    if incident.source is None and incident.traceback:
        rows += layout.section("traceback", _traceback(incident.traceback, layout))
    return rows


def _traceback(lines: Sequence[str], layout: Layout) -> list[Row]:
    more = len(lines) - _TRACEBACK_ROWS
    above: list[Row] = [(Span(f"… {_lines(more)} above", Style.FAINT),)] if more > 0 else []
    return [*above, *((Span(cut(plain(line), layout.room)),) for line in lines[-_TRACEBACK_ROWS:])]


def _code(incident: Incident, layout: Layout) -> list[Row]:
    source = incident.source
    if source is None:
        return []
    line = _deciding(incident)
    changed: list[Row] = []
    if source.matches_log is False:
        changed = layout.text("this file is no longer the one that the server ran", Style.WARNING)
    rows = layout.section("source", [*_path(source.path, layout), *changed, *_listing(source, line, layout)])
    if source.guard is not None and source.guard.condition:
        rows += layout.section("guard", layout.text(source.guard.condition, Style.STRONG))
        if source.guard.requires:
            rows += layout.section("ties", layout.text(", ".join(source.guard.requires), Style.NAME))
    return rows


def _deciding(incident: Incident) -> int | None:
    """The frame's line in the source as it lies there now: that line, or the nearest with the text that the log quotes."""
    frame, source = incident.frame, incident.source
    if frame is None or source is None or not frame.code:
        return frame.line if frame else None
    same = [n for n, text in enumerate(source.lines, source.first_line) if text.strip() == frame.code.strip()]
    return min(same, key=lambda n: abs(n - frame.line), default=frame.line)


def _listing(source: IncidentSource, line: int | None, layout: Layout) -> list[Row]:
    """The source around `line`, which is marked; what does not fit on the page is counted."""
    last = source.first_line + len(source.lines) - 1
    middle = line if line is not None and source.first_line <= line <= last else source.first_line + _SOURCE_ABOVE
    start = max(source.first_line, middle - _SOURCE_ABOVE)
    end = min(last, middle + _SOURCE_BELOW)
    while end > middle and not source.lines[end - source.first_line].strip():
        end -= 1
    texts = [plain(text) for text in source.lines[start - source.first_line : end - source.first_line + 1]]
    margin = min((len(text) - len(text.lstrip(" ")) for text in texts if text.strip(" ")), default=0)
    digits = len(str(end))
    rows: list[Row] = []
    for number, text in enumerate(texts, start):
        gutter = f"{'▶' if number == line else ' '} {number:>{digits}} │ "
        style = Style.ALARM if number == line else Style.PLAIN
        rows.append(
            (
                Span(gutter, style if number == line else Style.FAINT),
                Span(_code_cut(text, margin, gutter, layout), style),
            )
        )
    return rows


def _code_cut(text: str, margin: int, gutter: str, layout: Layout) -> str:
    return cut(text[margin:], layout.room - columns(gutter))


def _launch(incident: Incident, layout: Layout) -> list[Row]:
    launch = incident.launch
    if launch is None:
        return []
    dropped = {edit.flag for edit in launch.edits if edit.action in {"drop", "set"}}
    added = {edit.flag for edit in launch.edits if edit.action in {"add", "set"}}
    origin: Row = (Span(_ORIGINS[launch.origin], Style.FAINT),)
    rows = layout.section("launch", [*command(launch.command, dropped, Style.WRONG, layout.room), origin])
    if launch.corrected is not None:
        rows += layout.section("corrected", command(launch.corrected, added, Style.GOOD, layout.room))
        rows += layout.section("changes", _edits(launch, layout))
    return rows


def _edits(launch: IncidentLaunch, layout: Layout) -> list[Row]:
    rows: list[Row] = []
    for edit in launch.edits:
        flag = " ".join(filter(None, (edit.flag, edit.value)))
        style = Style.WRONG if edit.action == "drop" else Style.GOOD
        text = layout.text(f"{flag} ({edit.basis})", style, mark=f"{_SIGNS[edit.action]} ")
        rows += text
    if launch.checks is not None:
        passed = f"passes {launch.checks.passed} of the {launch.checks.evaluated} checks that can be evaluated"
        rows += layout.text(passed, Style.FAINT)
    return rows


def _advice(incident: Incident, layout: Layout) -> list[Row]:
    return layout.section(
        "do", [row for n, text in enumerate(incident.advice, 1) for row in layout.text(text, mark=f"{n}. ")]
    )


def _machine(incident: Incident, layout: Layout) -> list[Row]:
    events = [row for event in incident.host.events for row in layout.text(event.text, rows=2)]
    full = [f"{d.mount} is {d.used_percent} % full" for d in incident.host.disk if d.used_percent >= _FULL_DISK]
    rows = layout.section("host", [*events, *(row for text in full for row in layout.text(text, Style.WARNING))])
    health = incident.health
    if health.state != "unknown" or health.samples:
        seen = [s.result if s.http_status is None else f"{s.result} {s.http_status}" for s in health.samples]
        text = f"{health.state}: {', '.join(seen[-_SAMPLES:])}" if seen else health.state
        rows += layout.section("health", layout.text(f"{text}{f' ({health.url})' if health.url else ''}"))
    return rows


def _asked(incident: Incident, layout: Layout) -> list[Row]:
    steps = incident.evidence[:_QUESTIONS]
    rungs = max((columns(_rung(step)) for step in steps), default=0)
    results = max((columns(answer(step)) for step in steps), default=0)
    body: list[Row] = []
    for step in steps:
        mark = f"{_rung(step).ljust(rungs)}  {answer(step).ljust(results)}  "
        body += layout.text(_question(step), Style.FAINT, rows=_COMMAND_ROWS, mark=mark)
    if len(incident.evidence) > _QUESTIONS:
        body.append((Span(f"… and {len(incident.evidence) - _QUESTIONS} more", Style.FAINT),))
    return layout.section("asked", body)


def _rung(step: Evidence) -> str:
    return cut(_flat(step.rung), _RUNG)


def answer(step: Evidence) -> str:
    """What came of a question, in a word or two."""
    if step.outcome == "answered" and step.count is not None:
        return _lines(step.count)
    return _OUTCOMES[step.outcome]


def _question(step: Evidence) -> str:
    via = "" if step.via == "exec" else f" [{step.via}]"
    detail = f": {step.detail}" if step.detail and step.outcome != "answered" else ""
    return f"{_flat(step.command)}{via}{_flat(detail)}"


def _history(incident: Incident, layout: Layout) -> list[Row]:
    moments = incident.timeline
    more = len(moments) - _MOMENTS
    shown = moments if more <= 0 else (*moments[:3], *moments[3 + more :])
    body: list[Row] = []
    for index, moment in enumerate(shown):
        if more > 0 and index == 3:
            body.append((Span(f"… {more} more", Style.FAINT),))
        body += layout.text(moment.what, rows=2, mark=f"{_clock(moment.at)}  ")
    rows = layout.section("when", body)
    rows += layout.section("unread", [row for text in _unread(incident) for row in layout.text(text, Style.WARNING)])
    if incident.redactions:
        hidden = ", ".join(f"{count} {rule}" for rule, count in incident.redactions.items())
        rows += layout.section("redacted", layout.text(hidden, Style.FAINT))
    return rows


def _unread(incident: Incident) -> Iterator[str]:
    if not incident.log.complete and not incident.log.gaps:
        yield "not every byte of this run was read"
    for gap in incident.log.gaps:
        yield f"bytes {gap.start} to {'?' if gap.end is None else gap.end}: {gap.reason}"


def _look(incident: Incident, layout: Layout) -> list[Row]:
    if not incident.look:
        return []
    # In one piece, however long: it is there to be copied.
    return [
        *layout.section("look", [(Span("at the deciding place, on the host:"),)]),
        (Span(whole_plain(incident.look)),),
    ]


def _told(incident: Incident, at: datetime, word: str, style: Style) -> Row:
    return (Span(f"{_clock(at)}  "), Span(word, style), Span("  "), Span(_who(incident), Style.STRONG))


def _fitted(row: Row, width: int) -> Row:
    """The row in at most `width` columns, its end cut with an ellipsis."""
    spans: list[Span] = []
    left = width
    for span in row:
        text = cut(span.text, left)
        spans.append(Span(text, span.style))
        left -= columns(text)
        if text != span.text or not left:
            break
    return tuple(spans)


def _who(incident: Incident) -> str:
    target = incident.target
    if target is None:
        return _SCOPES[incident.scope]
    return _flat(f"{target.name} on {target.host}" if target.host else target.name)


def _path(place: str, layout: Layout) -> list[Row]:
    return [(Span(cut_front(_flat(place), layout.room), Style.NAME),)]


def _flat(text: str) -> str:
    return plain(" ".join(text.split()))


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _lines(count: int) -> str:
    return "1 line" if count == 1 else f"{count} lines"


def _clock(at: datetime) -> str:
    return f"{at.astimezone(UTC):%H:%M:%S}"


def _day(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d}"


def _lasted(span: timedelta) -> str:
    """A duration in its two largest units: `3 s`, `4 min 12 s`, `2 h 3 min`, `5 d 1 h`."""
    left = max(0, int(span.total_seconds()))
    parts: list[str] = []
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        count, left = divmod(left, size)
        if count or (unit == "s" and not parts):
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2])
