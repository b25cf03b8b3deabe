"""The launch command comes from the best place that shows it, and never from a run before."""

from __future__ import annotations

import pytest

from tests.support.cases import a_case, a_target, asks, ends, learns
from watchd.hosts import replies
from watchd.ladder import launch
from watchd.model import (
    CommandLine,
    Launch,
    LaunchOrigin,
    Line,
    Mark,
    MarkKind,
    Outcome,
    Processes,
    Run,
)

RECORDED = Launch(argv=("serve", "--tp", "2"), origin=LaunchOrigin.RECORDED, pid=7, started=9)


def a_run(*texts: str, marks: tuple[Mark, ...] = (), complete: bool = True) -> Run:
    lines = tuple(Line(number, number * 100, text) for number, text in enumerate(texts, 1))
    return Run(lines=lines, marks=marks, complete=complete)


def a_list(*processes: tuple[int, int, str]) -> bytes:
    """The answer to Processes: pid, parent and command line of each."""
    stats = "".join(f"{pid} (x) S {parent}{' 0' * 17} {pid * 10}{' 0' * 30}\n" for pid, parent, _ in processes)
    words = "".join(f"/proc/{pid}/cmdline:{word}\0" for pid, _, line in processes for word in line.split())
    return f"{stats}\nz\n{words}".encode()


def test_a_recorded_launch_is_not_asked_for_again():
    assert learns(launch.read(a_case(RECORDED))) == ()


def test_a_bundle_is_asked_for_the_command_that_it_keeps():
    rung = launch.read(a_case(target=a_target(host=None)))
    (question,) = asks(rung)
    assert question == CommandLine(pid=None)
    found = ends(rung, replies.small(question, "bundle", b"serve\0--name\0a b\0"))
    assert found == (Launch(argv=("serve", "--name", "a b"), origin=LaunchOrigin.BUNDLE),)


def test_a_living_process_shows_its_command_line():
    case = a_case(a_run("loading"), target=a_target(process=r"serve\.main"), alive=True)
    rung = launch.read(case)
    (question,) = asks(rung)
    assert question == Processes()
    data = a_list((1, 0, "init"), (70, 1, "python3 -m serve.main --tp 2"), (71, 70, "python3 -m serve.main --tp 2"))
    (found,) = ends(rung, replies.small(question, "exec", data))
    assert found == Launch(
        argv=("python3", "-m", "serve.main", "--tp", "2"), origin=LaunchOrigin.PROCESS, pid=70, started=700
    )
    reply = replies.small(question, "exec", data)
    assert launch.show(case.with_finding(found), reply) == ("python3 -m serve.main --tp 2", None)


def test_of_a_host_where_the_process_is_not_found_no_command_line_is_kept():
    case = a_case(a_run("loading"), target=a_target(process="serve"), alive=True)
    rung = launch.read(case)
    (question,) = asks(rung)
    reply = replies.small(question, "exec", a_list((1, 0, "init"), (8, 1, "backup --password hunter2")))
    assert ends(rung, reply) == ()
    assert launch.show(case, reply) == ("", None)


def test_a_dead_process_is_not_looked_for_and_the_shells_trace_of_this_run_is_read():
    run = a_run("+ cd /srv", "+ exec python3 -m serve --tp 4", "loading", "AssertionError")
    assert learns(launch.read(a_case(run, alive=False))) == (
        Launch(argv=("python3", "-m", "serve", "--tp", "4"), origin=LaunchOrigin.LOG),
    )


@pytest.mark.parametrize(
    "run",
    [
        a_run("ready", "+ python3 -m serve --tp 4", marks=(Mark(0, MarkKind.READY),)),
        a_run("Traceback (most recent call last):", "+ python3 -m serve --tp 4"),
        a_run("+ python3 -m serve --tp 4", complete=False),
        a_run(*["loading"] * 400, "+ python3 -m serve --tp 4"),
        a_run("python3 -m serve --tp 4"),
        a_run(),
    ],
    ids=["once it serves", "after an exception", "of a run cut off", "far down", "no trace", "nothing"],
)
def test_a_plus_that_may_be_anybodys_is_no_launch(run):
    assert learns(launch.read(a_case(run, alive=False))) == ()


@pytest.mark.parametrize("outcome", [Outcome.REFUSED, Outcome.EMPTY, Outcome.TIMED_OUT, Outcome.LOST])
def test_a_question_without_an_answer_leaves_the_trace(outcome):
    rung = launch.read(a_case(a_run("+ serve --tp 4"), target=a_target(host=None)))
    (question,) = asks(rung)
    (found,) = ends(rung, replies.unanswered(question, "bundle", "", outcome))
    assert isinstance(found, Launch)
    assert found.origin is LaunchOrigin.LOG
