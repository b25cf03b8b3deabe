"""An incident as the parts of a chat message, in the order in which people read them; pure.

A part has forms, the fullest first; an empty last form means that the message can do without it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from watchd.model import Incident, IncidentLaunch, IncidentSource, Scope, Severity, Stage, Status, Verdict
from watchd.sinks.mrkdwn import block, code, items, prose

_FULL_DISK = 90
_ICONS = {Severity.CRITICAL: "🔴", Severity.ERROR: "🔴", Severity.WARNING: "🟠", Severity.INFO: "⚪"}
_HAPPENED = {
    Verdict.CRASH: "crashed",
    Verdict.HANG: "hangs",
    Verdict.DEGRADED: "is degraded",
    Verdict.STOPPED: "was stopped",
    Verdict.OK: "raised a false alarm",
    Verdict.UNREACHABLE: "cannot be reached",
}
_SCOPES = {Scope.TARGET: "a target", Scope.HOST: "a host", Scope.BASTION: "a bastion", Scope.JUMP: "watchd itself"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A piece of a message: `kind` says how it is drawn, `forms` are its texts, `name` says what is missing without it."""

    name: str
    kind: str = "section"
    forms: tuple[str, ...]


def headline(incident: Incident, *, first: bool) -> str:
    """What happened, to what, in one line of plain text."""
    who = _who(incident)
    if incident.status is Status.FIRING:
        return f"{_ICONS[incident.severity]} {'' if first else 'Update: '}{who} {_HAPPENED[incident.verdict]}"
    if incident.verdict is Verdict.STOPPED:
        return f"⚪ {who} was stopped"
    if incident.verdict is Verdict.OK:
        return f"🟢 {who}: alarm withdrawn"
    over = "can be reached again" if incident.verdict is Verdict.UNREACHABLE else "is back"
    happened = f"{_HAPPENED[incident.verdict]} and {over}" if first else over
    return f"🟢 {who} {happened} after {lasted(_end(incident) - incident.opened_at)}"


def parts(incident: Incident, *, first: bool, mention: str) -> tuple[Part, ...]:
    """Everything worth saying, at most eleven parts. One that is over and was told before is said in two."""
    call = f"{mention} " if mention and incident.status is Status.FIRING else ""
    if incident.status is Status.RESOLVED and not first:
        return _lead(incident, call), _close(incident)
    found = (
        _lead(incident, call),
        _line(incident),
        _guard(incident),
        _list("advice", "Do", incident.advice, 1200, droppable=False),
        _corrected(incident),
        _launch(incident),
        _list("reasons", "Why", incident.because, 1000, droppable=True),
        _frames(incident),
        _host(incident),
        _asked(incident),
        _close(incident),
    )
    return tuple(part for part in found if part.forms[0])


def sentence(incident: Incident) -> str:
    """Cause and summary, for the notification on a telephone."""
    if incident.verdict is Verdict.OK:
        return prose(_ending(incident), 300)
    cause = incident.cause.value if incident.cause else f"cause {_unknown(incident)}"
    return f"{cause}: {prose(incident.summary, 300)}"


def short(incident: Incident, *, first: bool, mention: str) -> str:
    """The same without any frame or block: cause, rank, deciding line, what to do; costs at most about 3,000."""
    call = f"{mention} " if mention and incident.status is Status.FIRING else ""
    rows = [f"{call}{prose(headline(incident, first=first), 150)}", *_cause_rows(incident)]
    if incident.root is not None:
        rows.append(f"{code(_place(incident), 200)} {code(incident.root.text, 300)}")
    rows.append(items(incident.advice, 700))
    if incident.launch is not None:
        rows += [", ".join(_edits(incident.launch)), code(incident.launch.corrected or "", 900)]
    return "\n".join(row for row in rows if row)


def lasted(span: timedelta) -> str:
    """A duration in its two largest units: `3 s`, `4 min 12 s`, `2 h 3 min`, `5 d 1 h`."""
    left = max(0, int(span.total_seconds()))
    found: list[str] = []
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        count, left = divmod(left, size)
        if count or (unit == "s" and not found):
            found.append(f"{count} {unit}")
    return " ".join(found[:2])


def _lead(incident: Incident, call: str) -> Part:
    rows = _cause_rows(incident)
    if incident.status is Status.RESOLVED and incident.verdict is not Verdict.STOPPED:
        rows.append(f"from {_clock(incident.opened_at)} to {_clock(_end(incident))}: {prose(_ending(incident), 200)}")
    return Part(name="cause", forms=(call + "\n".join(rows),))


def _cause_rows(incident: Incident) -> list[str]:
    if incident.verdict is Verdict.OK:
        return ["*Nothing is wrong.* What was told:", prose(incident.summary, 700)]
    cause = f"*Cause* {code(incident.cause.value, 60)} ({incident.confidence.value})" if incident.cause else ""
    facts = [cause or f"*Cause* {_unknown(incident)}"]
    if incident.rank is not None:
        facts.append(f"first failing rank {code(str(incident.rank), 60)}")
    if incident.occurrences > 1:
        facts.append(f"{incident.occurrences} times so far")
    return [" · ".join(facts), prose(incident.summary, 700)]


def _ending(incident: Incident) -> str:
    return incident.timeline[-1].what if incident.timeline else "it is over"


def _unknown(incident: Incident) -> str:
    return "not known yet" if incident.stage is Stage.CLIMBING else "not known"


