"""Whether an exception is a check of the launch's own arguments."""

from __future__ import annotations

import re

from watchd.model import Cause, Traceback, TraceFrame

_CHECKS = re.compile(
    r"(?:^|\.)(?:AssertionError|ValueError|TypeError|RuntimeError|NotImplementedError|ValidationError|ArgumentError|ArgumentTypeError|UsageError|Exception)$"
)
# …/server_args.py   …/arg_utils.py   …/arg_groups/x_hook.py   …/config/scheduler.py   …/commands/limits.py
_FILES = re.compile(
    r"/(?:\w*_)?arg(?:s|uments?|parse\w*|_utils|_groups)?(?:_\w+)?\.py$|/arg_groups/|/configs?/\w+\.py$|/(?:cli|commands|options)(?:/\w+)?\.py$"
)
_FUNCTIONS = re.compile(
    r"^(?:create_\w*config|from_cli_args|from_args|prepare_\w*args|parse_\w*args|(?:_?check|_?verify|_?validate|_?handle|_?settle)_\w*arg\w*)$"
)
_MODEL_FILES = re.compile(
    r"/(?:model|hf|transformers_utils|hf_transformers)\w*(?:/\w+)?(?:config\w*)?\.py$|/config/(?:model|quantization)\w*\.py$|/model_config\.py$"
)
_MODEL_WORDS = re.compile(
    r"\b(?:heads?|hidden|vocab|architecture|model[_ ]type|rope|num_\w*layers|expert count|max_position)\b",
    re.IGNORECASE,
)
_DEEP = 4
"""Frames from the innermost outward in which a step of argument handling is looked for."""


def cause_of(block: Traceback) -> Cause | None:
    """`launch_argument` or `config_invalid` where a check of arguments raised this; else None.

    It is one where argument handling is among the innermost frames and what it called lies in the same package: a
    library that is called from there, and fails by itself, is no check.
    """
    if not _CHECKS.search(block.type):
        return None
    frames = [frame for frame in block.frames if not frame.path.startswith("<")]
    if not frames:
        return None
    inner = frames[-1]
    if not any(_handles_arguments(frame) and _package(frame.path) == _package(inner.path) for frame in frames[-_DEEP:]):
        return None
    of_the_model = _MODEL_FILES.search(inner.path) or (
        _MODEL_WORDS.search(block.message) and not inner.path.endswith("args.py")
    )
    return Cause.CONFIG_INVALID if of_the_model else Cause.LAUNCH_ARGUMENT


def _handles_arguments(frame: TraceFrame) -> bool:
    return bool(_FILES.search(frame.path) or _FUNCTIONS.match(frame.function))


def _package(path: str) -> str:
    """The package that a file belongs to: the folder under site-packages, else the folder that most of the path shares."""
    parts = path.split("/")
    for home in ("site-packages", "dist-packages", "python"):
        if home in parts[:-1]:
            return parts[parts.index(home) + 1]
    return "/".join(parts[:3])
