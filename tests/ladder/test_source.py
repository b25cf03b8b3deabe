"""The source that is asked for is that of the innermost frame which belongs to the project."""

from __future__ import annotations

import hashlib

import pytest

from tests.support.cases import a_case, a_target, asks, ends, learns
from watchd.hosts import replies
from watchd.ladder import source, traceback
from watchd.model import Line, Outcome, ReadSource, Run, SourceFile, Tracebacks, TraceFrame

CRASH = """\
Traceback (most recent call last):
  File "/opt/app/serve.py", line 3, in <module>
    main()
  File "/opt/app/args.py", line 2, in settle
    assert self.depth
AssertionError"""
ARGS = "def settle(self):\n    assert self.depth\n"


def a_run(text: str) -> Run:
    return Run(lines=tuple(Line(number, number * 100, line) for number, line in enumerate(text.split("\n"), 1)))


def a_crash(text: str = CRASH):
    run = a_run(text)
    (found,) = learns(traceback.read(a_case(run)))
    return a_case(run, found, target=a_target())


def test_the_tracebacks_of_the_run_are_read_without_a_question():
    (found,) = learns(traceback.read(a_case(a_run(CRASH))))
    assert isinstance(found, Tracebacks)
    assert [(block.type, block.last) for block in found.blocks] == [("AssertionError", 5)]


def test_without_a_run_there_is_no_traceback():
    assert learns(traceback.read(a_case())) == ()


def test_the_file_of_the_innermost_frame_is_asked_for_and_kept_with_its_hash():
    rung = source.read(a_crash())
    (question,) = asks(rung)
    assert question == ReadSource(path="/opt/app/args.py", line=2, code="assert self.depth", roots=())
    reply = replies.source(question, "sftp", ARGS.encode(), real=question.path)
    (found,) = ends(rung, reply)
    assert isinstance(found, SourceFile)
    assert (found.path, found.line, found.code) == (question.path, 2, "assert self.depth")
    assert found.sha256 == hashlib.sha256(ARGS.encode()).hexdigest()
    assert found.text.split("\n")[1] == "    assert self.depth"
    assert "assert self.depth" in source.show(a_case(found), reply)[0]


@pytest.mark.parametrize("outcome", [Outcome.REFUSED, Outcome.EMPTY, Outcome.LOST])
def test_a_file_that_does_not_come_is_done_without(outcome):
    rung = source.read(a_crash())
    (question,) = asks(rung)
    reply = replies.unanswered(question, "sftp", "not there", outcome)
    assert ends(rung, reply) == ()
    assert source.show(a_case(), reply) == ("", None)


@pytest.mark.parametrize("text", ["all is well", "Killed"])
def test_where_nothing_was_raised_no_file_is_asked_for(text):
    assert learns(source.read(a_crash(text))) == ()


def frame(path: str) -> TraceFrame:
    return TraceFrame(path=path, line=1, function="f")


@pytest.mark.parametrize(
    ("paths", "chosen"),
    [
        (("/opt/app/a.py", "/opt/app/b.py"), "/opt/app/b.py"),
        (("/opt/app/a.py", "<string>", "<frozen os>"), "/opt/app/a.py"),
        (("/opt/app/a.py", "/usr/lib/python3.11/json/decoder.py"), "/opt/app/a.py"),
        (("/opt/app/a.py", "/opt/v/lib/python3.12/site-packages/x/a.py"), "/opt/v/lib/python3.12/site-packages/x/a.py"),
        (("/a.py", "/usr/lib/python3/dist-packages/x/a.py"), "/usr/lib/python3/dist-packages/x/a.py"),
        (("/usr/lib/python3.11/argparse.py",), "/usr/lib/python3.11/argparse.py"),
        (("<stdin>",), None),
        ((), None),
    ],
)
def test_pythons_own_library_and_files_that_are_none_are_passed_over(paths, chosen):
    found = source.innermost([frame(path) for path in paths])
    assert (found.path if found else None) == chosen
