"""The verdict: crash, hang, degraded, stopped or ok, each with its reason."""

from __future__ import annotations

import pytest

from tests.support.diagnosed import case_of, diagnosed, root_line
from watchd.model import Cause, Confidence, Verdict

FAILED_REQUEST = """
    [2025-07-10 16:06:00] Decode batch. #running-req: 6, #token: 9023, gen throughput (token/s): 322.13, #queue-req: 0,
    ERROR:    Exception in ASGI application
    Traceback (most recent call last):
      File "/opt/starlette/routing.py", line 1, in app
      File "/opt/sglang/srt/entrypoints/serving_chat.py", line 171, in build
        params = tool["properties"]
    KeyError: 'properties'
    [2025-07-10 16:06:05] INFO:     10.0.0.1:5 - "POST /v1/chat/completions HTTP/1.1" 500 Internal Server Error
    [2025-07-10 16:06:07] Decode batch. #running-req: 6, #token: 9023, gen throughput (token/s): 322.13, #queue-req: 0,
    """
STOPPED = """
    [2026-02-17 10:07:46 TP0] Decode batch. #running-req: 17, #token: 24525, gen throughput (token/s): 1525.98, #queue-req: 0
    [2026-02-17 10:07:53] SIGTERM received. signum=15 frame=None. Draining requests and shutting down...
    [2026-02-17 10:07:56] Gracefully exiting... Remaining number of requests 0.
    """
IDLE = "(APIServer pid=1) INFO 12-02 01:1{0}:57 [loggers.py:127] Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 0.0 tokens/s, Running: 35 reqs\n"
KILLED = """
    step 10 loss 1.5
    E1201 13:46:17.097000 1293 torch/distributed/elastic/multiprocessing/api.py:986] failed (exitcode: -9) local_rank: 1 (pid: 1317) of binary: python3
    """


def test_a_request_that_failed_degrades_a_server_that_answers() -> None:
    case = case_of(FAILED_REQUEST, health="up")
    found = diagnosed(case)
    assert (found.verdict, found.cause, root_line(case, found)) == (Verdict.DEGRADED, Cause.UNHANDLED_EXCEPTION, 7)


def test_clients_that_go_away_or_err_are_nothing() -> None:
    log = """
        ERROR:    Exception in ASGI application
        Traceback (most recent call last):
          File "/opt/starlette/responses.py", line 1, in listen
        asyncio.exceptions.CancelledError: Cancelled by cancel scope 7f
        INFO:     10.0.0.1:5 - "POST /v1/completions HTTP/1.1" 400 Bad Request
        """
    found = diagnosed(case_of(log, health="up"))
    assert (found.verdict, found.cause, found.root) == (Verdict.OK, Cause.NONE, None)


def test_a_crash_of_the_run_before_is_not_the_servers_that_answers() -> None:
    log = """
        Traceback (most recent call last):
          File "/opt/a.py", line 1, in <module>
        RuntimeError: old
        step 1 loss 2.0
        step 2 loss 1.9
        """
    assert diagnosed(case_of(log, health="up")).verdict is Verdict.OK


def test_an_order_to_stop_that_was_followed_is_no_crash() -> None:
    case = case_of(STOPPED)
    found = diagnosed(case)
    assert (found.verdict, found.cause, root_line(case, found)) == (Verdict.STOPPED, Cause.PROCESS_KILLED, 2)


def test_a_shutdown_after_a_fault_is_a_crash_that_tidied_up() -> None:
    log = """
        INFO:     Application startup complete.
        ERROR:    [Errno 98] error while attempting to bind on address ('127.0.0.1', 30203): address already in use
        INFO:     Waiting for application shutdown.
        INFO:     Application shutdown complete.
        """
    found = diagnosed(case_of(log))
    assert (found.verdict, found.cause) == (Verdict.CRASH, Cause.PORT_IN_USE)
    assert "30203" in found.advice[0]


def test_a_job_that_ended_well_is_ok_though_it_is_gone() -> None:
    log = "step 10 loss 1.5\n[driver] torchrun exit status 0\n"
    assert diagnosed(case_of(log)).verdict is Verdict.OK


def test_statistics_without_a_token_and_with_requests_are_a_hang() -> None:
    case = case_of("".join(IDLE.format(n) for n in range(5)), health="up", engine="vllm")
    found = diagnosed(case)
    assert (found.verdict, found.cause, root_line(case, found)) == (Verdict.HANG, Cause.WATCHDOG_HANG, 1)
    assert "py-spy" in " ".join(found.advice)


