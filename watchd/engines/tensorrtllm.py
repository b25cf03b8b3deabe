"""TensorRT-LLM: `trtllm-serve`."""

from __future__ import annotations

import re

from watchd.engines.base import Engine, patterns

ENGINE = Engine(
    name="tensorrt-llm",
    marks=patterns(r"TensorRT-LLM version:", r"\btensorrt_llm/", r"^\[TRT-LLM\]"),
    banner=patterns(r"TensorRT-LLM version: "),
    loading=patterns(
        r"^Loading weights", r"Memory used after loading model weights", r"^Running autotuner", r"^Run warmup"
    ),
    ready=patterns(r"^Application startup complete\.", r"^Uvicorn running on http"),
    work=patterns(r"^iter = \d+,"),
    request=patterns(r"Encountered an error in forward function: .{0,200}for request"),
    fatal=patterns(
        r"Executor worker (?:returned|initialization) error",
        r"Failed to initialize executor on rank",
        r"^Hang detected",
    ),
    stopping=patterns(r"^Shutting down$", r"^Waiting for application shutdown\."),
    version=patterns(r"TensorRT-LLM version: (\S+)"),
    process=re.compile(r"trtllm-serve|tensorrt_llm"),
    arguments=("tensorrt_llm/commands/serve.py",),
    knobs={
        "memory_share": "--kv_cache_free_gpu_memory_fraction (free_gpu_memory_fraction)",
        "batch": "--max_batch_size",
        "requests": "--max_batch_size",
        "prefill": "--max_num_tokens",
        "context": "--max_seq_len",
        "tensor_parallel": "--tp_size",
        "port": "--port",
    },
)
