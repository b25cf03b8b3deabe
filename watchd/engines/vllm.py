"""vLLM: `vllm serve`, `python -m vllm.entrypoints.openai.api_server`."""

from __future__ import annotations

import re

from watchd.engines.base import Engine, patterns

ENGINE = Engine(
    name="vllm",
    marks=patterns(
        r"vLLM API server version",
        r"\bvllm/(?:v1|entrypoints|engine|worker|executor|model_executor|config)\b",
        r"^non-default args: \{",
        r"Initializing a V\d LLM engine|Initializing an LLM engine",
        r"Automatically detected platform \w+",
        r"^Engine \d{3}: Avg prompt throughput",
        r"^Avg prompt throughput: ",
        r"^vllm: error: ",
        r"^usage: vllm ",
        r"^EngineCore (?:failed|encountered|exiting)",
    ),
    # (APIServer pid=71) INFO 06-24 08:51:15 [api_server.py:1839] vLLM API server version 0.11.0
    banner=patterns(r"vLLM API server version ", r"^non-default args: \{", r"^args: Namespace\("),
    loading=patterns(
        r"^Starting to load model",
        r"^Loading weights took",
        r"^Model loading took",
        r"^Available KV cache memory",
        r"^GPU KV cache size",
        r"^Graph capturing finished",
        r"^Using cache directory: .{0,200}torch_compile",
        r"^init engine .{0,80} took",
    ),
    ready=patterns(r"^Application startup complete\.", r"^Started server process", r"^Starting vLLM API server"),
    # Engine 000: Avg prompt throughput: 2832.6 tokens/s, Avg generation throughput: 292.2 tokens/s, Running: 2 reqs, …
    work=patterns(
        r"Avg prompt throughput: [\d.]+ tokens/s", r"^Received request (?:chat)?cmpl-", r"^Added request (?:chat)?cmpl-"
    ),
    busy=patterns(r"Running: [1-9]\d* reqs", r"Waiting: [1-9]\d* reqs"),
    idle=patterns(r"Avg prompt throughput: 0\.0 tokens/s, Avg generation throughput: 0\.0 tokens/s"),
    quoting=patterns(r"^Received request \S{1,120}: prompt: "),
    request=patterns(
        r"^Request \S{1,80} failed \((?:bad request|input error)\)",
        r"EngineGenerateError",
        r"RequestValidationError",
        r"^Error in (?:chat )?completion stream generator",
        r"^Error with model object='error'",
    ),
    fatal=patterns(
        r"^EngineCore encountered (?:a fatal error|an issue)",
        r"^EngineCore failed to start",
        r"^WorkerProc (?:failed to start|hit an exception)",
        r"^Worker proc \S{1,80} died unexpectedly",
        r"^Engine core initialization failed",
        r"^Request \S{1,80} failed \(engine dead\)",
        r"engine core exited unexpectedly",
        r"^AsyncLLM output_handler failed",
        r"^RPC call to \w+ timed out",
        r"^(?:\w+\.){0,6}(?:\w*)EngineDeadError\b",
    ),
    stopping=patterns(
        r"^\[shutdown\] (?!Executor)",
        r"^Shutting down FastAPI HTTP server",
        r"^Shutting down$",
        r"^Waiting for application shutdown\.",
        r"^EngineCore exiting\.",
    ),
    cleanup=patterns(r"^\[shutdown\] ", r"^Parent process exited, terminating worker", r"^nanobind: leaked"),
    version=patterns(r"vLLM API server version v?(\d+\.\d+\S*)", r"V1 LLM engine \(v(\d+\.\d+[^)\s]*)\)"),
    process=re.compile(r"\bvllm serve\b|vllm\.entrypoints"),
    arguments=(
        "vllm/engine/arg_utils.py",
        "vllm/entrypoints/openai/cli_args.py",
    ),
    knobs={
        "memory_share": "--gpu-memory-utilization",
        "batch": "--max-num-seqs",
        "requests": "--max-num-seqs",
        "prefill": "--max-num-batched-tokens",
        "context": "--max-model-len",
        "tensor_parallel": "--tensor-parallel-size",
        "attention": "--attention-backend",
        "port": "--port",
        "speculation": "--speculative-config",
        "offload": "--cpu-offload-gb",
        # Flags of older releases, and where their values go now.
        "--num-speculative-tokens": "--speculative-config",
        "--speculative-model": "--speculative-config",
        "--num-lookahead-slots": "--speculative-config",
        "--guided-decoding-backend": "--structured-outputs-config",
        "--rope-scaling": "--hf-overrides",
        "--disable-log-requests": "--no-enable-log-requests",
    },
)