def _line(incident: Incident) -> Part:
    rows: list[str] = []
    if incident.root is not None:
        rows += [f"*Deciding line* {code(_place(incident), 200)}", block(incident.root.text, 600)]
    exception = incident.exception
    if exception is not None and (incident.root is None or exception.type not in incident.root.text):
        rows.append(code(f"{exception.type}: {exception.message}".rstrip(": "), 200))
    if incident.frame is not None:
        frame = incident.frame
        rows.append(f"raised at {code(f'{frame.file}:{frame.line}', 200)} in {code(frame.function, 80)}")
    if incident.look:
        rows.append(f"look: {code(incident.look, 400)}")
    return Part(name="deciding line", forms=("\n".join(rows),))


def _guard(incident: Incident) -> Part:
    source = incident.source
    if source is None:
        return Part(name="source", forms=("",))
    listing = block(_listing(source, incident.frame.line if incident.frame else None), 1200)
    changed = "\nThe file has changed since the crash." if source.matches_log is False else ""
    if source.guard is None:
        return Part(name="source", forms=(f"*Source* {code(source.path, 200)}\n{listing}{changed}", ""))
    guard = f"*Guard* in {code(source.path, 200)}\n{block(source.guard.condition, 500)}"
    if source.guard.requires:
        guard += f"\nties together {', '.join(code(name, 60) for name in source.guard.requires[:5])}"
    return Part(name="source", forms=(f"{guard}\n{listing}{changed}", guard + changed))


def _listing(source: IncidentSource, line: int | None) -> str:
    """Three lines above and two below the deciding one, which is marked."""
    last = source.first_line + len(source.lines) - 1
    middle = line if line is not None and source.first_line <= line <= last else source.first_line + 3
    start, end = max(source.first_line, middle - 3), min(last, middle + 2)
    shown = source.lines[start - source.first_line : end - source.first_line + 1]
    return "\n".join(f"{'>' if n == line else ' '} {n} {text[:200]}" for n, text in enumerate(shown, start))


def _corrected(incident: Incident) -> Part:
    launch = incident.launch
    if launch is None or not (launch.corrected or launch.edits):
        return Part(name="corrected launch", forms=("",))
    rows = ["*Corrected launch*", block(launch.corrected or "", 1900), ", ".join(_edits(launch))]
    if launch.checks is not None:
        rows.append(f"passes {launch.checks.passed} of the {launch.checks.evaluated} checks that can be evaluated")
    return Part(name="corrected launch", forms=("\n".join(row for row in rows if row),))


def _edits(launch: IncidentLaunch) -> Iterator[str]:
    for edit in launch.edits[:5]:
        flag = " ".join(filter(None, (edit.flag, edit.value)))
        yield f"{edit.action} {code(flag, 70)} ({edit.basis})"


def _launch(incident: Incident) -> Part:
    launch = incident.launch
    if launch is None:
        return Part(name="launch command", forms=("",))
    return Part(name="launch command", forms=(f"*Launched with* ({launch.origin})\n{block(launch.command, 1500)}", ""))


def _list(name: str, title: str, texts: tuple[str, ...], limit: int, *, droppable: bool) -> Part:
    text = f"*{title}*\n{items(texts, limit)}" if texts else ""
    return Part(name=name, forms=(text, "") if droppable else (text,))


def _frames(incident: Incident) -> Part:
    trace = incident.traceback
    if not trace:
        return Part(name="traceback", forms=("",))
    long, few = ("\n".join(trace[-rows:]) for rows in (16, 5))
    title = "*Traceback*" if len(trace) <= 16 else "*Traceback*, its end"
    return Part(
        name="traceback",
        forms=(f"{title}\n{block(long, 1600, end=True)}", f"*Traceback*, its end\n{block(few, 500, end=True)}", ""),
    )


def _host(incident: Incident) -> Part:
    host = incident.host
    seen = [block("\n".join(event.text[:400] for event in host.events[-5:]), 900, end=True)] if host.events else []
    seen += [f"{code(d.mount, 60)} is {d.used_percent} % full" for d in host.disk if d.used_percent >= _FULL_DISK][:3]
    return Part(name="host evidence", forms=("\n".join(["*Host*", *seen]), "")) if seen else Part(name="", forms=("",))


def _asked(incident: Incident) -> Part:
    counts = Counter(step.outcome for step in incident.evidence)
    facts: list[str] = []
    if counts:
        told = ", ".join(f"{count} {outcome.replace('_', ' ')}" for outcome, count in sorted(counts.items()))
        facts.append(f"{sum(counts.values())} questions asked on the host: {told}")
    greps = {step.rung: step.count for step in incident.evidence if step.count is not None}
    facts += [f"{code(rung, 30)} found {count} lines" for rung, count in list(greps.items())[:3]]
    if not incident.log.complete:
        facts.append("the log was not read completely")
    if incident.runner_up is not None:
        facts.append(f"or else {code(incident.runner_up.cause.value, 60)}: {prose(incident.runner_up.flip, 250)}")
    return Part(name="what was asked", kind="context", forms=(" · ".join(facts), ""))


def _close(incident: Incident) -> Part:
    facts = [
        f"opened {_clock(incident.opened_at)}",
        f"incident {code(incident.id, 60)}",
        f"revision {incident.revision}",
    ]
    if incident.target is not None:
        engine = " ".join(filter(None, (incident.target.engine, incident.target.engine_version)))
        facts = [*([prose(engine, 60)] if engine else []), *facts]
    return Part(name="close", kind="context", forms=(" · ".join(facts),))


def _who(incident: Incident) -> str:
    target = incident.target
    if target is None:
        return _SCOPES[incident.scope]
    return f"{target.name} on {target.host}" if target.host else target.name


def _place(incident: Incident) -> str:
    root = incident.root
    assert root is not None
    if root.line is not None:
        return f"{root.file}:{root.line}"
    return root.file if root.offset is None else f"{root.file}, byte {root.offset}"


def _end(incident: Incident) -> datetime:
    return incident.resolved_at or incident.updated_at


def _clock(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
