"""Every engine that watchd knows, the more particular before the more general."""

from __future__ import annotations

from watchd.engines import (
    deepspeed,
    generic,
    jax,
    llamacpp,
    lmdeploy,
    megatron,
    ollama,
    ray,
    sglang,
    slurm,
    tensorrtllm,
    tgi,
    torchrun,
    triton,
    vllm,
)
from watchd.engines.base import Engine

ENGINES: tuple[Engine, ...] = (
    sglang.ENGINE,
    vllm.ENGINE,
    tgi.ENGINE,
    tensorrtllm.ENGINE,
    lmdeploy.ENGINE,
    triton.ENGINE,
    ollama.ENGINE,
    llamacpp.ENGINE,
    megatron.ENGINE,
    deepspeed.ENGINE,
    ray.ENGINE,
    jax.ENGINE,
    torchrun.ENGINE,
    slurm.ENGINE,
)

EVERYWHERE: tuple[Engine, ...] = (torchrun.ENGINE, slurm.ENGINE, generic.ENGINE)
"""Launchers and surroundings: their lines may stand in the log of any engine."""

GENERIC = generic.ENGINE


def named(name: str) -> Engine:
    """The engine of this name; `generic` where there is none."""
    return next((engine for engine in ENGINES if engine.name == name), GENERIC)
