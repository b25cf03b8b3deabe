"""Each engine is recognised by its own lines, and says of each line what it means."""

from __future__ import annotations

import pytest

from watchd.engines import reading, registry
from watchd.model import MarkKind

SAMPLES = {
    "sglang": "[2026-01-31 10:00:00] server_args=ServerArgs(model_path='/m')\n[2026-01-31 10:00:05 TP0] Decode batch. #running-req: 9, #token: 3, gen throughput (token/s): 704.76, #queue-req: 0",
    "vllm": "(APIServer pid=71) INFO 06-24 08:51:15 [api_server.py:1839] vLLM API server version 0.11.0\n(APIServer pid=71) INFO 06-24 08:51:15 [utils.py:233] non-default args: {'model': '/m'}",
    "tgi": "2026-02-25T04:40:01.118220Z  INFO text_generation_launcher: Args {\n2026-02-25T04:40:07Z  INFO shard-manager: text_generation_launcher: Starting shard rank=0",
    "tensorrt-llm": '[TensorRT-LLM] TensorRT-LLM version: 1.1.0\n  File "/usr/lib/python3/dist-packages/tensorrt_llm/commands/serve.py", line 3, in main',
    "lmdeploy": "2024-07-18 10:03:00,561 - lmdeploy - INFO - input backend=turbomind, backend_config=TurbomindEngineConfig(tp=2)\n[TM][INFO] [BlockManager] block_size = 12 MB",
    "triton-server": '== Triton Inference Server ==\nI0828 21:02:00.000000 1 model_lifecycle.cc:472] "loading: embed:1"',
    "ollama": '2025/04/13 19:20:05 routes.go:1230: INFO server config env="map[OLLAMA_HOST:http://0.0.0.0]"\n[GIN] 2025/04/13 - 19:20:08 | 200 |  31µs |  10.0.0.1 | POST  "/api/chat"',
    "llama.cpp": "build: b6019 (8ad7b3e6) with cc (Ubuntu) 13.3.0 for x86_64-linux-gnu\nsystem info: n_threads = 16",
    "megatron": " [2025-10-05 22:00:17] iteration       10/  238418 | consumed samples:        10240 |\n> building train, validation, and test datasets ... pretrain_gpt.py",
    "deepspeed": "[2025-02-14 13:13:13,915] [INFO] [launch.py:146:main] WORLD INFO DICT: {'localhost': [0, 1]}\n[2025-02-14 13:13:14] Setting ds_accelerator to cuda (auto detect)",
    "ray": "(ServeReplica:chat:Generator pid=9344, ip=10.9.1.6) INFO 2026-05-11 18:40:00,479 chat_Generator zz04 -- POST /chat 200 1587.4ms",
    "jax": "2024-12-10 12:00:31.2: E external/xla/xla/stream_executor/cuda/cuda_fft.cc:477] Unable\nINFO:2025-02-25 17:10:14,005:jax._src.xla_bridge:925: Unable",
    "pytorch": "W0918 14:09:52.118000 52117 torch/distributed/run.py:792] Setting OMP_NUM_THREADS environment variable for each process to be 1",
    "slurm": "srun: job 88209 step 0\nslurmstepd: error: *** JOB 1 ON n1 CANCELLED AT 2025-01-01T00:00:00 ***",
}  # fmt: skip


def test_every_engine_has_a_sample() -> None:
    assert SAMPLES.keys() == {engine.name for engine in registry.ENGINES}


@pytest.mark.parametrize("name", SAMPLES)
def test_an_engine_is_recognised_by_its_lines_and_no_other_is(name: str) -> None:
    assert reading.recognise(SAMPLES[name].encode()).name == name


def test_what_no_engine_wrote_is_generic() -> None:
    assert reading.recognise(b"hello\nworld\n").name == "generic"


def test_a_named_engine_is_believed() -> None:
    assert reading.read_run(SAMPLES["vllm"].encode(), offset=0, number=1, engine="sglang").engine == "sglang"


def test_the_version_is_read_from_the_log() -> None:
    assert reading.read_run(SAMPLES["vllm"].encode(), offset=0, number=1).engine_version == "0.11.0"


def test_a_run_carries_what_its_engine_calls_things() -> None:
    assert (
        reading.read_run(SAMPLES["sglang"].encode(), offset=0, number=1).knobs["memory_share"]
        == "--mem-fraction-static"
    )


