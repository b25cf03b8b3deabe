"""What stands in front of a line's own words is taken off, whoever wrote it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchd.parse import lines

WRITERS = [
    ("[2026-01-31 10:00:05 TP3] Decode batch. #running-req: 1", "Decode batch. #running-req: 1", 3, "TP3", None),
    ("[2026-01-31 10:00:05 DP1 TP3 EP3] x", "x", 3, "DP1 TP3 EP3", None),
    ("[2025-07-10 16:06:05] INFO:     10.20.4.44:5 - \"GET /health HTTP/1.1\" 200 OK", '10.20.4.44:5 - "GET /health HTTP/1.1" 200 OK', None, None, "INFO"),
    ("(EngineCore_DP0 pid=268) ERROR 06-15 13:57:57 [core.py:702]   File \"x\"", '  File "x"', 0, "EngineCore_DP0", "ERROR"),
    ("(VllmWorker rank=2 pid=12) WARNING 06-15 13:57:57 [core.py:702] slow", "slow", 2, "VllmWorker", "WARNING"),
    ("\x1b[1;36m(Worker_TP5 pid=245)\x1b[0;0m \x1b[31mERROR\x1b[0m 10-27 13:05:39 [multiproc_executor.py:676] x", "x", 5, "Worker_TP5", "ERROR"),
    ("INFO 10-30 17:12:00 api_server.py:528] vLLM API server version 0.6.3", "vLLM API server version 0.6.3", None, None, "INFO"),
    ("2026-02-25T04:40:16.120031Z ERROR shard-manager: text_generation_launcher: Shard 0 failed", "Shard 0 failed", None, None, "ERROR"),
    ("[rank3]:[E1218 20:27:21.426415540 ProcessGroupNCCL.cpp:629] [Rank 3] Watchdog caught", "Watchdog caught", 3, "rank3", "ERROR"),
    ("[rank1]:   File \"a.py\", line 1, in f", '  File "a.py", line 1, in f', 1, "rank1", None),
    ("3: KeyError: 'messages'", "KeyError: 'messages'", 3, None, None),
    (" 7: Traceback (most recent call last):", "Traceback (most recent call last):", 7, None, None),
    ("W0918 14:09:52.118000 52117 torch/utils/cpp_extension.py:2425] not set", "not set", None, None, "WARNING"),
    ("[07/16/2025-08:25:14] [TRT-LLM] [RANK 6] [E] Failed", "Failed", 6, None, "ERROR"),
    ("0.00.005.787 E gguf_init_from_file: failed", "gguf_init_from_file: failed", None, None, "ERROR"),
    ('time=2025-04-13T19:20:06.013Z level=WARN source=gpu.go:605 msg="unknown error"', '"unknown error"', None, None, "WARNING"),
    ("2026-12-01 13:53:52,371 INFO server: first", "server: first", None, None, "INFO"),
    ("[2026-12-01 14:04:26 +0000] [29291] [INFO] Worker exiting", "Worker exiting", None, None, "INFO"),
    ("2024-12-10 12:00:31.200000: E external/xla/cuda_fft.cc:477] Unable", "Unable", None, None, "ERROR"),
    ("plain words", "plain words", None, None, None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "body", "rank", "process", "level"), WRITERS)
def test_every_writer_is_understood(
    text: str, body: str, rank: int | None, process: str | None, level: str | None
) -> None:
    words = lines.split(text)
    assert (words.body, words.rank, words.process, words.level) == (body, rank, process, level)


@pytest.mark.parametrize(
    "wrapper",
    [
        "engine-1  | ",
        "Dec  1 13:53:52 gpu-01 serve[812]: ",
        "2026-01-01T00:00:00.000000000Z stderr F ",
        "[pod/llm-0/engine] ",
        "node-1: ",
    ],
)
def test_a_wrapper_in_front_changes_neither_rank_nor_words(wrapper: str) -> None:
    for text, body, rank, process, level in WRITERS:
        words = lines.split(wrapper + text)
        assert (words.body, words.rank, words.process, words.level) == (body, rank, process, level)


def test_a_container_is_no_process() -> None:
    words = lines.split("triton-1     | Signal (15) received.")
    assert (words.container, words.process, words.rank) == ("triton-1", None, None)


def test_a_runtimes_json_wrapping_is_opened() -> None:
    words = lines.split('{"log":"[rank2]: KeyError: \'x\'\\n","stream":"stderr","time":"2026-01-01T00:00:00Z"}')
    assert (words.body, words.rank) == ("KeyError: 'x'", 2)


def test_of_a_progress_bar_the_last_state_counts() -> None:
    assert lines.clean("10%|#  | 1/10\r 20%|## | 2/10\r") == " 20%|## | 2/10"


def test_indentation_is_kept_because_tracebacks_need_it() -> None:
    assert lines.split("(APIServer pid=71)     return f()").body == "    return f()"


def test_the_clock_is_read_from_any_prefix() -> None:
    assert lines.split("[rank0]:[E1201 13:46:59.384229139 ProcessGroupNCCL.cpp:689] x").clock == "13:46:59"


@pytest.mark.parametrize(
    ("name", "rank"),
    [("TP3", 3), ("Worker_TP3", 3), ("rank3", 3), ("scheduler-TP0", 0), ("DP1 TP0 EP5", 0), ("APIServer", "APIServer")],
)
def test_a_rank_is_the_integer_at_the_end_of_a_name(name: str, rank: int | str) -> None:
    assert lines.rank_of(name) == rank


@given(st.text(max_size=400))
def test_no_text_breaks_it(text: str) -> None:
    words = lines.split(text)
    assert len(words.body) <= max(len(text), lines.LONGEST)
