"""LMDeploy: `lmdeploy serve api_server`."""

from __future__ import annotations

import re

from watchd.engines.base import Engine, patterns

ENGINE = Engine(
    name="lmdeploy",
    marks=patterns(r"\blmdeploy/", r"^\[TM\]\[", r"\blmdeploy serve api_server\b", r"TurbomindEngineConfig\("),
    banner=patterns(r"^input backend=\w+, backend_config="),
    loading=patterns(r"get \d+ model params", r"^\[TM\]\[INFO\] "),
    ready=patterns(r"^Application startup complete\.", r"^Uvicorn running on http"),
    work=patterns(r"session \d+ finished", r"^\[TM\]\[INFO\] \[Interrupt\]"),
    request=patterns(r"Exception in ASGI application"),
    stopping=patterns(r"^Shutting down$", r"^Waiting for application shutdown\."),
    process=re.compile(r"lmdeploy serve"),
    knobs={
        "memory_share": "--cache-max-entry-count",
        "batch": "--max-batch-size",
        "requests": "--max-batch-size",
        "context": "--session-len",
        "tensor_parallel": "--tp",
        "port": "--server-port",
    },
)
