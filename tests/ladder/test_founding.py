"""The founding crash, small: climbed on a bundle and on this machine, it shows the check that failed and its names."""

from __future__ import annotations

import shlex
import subprocess
import textwrap
import time
from pathlib import Path

import pytest

from tests.support.cases import a_case, a_target
from watchd.hosts.bundle import BundleHost
from watchd.hosts.local import LocalHost
from watchd.ladder import guard
from watchd.ladder.climb import climb
from watchd.model import RUNGS, Case, Guard, Launch, LaunchOrigin, Machine, Run, SourceExcerpt, SourceFile, Tracebacks

FILE = "/opt/engine/lib/python3.12/site-packages/engine/options.py"
SOURCE = textwrap.dedent(
    """
    class Options:
        def settle(self):
            if self.draft_method is None:
                return
            given = (self.draft_width, self.draft_budget)
            if self.draft_depth is None:
                # depth, width and budget are given together, or none of them
                assert given == (None, None)
    """
).lstrip()
LINE = SOURCE[: SOURCE.index("assert")].count("\n") + 1
LOG = f"""\
=== launch 1: 2025-09-18T14:02:01 ===
[2025-09-18 14:02:07] serving
[2025-09-18 14:02:40] AssertionError in a prompt of a user
[2025-09-18 14:03:17] shut down
=== launch 2: 2025-09-18T14:09:44 ===
[2025-09-18 14:09:54] Failed to import deep_ep, falling back: No module named 'deep_ep'
Traceback (most recent call last):
  File "<frozen runpy>", line 198, in _run_module_as_main
  File "/opt/engine/lib/python3.12/site-packages/engine/serve.py", line 18, in <module>
    options = Options.read(sys.argv[1:])
  File "<string>", line 265, in __init__
  File "{FILE}", line {LINE}, in settle
    assert given == (None, None)
AssertionError
"""
BEGIN = LOG.index("=== launch 2")
COMMAND = "python3 -m engine.serve --draft-method tree --draft-width 1 --draft-budget 16 --api-key abcdef"


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """What a host with this crash would have sent."""
    source = tmp_path / "source" / FILE.lstrip("/")
    source.parent.mkdir(parents=True)
    source.write_text(SOURCE)
    (tmp_path / "server.log").write_text(LOG)
    (tmp_path / "host").mkdir()
    (tmp_path / "host" / "cmdline.txt").write_text(COMMAND + "\n")
    (tmp_path / "host" / "dmesg.txt").write_text("[Thu Sep 18 14:00:01 2025] docker0: port 3 entered blocking state\n")
    return tmp_path


async def climbed(host: BundleHost | LocalHost, log: str) -> Case:
    case = a_case(target=a_target(host=None, log=log))
    return await climb(host, case, rungs=RUNGS, budget_s=60, clock=time.monotonic)


async def checked(case: Case) -> SourceExcerpt | None:
    source = case.get(SourceFile)
    return await guard.excerpt(source) if source else None


async def test_a_bundle_shows_the_check_its_names_and_the_command(bundle):
    case = await climbed(BundleHost(bundle), "server.log")
    run, tracebacks, launch = case.get(Run), case.get(Tracebacks), case.get(Launch)
    assert run is not None
    assert (run.begin, run.lines[-1].number, run.earlier) == (BEGIN, 14, True)
    assert tracebacks is not None
    assert [(block.type, block.message) for block in tracebacks.blocks] == [("AssertionError", "")]
    assert launch == Launch(argv=tuple(shlex.split(COMMAND)), origin=LaunchOrigin.BUNDLE)
    assert case.get(Machine) == Machine()

    found = await checked(case)
    assert found is not None
    assert found.matches_log is True
    assert found.guard == Guard(
        condition="given == (None, None)",
        names=("draft_width", "draft_budget"),
        requires=("draft_width", "draft_budget", "draft_depth"),
        enclosing=("self.draft_depth is None",),
        line=LINE,
    )


async def test_this_machine_prints_for_the_founding_commands_what_the_evidence_shows(tmp_path):
    """The commands are run once more by hand, on the run that the window found: the same lines, the same count."""
    log = tmp_path / "server.log"
    log.write_text(LOG)
    case = await climbed(LocalHost(), str(log))
    shown = {step.rung: step for step in reversed(case.steps) if "grep" in step.command}
    for rung in ("broad", "context"):
        printed = subprocess.run(["sh", "-c", shown[rung].command], capture_output=True, text=True, check=True).stdout
        assert shown[rung].outcome == "answered"
        assert shown[rung].excerpt == printed
    assert (shown["broad"].count, shown["context"].count) == (4, 1)
    assert f"tail -c +{BEGIN + 1} {log} | LC_ALL=C grep -a " in shown["broad"].command
    assert shown["broad"].via == "local"


async def test_a_bundle_without_its_source_still_shows_the_frame(bundle):
    Path(bundle, "source", FILE.lstrip("/")).unlink()
    case = await climbed(BundleHost(bundle), "server.log")
    assert await checked(case) is None
    (step,) = [step for step in case.steps if step.rung == "source"]
    assert (step.outcome, step.detail) == ("refused", "not in the bundle")
    tracebacks = case.get(Tracebacks)
    assert tracebacks is not None
    assert tracebacks.blocks[0].frames[-1].line == LINE
