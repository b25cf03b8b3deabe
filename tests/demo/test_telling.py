"""What the demo tells while it goes on."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.sinks.terminal_incidents import CLIMBING, FOUNDING, RESOLVED
from watchd.demo.telling import Seen, Telling
from watchd.model import (
    Block,
    Evidence,
    Gap,
    HealthResult,
    HealthSample,
    LogStanding,
    LogState,
    Process,
    ProcessSample,
    Relaunch,
    Tick,
    Trigger,
    TriggerKind,
)
from watchd.sinks import draw

AT = datetime(2025, 9, 18, 14, 9, 58, tzinfo=UTC)
LIVES = Process(pid=7, parent=1, started=5, argv=("python3",))


def told(*seen: Seen, width: int = 100) -> list[str]:
    telling = Telling(width=width)
    return [draw.paint([row], colour=False) for one in seen for row in telling.rows(one, AT)]


def block(data: bytes) -> Block:
    return Block(generation=1, offset=0, data=data, at=AT)


@pytest.mark.parametrize(
    ("seen", "row"),
    [
        (HealthSample(at=AT, result=HealthResult.UP, http_status=200, latency_ms=3.4), "health   200 in 3 ms"),
        (HealthSample(at=AT, result=HealthResult.DOWN, detail="refused"), "health   down: refused"),
        (HealthSample(at=AT, result=HealthResult.SLOW), "health   slow"),
        (Relaunch(generation=2, reason="truncated", at=AT), "log      (begins anew: truncated)"),
        (Gap(generation=1, start=5, end=None, reason="gone", at=AT), "log      (bytes 5 to ? were not read: gone)"),
        (Trigger(kind=TriggerKind.TRACEBACK, summary="AssertionError", at=AT), "trigger  AssertionError"),
        (
            Evidence(rung="broad", command="grep -a x", outcome="answered", count=2),
            "ladder   broad: 2 lines: grep -a x",
        ),
        (Evidence(rung="machine", command="dmesg", outcome="refused"), "ladder   machine: refused: dmesg"),
        (CLIMBING, "incident opened, crash: AssertionError ends the process"),
        (FOUNDING, "incident crash, launch_argument, certain"),
        (RESOLVED, "incident resolved, crash: --speculative-num-steps is missing: this server takes it togeth…"),
        (ProcessSample(at=AT, known=True, process=LIVES), "process  pid 7 lives; its launch command is recorded"),
    ],
)
def test_everything_that_happens_is_one_row(seen: Seen, row: str) -> None:
    assert told(seen) == [f"14:09:58  {row}"]


def test_a_line_of_the_log_is_told_once_it_is_whole() -> None:
    assert told(block(b"one\ntw"), block(b"o\nthr")) == ["14:09:58  log      one", "14:09:58  log      two"]


def test_half_a_line_of_the_old_log_is_not_glued_to_the_new_one() -> None:
    seen = told(block(b"half"), Relaunch(generation=2, reason="truncated", at=AT), block(b"whole\n"))
    assert seen[-1] == "14:09:58  log      whole"


def test_what_has_not_changed_is_not_told_again() -> None:
    lives, gone = ProcessSample(at=AT, known=True, process=LIVES), ProcessSample(at=AT, known=True)
    live = LogStanding(state=LogState.LIVE, detail="", at=AT)
    seen = told(lives, lives, gone, gone, live, live, CLIMBING, CLIMBING, Tick(at=AT))
    assert [row.split()[1] for row in seen] == ["process", "process", "log", "incident"]


def test_a_process_list_that_cannot_be_seen_tells_of_no_end() -> None:
    seen = told(ProcessSample(at=AT, known=True, process=LIVES), ProcessSample(at=AT, known=False))
    assert len(seen) == 1


def test_a_hostile_line_is_harmless_and_fits() -> None:
    (row,) = told(block(b"\x1b]0;owned\x07\xff" + b"A" * 10_000 + b"\n"), width=60)
    assert "\x1b" not in row
    assert draw.columns(row) == 60
    assert row.endswith("…")
