"""The current run is told from older ones in the same file."""

from __future__ import annotations

import pytest

from watchd.engines.reading import read_run
from watchd.model import MarkKind, Run
from watchd.parse import run as runs

SERVED = """\
[2026-03-02 22:14:09] server_args=ServerArgs(model_path='/models/a')
[2026-03-02 22:15:00] The server is fired up and ready to roll!
[2026-03-02 22:16:01 TP0] Decode batch. #running-req: 8, #token: 11321, gen throughput (token/s): 253.31, #queue-req: 0
"""
CRASHED = """\
[2026-03-02 22:17:00 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File "/opt/sglang/python/sglang/srt/managers/scheduler.py", line 2790, in run_scheduler_process
    scheduler = Scheduler(
RuntimeError: old trouble

[2026-03-02 22:17:01] Received sigquit from a child process. It usually means the child failed.
"""
WARNINGS = """\
/opt/venv/lib/python3.12/site-packages/torch/cuda/__init__.py:61: FutureWarning: The pynvml package is deprecated.
  import pynvml  # type: ignore[import]
"""
REFUSED = """\
Traceback (most recent call last):
  File "<frozen runpy>", line 198, in _run_module_as_main
  File "/opt/sglang/python/sglang/launch_server.py", line 18, in <module>
    server_args = prepare_server_args(sys.argv[1:])
  File "/opt/sglang/python/sglang/srt/server_args.py", line 2423, in _settle
    assert chosen == (None, None)
AssertionError
"""
USAGE = """\
usage: launch_server.py [-h] --model-path MODEL_PATH
launch_server.py: error: unrecognized arguments: --modle-path /m
"""


def cut(text: str, engine: str | None = "sglang") -> Run:
    return read_run(text.encode(), offset=0, number=1, engine=engine)


def first(run: Run) -> str:
    return next(line.text for line in run.lines if line.text.strip())


def test_a_single_run_is_kept_whole() -> None:
    run = cut(SERVED + CRASHED)
    assert run.lines[0].number == 1
    assert run.complete
    assert not run.earlier


def test_a_new_banner_begins_a_run_and_the_warnings_before_it_belong_to_it() -> None:
    run = cut(SERVED + CRASHED + "Killed\n" + WARNINGS + SERVED.replace("03-02", "03-03"))
    assert first(run).startswith("/opt/venv")
    assert run.earlier
    assert "old trouble" not in "".join(line.text for line in run.lines)


def test_a_refused_command_line_behind_the_shells_word_is_a_run_of_its_own() -> None:
    run = cut(SERVED + CRASHED + "Killed\n" + USAGE)
    assert first(run).startswith("usage:")


def test_a_refused_command_line_behind_a_crash_without_any_last_word_is_one_too() -> None:
    run = cut(WARNINGS + REFUSED + USAGE)
    assert first(run).startswith("usage:")


def test_an_assertion_at_launch_has_no_banner_and_is_found_behind_an_orderly_end() -> None:
    run = cut(
        SERVED + "[2026-03-02 22:18:00] Gracefully exiting... Remaining number of requests 0.\n" + WARNINGS + REFUSED
    )
    assert first(run).startswith("/opt/venv")


@pytest.mark.parametrize(
    "separator",
    [
        "=== launch 2: 2026-03-03T07:00:00 ===",
        "@@ start 2026-03-03T07:00:00 @@",
        ">>> try 2",
        "===== attempt 2 =====",
        "+ python3 -m sglang.launch_server --model-path /m",
    ],
)
def test_a_separator_begins_a_run(separator: str) -> None:
    run = cut(SERVED + separator + "\n" + WARNINGS + REFUSED)
    assert first(run) == separator


def test_in_a_loop_of_equal_launches_the_last_one_counts() -> None:
    once = "2026-03-02 10:0{0}:00 INFO app: starting\n2026-03-02 10:0{0}:05 INFO app: model found\n" + REFUSED
    run = read_run("".join(once.format(n) for n in (0, 3, 6)).encode(), offset=0, number=1)
    assert first(run) == "2026-03-02 10:06:00 INFO app: starting"


def test_tracebacks_of_several_ranks_of_one_launch_are_one_run() -> None:
    run = read_run(
        (WARNINGS + REFUSED + REFUSED.replace("AssertionError", "KeyError: 'x'")).encode(), offset=0, number=1
    )
    assert run.lines[0].number == 1


def test_a_banner_in_a_quoted_prompt_begins_nothing() -> None:
    prompt = "audit: user=1 text follows\n" + SERVED + CRASHED + "Killed\naudit: end of text user=1\n"
    run = cut(SERVED + prompt + SERVED.splitlines()[2] + "\n")
    assert run.lines[0].number == 1
    quoted = {mark.line for mark in run.marks if mark.kind is MarkKind.QUOTED}
    fatal = {mark.line for mark in run.marks if mark.kind is MarkKind.FATAL}
    assert quoted
    assert not fatal


def test_a_window_in_the_middle_of_a_file_keeps_offsets_and_knows_that_its_beginning_is_missing() -> None:
    data = ("torn line\n" + CRASHED).encode()
    run = read_run(data, offset=1000, number=None, engine="sglang")
    assert run.lines[0].offset == 1010
    assert run.lines[0].number is None
    assert not run.complete


def test_numbers_count_newlines_only() -> None:
    run = read_run(b"a\rb\rc\nd\n", offset=0, number=1)
    assert [(line.number, line.text) for line in run.lines] == [(1, "a\rb\rc"), (2, "d")]


def test_a_very_long_line_keeps_head_and_tail() -> None:
    run = read_run(b"A" * 200_000 + b"Z\n", offset=0, number=1)
    text = run.lines[0].text
    assert len(text) < runs.LONGEST_LINE + 100
    assert text.startswith("A")
    assert text.endswith("Z")
    assert "bytes left out" in text


def test_of_a_run_with_very_many_lines_beginning_and_end_remain_with_true_numbers() -> None:
    count = runs.HEAD + runs.TAIL + 5_000
    run = read_run(b"".join(b"line %d\n" % n for n in range(1, count + 1)), offset=0, number=1)
    assert len(run.lines) == runs.HEAD + runs.TAIL
    assert (run.lines[0].text, run.lines[-1].text) == ("line 1", f"line {count}")
    assert all(line.text == f"line {line.number}" for line in (run.lines[runs.HEAD - 1], run.lines[runs.HEAD]))


def test_an_empty_log_is_an_empty_run() -> None:
    assert read_run(b"", offset=0, number=1).lines == ()
    assert read_run(b"torn", offset=7, number=None).lines == ()


WORDLESS = """\
reading settings of worker 1
opening the queue
"""
SHELLS_WORD = "run.sh: line 7:  4242 Aborted                 (core dumped) ./worker\n"


def test_an_end_behind_which_the_first_lines_are_printed_again_ends_a_run_though_no_launch_is_recognised() -> None:
    old = WORDLESS + "RuntimeError: old trouble\n" + SHELLS_WORD
    run = cut(old + WORDLESS.replace("1", "2") + "something else\n", engine=None)
    assert [line.text for line in run.lines if line.text][-1] == "something else"
    assert first(run) == "reading settings of worker 2"
    assert run.earlier


def test_what_a_supervisor_says_behind_an_end_is_no_run_of_its_own() -> None:
    log = WORDLESS + SHELLS_WORD + "[supervisor] worker is gone, told the pager\n"
    assert first(cut(log, engine=None)) == "reading settings of worker 1"
    short = SHELLS_WORD + "[supervisor] worker is gone\n"
    assert first(cut(short, engine=None)) == SHELLS_WORD.strip()
