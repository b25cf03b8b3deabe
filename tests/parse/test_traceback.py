"""Tracebacks come out whole, whoever wrote between their lines and whoever carried them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.diagnosed import lines_of
from watchd.model import Line, Link, Traceback
from watchd.parse import traceback


def read(text: str) -> tuple[Traceback, ...]:
    return traceback.read(lines_of(text))


def one(text: str) -> Traceback:
    (block,) = read(text)
    return block


def test_type_message_frames_and_lines_are_read() -> None:
    block = one(
        """
        INFO app: starting
        Traceback (most recent call last):
          File "/opt/app/app.py", line 175, in <module>
            globals()[sys.argv[1]]()
            ~~~~~~~~~^^^^^^^^^^^^^
          File "/opt/app/app.py", line 52, in build
            y = concatenate([x] * 40)
                ^^^^^^^^^^^^^^^^^^^^^
        numpy._core._exceptions._ArrayMemoryError: Unable to allocate 62.5 GiB
        """
    )
    assert (block.type, block.message) == ("numpy._core._exceptions._ArrayMemoryError", "Unable to allocate 62.5 GiB")
    assert [(f.path, f.line, f.function, f.code) for f in block.frames] == [
        ("/opt/app/app.py", 175, "<module>", "globals()[sys.argv[1]]()"),
        ("/opt/app/app.py", 52, "build", "y = concatenate([x] * 40)"),
    ]
    assert (block.indexes[0], block.last) == (1, 8)


def test_a_bare_assertion_has_no_message() -> None:
    block = one(
        """
        Traceback (most recent call last):
          File "<string>", line 331, in __init__
          File "/opt/args.py", line 2424, in _handle
            self.speculative_eagle_topk is None
        AssertionError
        """
    )
    assert (block.type, block.message, block.frames[-1].line) == ("AssertionError", "", 2424)


def test_frames_without_source_lines_are_read() -> None:
    block = one(
        """
        Traceback (most recent call last):
          File "/opt/app/app.py", line 96, in too_many_files
          File "/usr/lib/python3.11/socket.py", line 294, in accept
        OSError: [Errno 24] Too many open files
        """
    )
    assert [frame.code for frame in block.frames] == [None, None]


def test_two_ranks_between_each_other_are_taken_apart() -> None:
    first, second = read(
        """
        (Worker_TP1 pid=213) ERROR 04-22 11:14:01 [m.py:949] Traceback (most recent call last):
        (Worker_TP0 pid=212) ERROR 04-22 11:14:01 [m.py:949] Traceback (most recent call last):
        (Worker_TP1 pid=213) ERROR 04-22 11:14:01 [m.py:949]   File "/opt/eagle.py", line 402, in propose
        (Worker_TP0 pid=212) ERROR 04-22 11:14:01 [m.py:949]   File "/opt/runner.py", line 5120, in _to_list
        (Worker_TP0 pid=212) ERROR 04-22 11:14:01 [m.py:949]     self.event.synchronize()
        (Worker_TP1 pid=213) ERROR 04-22 11:14:01 [m.py:949]     ids = ids[:n].tolist()
        (Worker_TP1 pid=213) ERROR 04-22 11:14:01 [m.py:949] torch.AcceleratorError: CUDA error: an illegal memory access
        (Worker_TP0 pid=212) ERROR 04-22 11:14:01 [m.py:949] torch.AcceleratorError: CUDA error: unspecified launch failure
        """
    )
    assert (first.rank, first.frames[-1].path, first.frames[-1].code) == (1, "/opt/eagle.py", "ids = ids[:n].tolist()")
    assert (second.rank, second.message) == (0, "CUDA error: unspecified launch failure")
    assert first.level == "ERROR"


def test_lines_without_a_prefix_belong_to_the_prefixed_header_above() -> None:
    block = one(
        """
        [2025-02-11 15:21:29 TP3] Scheduler hit an exception: Traceback (most recent call last):
          File "/opt/scheduler.py", line 241, in run_scheduler_process
            scheduler.event_loop()
        [2025-02-11 15:21:29 TP0] Prefill batch. #new-seq: 9
          File "/opt/scheduler.py", line 163, in event_loop
            s = self.status[rid]
        KeyError: '7e0b'
        """
    )
    assert (block.rank, block.process, len(block.frames)) == (3, "TP3", 2)


def test_the_same_in_a_containers_log() -> None:
    block = one(
        """
        engine-1  | [2025-02-11 15:21:29 TP3] Scheduler hit an exception: Traceback (most recent call last):
        engine-1  |   File "/opt/scheduler.py", line 163, in event_loop
        other-1   | harmless
        engine-1  | KeyError: '7e0b'
        """
    )
    assert (block.rank, block.type) == (3, "KeyError")


def test_multiprocessing_says_whose_traceback_follows() -> None:
    block = one(
        """
        Process scheduler-TP2:
        Traceback (most recent call last):
          File "/opt/x.py", line 1, in f
        RuntimeError: x
        """
    )
    assert (block.rank, block.process) == (2, "scheduler-TP2")


@pytest.mark.parametrize(
    ("said", "link"),
    [
        ("The above exception was the direct cause of the following exception:", Link.CAUSE),
        ("During handling of the above exception, another exception occurred:", Link.CONTEXT),
    ],
)
def test_chained_exceptions_hang_on_the_last(said: str, link: Link) -> None:
    block = one(
        f"""
        [rank0]: Traceback (most recent call last):
        [rank0]:   File "/opt/a.py", line 1, in f
        [rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.75 GiB.
        [rank0]: Compile with `TORCH_USE_CUDA_DSA`
        [rank0]:
        [rank0]: {said}
        [rank0]:
        [rank0]: Traceback (most recent call last):
        [rank0]:   File "/opt/b.py", line 2, in g
        [rank0]: RuntimeError: Not enough memory
        """
    )
    assert block.type == "RuntimeError"
    assert block.link is link
    assert block.earlier is not None
    assert (block.earlier.type, block.earlier.rank) == ("torch.OutOfMemoryError", 0)


def test_the_worker_inside_a_loaders_message_comes_first() -> None:
    block = one(
        """
        Traceback (most recent call last):
          File "/opt/train.py", line 9, in <module>
        KeyError: Caught KeyError in DataLoader worker process 0.
        Original Traceback (most recent call last):
          File "/opt/data.py", line 67, in render
            turns = row["messages"]
        KeyError: 'messages'
        """
    )
    assert block.message.startswith("Caught")
    assert block.earlier is not None
    assert (block.earlier.message, block.earlier.quoted) == ("'messages'", True)


def test_a_remote_traceback_in_quotes_is_the_cause() -> None:
    block = one(
        '''
        concurrent.futures.process._RemoteTraceback:
        """
        Traceback (most recent call last):
          File "/opt/w.py", line 3, in work
        ZeroDivisionError: division by zero
        """

        The above exception was the direct cause of the following exception:

        Traceback (most recent call last):
          File "/opt/m.py", line 8, in <module>
        ZeroDivisionError: division by zero
        '''
    )
    assert block.earlier is not None
    assert (block.earlier.frames[0].path, block.earlier.quoted) == ("/opt/w.py", True)


def test_frames_inside_a_ray_task_error_are_its_cause() -> None:
    block = one(
        """
        (train_fn pid=77) Traceback (most recent call last):
        (train_fn pid=77)   File "/opt/driver.py", line 4, in <module>
        (train_fn pid=77) ray.exceptions.RayTaskError(ValueError): ray::train_fn() (pid=77, ip=10.0.0.1)
        (train_fn pid=77)   File "/opt/train.py", line 12, in step
        (train_fn pid=77)     raise ValueError("bad batch")
        (train_fn pid=77) ValueError: bad batch
        """
    )
    assert block.type == "ray.exceptions.RayTaskError(ValueError)"
    assert block.earlier is not None
    assert (block.earlier.type, block.earlier.frames[-1].line) == ("ValueError", 12)


def test_the_first_leaf_of_an_exception_group_is_found() -> None:
    block = one(
        """
        ERROR:    Exception in ASGI application
          + Exception Group Traceback (most recent call last):
          |   File "/opt/a.py", line 265, in __call__
          |     async with create_task_group() as group:
          | ExceptionGroup: unhandled errors in a TaskGroup (2 sub-exceptions)
          +-+---------------- 1 ----------------
            | Traceback (most recent call last):
            |   File "/opt/b.py", line 458, in stream
            |     raise ValueError("one")
            | ValueError: one
            +---------------- 2 ----------------
            | Traceback (most recent call last):
            |   File "/opt/c.py", line 9, in other
            | KeyError: 'two'
            +------------------------------------
        """
    )
    assert (block.type, block.link) == ("ExceptionGroup", Link.GROUP)
    assert block.earlier is not None
    assert (block.earlier.type, block.earlier.frames[-1].path) == ("ValueError", "/opt/b.py")


def test_pydantic_says_on_the_second_line_what_is_wrong() -> None:
    block = one(
        """
        Traceback (most recent call last):
          File "/opt/config.py", line 3, in create
        pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig
          Value error, User-specified max_model_len (65536) is greater than the derived max_model_len
        """
    )
    assert block.message.split("\n")[1].startswith("Value error, User-specified")


def test_a_json_record_holds_a_traceback_in_one_line() -> None:
    inner = 'Boom\nTraceback (most recent call last):\n  File "/opt/a.py", line 1, in f\n    g()\nValueError: x\n'
    record = json.dumps({"level": "error", "fields": {"message": inner}})
    (block,) = traceback.read((Line(1, 0, record),))
    assert (block.type, block.indexes, block.frames[0].path) == ("ValueError", (0,), "/opt/a.py")


def test_a_prompt_with_a_traceback_in_it_is_nobodys_failure() -> None:
    prompt = r"Received request cmpl-1: prompt: 'help:\n\nTraceback (most recent call last):\n  File \"a.py\", line 1\nValueError: x'"
    record = json.dumps({"prompt": 'Traceback (most recent call last):\n  File "a.py", line 1, in f\nValueError: x'})
    assert traceback.read((Line(1, 0, prompt), Line(2, 9, record))) == ()


def test_an_exception_that_a_c_host_prints_is_read_with_its_frames_turned_round() -> None:
    block = one(
        """
        E0217 03:00:02.418789 1 pb_stub.cc:366] "Failed to initialize stub: ModuleNotFoundError: No module named 'sp'

        At:
          /models/t/1/model.py(9): <module>
          <frozen importlib._bootstrap>(488): _call_with_frames_removed
        "
        """
    )
    assert (block.type, block.message, block.frames[-1].path) == (
        "ModuleNotFoundError",
        "No module named 'sp'",
        "/models/t/1/model.py",
    )


def test_python_dumps_its_stack_when_it_is_killed_by_a_signal() -> None:
    block = one(
        """
        Fatal Python error: Segmentation fault

        Current thread 0x00007f6f0b7fe640 (most recent call first):
          File "/opt/wrapper.py", line 400 in init_rank
          File "/opt/main.py", line 31 in <module>

        Thread 0x00007f6f00000000 (most recent call first):
          File "/usr/lib/python3.11/threading.py", line 320 in wait
        """
    )
    assert (block.type, block.message) == ("Fatal Python error", "Segmentation fault")
    assert [frame.function for frame in block.frames] == ["<module>", "init_rank"]


def test_the_line_above_says_how_loud_it_is_only_where_it_speaks_of_a_failure() -> None:
    body = 'Traceback (most recent call last):\n  File "/a.py", line 1, in f\nURLError: x'
    told, silent = (
        read(f"WARNING 12:00:00 status probe failed:\n{body}"),
        read(f"WARNING 12:00:00 casting float32 to bfloat16\n{body}"),
    )
    assert told[0].level == "WARNING"
    assert silent[0].level is None


def test_a_traceback_that_was_cut_has_no_type() -> None:
    block = one(
        """
        Traceback (most recent call last):
          File "/opt/a.py", line 1, in f
            g()
        """
    )
    assert (block.type, len(block.frames)) == ("", 1)


def test_log_lines_between_are_no_exception() -> None:
    block = one(
        """
        Traceback (most recent call last):
          File "/opt/a.py", line 1, in f
        INFO:     10.0.0.1 - "GET /health HTTP/1.1" 200 OK
        ValueError: x
        """
    )
    assert block.type == "ValueError"


_PARTS = st.sampled_from(
    [
        "Traceback (most recent call last):",
        '  File "/a.py", line 1, in f',
        "    code()",
        "ValueError: x",
        "During handling of the above exception, another exception occurred:",
        "  + Exception Group Traceback (most recent call last):",
        "    | Traceback (most recent call last):",
        "Original Traceback (most recent call last):",
        "Fatal Python error: Aborted",
        "At:",
        "[rank1]: Traceback (most recent call last):",
        '[rank1]:   File "/b.py", line 2, in g',
        "[rank1]: ray.exceptions.RayTaskError(X): y",
        '{"message": "Traceback (most recent call last):\\n  File"}',
        "",
    ]
)


@given(st.lists(_PARTS, max_size=40))
def test_no_order_of_lines_breaks_it(parts: list[str]) -> None:
    read_lines = tuple(Line(None, 0, part) for part in parts)
    for block in traceback.read(read_lines):
        assert all(0 <= index < len(parts) for index in block.indexes)
