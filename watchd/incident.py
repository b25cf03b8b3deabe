"""Writing it up: from a trigger to an open incident, from a case and its diagnosis to a final one, and to the all-clear.

Pure: time and randomness are arguments. Nothing leaves this room unredacted.
"""

from __future__ import annotations

import hashlib
import shlex
from collections import Counter
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any

from watchd.model import (
    Case,
    Cause,
    Confidence,
    Diagnosis,
    Fix,
    HealthCheck,
    HealthSample,
    HostDisk,
    HostEvent,
    HostGpu,
    Incident,
    IncidentChecks,
    IncidentEdit,
    IncidentException,
    IncidentFrame,
    IncidentGuard,
    IncidentHealth,
    IncidentHost,
    IncidentLaunch,
    IncidentLog,
    IncidentRoot,
    IncidentRunnerUp,
    IncidentSample,
    IncidentSource,
    IncidentTarget,
    Launch,
    LogGap,
    Machine,
    Moment,
    Root,
    Run,
    Scope,
    Severity,
    SourceExcerpt,
    Stage,
    Status,
    Target,
    TraceFrame,
    Trigger,
    Verdict,
)
from watchd.parse import secrets

_KEPT_SAMPLES = 12
_KEPT_TRACEBACK = 200
_KEPT_EVENTS = 20
_KEPT_TEXT = 4096
"""characters of one log line in an incident; the log itself has the rest"""


def key(scope: Scope, name: str) -> str:
    """The identity towards other systems: hex SHA-256 of scope, NUL, name."""
    return hashlib.sha256(f"{scope}\0{name}".encode()).hexdigest()


def new_id(now: datetime, random: bytes) -> str:
    """A UUIDv7 of this moment (RFC 9562); `random` is ten random bytes."""
    milliseconds = int(now.timestamp() * 1000) & ((1 << 48) - 1)
    tail = int.from_bytes(random[:10], "big")
    number = milliseconds << 80 | 0x7 << 76 | (tail >> 64 & 0xFFF) << 64 | 0b10 << 62 | tail & ((1 << 62) - 1)
    text = f"{number:032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def open_target(
    target: Target,
    trigger: Trigger,
    *,
    now: datetime,
    id: str,  # noqa: A002  the key's own name
    verdict: Verdict = Verdict.CRASH,
    health: IncidentHealth | None = None,
) -> Incident:
    """A firing incident of a target, before the ladder is climbed."""
    return redact(
        Incident(
            id=id,
            key=key(Scope.TARGET, target.name),
            target=IncidentTarget(
                name=target.name, host=target.host, log=target.log, engine=target.engine, labels=target.labels
            ),
            opened_at=now,
            updated_at=now,
            verdict=verdict,
            severity=severity(verdict, None, Scope.TARGET),
            summary=trigger.summary,
            health=health or IncidentHealth(),
            timeline=(Moment(at=trigger.at, what=trigger.summary),),
        )
    )


def open_host(name: str, reason: str, *, now: datetime, id: str) -> Incident:  # noqa: A002
    """A firing incident of a host that cannot be reached: nothing is known about the servers on it."""
    return redact(
        Incident(
            id=id,
            key=key(Scope.HOST, name),
            scope=Scope.HOST,
            stage=Stage.FINAL,
            target=None,
            opened_at=now,
            updated_at=now,
            verdict=Verdict.UNREACHABLE,
            severity=severity(Verdict.UNREACHABLE, None, Scope.HOST),
            summary=f"{name} cannot be reached: {reason}",
            because=(f"watchd has no SSH connection to {name}, so it cannot see the servers on it.",),
            advice=(f"Try `ssh {shlex.quote(name)}` from the machine on which watchd runs.",),
            timeline=(Moment(at=now, what=f"{name} cannot be reached"),),
        )
    )


def conclude(incident: Incident, case: Case, diagnosis: Diagnosis, *, now: datetime) -> Incident:
    """The incident as the climb left it: stage final, with everything that was learnt."""
    run, launch = case.get(Run), case.get(Launch)
    _, _, values = secrets.redact_launch(launch.argv) if launch else ("", (), ())
    root = diagnosis.root
    trace = root.traceback if root else None
    told = replace(
        incident,
        stage=Stage.FINAL,
        updated_at=now,
        revision=incident.revision + 1,
        verdict=diagnosis.verdict,
        cause=diagnosis.cause,
        confidence=diagnosis.confidence,
        severity=severity(diagnosis.verdict, diagnosis.cause, incident.scope),
        summary=diagnosis.summary,
        because=diagnosis.because,
        advice=diagnosis.advice,
        runner_up=IncidentRunnerUp(cause=diagnosis.runner_up.cause, flip=diagnosis.runner_up.flip)
        if diagnosis.runner_up
        else None,
        target=_target(incident, run),
        root=_root(root, run, case.target),
        exception=IncidentException(type=trace.type, message=trace.message) if trace and trace.type else None,
        frame=_frame(trace.frames if trace else ()),
        rank=root.rank if root else None,
        traceback=_traceback(root, run),
        source=_source(case.get(SourceExcerpt)),
        launch=_launch(launch, case.get(Fix)) if launch else None,
        host=_host(case.get(Machine)),
        evidence=case.steps,
        look=look(root, run, case.target),
        timeline=(*incident.timeline, Moment(at=now, what=f"ladder climbed: {diagnosis.summary}")),
    )
    return redact(replace(told, fingerprint=fingerprint(told)), values)


