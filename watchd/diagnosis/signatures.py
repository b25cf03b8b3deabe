"""The catalogue of what logs say: one TOML file per family, read once, checked on reading.

Order is part of the knowledge: of several signatures that match one text the first counts, and the more particular
family stands before the more general one. A user's own stand before all. Whoever adds a signature adds lines that it
must and must not match.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from watchd.diagnosis import families
from watchd.model import Cause, Signature
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

LONGEST = 4_096
"""Characters of a text in which a signature is looked for."""

_SHORT = 400
"""Characters up to which a text is taken apart into pieces; in a longer one each literal is looked for in turn."""
_GRAM = 4
"""Characters of a piece."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Every pattern with the text that it cannot match without, in the order of judgement.

    index   a piece of that text -> the places of the rows that have it, so that most rows are never looked at
    always  places of rows that no piece tells
    """

    rows: tuple[tuple[str, re.Pattern[str], Signature], ...]
    index: Mapping[str, tuple[int, ...]]
    always: tuple[int, ...]

    def near(self, text: str) -> Iterable[int]:
        """Places of the rows that may match, in order."""
        if len(text) > _SHORT:
            return range(len(self.rows))
        pieces = {text[at : at + _GRAM] for at in range(len(text) - _GRAM + 1)}
        found = [place for piece in self.index.keys() & pieces for place in self.index[piece]]
        return sorted((*self.always, *found))


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """Signatures in the order in which they are asked, ready to be asked about lines and about exceptions."""

    signatures: tuple[Signature, ...]
    lines: Rows
    exceptions: Rows


@cache
def catalogue() -> tuple[Signature, ...]:
    """Every signature that ships with watchd, in the order of judgement."""
    folder = resources.files("watchd.diagnosis").joinpath("signatures")
    return tuple(
        signature
        for family in FAMILIES
        for signature in families.parse(folder.joinpath(f"{family}.toml").read_text("utf-8"), f"{family}.toml")
    )


@cache
def causes() -> Mapping[Cause, Mapping[str, tuple[str, ...]]]:
    """Per cause what it covers, and the phrase and the advice for faults whose signature has none.

    Keys `covers`, `says` and `advice`; of phrases there is one or none.
    """
    text = resources.files("watchd.diagnosis").joinpath("signatures", "causes.toml").read_text("utf-8")
    return {
        Cause(code): {
            "covers": (table["covers"],),
            "says": (table["says"],) if "says" in table else (),
            "advice": tuple(table.get("advice", ())),
        }
        for code, table in tomllib.loads(text).items()
    }


@cache
def shipped() -> Catalogue:
    """The catalogue without anything of a user's."""
    return only(catalogue())


def only(signatures: tuple[Signature, ...]) -> Catalogue:
    """These signatures and no others, asked in their order."""
    return Catalogue(
        signatures=signatures,
        lines=_indexed(_rows(signatures, "lines")),
        exceptions=_indexed(_rows(signatures, "exceptions")),
    )


def with_own(own: tuple[Signature, ...]) -> Catalogue:
    """The catalogue with a user's own signatures before all others."""
    known = shipped()
    if not own:
        return known
    return Catalogue(
        signatures=own + known.signatures,
        lines=_indexed(_rows(own, "lines") + known.lines.rows),
        exceptions=_indexed(_rows(own, "exceptions") + known.exceptions.rows),
    )


def find(
    text: str, *, on: str, frames: tuple[str, ...] = (), among: Catalogue | None = None
) -> tuple[Signature, re.Match[str]] | None:
    """The first signature that `text` matches; `on` is `lines` or `exceptions`, `frames` are `path:function`."""
    text = text[:LONGEST]
    asked = among or shipped()
    weak: tuple[Signature, re.Match[str]] | None = None
    rows = asked.lines if on == "lines" else asked.exceptions
    for place in rows.near(text):
        literal, pattern, signature = rows.rows[place]
        if literal not in text or (signature.weak and weak is not None):
            continue
        match = pattern.search(text)
        if match is None or not _rest(signature, text, frames):
            continue
        if not signature.weak:
            return signature, match
        weak = signature, match
    return weak


def _rows(signatures: tuple[Signature, ...], on: str) -> tuple[tuple[str, re.Pattern[str], Signature], ...]:
    return tuple(
        (needle(pattern.pattern), pattern, signature)
        for signature in signatures
        if signature.on in ("both", on)
        for pattern in signature.patterns
    )


def _indexed(rows: tuple[tuple[str, re.Pattern[str], Signature], ...]) -> Rows:
    """Each row under the piece of its literal that the fewest other literals have."""
    pieces = [[text[at : at + _GRAM] for at in range(len(text) - _GRAM + 1)] for text, _, _ in rows]
    counts = Counter(piece for own in pieces for piece in set(own))
    index: dict[str, tuple[int, ...]] = {}
    for place, own in enumerate(pieces):
        if own:
            rarest = min(own, key=lambda piece: counts[piece])
            index[rarest] = (*index.get(rarest, ()), place)
    return Rows(rows=rows, index=index, always=tuple(place for place, own in enumerate(pieces) if not own))


def _rest(signature: Signature, text: str, frames: tuple[str, ...]) -> bool:
    if signature.contains is not None and not signature.contains.search(text):
        return False
    return signature.frames is None or any(signature.frames.search(frame) for frame in frames)