def test_an_endpoint_that_takes_requests_and_does_not_answer_is_a_hang() -> None:
    assert diagnosed(case_of("step 10 loss 1.5\n", health="slow")).verdict is Verdict.HANG


def test_only_health_checks_after_running_work_are_a_hang_though_they_are_answered() -> None:
    pulse = '127.0.0.1 - - [01/Dec/2026 13:51:54] "GET /health HTTP/1.1" 200 -\n'
    busy = "[2026-12-01 13:51:53,532] INFO server: decode batch, #running-req: 1, step 2\n"
    assert diagnosed(case_of(busy + pulse * 12, health="up")).verdict is Verdict.HANG
    served = 'INFO:     10.0.0.1:5 - "POST /v1/completions HTTP/1.1" 200 OK\n'
    assert diagnosed(case_of(busy + served + pulse * 12, health="up")).verdict is Verdict.OK


def test_a_signal_that_only_the_launcher_saw_is_a_kill() -> None:
    case = case_of(KILLED)
    found = diagnosed(case)
    assert (found.verdict, found.cause, root_line(case, found)) == (Verdict.CRASH, Cause.PROCESS_KILLED, 2)
    assert found.root is not None
    assert found.root.rank == 1


def test_the_oom_killers_record_of_that_pid_explains_it_and_both_agree() -> None:
    kernel = "[Tue Dec  1 13:46:16 2026] Out of memory: Killed process 1317 (python3) total-vm:1kB, anon-rss:1kB"
    found = diagnosed(case_of(KILLED, kernel=kernel))
    assert (found.cause, found.confidence) == (Cause.HOST_OUT_OF_MEMORY, Confidence.CERTAIN)
    assert found.root is not None
    assert found.root.event is not None
    assert (found.root.event.pid, found.root.rank) == (1317, 1)


def test_an_oom_kill_of_another_program_hours_before_explains_nothing() -> None:
    kernel = "[Tue Dec  1 02:55:10 2026] Out of memory: Killed process 31144 (rsync) total-vm:1kB, anon-rss:1kB"
    found = diagnosed(case_of(KILLED, kernel=kernel))
    assert found.cause is Cause.PROCESS_KILLED
    assert found.confidence is not Confidence.CERTAIN


@pytest.mark.parametrize(
    ("clock", "tied"),
    [
        ("Wed Dec  2 00:00:30 2026", True),
        ("Tue Dec  1 23:58:30 2026", True),
        ("Tue Dec  1 00:00:30 2026", False),
        ("Thu Dec  3 00:00:30 2026", False),
    ],
)
def test_kernel_and_log_are_tied_by_time_across_midnight_and_not_across_a_day(clock: str, tied: bool) -> None:
    log = "[2026-12-01 23:59:50] serving\n"
    kernel = f"[{clock}] Out of memory: Killed process 4711 (python3) total-vm:1kB"
    found = diagnosed(case_of(log, kernel=kernel))
    assert (found.cause is Cause.HOST_OUT_OF_MEMORY) is tied
    assert found.confidence is not Confidence.CERTAIN


@pytest.mark.parametrize(
    ("xid", "cause"),
    [
        (79, Cause.GPU_HARDWARE),
        (95, Cause.GPU_HARDWARE),
        (31, Cause.GPU_ILLEGAL_ACCESS),
        (45, Cause.GPU_ILLEGAL_ACCESS),
    ],
)
def test_an_xid_means_hardware_only_where_its_code_does(xid: int, cause: Cause) -> None:
    log = """
        [2026-12-01 13:46:10] serving
        Traceback (most recent call last):
          File "/opt/a.py", line 1, in <module>
        RuntimeError: CUDA error: unspecified launch failure
        """
    kernel = f"[Tue Dec  1 13:46:09 2026] NVRM: Xid (PCI:0000:81:00): {xid}, pid='<unknown>', name=<unknown>, text"
    found = diagnosed(case_of(log, kernel=kernel))
    assert found.cause is cause
    if cause is Cause.GPU_HARDWARE:
        assert "81:00" in " ".join(found.advice)


def test_no_space_left_where_only_shared_memory_is_full_is_a_small_shm() -> None:
    log = """
        Traceback (most recent call last):
          File "/opt/a.py", line 1, in <module>
        OSError: [Errno 28] No space left on device
        """
    disks = """\
        Filesystem     1024-blocks      Used Available Capacity Mounted on
        overlay         1921802432 610020112 1213090116      34% /
        shm                  65536     65536          0     100% /dev/shm
        """
    assert diagnosed(case_of(log, disks=disks)).cause is Cause.SHARED_MEMORY
    full = disks.replace("34% /", "100% /")
    found = diagnosed(case_of(log, disks=full))
    assert found.cause is Cause.DISK_FULL
    assert found.advice[0].startswith("/ is full")


