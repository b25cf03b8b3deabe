"""Writing it up: identity, severity, redaction, the line to look at."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from watchd import incident
from watchd.model import (
    Case,
    Cause,
    Confidence,
    Diagnosis,
    Evidence,
    Incident,
    Launch,
    LaunchOrigin,
    Line,
    Root,
    Run,
    Scope,
    Severity,
    Stage,
    Status,
    Target,
    Traceback,
    TraceFrame,
    Trigger,
    TriggerKind,
    Verdict,
)

NOW = datetime(2026, 1, 5, 10, 0, tzinfo=UTC)
TARGET = Target(name="eagle3", host="gpu-01", log="/data/a log/server.log")
TRIGGER = Trigger(kind=TriggerKind.TRACEBACK, summary="AssertionError", at=NOW)
FRAMES = (
    TraceFrame(path="/app/launch.py", line=18, function="<module>", code="main()"),
    TraceFrame(path="/app/arguments.py", line=2423, function="settle", code="assert chosen"),
    TraceFrame(path="<string>", line=1, function="__init__"),
)


def opened() -> Incident:
    return incident.open_target(TARGET, TRIGGER, now=NOW, id=incident.new_id(NOW, bytes(10)))


def concluded(*, line: int | None = 43, secret: str = "hunter2secret") -> Incident:
    lines = (Line(line, 0, "Traceback (most recent call last):"), Line(line, 35, f"AssertionError: {secret}"))
    trace = Traceback(type="AssertionError", message=secret, frames=FRAMES, indexes=(0, 1), rank=3)
    case = Case(
        target=TARGET,
        trigger=TRIGGER,
        findings=(
            Run(lines=lines, engine="sglang", engine_version="0.5.9"),
            Launch(argv=("python3", "-m", "server", "--api-key", secret), origin=LaunchOrigin.RECORDED),
        ),
        steps=(Evidence(rung="broad", command="grep", outcome="answered", count=1, excerpt=f"key is {secret}"),),
    )
    diagnosis = Diagnosis(
        verdict=Verdict.CRASH,
        cause=Cause.LAUNCH_ARGUMENT,
        confidence=Confidence.LIKELY,
        summary="a flag is missing",
        root=Root(index=1, traceback=trace, rank=3),
    )
    return incident.conclude(opened(), case, diagnosis, now=NOW + timedelta(seconds=2))


def test_ids_are_uuids_of_version_7_in_order_of_time() -> None:
    early, late = (incident.new_id(NOW + timedelta(milliseconds=n), bytes(10)) for n in (0, 1))
    assert uuid.UUID(early).version == 7
    assert uuid.UUID(early).variant == uuid.RFC_4122
    assert early < late


def test_the_key_is_the_hash_of_scope_and_name() -> None:
    assert incident.key(Scope.TARGET, "a") == incident.key(Scope.TARGET, "a")
    assert incident.key(Scope.TARGET, "a") != incident.key(Scope.HOST, "a")
    assert len(incident.key(Scope.TARGET, "a")) == 64


def test_the_conclusion_names_line_exception_frame_and_rank() -> None:
    told = concluded()
    assert (told.stage, told.revision, told.cause) == (Stage.FINAL, 2, Cause.LAUNCH_ARGUMENT)
    assert told.root is not None
    assert (told.root.file, told.root.line, told.root.offset) == (TARGET.log, 43, 35)
    assert told.frame is not None
    assert (told.frame.file, told.frame.function) == ("/app/arguments.py", "settle"), "<string> lies in no file"
    assert told.rank == 3
    assert told.target is not None
    assert (told.target.engine, told.target.engine_version) == ("sglang", "0.5.9")


def test_a_secret_of_the_launch_is_nowhere_in_the_incident() -> None:
    told = concluded()
    assert "hunter2secret" not in repr(told)
    assert told.launch is not None
    assert told.launch.command == 'python3 -m server --api-key "$API_KEY"'
    assert told.redactions["value"] == 4


def test_the_line_to_look_at_is_quoted_for_both_shells() -> None:
    assert concluded().look == "ssh gpu-01 'sed -n 23,48p '\"'\"'/data/a log/server.log'\"'\"''"


def test_without_a_line_number_the_look_goes_by_bytes() -> None:
    look = concluded(line=None).look
    assert look is not None
    assert "tail -c +36 " in look


def test_the_fingerprint_knows_neither_line_numbers_nor_messages() -> None:
    told = concluded()
    assert told.frame is not None
    moved = replace(told, frame=replace(told.frame, line=9), summary="other")
    assert incident.fingerprint(moved) == told.fingerprint
    assert incident.fingerprint(replace(told, cause=Cause.ASSERTION)) != told.fingerprint


@pytest.mark.parametrize(
    ("verdict", "cause", "scope", "expected"),
    [
        (Verdict.CRASH, Cause.LAUNCH_ARGUMENT, Scope.TARGET, Severity.ERROR),
        (Verdict.HANG, Cause.WATCHDOG_HANG, Scope.TARGET, Severity.ERROR),
        (Verdict.CRASH, Cause.GPU_HARDWARE, Scope.TARGET, Severity.CRITICAL),
        (Verdict.UNREACHABLE, None, Scope.HOST, Severity.CRITICAL),
        (Verdict.DEGRADED, Cause.UNHANDLED_EXCEPTION, Scope.TARGET, Severity.WARNING),
        (Verdict.STOPPED, Cause.PROCESS_KILLED, Scope.TARGET, Severity.INFO),
    ],
)
def test_severity_follows_verdict_cause_and_scope(
    verdict: Verdict, cause: Cause | None, scope: Scope, expected: Severity
) -> None:
    assert incident.severity(verdict, cause, scope) is expected


def test_an_alarm_that_is_withdrawn_is_resolved_with_verdict_ok() -> None:
    told = incident.resolve(opened(), now=NOW, why="nothing is wrong", verdict=Verdict.OK)
    assert (told.status, told.verdict, told.cause, told.severity) == (
        Status.RESOLVED,
        Verdict.OK,
        Cause.NONE,
        Severity.INFO,
    )


def test_another_occurrence_is_climbed_for_again() -> None:
    told = incident.occur(concluded(), TRIGGER, now=NOW)
    assert (told.occurrences, told.stage, told.cause, told.revision) == (2, Stage.CLIMBING, None, 3)