@pytest.mark.parametrize(
    ("engine", "line", "kinds"),
    [
        ("sglang", "[2026-01-31 10:00:00 TP1] Scheduler hit an exception: Traceback (most recent call last):", {MarkKind.FATAL}),
        ("sglang", "[2026-01-31 10:00:00] Received sigquit from a child process. It usually means the child failed.", {MarkKind.FATAL, MarkKind.CLEANUP}),
        ("sglang", "[2026-01-31 10:00:00] SIGTERM received. signum=15 frame=None. Draining requests and shutting down...", {MarkKind.STOPPING}),
        ("sglang", "[2026-01-31 10:00:00] server_args=ServerArgs(model_path='/m')", {MarkKind.BANNER}),
        ("sglang", "[2026-01-31 10:00:00 TP0] Decode batch. #running-req: 9, #token: 3, gen throughput (token/s): 1.0, #queue-req: 0", {MarkKind.WORK, MarkKind.BUSY}),
        ("sglang", '[2026-01-31 10:00:00] INFO:     10.0.0.1:5 - "GET /health HTTP/1.1" 200 OK', set()),
        ("sglang", '[2026-01-31 10:00:00] INFO:     10.0.0.1:5 - "POST /v1/chat/completions HTTP/1.1" 200 OK', {MarkKind.WORK}),
        ("sglang", '[2026-01-31 10:00:00] INFO:     10.0.0.1:5 - "POST /v1/chat/completions HTTP/1.1" 500 Internal Server Error', {MarkKind.REQUEST}),
        ("vllm", "(APIServer pid=1) INFO 12-02 01:12:57 [loggers.py:127] Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 0.0 tokens/s, Running: 35 reqs", {MarkKind.IDLE}),
        ("vllm", "(APIServer pid=1) INFO 12-02 01:12:47 [loggers.py:127] Engine 000: Avg prompt throughput: 411.9 tokens/s, Avg generation throughput: 96.2 tokens/s, Running: 35 reqs", {MarkKind.WORK, MarkKind.BUSY}),
        ("vllm", "(EngineCore_DP0 pid=2) ERROR 12-02 01:12:47 [core.py:708] EngineCore encountered a fatal error.", {MarkKind.FATAL}),
        ("vllm", "(APIServer pid=1) INFO 10-14 08:03:12 [logger.py:39] Received request chatcmpl-1: prompt: 'vllm.v1.engine.exceptions.EngineDeadError: x'", {MarkKind.QUOTED, MarkKind.WORK}),
        ("tgi", "2026-02-25T04:40:16.208817Z ERROR text_generation_launcher: Shard 0 failed to start", {MarkKind.FATAL}),
        ("triton-server", "triton-1     | Signal (15) received.", {MarkKind.STOPPING}),
        ("ollama", '[GIN] 2025/03/22 - 16:10:15 | 500 |     7.5s |      10.20.4.15 | POST     "/api/chat"', {MarkKind.REQUEST}),
        ("slurm", "slurmstepd: error: *** JOB 8120455 ON gpu-a CANCELLED AT 2025-05-30T04:14:46 DUE TO TIME LIMIT ***", {MarkKind.STOPPING}),
        ("pytorch", "0: W0312 07:21:16.904442 51200 torch/distributed/elastic/agent/server/api.py:704] Received 15 death signal, shutting down workers", {MarkKind.STOPPING}),
        ("pytorch", " 30%|███       | 1298/4284 [1:44:03<3:59:22, 4.81s/it]", {MarkKind.WORK}),
        ("pytorch", "Loading safetensors checkpoint shards:   2% Completed | 1/47 [00:06<04:36,  5.61s/it]", {MarkKind.LOADING}),
        ("generic", "[driver] torchrun exit status 0", {MarkKind.FINISHED}),
        ("deepspeed", "[2025-02-14 13:13:13,959] [INFO] [launch.py:351:main] Process 8100 exits successfully.", {MarkKind.FINISHED}),
        ("generic", "step   260 loss 1.8795 accept_len 2.77 tok/s 41197", {MarkKind.WORK}),
        ("generic", "Jun  1 12:00:00 gpu-01 systemd[1]: Stopping Ollama Service...", {MarkKind.STOPPING}),
    ],
)  # fmt: skip
def test_a_line_means_what_its_engine_says(engine: str, line: str, kinds: set[MarkKind]) -> None:
    assert set(reading.mark(line, engine)) == kinds
