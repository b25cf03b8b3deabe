"""DeepSpeed: the `deepspeed` launcher and what it runs."""

from __future__ import annotations

import re

from watchd.engines.base import Engine, patterns

ENGINE = Engine(
    name="deepspeed",
    marks=patterns(r"\bdeepspeed[./]", r"Setting ds_accelerator to", r"^WORLD INFO DICT:", r"DeepSpeed info: version="),
    banner=patterns(r"^cmd = \S+python\S* -u -m deepspeed\.launcher\.launch", r"deepspeed\.launcher\.runner"),
    loading=patterns(r"^process \d+ spawned with command", r"Setting CUDA_VISIBLE_DEVICES="),
    work=patterns(r"step=\d+, skipped=\d+, lr=", r"\bgrad_norm: [\d.]+, "),
    fatal=patterns(r"exits with return code = -?[1-9]"),
    finished=patterns(r"exits successfully"),
    cleanup=patterns(r"^Killing subprocess \d+"),
    version=patterns(r"DeepSpeed info: version=(\S+?),"),
    process=re.compile(r"\bdeepspeed\b"),
    knobs={"batch": "train_micro_batch_size_per_gpu"},
)
