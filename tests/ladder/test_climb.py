"""One driver asks; whatever a host, a log or a rung does, the climb ends in time with what was learnt."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.support.cases import LOG, a_case, a_target
from tests.support.fake_host import FakeHost
from watchd.errors import HostLostError
from watchd.ladder import climb as climbing
from watchd.ladder import registry
from watchd.ladder.climb import climb
from watchd.model import (
    RUNGS,
    BootId,
    Case,
    CommandLine,
    Disk,
    Evidence,
    FoundingGrep,
    Gpus,
    KernelLog,
    Launch,
    Machine,
    Outcome,
    Processes,
    ReadLog,
    ReadSource,
    Run,
    SourceFile,
    Tracebacks,
)

ARGS = "/opt/app/args.py"
SOURCE = "def settle(self):\n    assert self.depth\n"
CRASH = f"""\
=== launch 1 ===
ready
AssertionError: of the run before
Killed
=== launch 2 ===
loading
Traceback (most recent call last):
  File "/opt/app/serve.py", line 3, in <module>
    main()
  File "{ARGS}", line 2, in settle
    assert self.depth
AssertionError
"""
BEGIN = CRASH.index("=== launch 2")
DF = b"Filesystem 1024-blocks Used Available Capacity Mounted on\noverlay 100 42 58 42% /\n"


def a_host(**changes: object) -> FakeHost:
    texts = {Disk: DF, CommandLine: b"serve\0--width\x001\0"}
    return FakeHost(**{"log": CRASH.encode(), "sources": {ARGS: SOURCE}, "texts": texts, **changes})  # type: ignore[arg-type]


def a_bundle_case() -> Case:
    return a_case(target=a_target(host=None))


async def climbed(
    host: FakeHost,
    case: Case | None = None,
    *,
    rungs: tuple[str, ...] = RUNGS,
    budget_s: float = 30.0,
    clock: Callable[[], float] = time.monotonic,
    on_step: Callable[[Evidence], None] | None = None,
) -> Case:
    return await climb(host, case or a_bundle_case(), rungs=rungs, budget_s=budget_s, clock=clock, on_step=on_step)


def outcomes(case: Case) -> dict[str, str]:
    """What became of each command, by its beginning."""
    return {f"{step.rung}: {step.command[:12]}": step.outcome for step in case.steps}


async def test_the_source_is_reached_in_two_rounds_and_the_machine_is_asked_beside_them():
    host = a_host()
    await climbed(host)
    kinds = [tuple(type(question) for question in asked) for asked in host.asked]
    assert sorted(kinds[:2], key=len) == [(ReadLog,), (KernelLog, Disk, Gpus, BootId)]
    assert [set(asked) for asked in kinds[2:]] == [{FoundingGrep, ReadSource, CommandLine}]
    assert len(host.asked[2]) == 4


async def test_the_climb_brings_back_what_each_rung_learnt():
    case = await climbed(a_host())
    run, tracebacks, source = case.get(Run), case.get(Tracebacks), case.get(SourceFile)
    assert run is not None
    assert run.begin == BEGIN
    assert tracebacks is not None
    assert [block.type for block in tracebacks.blocks] == ["AssertionError"]
    assert source is not None
    assert (source.path, source.line) == (ARGS, 2)
    launch, machine = case.get(Launch), case.get(Machine)
    assert launch is not None
    assert launch.argv == ("serve", "--width", "1")
    assert machine is not None
    assert [use.mount for use in machine.mounts] == ["/"]


async def test_both_founding_commands_stand_verbatim_in_the_evidence_with_what_they_print_of_this_run():
    case = await climbed(a_host())
    broad, context = case.steps[0], case.steps[2]
    window = f"tail -c +{BEGIN + 1} {LOG} | LC_ALL=C grep -a"
    assert broad.command == f'{window} -i "error\\|Error\\|exception\\|Traceback\\|failed\\|CUDA\\|assert" | tail -20'
    assert context.command == f'{window} -B5 "Assert"'
    assert (broad.rung, broad.outcome, broad.count) == ("broad", "answered", 3)
    assert broad.excerpt == "Traceback (most recent call last):\n    assert self.depth\nAssertionError\n"
    assert (context.rung, context.count) == ("context", 1)
    assert context.excerpt == "".join(line + "\n" for line in CRASH.split("\n")[6:12])


async def test_evidence_is_told_in_the_order_of_the_ladder_and_to_whoever_listens_as_it_comes():
    heard: list[Evidence] = []
    case = await climbed(a_host(), on_step=heard.append)
    assert [step.rung for step in case.steps] == ["broad", "broad", "context", "source", "launch", *["machine"] * 4]
    assert sorted(heard, key=case.steps.index) == list(case.steps)


async def test_what_was_known_before_stays_and_what_was_asked_before_is_not_lost():
    earlier = Evidence(rung="broad", command="uptime", outcome="answered")
    case = await climbed(a_host(), replace(a_bundle_case(), steps=(earlier,)))
    assert case.steps[0] == earlier
    assert len(case.steps) == 10


@pytest.mark.parametrize("outcome", [Outcome.REFUSED, Outcome.TIMED_OUT, Outcome.EMPTY])
async def test_a_question_that_is_not_answered_stands_in_the_evidence_with_the_reason(outcome):
    case = await climbed(a_host(fails={FoundingGrep: outcome, KernelLog: outcome}))
    step = case.steps[0]
    assert (step.outcome, step.detail, step.excerpt) == (outcome.value, f"scripted: {outcome.value}", "")
    assert outcomes(case)["machine: dmesg -T 2>/"] == outcome.value
    assert case.get(SourceFile) is not None


async def test_without_the_log_everything_else_is_asked_all_the_same():
    case = await climbed(a_host(fails={ReadLog: Outcome.REFUSED}))
    assert case.get(Run) is None
    assert case.get(Machine) is not None
    assert case.get(Launch) is not None
    assert case.steps[0].command.startswith("LC_ALL=C grep -a -i")


async def test_a_lost_host_ends_the_asking_and_what_is_known_is_kept():
    host = a_host(fails={CommandLine: Outcome.LOST, ReadSource: Outcome.LOST, FoundingGrep: Outcome.LOST})
    case = await climbed(host)
    assert case.get(Tracebacks) is not None
    assert case.get(SourceFile) is None
    assert {step.outcome for step in case.steps if step.rung in ("context", "source", "launch")} == {"lost"}


async def test_a_host_that_was_lost_at_once_is_not_asked_again():
    host = a_host(fails=dict.fromkeys((ReadLog, KernelLog, Disk, Gpus, BootId), Outcome.LOST))
    case = await climbed(host)
    assert len(host.asked) <= 2  # one for each lane
    assert {step.outcome for step in case.steps} == {"lost"}
    assert "not asked: the host was lost before" in {step.detail for step in case.steps}


async def test_a_session_that_breaks_off_beside_the_log_does_not_end_the_climb():
    host = a_host(fails=dict.fromkeys((KernelLog, Disk, Gpus, BootId), Outcome.LOST))
    case = await climbed(host)
    assert case.get(SourceFile) is not None
    assert {step.outcome for step in case.steps if step.rung != "machine"} == {"answered"}


async def test_a_budget_that_is_spent_ends_the_asking_and_says_so():
    """The clock jumps a minute with each look at it."""
    ticks = iter(range(0, 6000, 60))
    host = a_host()
    case = await climbed(host, clock=lambda: float(next(ticks)))
    assert host.asked == []
    assert {step.outcome for step in case.steps} == {"timed_out"}
    assert case.steps[0].detail == "not asked: the 30 s of this climb were spent"


async def test_no_question_may_take_longer_than_what_is_left_and_the_machine_no_longer_than_four_seconds():
    host = a_host()
    await climbed(host, budget_s=20.0, clock=lambda: 100.0)
    machine = next(limit for asked, limit in zip(host.asked, host.limits, strict=True) if KernelLog() in asked)
    assert machine == 4.0
    assert {limit for limit in host.limits if limit != machine} == {20.0}
    host = a_host()
    await climbed(host, budget_s=2.0, clock=lambda: 100.0)
    assert set(host.limits) == {2.0}


async def test_a_machine_that_does_not_answer_holds_up_nothing_but_itself(monkeypatch):
    impatient = tuple(replace(step, limit_s=0.05) if step.limit_s else step for step in registry.LADDER)
    monkeypatch.setattr(registry, "LADDER", impatient)
    monkeypatch.setattr(climbing, "_GRACE_S", 0.05)
    case = await climbed(a_host(slow=frozenset({Gpus})))
    assert case.get(SourceFile) is not None
    assert [step.outcome for step in case.steps if step.rung == "machine"] == ["timed_out"] * 4
    assert "lost" not in {step.outcome for step in case.steps}


@pytest.mark.parametrize("name", [step.name for step in registry.LADDER])
async def test_a_mistake_in_one_rung_costs_that_rung_and_is_told(monkeypatch, name):
    def mistaken(case):
        yield from ()
        raise ZeroDivisionError("of ours")

    broken = tuple(replace(step, ask=mistaken) if step.name == name else step for step in registry.LADDER)
    monkeypatch.setattr(registry, "LADDER", broken)
    case = await climbed(a_host())
    (told,) = [step for step in case.steps if "mistake" in step.detail]
    assert told.detail == "a mistake of watchd in this rung: ZeroDivisionError: of ours"
    assert told.outcome == "refused"
    assert case.get(Machine if name != "machine" else SourceFile) is not None


async def test_a_mistake_after_the_answer_keeps_the_answer_in_the_evidence(monkeypatch):
    def mistaken(case):
        yield (Disk(),)
        raise ZeroDivisionError

    def wrong(case, reply):
        raise KeyError("shown")

    broken = tuple(replace(s, ask=mistaken, show=wrong) if s.name == "machine" else s for s in registry.LADDER)
    monkeypatch.setattr(registry, "LADDER", broken)
    case = await climbed(a_host())
    told = [(step.outcome, step.excerpt) for step in case.steps if step.rung == "machine"]
    assert told == [("refused", ""), ("answered", "watchd could not show this: KeyError: 'shown'")]


async def test_of_each_rung_at_most_256_kib_are_kept():
    case = await climbed(a_host(texts={KernelLog: b"", Disk: b"d" * 200_000, Gpus: b"g" * 200_000}))
    kept = {step.command: len(step.excerpt) for step in case.steps if step.rung == "machine"}
    assert sum(kept.values()) == 256 * 1024
    assert kept["nvidia-smi"] == 256 * 1024 - 200_000


async def test_only_the_rungs_that_are_allowed_are_asked():
    host = a_host()
    case = await climbed(host, rungs=("traceback",))
    assert [type(question) for asked in host.asked for question in asked] == [ReadLog]
    assert case.get(Tracebacks) is not None
    assert (await climbed(a_host(), rungs=("stack",))).steps == ()


async def test_on_a_host_whose_process_is_gone_no_process_list_is_asked_for():
    host = a_host()
    await climbed(host, a_case(alive=False))
    assert not any(isinstance(question, Processes | CommandLine) for asked in host.asked for question in asked)


async def test_a_climb_that_is_cancelled_ends():
    host = a_host(slow=frozenset({ReadLog}))
    task = asyncio.create_task(climbed(host))
    while not host.asked:
        await asyncio.sleep(0.001)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_host_that_raises_against_its_contract_is_a_lost_host():
    class Broken(FakeHost):
        async def ask(self, questions, *, limit_s):
            raise HostLostError(self.name, "the connection broke")

    case = await climbed(Broken())
    assert {step.outcome for step in case.steps} == {"lost"}
    assert "gpu-01: the connection broke" in {step.detail for step in case.steps}
