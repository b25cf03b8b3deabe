"""PyTorch: torchrun's agent, NCCL's watchdog, and trainers that run under them."""

from __future__ import annotations

import re

from watchd.engines.base import Engine, patterns

ENGINE = Engine(
    name="pytorch",
    marks=patterns(
        r"torch/distributed/(?:run|elastic|launcher)",
        r"Setting OMP_NUM_THREADS environment variable for each process to be",
        r"ProcessGroup(?:NCCL|Gloo)\.cpp",
        r"\btorch/(?:nn|utils|serialization|cuda)\b",
        r"\btorchrun\b|torch\.distributed\.run",
        r"^torch\.(?:OutOfMemoryError|AcceleratorError|cuda\.)",
        r"\btorch \d+\.\d+\.\d+",
        r"\baccelerate launch\b",
    ),
    banner=patterns(r"Setting OMP_NUM_THREADS environment variable for each process"),
    farewell=patterns(r"errors\.ChildFailedError", r"traceback : (?:To enable traceback see|Signal \d+)"),
    fatal=patterns(r"ChildFailedError", r"To avoid data inconsistency, we are taking the entire process down"),
    stopping=patterns(r"Received (?:2|15|10|12) death signal, shutting down workers"),
    cleanup=patterns(
        r"Sending process \d+ closing signal SIG",
        r"destroy_process_group\(\) was not called",
        r"process group has NOT been destroyed",
    ),
    version=patterns(r"\btorch (\d+\.\d+\.\d+\S*),"),
    process=re.compile(r"\btorchrun\b|torch\.distributed\.run"),
    knobs={"batch": "the batch size", "collective_timeout": "the time-out of init_process_group"},
)
