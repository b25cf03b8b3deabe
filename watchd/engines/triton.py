"""Triton Inference Server: `tritonserver`."""

from __future__ import annotations

import re

from watchd.engines.base import Engine, patterns

ENGINE = Engine(
    name="triton-server",
    marks=patterns(
        r"^== Triton Inference Server ==",
        r"(?:model_lifecycle|python_be|pb_stub|infer_handler|model_repository_manager)\.cc:",
        r"TRITONBACKEND_",
        r"\btritonserver\b",
    ),
    banner=patterns(r"^== Triton Inference Server =="),
    loading=patterns(r"loading: \S+:\d+", r"TRITONBACKEND_ModelInstanceInitialize", r"successfully loaded '"),
    ready=patterns(r"Started (?:HTTPService|GRPCInferenceService) at"),
    work=patterns(r"ModelInferHandler: (?:model \S+, \d+ ms, )?completed", r"infer_handler\.cc:\d+\] .{0,40}completed"),
    request=patterns(r"\[request id: [^\]]{0,80}\] (?:failed|Request for unknown model|.{0,80}unexpected shape)"),
    fatal=patterns(r"^error: creating server: ", r"^Signal \((?:6|7|11)\) received"),
    stopping=patterns(r"^Signal \((?:15|2)\) received", r"Waiting for in-flight requests to complete"),
    cleanup=patterns(r"All models are stopped, unloading models", r"Timeout \d+: Found \d+ live models"),
    version=patterns(r"^Triton Server Version (\S+)", r"triton_inference_server_version\W+(\d\S*)"),
    process=re.compile(r"\btritonserver\b"),
    knobs={"program": "tritonserver", "port": "--http-port"},
)
