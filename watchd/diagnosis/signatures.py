"""The catalogue of what logs say: one TOML file per family, read once, checked on reading.

Order is part of the knowledge: of several signatures that match one text the first counts, and the more particular
family stands before the more general one. Whoever adds a signature adds lines that it must and must not match.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from importlib import resources
from typing import TypeVar

from watchd.diagnosis.base import Role, Signature
from watchd.model import Cause
from watchd.parse.needle import needle

FAMILIES = (
    "benign",
    "wrappers",
    "launch",
    "host",
    "dependency",
    "gpu",
    "config",
    "model",
    "collective",
    "process",
    "network",
    "cascade",
)
"""Files in the order in which they are asked."""

E = TypeVar("E", bound=StrEnum)

LONGEST = 4_096
"""Characters of a text in which a signature is looked for."""

_KEYS = frozenset(
    ("name", "cause", "role", "patterns", "on", "contains", "frames", "weak", "says", "advice", "matches", "misses")
)


@cache
def catalogue() -> tuple[Signature, ...]:
    """Every signature that ships with watchd, in the order of judgement."""
    folder = resources.files("watchd.diagnosis").joinpath("signatures")
    return tuple(
        signature
        for family in FAMILIES
        for signature in parse(folder.joinpath(f"{family}.toml").read_text("utf-8"), f"{family}.toml")
    )


@cache
def causes() -> Mapping[Cause, Mapping[str, tuple[str, ...]]]:
    """Per cause the phrase and the advice for faults whose signature has none: keys `says` and `advice`."""
    text = resources.files("watchd.diagnosis").joinpath("signatures", "causes.toml").read_text("utf-8")
    return {
        Cause(code): {"says": (table["says"],), "advice": tuple(table["advice"])}
        for code, table in tomllib.loads(text).items()
    }


def parse(text: str, file: str) -> tuple[Signature, ...]:
    """Read a family. Raises ValueError with file, signature and what to mend."""
    try:
        tables = tomllib.loads(text).get("signature", [])
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{file}: {error}") from None
    return tuple(
        _signature(table, f"{file}: signature {table.get('name', f'number {place}')!r}")
        for place, table in enumerate(tables, 1)
    )


def find(text: str, *, on: str, frames: tuple[str, ...] = ()) -> tuple[Signature, re.Match[str]] | None:
    """The first signature that `text` matches; `on` is `lines` or `exceptions`, `frames` are `path:function`."""
    text = text[:LONGEST]
    weak: tuple[Signature, re.Match[str]] | None = None
    for literal, pattern, signature in _table(on):
        if literal not in text or (signature.weak and weak is not None):
            continue
        match = pattern.search(text)
        if match is None or not _rest(signature, text, frames):
            continue
        if not signature.weak:
            return signature, match
        weak = signature, match
    return weak


@cache
def _table(on: str) -> tuple[tuple[str, re.Pattern[str], Signature], ...]:
    """Every pattern with the text that it cannot match without."""
    return tuple(
        (needle(pattern.pattern), pattern, signature)
        for signature in catalogue()
        if signature.on in ("both", on)
        for pattern in signature.patterns
    )


def _rest(signature: Signature, text: str, frames: tuple[str, ...]) -> bool:
    if signature.contains is not None and not signature.contains.search(text):
        return False
    return signature.frames is None or any(signature.frames.search(frame) for frame in frames)


def _signature(table: Mapping[str, object], where: str) -> Signature:
    unknown = sorted(table.keys() - _KEYS)
    if unknown:
        raise ValueError(f"{where}: unknown key {unknown[0]!r}; known are {', '.join(sorted(_KEYS))}")
    role = _choice(table.get("role", "root"), Role, where, "role")
    cause = _choice(table["cause"], Cause, where, "cause") if "cause" in table else None
    if cause is None and role in (Role.ROOT, Role.SIGN):
        raise ValueError(f"{where}: a signature that may decide needs a cause")
    if table.get("on", "both") not in ("lines", "exceptions", "both"):
        raise ValueError(f"{where}: `on` is lines, exceptions or both")
    if not (_texts(table, "matches", where) and _texts(table, "misses", where)):
        raise ValueError(f"{where}: give at least one line that it matches and one that it misses")
    patterns = tuple(_compiled(text, "patterns", where) for text in _texts(table, "patterns", where))
    if not patterns:
        raise ValueError(f"{where}: give at least one pattern")
    return Signature(
        name=str(table.get("name", "")),
        cause=cause,
        role=role,
        patterns=patterns,
        on=str(table.get("on", "both")),
        contains=_compiled(str(table["contains"]), "contains", where) if "contains" in table else None,
        frames=_compiled(str(table["frames"]), "frames", where) if "frames" in table else None,
        weak=bool(table.get("weak", False)),
        says=str(table.get("says", "")),
        advice=_texts(table, "advice", where),
        matches=_texts(table, "matches", where),
        misses=_texts(table, "misses", where),
    )


def _choice(value: object, kind: type[E], where: str, key: str) -> E:
    try:
        return kind(str(value))
    except ValueError:
        raise ValueError(f"{where}: {key} {value!r} is none of {', '.join(kind)}") from None


def _compiled(text: str, key: str, where: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise ValueError(f"{where}: {key}: {text!r}: {error}") from None


def _texts(table: Mapping[str, object], key: str, where: str) -> tuple[str, ...]:
    found = table.get(key, [])
    if not isinstance(found, list) or not all(isinstance(text, str) for text in found):
        raise ValueError(f"{where}: {key} is a list of texts")
    return tuple(found)
