"""`watchd demo` as a person runs it: the real daemon, a real death, one incident, and nothing left behind."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import watchd
from tests.sinks.terminal_incidents import FOUNDING, KILLED
from watchd.demo import story
from watchd.demo.host import LOOPBACK
from watchd.demo.program import Check, Program
from watchd.model import Incident, Verdict, wire

pytestmark = pytest.mark.timeout(120)

NAMES = Program(
    package="sketcher", module="options", steps="--sketch-depth", topk="--sketch-breadth", tokens="--sketch-size"
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a demo runs: a home with an ssh_config that leads astray, and a folder for whatever it writes."""

    home: Path
    temporary: Path

    @property
    def environ(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        return {
            "PYTHONPATH": str(Path(watchd.__file__).parents[1]),
            **kept,
            "HOME": str(self.home),
            "TMPDIR": str(self.temporary),
        }

    def left_over(self) -> list[str]:
        """Files, and processes that name the folder on their command line or in their environment."""
        found = [str(path) for path in self.temporary.rglob("*")]
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                words = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
                # The end of our own test run, not of the demo, is what these wait for.
                if os.fsencode(self.temporary) in words:
                    found.append(f"{process.name}: {(process / 'cmdline').read_bytes()!r}")
        return found


@pytest.fixture
def place(tmp_path: Path) -> Place:
    found = Place(tmp_path / "home", tmp_path / "temporary")
    (found.home / ".ssh").mkdir(parents=True)
    (found.home / ".ssh" / "config").write_text("Host *\n  ProxyJump nowhere.invalid\n  User nobody\n  Port 1\n")
    found.temporary.mkdir()
    return found


@contextlib.contextmanager
def started(place: Place, *words: str) -> Iterator[subprocess.Popen[str]]:
    running = subprocess.Popen(
        [sys.executable, "-m", "watchd", "demo", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=place.environ,
        cwd=place.home,
        text=True,
    )
    try:
        yield running
    finally:
        running.kill()
        running.communicate()


def closed(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((LOOPBACK, port)) != 0


def test_the_demo_ends_in_an_incident_that_names_the_cause_and_leaves_nothing_behind(place: Place) -> None:
    began = time.monotonic()
    with started(place) as running:
        out, err = running.communicate(timeout=90)
    assert (running.returncode, err) == (0, "")
    assert time.monotonic() - began < 30
    assert place.left_over() == []
    told = [line[10:] for line in out.splitlines() if re.match(r"\d\d:\d\d:\d\d  ", line)]
    happened = ("launch ", "health   200", "stop ", "incident resolved, stopped", "launch ", "log      Traceback")
    happened += ("log      AssertionError", "trigger  AssertionError", "incident opened", "ladder ", "incident crash")
    rest = iter(told)
    assert [what for what in happened if not any(line.startswith(what) for line in rest)] == []
    assert "every second" in out
    for shown in ("━━ CRASH", "launch_argument", "▶", "--speculative-num-steps", "AssertionError"):
        assert shown in out
    assert closed(int(re.findall(r"127\.0\.0\.1:(\d+)", out)[0]))


def test_the_incident_alone_is_printed_as_json(place: Place) -> None:
    with started(place, "--json") as running:
        out, err = running.communicate(timeout=90)
    assert (running.returncode, err) == (0, "")
    incident = wire.from_json(out)
    assert json.loads(out)["schema"] == "watchd.incident/1"
    assert_follows(incident, Program())
    assert place.left_over() == []


@pytest.mark.parametrize("check", Check)
def test_flag_names_file_and_check_may_change_and_the_incident_follows(check: Check) -> None:
    program = replace(NAMES, check=check, start_s=1.5)
    out, err = io.StringIO(), io.StringIO()
    assert (story.main(as_json=True, program=program, out=out, err=err), err.getvalue()) == (0, "")
    assert_follows(wire.from_json(out.getvalue()), program)


def assert_follows(incident: Incident, program: Program) -> None:
    """The incident says of this program what its source and its launch say."""
    assert story.lacks(incident, program) == []
    assert incident.source is not None
    assert incident.source.guard is not None
    assert set(incident.source.guard.requires) == set(program.attributes) | (
        {"speculative_algorithm"} & set(incident.source.guard.requires)
    )
    assert incident.frame is not None
    assert incident.frame.file.endswith(f"/{program.package}/{program.module}.py")
    assert incident.frame.function == "check_drafting"
    assert incident.exception is not None
    assert incident.exception.type == program.exception
    assert incident.root is not None
    assert incident.root.line is not None
    assert incident.confidence in {"certain", "likely"}
    assert program.steps in incident.summary
    assert incident.launch is not None
    assert incident.launch.origin == "recorded"
    assert incident.launch.argv[1:3] == ("-m", f"{program.package}.launch")
    assert program.steps not in incident.launch.argv
    assert program.topk in incident.launch.argv
    assert program.steps in " ".join(incident.advice)
    log = incident.target.log if incident.target else ""
    asked = [step.command for step in incident.evidence]
    assert rf'LC_ALL=C grep -a -i "error\|Error\|exception\|Traceback\|failed\|CUDA\|assert" {log} | tail -20' in asked
    assert f'LC_ALL=C grep -a -B5 "Assert" {log}' in asked


@pytest.mark.parametrize(
    ("when", "number", "status"),
    [
        ("launch ", signal.SIGINT, 130),
        ("health ", signal.SIGINT, 130),
        ("ladder ", signal.SIGINT, 130),
        ("health ", signal.SIGTERM, 143),
        ("launch ", signal.SIGHUP, 129),
    ],
)
def test_a_signal_ends_it_and_leaves_nothing_behind(
    place: Place, number: signal.Signals, status: int, when: str
) -> None:
    with started(place) as running:
        assert running.stdout is not None
        for line in running.stdout:
            if line[10:].startswith(when):
                break
        running.send_signal(number)
        running.send_signal(number)  # an impatient second one does not disturb the putting away
        _, err = running.communicate(timeout=30)
    assert (running.returncode, err) == (status, "")
    assert place.left_over() == []


def test_a_closed_pipe_ends_it_quietly_and_leaves_nothing_behind(place: Place) -> None:
    with started(place) as running:
        assert running.stdout is not None
        running.stdout.readline()
        running.stdout.close()
        assert running.stderr is not None
        err = running.stderr.read()
        status = running.wait(timeout=30)
    assert (status, err) == (141, ""), err
    assert place.left_over() == []


def test_a_story_that_does_not_happen_says_what_was_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Sturdy(Program):
        def words(self, port: int, *, steps: bool) -> tuple[str, ...]:
            return super().words(port, steps=True)

    monkeypatch.setattr(story, "END_LIMIT_S", 3.0)
    out, err = io.StringIO(), io.StringIO()
    assert story.main(as_json=True, program=Sturdy(start_s=0.2), out=out, err=err) == 1
    assert out.getvalue() == ""
    assert "the server did not die within 3 s" in err.getvalue()


def test_the_environment_is_as_it_was_afterwards(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", "/somewhere")
    monkeypatch.setenv("NOTIFY_SOCKET", "/run/somewhere")
    with story._apart(tmp_path):
        assert os.environ["HOME"] == str(tmp_path)
        assert "NOTIFY_SOCKET" not in os.environ
    assert (os.environ["HOME"], os.environ["NOTIFY_SOCKET"]) == ("/somewhere", "/run/somewhere")


def test_an_incident_with_another_cause_lacks_something() -> None:
    program = Program()
    right = replace(FOUNDING, verdict=Verdict.CRASH)
    assert story.lacks(right, program) == []
    assert any("host_out_of_memory" in text for text in story.lacks(replace(right, cause=KILLED.cause), program))
    assert "it shows no check" in story.lacks(replace(right, source=None), program)
    assert any("deciding line" in text for text in story.lacks(replace(right, root=KILLED.root), program))
    assert "its check does not tie the three flags together" in story.lacks(right, NAMES)
