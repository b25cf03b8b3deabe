"""At a terminal the demo asks whether to launch the corrected command; its host does so, and the incident resolves."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

import watchd

pytestmark = pytest.mark.timeout(120)


def at_a_terminal(answer: bytes, home: Path) -> tuple[int, str]:
    """Run the demo at a terminal of its own and give this answer to its question."""
    ours, theirs = pty.openpty()
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), "TERM": "dumb", "COLUMNS": "100"}
    environ["PYTHONPATH"] = str(Path(watchd.__file__).parents[1])
    running = subprocess.Popen(
        [sys.executable, "-m", "watchd", "demo"], stdin=theirs, stdout=theirs, stderr=theirs, env=environ, cwd=home
    )
    os.close(theirs)
    seen, answered, end = b"", False, time.monotonic() + 100
    try:
        while time.monotonic() < end:
            if not select.select([ours], [], [], 0.2)[0]:
                if running.poll() is not None:
                    break
                continue
            try:
                data = os.read(ours, 65536)
            except OSError:
                break
            if not data:
                break
            seen += data
            if b"[y/N]" in seen and not answered:
                answered = True
                os.write(ours, answer)
        return running.wait(timeout=20), seen.decode("utf-8", "replace")
    finally:
        running.kill()
        running.wait()
        os.close(ours)


def test_a_yes_launches_the_corrected_command_and_the_incident_resolves(tmp_path: Path) -> None:
    status, seen = at_a_terminal(b"y\n", tmp_path)
    assert status == 0, seen[-2000:]
    before, _, after = seen.partition("[y/N]")
    assert "corrected" in before
    assert "--speculative-num-steps 15" in before
    assert "incident resolved, crash" in after
    assert "the incident is over" in after


def test_a_no_ends_the_story(tmp_path: Path) -> None:
    status, seen = at_a_terminal(b"n\n", tmp_path)
    assert status == 0, seen[-2000:]
    assert "resolved, crash" not in seen.partition("[y/N]")[2]
