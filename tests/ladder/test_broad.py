"""The window of the log is as small as it can be and as large as it must, and the founding grep begins with the run."""

from __future__ import annotations

import pytest

from tests.support.cases import LOG, a_case, asks, ends
from watchd.hosts import replies
from watchd.ladder import broad, context
from watchd.model import FoundingGrep, Line, Mark, MarkKind, Outcome, ReadLog, Reply, Run

KIB = 1024
MIB = 1024 * KIB
CRASH = b'Traceback (most recent call last):\n  File "/a.py", line 1, in <module>\n    assert x\nAssertionError\n'


@pytest.fixture
def small(monkeypatch):
    """Windows a hundred times smaller than they are."""
    monkeypatch.setattr(broad, "WINDOW", 80 * KIB)
    monkeypatch.setattr(broad, "WIDE_WINDOW", 640 * KIB)
    monkeypatch.setattr(broad, "_EDGE", 640)


def read(question: ReadLog, log: bytes) -> Reply:
    offset, length = replies.window(question, len(log))
    return replies.log(question, "sftp", log[offset : offset + length], offset=offset, size=len(log))


def quiet(size: int) -> bytes:
    return b"nothing of note happens in this line of the log, nor in the next one\n" * (size // 69 + 1)


def test_the_newest_eight_mebibytes_are_asked_for():
    assert asks(broad.window(a_case())) == (ReadLog(log=LOG, start=None, length=8 * MIB),)


def test_a_log_that_lies_whole_in_the_window_gives_its_run_with_line_numbers():
    rung = broad.window(a_case())
    (question,) = asks(rung)
    (run,) = ends(rung, read(question, b"loading\n" + CRASH))
    assert isinstance(run, Run)
    assert [line.number for line in run.lines] == [1, 2, 3, 4, 5]
    assert run.lines[-1].text == "AssertionError"


@pytest.mark.usefixtures("small")
def test_a_window_with_a_crash_well_inside_it_is_wide_enough_and_has_no_line_numbers():
    rung = broad.window(a_case())
    (question,) = asks(rung)
    log = quiet(90 * KIB) + CRASH
    (run,) = ends(rung, read(question, log))
    assert isinstance(run, Run)
    assert run.lines[-1].number is None
    assert run.lines[-1].offset == len(log) - len(b"AssertionError\n")


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    "log",
    [quiet(90 * KIB), quiet(20 * KIB) + CRASH * 2 + quiet(80 * KIB - 500)],
    ids=["no sign of failure", "a sign at the very edge"],
)
def test_a_window_that_may_not_reach_the_cause_is_asked_for_once_more_and_wider(log):
    rung = broad.window(a_case())
    (question,) = asks(rung)
    (wider,) = rung.send((read(question, log),))
    assert wider == ReadLog(log=LOG, start=None, length=640 * KIB)
    (run,) = ends(rung, read(wider, log))
    assert isinstance(run, Run)
    assert run.lines[0].offset == 0


@pytest.mark.usefixtures("small")
def test_a_trigger_that_lies_before_the_window_makes_it_wider():
    rung = broad.window(a_case(offset=1000))
    (question,) = asks(rung)
    (wider,) = rung.send((read(question, quiet(90 * KIB) + CRASH),))
    assert wider.length == 640 * KIB


@pytest.mark.usefixtures("small")
def test_a_wider_window_that_does_not_come_leaves_what_the_first_one_held():
    rung = broad.window(a_case())
    (question,) = asks(rung)
    (wider,) = rung.send((read(question, quiet(90 * KIB)),))
    (run,) = ends(rung, replies.unanswered(wider, "sftp", "not answered within 3 s", Outcome.TIMED_OUT))
    assert isinstance(run, Run)


@pytest.mark.parametrize("outcome", [Outcome.EMPTY, Outcome.REFUSED, Outcome.TIMED_OUT, Outcome.LOST])
def test_a_log_that_is_not_read_gives_no_run(outcome):
    rung = broad.window(a_case())
    (question,) = asks(rung)
    assert ends(rung, replies.unanswered(question, "sftp", "", outcome)) == ()


RUN = Run(
    lines=(
        Line(11, 500, "warming up: error budget is full"),
        Line(12, 540, "CUDA error: device-side assert triggered"),
        Line(13, 590, "RuntimeError: CUDA error: device-side assert triggered"),
    ),
    marks=(Mark(0, MarkKind.WORK),),
)


@pytest.mark.parametrize(("rung", "step"), [(broad.founding, "broad"), (context.founding, "assert")])
def test_the_founding_greps_begin_where_the_current_run_begins(rung, step):
    asking = rung(a_case(RUN))
    assert asks(asking) == (FoundingGrep(step=step, log=LOG, start=500),)
    assert ends(asking, replies.unanswered(FoundingGrep(step=step, log=LOG), "exec", "")) == ()


@pytest.mark.parametrize("rung", [broad.founding, context.founding])
def test_without_a_run_the_founding_greps_take_the_whole_log(rung):
    assert asks(rung(a_case()))[0].start == 0


def test_the_window_is_shown_as_a_survey_without_lines_of_progress():
    reply = read(ReadLog(log=LOG, start=None, length=10), b"")
    excerpt, count = broad.show_window(a_case(RUN), reply)
    assert count == 3
    assert excerpt == (
        "assertion: 2 lines\n"
        "  line 12: CUDA error: device-side assert triggered\n"
        "  line 13: RuntimeError: CUDA error: device-side assert triggered"
    )


def test_a_window_that_was_too_small_shows_nothing():
    small = Reply(
        question=ReadLog(log=LOG, start=None, length=1), outcome=Outcome.ANSWERED, command="", via="sftp", offset=501
    )
    assert broad.show_window(a_case(RUN), small) == ("", None)
    assert broad.show_window(a_case(), small) == ("", None)