def resolve(incident: Incident, *, now: datetime, why: str, verdict: Verdict | None = None) -> Incident:
    """The all-clear; with verdict `ok` an alarm that is withdrawn."""
    withdrawn = verdict is Verdict.OK
    return redact(
        replace(
            incident,
            status=Status.RESOLVED,
            stage=Stage.FINAL,
            verdict=verdict or incident.verdict,
            cause=Cause.NONE if withdrawn else incident.cause,
            severity=Severity.INFO if withdrawn else incident.severity,
            resolved_at=now,
            updated_at=now,
            revision=incident.revision + 1,
            timeline=(*incident.timeline, Moment(at=now, what=why)),
        )
    )


def occur(incident: Incident, trigger: Trigger, *, now: datetime) -> Incident:
    """The same target failed again while the incident was open: the ladder is climbed once more."""
    return redact(
        replace(
            incident,
            stage=Stage.CLIMBING,
            cause=None,
            confidence=Confidence.UNKNOWN,
            fingerprint=None,
            occurrences=incident.occurrences + 1,
            updated_at=now,
            revision=incident.revision + 1,
            timeline=(*incident.timeline[-50:], Moment(at=trigger.at, what=f"again: {trigger.summary}")),
        )
    )


def with_gaps(incident: Incident, gaps: tuple[LogGap, ...]) -> Incident:
    """The incident, saying which bytes of the log were not read."""
    return replace(incident, log=IncidentLog(complete=not gaps, gaps=gaps))


def severity(verdict: Verdict, cause: Cause | None, scope: Scope) -> Severity:
    """How loudly this is told."""
    if scope is not Scope.TARGET or cause is Cause.GPU_HARDWARE:
        return Severity.CRITICAL
    if verdict in (Verdict.CRASH, Verdict.HANG, Verdict.UNREACHABLE):
        return Severity.ERROR
    return Severity.WARNING if verdict is Verdict.DEGRADED else Severity.INFO


def fingerprint(incident: Incident) -> str:
    """What happened, over all targets: cause, exception type, innermost frame's file name and function, no line number."""
    frame = incident.frame
    parts = (
        incident.cause or "",
        incident.exception.type if incident.exception else "",
        PurePosixPath(frame.file).name if frame else "",
        frame.function if frame else "",
    )
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def health(state: str, check: HealthCheck | None, samples: tuple[HealthSample, ...]) -> IncidentHealth:
    """The health of a target as an incident shows it."""
    return IncidentHealth(
        state=state,
        url=check.url if check else None,
        via=check.via if check else None,
        samples=tuple(
            IncidentSample(
                at=sample.at,
                result=sample.result.value,
                http_status=sample.http_status,
                latency_ms=None if sample.latency_ms is None else round(sample.latency_ms, 1),
            )
            for sample in samples[-_KEPT_SAMPLES:]
        ),
    )


def look(root: Root | None, run: Run | None, target: Target) -> str | None:
    """The line that shows the deciding place on the host."""
    if root is None or root.index is None or run is None:
        if root and root.event and target.host:
            return f"ssh {shlex.quote(target.host)} dmesg -T"
        return None
    line = run.lines[root.index]
    log = shlex.quote(target.log)
    if line.number is None:
        shown = f"tail -c +{line.offset + 1} {log} | head -n 20"
    else:
        shown = f"sed -n {max(1, line.number - 20)},{line.number + 5}p {log}"
    return f"ssh {shlex.quote(target.host)} {shlex.quote(shown)}" if target.host else shown


def redact(incident: Incident, values: tuple[str, ...] = ()) -> Incident:
    """The incident without secrets: by pattern, and wherever one of these values stands; hits are counted by rule."""
    redactor = secrets.Redactor(values)
    counts: Counter[str] = Counter()
    clean: Incident = _each_text(incident, redactor, counts)
    merged = Counter(incident.redactions)
    merged.update(counts)
    return replace(clean, redactions=dict(sorted(merged.items())))


