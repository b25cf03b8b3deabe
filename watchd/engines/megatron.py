"""Megatron-LM: `pretrain_*.py`."""

from __future__ import annotations

import re

from watchd.engines.base import Engine, patterns

ENGINE = Engine(
    name="megatron",
    marks=patterns(
        r"\bmegatron/(?:core|training|legacy)/",
        r"^\s*iteration +\d+/ +\d+ \| consumed samples",
        r"pretrain_\w{1,40}\.py",
        r"^ {2}\w+ \.{3,} \S",
    ),
    banner=patterns(r"^using world size: \d+, data-parallel size", r"-+ arguments -+"),
    loading=patterns(
        r"building GPT model", r"loading (?:distributed )?checkpoint from", r"> building train, validation"
    ),
    work=patterns(r"^\s*(?:\[[^\]]{0,40}\] )?iteration +\d+/ +\d+ \|"),
    fatal=patterns(r"Did not get (?:subsequent|initial) heartbeat"),
    stopping=patterns(r"exiting program (?:after|at)", r"exiting program after receiving SIGTERM"),
    process=re.compile(r"pretrain_\w{1,40}\.py"),
    knobs={"batch": "--micro-batch-size", "collective_timeout": "--distributed-timeout-minutes"},
)
