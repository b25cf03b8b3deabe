"""Text Generation Inference: `text-generation-launcher` and its shards."""

from __future__ import annotations

import re

from watchd.engines.base import Engine, patterns

ENGINE = Engine(
    name="tgi",
    marks=patterns(
        r"^Args \{$",
        r"text_generation_(?:launcher|router|server)",
        r"text-generation-(?:launcher|server)",
        r"^Error: Shard",
    ),
    # 2026-02-25T04:40:01.118220Z  INFO text_generation_launcher: Args {
    banner=patterns(r"^Args \{$"),
    loading=patterns(
        r"^Starting shard",
        r"^Waiting for shard",
        r"^Shard ready",
        r"^Warming up model",
        r"^Files are already present",
        r"^Starting check and download",
    ),
    ready=patterns(r"^Connected$", r"^Serving revision", r"Starting HTTP server"),
    work=patterns(r"server\.rs:\d+: Success", r"total_time=\"[\d.]+m?s\".{0,400}(?:Success|seed=)"),
    request=patterns(
        r"Request failed during generation",
        r"Method \w+ encountered an error",
        r"`inputs` tokens \+ `max_new_tokens` must be",
    ),
    fatal=patterns(
        r"^Shard \d+ (?:crashed|failed to start)",
        r"^Error: (?:Shard\w+|Webserver\w+|LauncherError|WarmupFailed)",
        r"Shard process was signaled to shutdown with signal",
        r"Method Warmup encountered an error",
        r"^Webserver Crashed",
    ),
    stopping=patterns(
        r"signal received, starting graceful shutdown", r"^Terminating webserver", r"^Shutting down shards"
    ),
    cleanup=patterns(r"^Terminating (?:webserver|shard)", r"^Shutting down shards", r"^shard terminated"),
    version=patterns(r"text.generation.(?:launcher|inference)[ :=]+v?(\d+\.\d+\.\d+)"),
    process=re.compile(r"text-generation-(?:launcher|server|router)"),
    arguments=("text_generation_server/cli.py",),
    knobs={
        "program": "text-generation",
        "memory_share": "--cuda-memory-fraction",
        "batch": "--max-batch-size",
        "requests": "--max-concurrent-requests",
        "prefill": "--max-batch-prefill-tokens",
        "context": "--max-total-tokens",
        "tensor_parallel": "--num-shard",
        "attention": "ATTENTION",
        "port": "--port",
    },
)
