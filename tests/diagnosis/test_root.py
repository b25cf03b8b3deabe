"""Of all that a crash writes, the first cause is chosen and not the loudest line."""

from __future__ import annotations

from tests.support.diagnosed import case_of, diagnosed, root_line
from watchd.diagnosis import root as roots
from watchd.model import Cause, Verdict


def chosen(log: str, **known: str) -> tuple[Cause | None, int | None]:
    case = case_of(log, **known)
    found = diagnosed(case)
    assert found.verdict is Verdict.CRASH
    assert roots.choose(case) == found.root
    return found.cause, root_line(case, found)


def test_the_rank_that_failed_first_decides_and_the_closed_connections_follow() -> None:
    case = case_of(
        """
        [rank3]: Traceback (most recent call last):
        [rank3]:   File "/opt/collate.py", line 67, in render
        [rank3]:     turns = row["messages"]
        [rank3]: KeyError: 'messages'
        [rank0]: Traceback (most recent call last):
        [rank0]:   File "/opt/dist.py", line 9, in all_reduce
        [rank0]: RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.2]:4711
        E0918 14:09:52.118000 52117 torch/distributed/elastic/multiprocessing/api.py:986] failed (exitcode: 1) local_rank: 3
        """
    )
    found = diagnosed(case)
    assert (found.cause, root_line(case, found)) == (Cause.UNHANDLED_EXCEPTION, 4)
    assert found.root is not None
    assert found.root.rank == 3


def test_the_cause_of_a_chain_decides() -> None:
    assert chosen(
        """
        Traceback (most recent call last):
          File "/opt/triton/cache.py", line 77, in __init__
            os.makedirs(self.cache_dir)
        PermissionError: [Errno 13] Permission denied: '/tmp/triton/Q'

        The above exception was the direct cause of the following exception:

        Traceback (most recent call last):
          File "/srv/run.py", line 61, in <module>
        torch._inductor.exc.InductorError: PermissionError: [Errno 13] Permission denied: '/tmp/triton/Q'
        """
    ) == (Cause.PERMISSION, 4)


def test_a_failed_look_up_is_only_a_question_where_the_answer_is_a_known_cause() -> None:
    assert chosen(
        """
        Traceback (most recent call last):
          File "/opt/a.py", line 1, in get
        KeyError: 'cuda'

        During handling of the above exception, another exception occurred:

        Traceback (most recent call last):
          File "/opt/a.py", line 9, in <module>
        torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 5.00 GiB
        """
    ) == (Cause.GPU_OUT_OF_MEMORY, 9)


def test_an_exception_without_words_is_told_by_the_one_raised_from_it() -> None:
    assert chosen(
        """
        Traceback (most recent call last):
          File "/opt/mq.py", line 1, in get
        TimeoutError

        The above exception was the direct cause of the following exception:

        Traceback (most recent call last):
          File "/opt/executor.py", line 9, in <module>
        TimeoutError: RPC call to execute_model timed out.
        """
    ) == (Cause.WATCHDOG_HANG, 9)


def test_what_only_carries_another_error_never_decides() -> None:
    assert chosen(
        """
        (Worker pid=4) ERROR 12-01 14:05:59 [m.py:9] Traceback (most recent call last):
        (Worker pid=4) ERROR 12-01 14:05:59 [m.py:9]   File "/opt/loader.py", line 1208, in weights
        (Worker pid=4) ERROR 12-01 14:05:59 [m.py:9] safetensors.SafetensorError: Error while deserializing header: incomplete metadata
        (EngineCore pid=3) ERROR 12-01 14:06:02 [core.py:1] Traceback (most recent call last):
        (EngineCore pid=3) ERROR 12-01 14:06:02 [core.py:1]   File "/opt/core.py", line 1, in run
        (EngineCore pid=3) ERROR 12-01 14:06:02 [core.py:1] Exception: WorkerProc initialization failed due to an exception in a background process.
        Traceback (most recent call last):
          File "/opt/api.py", line 1, in <module>
        RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}
        """
    ) == (Cause.MODEL_LOAD, 3)


def test_the_device_assertion_comes_before_the_traceback_that_it_causes() -> None:
    case = case_of(
        """
        /pytorch/Indexing.cu:1422: indexSelectLargeIndex: block: [287,0,0], thread: [64,0,0] Assertion `srcIndex < srcSelectDimSize` failed.
        [rank5]: Traceback (most recent call last):
        [rank5]:   File "/opt/embedding.py", line 2551, in embedding
        [rank5]: RuntimeError: CUDA error: device-side assert triggered
        """
    )
    found = diagnosed(case)
    assert (found.cause, root_line(case, found)) == (Cause.GPU_ILLEGAL_ACCESS, 1)
    assert found.root is not None
    assert found.root.rank == 5
    assert found.root.traceback is not None
    assert found.root.traceback.frames[-1].line == 2551


def test_teardown_after_the_cause_changes_nothing() -> None:
    log = """
        Traceback (most recent call last):
          File "/opt/a.py", line 1, in <module>
        OSError: [Errno 28] No space left on device
        """
    noise = "[rank0]:[W1 00:00:00.1 P.cpp:1] Warning: WARNING: destroy_process_group() was not called\n" * 50
    assert chosen(log) == chosen(log + noise)


def test_a_fault_that_was_survived_is_context() -> None:
    log = """
        Traceback (most recent call last):
          File "/opt/a.py", line 1, in probe
        OSError: [Errno 28] No space left on device
        step 10 loss 1.5
        step 20 loss 1.4
        step 30 loss 1.3
        Traceback (most recent call last):
          File "/opt/b.py", line 1, in <module>
        torch.OutOfMemoryError: CUDA out of memory.
        """
    assert chosen(log) == (Cause.GPU_OUT_OF_MEMORY, 9)


def test_the_rank_that_waited_in_another_operation_is_the_straggler() -> None:
    waits = "[rank{0}]:[E627 21:15:26.1 ProcessGroupNCCL.cpp:632] [Rank {0}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=52, OpType={1}, NumelIn=1)"
    log = "\n".join(
        [
            "21:04:54,280 rank0 INFO  step   320 loss 1.6356 tok/s 41702",
            "21:05:16,359 rank2 DEBUG loader: no sample left, micro-batch left out on this rank",
            *(waits.format(rank, "_ALLREDUCE" if rank == 2 else "_ALLGATHER_BASE") for rank in (3, 0, 1, 2)),
        ]
    )
    case = case_of(log)
    found = diagnosed(case)
    assert (found.cause, root_line(case, found)) == (Cause.COLLECTIVE_TIMEOUT, 2)
    assert found.root is not None
    assert found.root.rank == 2
    assert "rank 2" in found.advice[0]


def test_without_any_fault_nothing_is_chosen() -> None:
    assert roots.choose(case_of("step 1 loss 2.0\nstep 2 loss 1.9\n")) is None
