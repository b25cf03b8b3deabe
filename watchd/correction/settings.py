"""The settings file that a launch command names: which one it is, and what it sets."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence

from watchd.correction.values import Value

FLAGS = frozenset(("--config", "--config-file", "--config_file", "--config-path", "--config_path"))
_SUFFIXES = (".json", ".yaml", ".yml", ".toml")
# graph-min-batch: 32      model_path: "/models/a"  # as agreed
_ROW = re.compile(r"(?P<key>[A-Za-z][\w-]{0,100})\s{0,8}:(?:\s(?P<value>.*))?$")


def named(argv: Sequence[str]) -> str | None:
    """The settings file that the command names, or None."""
    for at, word in enumerate(argv):
        name, equals, value = word.partition("=")
        if name in FLAGS:
            path = value if equals else (argv[at + 1] if at + 1 < len(argv) else "")
            if path.endswith(_SUFFIXES):
                return path
    return None


def read(path: str, text: str) -> Mapping[str, Value]:
    """What the file sets, by attribute: its top level, as far as it is plain; empty where it cannot be read."""
    try:
        if path.endswith(".json"):
            found = json.loads(text)
        elif path.endswith(".toml"):
            found = tomllib.loads(text)
        else:
            found = _rows(text)
    except (ValueError, RecursionError):
        return {}
    return {str(key).replace("-", "_"): value for key, value in found.items()} if isinstance(found, dict) else {}


def _rows(text: str) -> dict[str, Value]:
    """The plain rows of a YAML file's top level; nested ones are left out."""
    found: dict[str, Value] = {}
    for line in text.split("\n"):
        match = _ROW.fullmatch(line.split(" #")[0].rstrip())
        if match is not None and match["value"]:
            found[match["key"]] = _scalar(match["value"].strip())
    return found


def _scalar(text: str) -> Value:
    if text[:1] in "\"'" and text[-1:] == text[:1] and len(text) > 1:
        return text[1:-1]
    lowered = text.lower()
    if lowered in ("true", "false", "yes", "no", "on", "off"):
        return lowered in ("true", "yes", "on")
    if lowered in ("null", "~"):
        return None
    try:
        found: Value = json.loads(text)
    except ValueError:
        return text
    return found
