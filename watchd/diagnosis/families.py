"""A family of signatures: one TOML file, read and checked. Nothing wrong in it stays unsaid."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import TypeVar

from watchd.errors import Mistake
from watchd.model import Cause, Role, Signature
from watchd.parse.needle import nested

E = TypeVar("E", bound=StrEnum)

_KEYS = frozenset(
    ("name", "cause", "role", "patterns", "on", "contains", "frames", "weak", "says", "advice", "matches", "misses")
)
_ON = ("lines", "exceptions", "both")
_LONGEST_PATTERN = 1_000
# Expected '=' after a key in a key/value pair (at line 3, column 5)
_AT = re.compile(r" \(at line (\d+), column \d+\)$")
_HEADER = re.compile(r"^[ \t]*\[\[[ \t]*signature[ \t]*\]\]", re.MULTILINE)


class _WrongError(Exception):
    """One mistake in one signature."""


def parse(text: str, file: str) -> tuple[Signature, ...]:
    """Read a family. Raises ValueError with file, signature and what to mend: the first mistake of all."""
    found, mistakes = read(text, file.removesuffix(".toml"))
    for mistake in mistakes:
        raise ValueError(f"{file}:{mistake.line}: {mistake.key}: {mistake.reason}")
    return found


def read(text: str, family: str) -> tuple[tuple[Signature, ...], tuple[Mistake, ...]]:
    """The signatures of a family that are right, and every mistake of the others. `Mistake.key` names the signature."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        at = _AT.search(str(error))
        line = int(at[1]) if at else text.rstrip().count("\n") + 1
        return (), (Mistake(line=line, key="syntax", reason=_AT.sub("", str(error))),)
    except (ValueError, RecursionError) as error:
        return (), (Mistake(line=0, key="syntax", reason=f"cannot be read: {error}"),)
    tables = document.get("signature", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        return (), (Mistake(line=0, key="signature", reason="write each signature as a table: [[signature]]"),)
    stray = sorted(document.keys() - {"signature"})
    mistakes = [Mistake(line=0, key=name, reason="unknown: only [[signature]] tables stand here") for name in stray]
    found: list[Signature] = []
    lines = [text.count("\n", 0, header.start()) + 1 for header in _HEADER.finditer(text)]
    for place, table in enumerate(tables):
        line = lines[place] if len(lines) == len(tables) else 0
        try:
            signature = _signature(table, family)
            mistakes += (_mistake(line, place, signature.name, reason) for reason in untrue(signature))
            found.append(signature)
        except _WrongError as wrong:
            mistakes.append(_mistake(line, place, table.get("name"), str(wrong)))
    return tuple(found), tuple(mistakes)


def untrue(signature: Signature) -> Iterator[str]:
    """What is wrong with its samples: lines that it should match and does not, or should miss and does not."""
    for sample in signature.matches:
        if not hits(signature, sample):
            yield f"it does not match its own sample: {sample[:200]}"
    for sample in signature.misses:
        if hits(signature, sample):
            yield f"it matches what it must miss: {sample[:200]}"


def hits(signature: Signature, text: str) -> bool:
    """Whether the signature matches this text, whatever frames it asks for."""
    if signature.contains is not None and not signature.contains.search(text):
        return False
    return any(pattern.search(text) for pattern in signature.patterns)


def _mistake(line: int, place: int, name: object, reason: str) -> Mistake:
    key = f"signature {name!r}" if name and isinstance(name, str) else f"signature number {place + 1}"
    return Mistake(line=line, key=key, reason=reason)


def _signature(table: Mapping[str, object], family: str) -> Signature:
    unknown = sorted(table.keys() - _KEYS)
    if unknown:
        raise _WrongError(f"unknown key {unknown[0]!r}; known are {', '.join(sorted(_KEYS))}")
    name, on, weak = table.get("name", ""), table.get("on", "both"), table.get("weak", False)
    if not isinstance(name, str) or not name:
        raise _WrongError("give it a name")
    if not isinstance(on, str) or on not in _ON:
        raise _WrongError("`on` is lines, exceptions or both")
    if not isinstance(weak, bool):
        raise _WrongError("`weak` is true or false")
    role = _choice(table.get("role", "root"), Role, "role")
    cause = _choice(table["cause"], Cause, "cause") if "cause" in table else None
    if cause is None and role in (Role.ROOT, Role.SIGN):
        raise _WrongError("a signature that may decide needs a cause")
    if not (_texts(table, "matches") and _texts(table, "misses")):
        raise _WrongError("give at least one line that it matches and one that it misses")
    patterns = tuple(_compiled(text, "patterns") for text in _texts(table, "patterns"))
    if not patterns:
        raise _WrongError("give at least one pattern")
    return Signature(
        name=name,
        family=family,
        cause=cause,
        role=role,
        patterns=patterns,
        on=on,
        contains=_compiled(table["contains"], "contains") if "contains" in table else None,
        frames=_compiled(table["frames"], "frames") if "frames" in table else None,
        weak=weak,
        says=_text(table.get("says", ""), "says"),
        advice=_texts(table, "advice"),
        matches=_texts(table, "matches"),
        misses=_texts(table, "misses"),
    )


def _choice(value: object, kind: type[E], key: str) -> E:
    try:
        return kind(str(value))
    except ValueError:
        raise _WrongError(f"{key} {value!r} is none of {', '.join(kind)}") from None


def _compiled(value: object, key: str) -> re.Pattern[str]:
    text = _text(value, key)
    if not text or len(text) > _LONGEST_PATTERN:
        raise _WrongError(f"{key}: a pattern has 1 to {_LONGEST_PATTERN} characters")
    try:
        pattern = re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise _WrongError(f"{key}: {text!r}: {error}") from None
    if nested(text):
        raise _WrongError(
            f"{key}: {text!r}: a repetition without bound inside another one can take for ever; bound one"
        )
    return pattern


def _text(value: object, key: str) -> str:
    if not isinstance(value, str):
        raise _WrongError(f"{key} is a text")
    return value


def _texts(table: Mapping[str, object], key: str) -> tuple[str, ...]:
    found = table.get(key, [])
    if not isinstance(found, list) or not all(isinstance(text, str) for text in found):
        raise _WrongError(f"{key} is a list of texts")
    return tuple(found)
