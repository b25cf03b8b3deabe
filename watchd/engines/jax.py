"""JAX programs: what XLA and absl write."""

from __future__ import annotations

import re

from watchd.engines.base import Engine, patterns

ENGINE = Engine(
    name="jax",
    marks=patterns(r"external/(?:local_)?xla/", r"\bjaxlib\b", r"\bjax\._src\.", r"\bXlaRuntimeError\b", r"xla_bridge"),
    banner=patterns(r"Unable to initialize backend 'rocm'"),
    loading=patterns(r"XLA service 0x[0-9a-f]+ initialized", r"Constant folding an instruction is taking"),
    process=re.compile(r"\bjax\b"),
    knobs={"memory_share": "XLA_PYTHON_CLIENT_MEM_FRACTION"},
)
