"""The detector: which events together are a crash. Pure: no loop, no clock, no host."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from watchd import detect
from watchd.engines import reading
from watchd.model import (
    Block,
    Event,
    HealthCheck,
    HealthResult,
    HealthSample,
    Process,
    ProcessSample,
    Relaunch,
    Tick,
    Trigger,
    TriggerKind,
)

T0 = datetime(2026, 1, 5, 10, 0, tzinfo=UTC)
CHECK = HealthCheck(url="http://127.0.0.1:30000/health")
SERVER = Process(pid=100, parent=1, started=5, argv=("python3", "-m", "server"))
NEXT = Process(pid=101, parent=1, started=9, argv=("python3", "-m", "server"))
CRASH = (
    'Traceback (most recent call last):\n  File "/app/launch.py", line 18, in <module>\n    main()\nAssertionError\n'
)
HANDLED = CRASH.replace("in <module>", "in create_completion")


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


class Log:
    """Makes blocks that follow one another."""

    def __init__(self, generation: int = 0) -> None:
        self.generation = generation
        self.offset = 0

    def block(self, text: str | bytes, seconds: float = 0, *, old: bool = False) -> Block:
        data = text.encode() if isinstance(text, str) else text
        found = Block(generation=self.generation, offset=self.offset, data=data, at=at(seconds), old=old)
        self.offset += len(data)
        return found


def health(result: HealthResult, seconds: float) -> HealthSample:
    return HealthSample(at=at(seconds), result=result)


def process(found: Process | None, seconds: float = 0, *, known: bool = True) -> ProcessSample:
    return ProcessSample(at=at(seconds), known=known, process=found)


def run(
    *events: Event, check: HealthCheck | None = CHECK, engine: str | None = None
) -> tuple[detect.State, list[Trigger]]:
    state, triggers = detect.begin(engine, check), []
    for event in events:
        state, trigger = detect.step(state, event)
        if trigger:
            triggers.append(trigger)
    return state, triggers


def kinds(triggers: Sequence[Trigger]) -> list[TriggerKind]:
    return [trigger.kind for trigger in triggers]


def test_a_traceback_alone_is_only_a_suspicion() -> None:
    state, triggers = run(Log().block(CRASH))
    assert triggers == []
    assert detect.curious(state, at(1))


def test_a_traceback_and_a_process_that_is_gone_are_a_crash() -> None:
    log = Log()
    _, (trigger,) = run(process(SERVER), log.block("serving\n"), log.block(CRASH, 1), process(None, 2))
    assert trigger.kind is TriggerKind.TRACEBACK
    assert trigger.summary == "AssertionError, and process 100 is gone"
    assert trigger.offset == len("serving\n") + CRASH.index("AssertionError")


def test_a_traceback_and_a_refused_health_check_are_a_crash() -> None:
    _, triggers = run(Log().block(CRASH), health(HealthResult.DOWN, 0.5))
    assert kinds(triggers) == [TriggerKind.TRACEBACK]


def test_two_seconds_without_a_line_of_work_are_a_crash() -> None:
    _, triggers = run(Log().block(CRASH), Tick(at=at(1.9)))
    assert triggers == []
    _, triggers = run(Log().block(CRASH), Tick(at=at(2)))
    assert kinds(triggers) == [TriggerKind.TRACEBACK]


def test_an_answer_of_the_health_check_after_it_withdraws_the_suspicion() -> None:
    state, triggers = run(Log().block(CRASH), health(HealthResult.UP, 1), Tick(at=at(5)))
    assert triggers == []
    assert not detect.curious(state, at(2))


def test_an_answer_from_before_it_does_not() -> None:
    _, triggers = run(health(HealthResult.UP, 0), Log().block(CRASH, 1), Tick(at=at(4)))
    assert kinds(triggers) == [TriggerKind.TRACEBACK]


def test_a_line_of_work_after_it_withdraws_the_suspicion() -> None:
    log = Log()
    work = "[2026-01-05 10:00:01 TP0] Decode batch. #running-req: 9, #token: 3, gen throughput (token/s): 70.1\n"
    _, triggers = run(log.block(CRASH), log.block(work, 1), Tick(at=at(5)), engine="sglang")
    assert triggers == []


def test_a_traceback_of_one_request_is_no_suspicion() -> None:
    state, triggers = run(Log().block(HANDLED), Tick(at=at(5)))
    assert triggers == []
    assert state.suspicion is None


def test_a_line_that_its_engine_calls_fatal_needs_no_other_witness() -> None:
    line = "[2026-01-05 10:00:00 TP3] Scheduler hit an exception: Traceback (most recent call last):\n"
    _, triggers = run(Log().block(line), engine="sglang")
    assert kinds(triggers) == [TriggerKind.FATAL_LINE]


def test_the_same_words_mean_nothing_to_another_engine() -> None:
    _, triggers = run(Log().block("[2026-01-05 10:00:00 TP3] Scheduler hit an exception: x\n"), engine="llama.cpp")
    assert triggers == []


def test_old_text_raises_no_alarm() -> None:
    _, triggers = run(Log().block(CRASH, old=True), Tick(at=at(5)), health(HealthResult.UP, 6), process(SERVER, 6))
    assert triggers == []


@pytest.mark.parametrize("witness", [health(HealthResult.DOWN, 1), process(None, 1)])
def test_old_text_of_a_server_that_is_not_there_is_looked_into_once(witness: Event) -> None:
    _, triggers = run(Log().block(CRASH, old=True), witness, witness)
    assert kinds(triggers) == [TriggerKind.FIRST_LOOK]


def test_old_text_is_context_where_the_process_cannot_be_seen() -> None:
    _, triggers = run(Log().block(CRASH, old=True), process(None, 1, known=False), check=None)
    assert triggers == []


def test_a_process_that_is_gone_without_a_word_is_told() -> None:
    _, (trigger,) = run(process(SERVER), Log().block("serving\n"), process(None, 9))
    assert (trigger.kind, trigger.offset, trigger.end) == (TriggerKind.PROCESS_GONE, None, None)


def test_a_process_that_was_replaced_ended_where_the_log_stood() -> None:
    log = Log()
    state, (trigger,) = run(process(SERVER), log.block("serving\n"), process(NEXT, 9))
    assert (trigger.kind, trigger.end) == (TriggerKind.PROCESS_GONE, log.offset)
    assert (state.run, state.began, state.process) == (1, log.offset, NEXT)


def test_three_refused_samples_of_a_server_that_was_up_are_a_trigger() -> None:
    up, down = HealthResult.UP, HealthResult.DOWN
    _, triggers = run(health(up, 0), health(down, 10), health(down, 20))
    assert triggers == []
    _, triggers = run(health(up, 0), health(down, 10), health(down, 20), health(down, 30))
    assert kinds(triggers) == [TriggerKind.HEALTH_DOWN]


def test_slow_alone_never_is() -> None:
    _, triggers = run(health(HealthResult.UP, 0), *(health(HealthResult.SLOW, 10 * n) for n in range(1, 30)))
    assert triggers == []


def test_a_server_that_starts_is_not_down() -> None:
    _, triggers = run(*(health(HealthResult.DOWN, 10 * n) for n in range(60)))
    assert triggers == []


def test_what_watchd_cannot_see_is_no_vote() -> None:
    _, triggers = run(health(HealthResult.UP, 0), *(health(HealthResult.BLIND, 10 * n) for n in range(1, 9)))
    assert triggers == []


def test_a_suspicion_is_a_crash_when_the_log_begins_anew() -> None:
    relaunch = Relaunch(generation=1, reason="truncated", at=at(1))
    state, triggers = run(Log().block(CRASH), relaunch)
    assert kinds(triggers) == [TriggerKind.TRACEBACK]
    assert (triggers[0].generation, state.generation, state.run) == (0, 1, 1)


@pytest.mark.parametrize("size", [1, 2, 7, 64])
def test_blocks_may_be_cut_anywhere(size: int) -> None:
    text = ("serving caf\u00e9\n" + CRASH).encode()
    log = Log()
    blocks = [log.block(text[start : start + size]) for start in range(0, len(text), size)]
    _, (trigger,) = run(*blocks, process(SERVER), process(None, 1))
    assert trigger.offset == text.index(b"AssertionError")


def test_nothing_is_committed_past_a_line_or_a_suspicion_that_had_no_effect() -> None:
    log = Log()
    first = "serving\n"
    state, _ = run(log.block(first + "half a li"))
    assert detect.committed(state) == (0, len(first))
    state, _ = detect.step(state, log.block("ne\n" + CRASH))
    assert detect.committed(state) == (0, log.offset - len(CRASH))
    state, trigger = detect.step(state, Tick(at=at(3)))
    assert trigger is not None
    assert detect.committed(state) == (0, log.offset)


def test_a_line_without_an_end_is_held_in_bounded_memory() -> None:
    log = Log()
    state, _ = run(*(log.block(b"x" * 65536) for _ in range(40)))
    assert len(state.tail) == detect.LINE_LIMIT
    state, _ = detect.step(state, log.block("\n" + CRASH))
    assert detect.committed(state) == (0, log.offset - len(CRASH))


def test_a_prompt_that_quotes_a_crash_is_no_word_of_the_server() -> None:
    """Users paste their tracebacks; a server that logs prompts writes them down."""
    line = "[2026-01-05 10:00:00] Receive: obj=GenerateReqInput(text='Scheduler hit an exception: Traceback')\n"
    _, triggers = run(Log().block(line), Tick(at=at(5)), engine="sglang")
    assert triggers == []


def test_a_server_that_says_goodbye_is_watched_closely() -> None:
    line = "[2026-01-05 10:00:00] SIGTERM received. signum=None frame=None. Draining requests and shutting down...\n"
    state, _ = run(process(SERVER), Log().block(line), engine="sglang")
    assert state.stopping
    assert detect.curious(state, at(60))


def test_the_gate_lets_every_fatal_line_pass() -> None:
    """Where no needle of an engine is in a block, none of its fatal lines is."""
    for line in (
        "Scheduler hit an exception: x",
        "Received sigquit from a child process. It usually means the child failed.",
    ):
        assert any(needle in line.encode() for needle in reading.needles("sglang"))


def test_a_last_line_that_never_gets_its_end_is_read_all_the_same() -> None:
    """Whoever dies while it writes leaves no newline behind."""
    _, triggers = run(Log().block(CRASH.rstrip("\n")), *(Tick(at=at(second / 4)) for second in range(12)))
    assert kinds(triggers) == [TriggerKind.TRACEBACK]
    assert triggers[0].at <= at(2.5)


def test_a_fatal_last_line_without_its_end_is_told_once() -> None:
    log = Log()
    line = "[2026-01-05 10:00:00 TP3] Scheduler hit an exception: Traceback (most recent call last):"
    events = (log.block(line), *(Tick(at=at(second)) for second in range(5)))
    _, triggers = run(*events, engine="sglang")
    assert kinds(triggers) == [TriggerKind.FATAL_LINE]


def test_a_line_that_is_written_in_two_pieces_is_one_line() -> None:
    """A pause in the midst of an exception line makes it neither two nor none."""
    log = Log()
    first, second = CRASH[:-9], CRASH[-9:]
    events = (log.block(first), Tick(at=at(1.5)), log.block(second, 1.6), Tick(at=at(1.7)), Tick(at=at(4)))
    state, triggers = run(*events)
    assert kinds(triggers) == [TriggerKind.TRACEBACK]
    assert detect.committed(state) == (0, log.offset)


def test_an_unfinished_old_line_raises_no_alarm() -> None:
    _, triggers = run(Log().block(CRASH.rstrip("\n"), old=True), Tick(at=at(2)), Tick(at=at(9)))
    assert triggers == []


def test_a_log_that_begins_anew_behind_an_unfinished_line_had_a_crash() -> None:
    _, triggers = run(Log().block(CRASH.rstrip("\n")), Relaunch(generation=1, reason="truncated", at=at(0.2)))
    assert kinds(triggers) == [TriggerKind.TRACEBACK]


@pytest.mark.parametrize("size", [40, 3000])
def test_a_traceback_behind_hours_of_progress_on_one_line_is_seen(size: int) -> None:
    """A progress bar returns to the beginning of its line; the traceback follows it without a newline."""
    log = Log()
    bars = [log.block("".join(f"\r {n}/5000 [00:10<01:00, 12.3it/s]" for n in range(40))) for _ in range(size // 40)]
    _, triggers = run(*bars, log.block("\r" + CRASH), Tick(at=at(3)))
    assert kinds(triggers) == [TriggerKind.TRACEBACK]


def test_lines_that_end_like_those_of_windows_are_lines() -> None:
    _, triggers = run(Log().block(CRASH.replace("\n", "\r\n")), Tick(at=at(3)))
    assert kinds(triggers) == [TriggerKind.TRACEBACK]


def test_a_clock_that_is_set_back_delays_a_crash_and_does_not_hide_it() -> None:
    _, triggers = run(Log().block(CRASH, 3600), *(Tick(at=at(second)) for second in range(4)))
    assert kinds(triggers) == [TriggerKind.TRACEBACK]


def test_a_server_that_was_told_to_stop_and_did_not_is_watched_as_before() -> None:
    line = "[2026-01-05 10:00:00] SIGTERM received. signum=None frame=None. Draining requests and shutting down...\n"
    state, _ = run(process(SERVER), Log().block(line), Tick(at=at(3600)), engine="sglang")
    assert not state.stopping
    assert not detect.curious(state, at(3600))


def test_a_watch_that_is_taken_up_goes_on_at_its_place() -> None:
    state = detect.begin(None, CHECK, SERVER, (7, 100))
    assert detect.committed(state) == (7, 100)
    state, trigger = detect.step(state, process(None, 1))
    assert trigger is not None
    assert trigger.generation == 7


def test_an_unfinished_line_of_a_quotation_is_no_word_of_the_server() -> None:
    quoted = "<<< BEGIN PROMPT\n" + CRASH.rstrip("\n")
    _, triggers = run(Log().block(quoted), *(Tick(at=at(second)) for second in range(6)))
    assert triggers == []


FATAL = "Scheduler hit an exception: Traceback (most recent call last):\n"


def test_a_crash_that_a_user_wrote_into_a_prompt_is_none_and_one_after_it_is() -> None:
    log = Log()
    quoted = f"audit: user=1 text follows\n{FATAL}{CRASH}Killed\naudit: end of text user=1\n"
    _, triggers = run(log.block(quoted), Tick(at=at(5)), engine="sglang")
    assert triggers == []
    _, triggers = run(Log().block(quoted + FATAL), engine="sglang")
    assert kinds(triggers) == [TriggerKind.FATAL_LINE]


def test_a_quotation_that_comes_in_pieces_is_one_and_is_read_again_after_a_restart() -> None:
    log = Log()
    first = log.block("fine\naudit: user=1 text follows\n")
    state, _ = run(first)
    assert detect.committed(state) == (0, 5)
    _, triggers = run(first, log.block(FATAL), log.block("audit: end of text user=1\n"), engine="sglang")
    assert triggers == []


@pytest.mark.parametrize(
    "text",
    ["KeyboardInterrupt", "torch.distributed.elastic.multiprocessing.api.SignalException: Process 5 got signal: 15"],
)
def test_an_order_to_go_is_no_crash(text: str) -> None:
    _, triggers = run(Log().block(CRASH.replace("AssertionError", text)), Tick(at=at(5)))
    assert triggers == []


def test_a_launchers_line_between_frame_and_exception_does_not_end_the_traceback() -> None:
    torn = CRASH.replace("AssertionError", "srun: error: ga03: task 0: Exited with exit code 1\nAssertionError: no")
    _, triggers = run(Log().block(torn), Tick(at=at(5)))
    assert [trigger.summary for trigger in triggers] == ["AssertionError: no, and no line of work after it"]


def test_a_job_that_says_that_it_ended_well_withdraws_the_suspicion() -> None:
    _, triggers = run(Log().block(CRASH + "pytest exit status 0\n"), Tick(at=at(5)))
    assert triggers == []
