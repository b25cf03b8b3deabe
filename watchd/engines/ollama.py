"""Ollama: `ollama serve` and its runners."""

from __future__ import annotations

import re

from watchd.engines.base import Engine, patterns

ENGINE = Engine(
    name="ollama",
    marks=patterns(
        r"server config\"? env=\"?map\[",
        r"^\[GIN\] ",
        r"OLLAMA_\w{1,40}:",
        r"llama runner (?:started|process)",
        r"\bollama/",
        r"source=(?:routes|sched|server)\.go",
    ),
    # 2025/04/13 19:20:05 routes.go:1230: INFO server config env="map[CUDA_VISIBLE_DEVICES: …
    banner=patterns(r"server config\"? env="),
    loading=patterns(
        r"loading first model", r"starting (?:llama server|runner)", r"waiting for (?:server|llama runner)"
    ),
    ready=patterns(r"Listening on \S+ \(version", r"llama runner started in"),
    # [GIN] 2025/03/22 - 16:10:15 | 200 |     7.517520s |      10.20.4.15 | POST     "/api/chat"
    work=patterns(r"^\[GIN\] .{0,60}\| 2\d\d \|.{0,80}(?:POST|PUT) +\"/(?:api|v1)/(?!show|tags|ps|version)"),
    request=patterns(r"^\[GIN\] .{0,60}\| 5\d\d \|", r"Load failed"),
    fatal=patterns(r"^Error: listen tcp"),
    stopping=patterns(r"shutting down scheduler", r"^signal: terminated"),
    version=patterns(r"Listening on \S+ \(version (\S+)\)"),
    process=re.compile(r"\bollama serve\b"),
    knobs={
        "program": "ollama",
        "context": "OLLAMA_CONTEXT_LENGTH",
        "requests": "OLLAMA_NUM_PARALLEL",
        "port": "OLLAMA_HOST",
        "memory_share": "OLLAMA_GPU_OVERHEAD",
    },
)