_IDENTITIES = frozenset({"id", "key", "fingerprint", "schema", "sha256", "boot_id"})


def _each_text(value: Any, redactor: secrets.Redactor, counts: Counter[str]) -> Any:
    """The value with each text in it redacted; a tuple of lines is one text, since a key may stretch over several."""
    if type(value) is str:
        text, hits = redactor.redact(value)
        counts.update(hits)
        return text
    if isinstance(value, tuple) and value and all(type(item) is str for item in value):
        lines, hits = redactor.redact_lines(value)
        counts.update(hits)
        return lines
    if isinstance(value, tuple):
        return tuple(_each_text(item, redactor, counts) for item in value)
    if isinstance(value, Mapping):
        return {name: _each_text(item, redactor, counts) for name, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        texts = {field.name: getattr(value, field.name) for field in fields(value) if field.name not in _IDENTITIES}
        return replace(value, **{name: _each_text(text, redactor, counts) for name, text in texts.items()})
    return value


def _target(incident: Incident, run: Run | None) -> IncidentTarget | None:
    if incident.target is None or run is None:
        return incident.target
    return replace(incident.target, engine=run.engine, engine_version=run.engine_version)


def _root(root: Root | None, run: Run | None, target: Target) -> IncidentRoot | None:
    if root is None:
        return None
    if root.event is not None:
        name = "host/dmesg.txt" if target.host is None else "dmesg"
        return IncidentRoot(file=name, line=root.event.number, text=root.event.text[:_KEPT_TEXT], offset=None)
    if root.index is None or run is None:
        return None
    line = run.lines[root.index]
    return IncidentRoot(file=target.log, line=line.number, text=line.text[:_KEPT_TEXT], offset=line.offset)


def _frame(frames: tuple[TraceFrame, ...]) -> IncidentFrame | None:
    for frame in reversed(frames):
        if not frame.path.startswith("<"):
            return IncidentFrame(file=frame.path, line=frame.line, function=frame.function, code=frame.code)
    return None


def _traceback(root: Root | None, run: Run | None) -> tuple[str, ...]:
    if root is None or root.traceback is None or run is None:
        return ()
    lines = [run.lines[index].text[:_KEPT_TEXT] for index in root.traceback.indexes]
    if len(lines) > _KEPT_TRACEBACK:
        cut = len(lines) - _KEPT_TRACEBACK
        lines = [*lines[: _KEPT_TRACEBACK // 2], f"[{cut} lines left out]", *lines[-_KEPT_TRACEBACK // 2 :]]
    return tuple(lines)


def _source(excerpt: SourceExcerpt | None) -> IncidentSource | None:
    if excerpt is None:
        return None
    guard = excerpt.guard
    return IncidentSource(
        path=excerpt.path,
        first_line=excerpt.first_line,
        lines=excerpt.lines,
        guard=IncidentGuard(condition=guard.condition, names=guard.names, requires=guard.requires) if guard else None,
        sha256=excerpt.sha256,
        matches_log=excerpt.matches_log,
    )


def _launch(launch: Launch, fix: Fix | None) -> IncidentLaunch:
    """The command and the corrected one; the real words are corrected, then both are rid of secrets alike."""
    command, argv, _ = secrets.redact_launch(launch.argv)
    told = IncidentLaunch(command=command, argv=argv, origin=launch.origin.value)
    if fix is None or not fix.argv:
        return told
    corrected, _, _ = secrets.redact_launch(fix.argv)
    return replace(
        told,
        corrected=corrected,
        edits=tuple(IncidentEdit(flag=e.flag, action=e.action, value=e.value, basis=e.basis) for e in fix.edits),
        checks=IncidentChecks(passed=fix.passed, evaluated=fix.evaluated) if fix.evaluated else None,
    )


def _host(machine: Machine | None) -> IncidentHost:
    if machine is None:
        return IncidentHost()
    return IncidentHost(
        events=tuple(
            HostEvent(kind=event.kind.value, at=event.at, text=event.text[:_KEPT_TEXT], pid=event.pid, gpu=event.gpu)
            for event in machine.events[-_KEPT_EVENTS:]
        ),
        disk=tuple(
            HostDisk(mount=use.mount, used_percent=use.used_percent, inodes_percent=use.inodes_percent)
            for use in machine.mounts
        ),
        gpus=tuple(
            HostGpu(
                index=gpu.index,
                name=gpu.name,
                memory_used_mib=gpu.memory_used_mib,
                memory_total_mib=gpu.memory_total_mib,
                utilisation_percent=gpu.utilisation_percent,
                power_w=gpu.power_w,
            )
            for gpu in machine.gpus
        ),
        boot_id=machine.boot_id,
    )
