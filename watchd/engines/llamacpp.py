"""llama.cpp: `llama-server`."""

from __future__ import annotations

import re

from watchd.engines.base import Engine, patterns

ENGINE = Engine(
    name="llama.cpp",
    marks=patterns(
        r"^build: \d+ \([0-9a-f]+\) with",
        r"^build_info: b\d+",
        r"^system[ _]info: n_threads",
        r"^(?:llama_model_loader|llama_context|llama_init_from_model|llama_kv_cache\w*|load_tensors|common_init_from_params): ",
        r"^(?:srv|slot|que) {1,10}\w+: ",
        r"gguf_init_from_file",
        r"llama-server",
    ),
    # build: b6019 (8ad7b3e6) with cc (Ubuntu 13.3.0-6ubuntu2) 13.3.0 for x86_64-linux-gnu
    banner=patterns(r"^build: \w+ \([0-9a-f]+\) with ", r"init: build_info: "),
    loading=patterns(
        r"^load_tensors: ",
        r"^llama_model_loader: ",
        r"load_model: loading model",
        r"^common_init_from_params: warming up",
    ),
    ready=patterns(r"server is listening on http", r"starting the main loop", r"^main: model loaded"),
    work=patterns(
        r"^slot {1,10}(?:launch_slot_|update_slots|print_timing|release): ",
        r"log_server_r: request: POST /\S{1,200} \S{1,60} 2\d\d",
        r"^(?:prompt )?eval time = ",
        r"^ {1,12}(?:prompt eval|eval|total) time = ",
        r"^srv {1,10}update_slots: (?:all slots are idle|run slots completed)",
    ),
    request=patterns(r"got exception: \{\"(?:error\":\{\")?code\":[45]\d\d", r"send_error: "),
    fatal=patterns(
        r"GGML_ASSERT\(.{1,400}\) failed",
        r"exiting due to (?:model loading|HTTP server) error",
        r"couldn't bind HTTP server socket",
        r"ggml_abort",
        r"^error while handling argument",
        r"^error: invalid argument: ",
    ),
    stopping=patterns(r"cleaning up before exit", r"^Received second interrupt", r"operator\(\): cleaning up"),
    version=patterns(r"^build: (\w+) \(", r"^build_info: (b\d+\S*)"),
    process=re.compile(r"llama-server|llama\.cpp"),
    knobs={
        "program": "llama-server",
        "memory_share": "-ngl",
        "batch": "--batch-size",
        "requests": "--parallel",
        "context": "--ctx-size",
        "attention": "--flash-attn",
        "port": "--port",
    },
)
