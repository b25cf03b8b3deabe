"""SGLang: `python -m sglang.launch_server`, `sglang serve`."""

from __future__ import annotations

import re

from watchd.engines.base import Engine, patterns

ENGINE = Engine(
    name="sglang",
    marks=patterns(
        r"server_args=ServerArgs\(",
        r"(?:Prefill|Decode) batch[.,] #",
        r"\bsglang/(?:srt|launch_server|cli|lang|jit_kernel)",
        r"\bsglang\.launch_server\b",
        r"sglang is using nccl==",
        r"^The server is fired up and ready to roll!",
    ),
    # [2026-01-31 10:00:00] server_args=ServerArgs(model_path='/models/m', …)
    banner=patterns(r"^server_args=ServerArgs\("),
    ending=patterns(r"^Gracefully exiting\.\.\. [Rr]emaining number of requests 0"),
    loading=patterns(
        r"^Load weight (?:begin|end)",
        r"^Init torch distributed (?:begin|ends)",
        r"^Capture cuda graph (?:begin|end|bs)",
        r"^KV Cache is allocated",
        r"^Memory pool end",
        r"^Entering DeepGEMM JIT",
        r"^Using default HuggingFace chat template",
    ),
    ready=patterns(r"^The server is fired up and ready to roll!", r"^Uvicorn running on http"),
    # [2026-01-31 10:00:05 TP0] Decode batch. #running-req: 92, #token: 30570, … gen throughput (token/s): 704.76
    work=patterns(r"^(?:Prefill|Decode) batch[.,] #"),
    busy=patterns(r"#running-req: [1-9]", r"#queue-req: [1-9]"),
    idle=patterns(r"^Decode batch[.,] .{0,200}gen throughput \(token/s\): 0\.0\d*, #queue-req: [1-9]"),
    quoting=patterns(r"^(?:Receive|Finish): obj=\w+ReqInput\("),
    request=patterns(
        r"^\[http_server\] [Ee]rror:",
        r"^Error in request:",
        r"^The input \(\d+ tokens\) is longer than",
        r"^Requested token count .{0,80} exceeds",
        r"^Received output for rid=.{0,80} but the state was deleted",
    ),
    fatal=patterns(
        r"^(?:Scheduler|DetokenizerManager|TokenizerManager|DataParallelController) hit an exception",
        r"^Initialization failed\. warmup error",
        r"^Rank \d+ scheduler (?:died|is dead)",
        r"^Subprocess .{1,80} crashed with exit code",
        r"^Received sigquit from a child proc",
        r"^SIGQUIT received\.",
        r"[Ww]atchdog timeout \(self\.watchdog_timeout=",
        r"^Health check failed\. Server couldn't get a response from detokenizer",
    ),
    stopping=patterns(
        r"^SIGTERM received\. signum=",
        r"^Gracefully exiting\.\.\. [Rr]emaining number of requests",
        r"^Draining requests",
    ),
    # The parent kills its whole process tree, itself included, when a child reports: the shell then says `Killed`.
    cleanup=patterns(r"^Received sigquit from a child proc", r"^SIGQUIT received\.", r"^kill_process_tree called"),
    version=patterns(r"\bsglang[ =-]{1,3}v?(\d+\.\d+\.\d+\S*)"),
    process=re.compile(r"sglang[./]launch_server|sglang serve|sglang::"),
    arguments=("sglang/srt/server_args.py",),
    knobs={
        "memory_share": "--mem-fraction-static",
        "batch": "--cuda-graph-max-bs",
        "requests": "--max-running-requests",
        "prefill": "--chunked-prefill-size",
        "context": "--context-length",
        "tensor_parallel": "--tp-size",
        "attention": "--attention-backend",
        "port": "--port",
        "speculation": "--speculative-algorithm",
        "watchdog": "--watchdog-timeout",
        "collective_timeout": "--dist-timeout",
        "grammar": "--grammar-backend",
    },
)