def test_no_claim_rests_on_a_health_that_nobody_asked() -> None:
    working = "step 1 loss 2.0\nstep 2 loss 1.9\nstep 3 loss 1.8\n"
    found = diagnosed(case_of(working, health=None))
    assert (found.verdict, found.confidence) == (Verdict.OK, Confidence.GUESS)
    assert diagnosed(case_of("hello\n", health=None)).confidence is Confidence.UNKNOWN
    crashed = working + 'Traceback (most recent call last):\n  File "/a.py", line 1, in <module>\nValueError: x\n'
    assert diagnosed(case_of(crashed, health=None)).verdict is Verdict.CRASH


def test_gone_without_a_word_says_that_it_is_not_known_why() -> None:
    found = diagnosed(case_of("loading tokenizer\n"))
    assert (found.verdict, found.cause, found.confidence) == (Verdict.CRASH, Cause.PROCESS_KILLED, Confidence.UNKNOWN)
    assert found.runner_up is not None


def test_a_misspelt_flag_is_told_with_the_known_one_next_to_it() -> None:
    log = """
        usage: launch_server.py [-h] [--enable-dp-attention] [--disable-dp-attn]
        launch_server.py: error: unrecognized arguments: --enable-dp-attn
        """
    found = diagnosed(case_of(log))
    assert found.cause is Cause.LAUNCH_ARGUMENT
    assert "`--enable-dp-attention` for `--enable-dp-attn`" in found.advice[0]


def test_words_of_users_crash_nothing() -> None:
    log = """
        step 1 loss 2.0
        audit: user=1 text follows
        Traceback (most recent call last):
          File "/a.py", line 1, in <module>
        torch.OutOfMemoryError: CUDA out of memory.
        Killed
        audit: end of text user=1
        """
    assert diagnosed(case_of(log, health="up")).verdict is Verdict.OK


def test_an_empty_case_is_judged_without_a_claim() -> None:
    found = diagnosed(case_of("", health=None))
    assert (found.verdict, found.confidence, found.root) == (Verdict.OK, Confidence.UNKNOWN, None)


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        ("Shard process was signaled to shutdown with signal 7 rank=1", Cause.SHARED_MEMORY),
        ("Shard process was signaled to shutdown with signal 11 rank=1", Cause.SEGFAULT),
        ("  traceback : Signal 6 (SIGABRT) received by PID 812, rank=1", Cause.SEGFAULT),
        ("process 1 terminated with signal SIGSEGV, rank 1", Cause.SEGFAULT),
    ],
)
def test_a_signal_that_a_launcher_names_says_what_ended_its_child(said: str, cause: Cause) -> None:
    found = diagnosed(case_of(f"loading\n{said}\n"))
    assert (found.verdict, found.cause) == (Verdict.CRASH, cause)
    assert found.confidence is not Confidence.CERTAIN
    assert found.root is not None
    assert found.root.rank == 1


@pytest.mark.parametrize(
    ("words", "whose"), [("Memory cgroup out of memory", "container"), ("Out of memory", "the host")]
)
def test_advice_on_host_memory_says_who_held_how_much_of_whose(words: str, whose: str) -> None:
    kernel = f"[Tue Dec  1 13:46:16 2026] {words}: Killed process 1317 (python3) total-vm:9kB, anon-rss:65536000kB"
    found = diagnosed(case_of(KILLED, kernel=kernel))
    assert "python3 (pid 1317) held 62.5 GiB" in found.advice[0]
    assert whose in found.advice[0]


def test_a_shells_word_on_the_run_before_degrades_no_server_that_answers() -> None:
    log = """
        run.sh: line 7:  4242 Aborted                 (core dumped) python3 serve.py
        step 1 loss 2.0
        step 2 loss 1.9
        """
    assert diagnosed(case_of(log, health="up")).verdict is Verdict.OK


def test_connections_that_close_after_a_job_is_done_are_no_crash() -> None:
    done = "step 10 loss 1.5\ntraining finished\n"
    assert (
        diagnosed(case_of(done + "[rank0]: recvValue failed on SocketImpl: Connection reset by peer\n")).verdict
        is Verdict.OK
    )
    assert diagnosed(case_of(done + "Killed\n")).verdict is Verdict.CRASH
