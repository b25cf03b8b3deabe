"""What logs say, as data: watchd's own, and what a user adds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from watchd.model.incident import Cause


class Role(StrEnum):
    """What a line may do that matches a signature."""

    ROOT = "root"
    """it may decide"""
    SIGN = "sign"
    """an early or partial word: it decides only where what failed later has the same cause, or none of its own"""
    ECHO = "echo"
    """it follows from something else"""
    NOISE = "noise"
    """it means nothing, whatever it says"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """One thing that logs say, as data.

    name      unique in the catalogue
    family    name of the file that it stands in, without its ending
    cause     what it means, or None for noise and for consequences of anything
    role      what a line that matches may do
    patterns  searched in a line without prefixes, or in `Type: message` of an exception; one match is enough
    on        where it is looked for: `lines`, `exceptions` or `both`
    contains  a second pattern that the same text must hold, or None
    frames    a pattern that a frame of the exception's traceback (`path:function`) must hold, or None
    weak      True where any other signature that matches goes before it
    says      one phrase for the summary; `{…}` are facts
    advice    sentences of which the first whose facts are all known is given
    matches   lines that it must match
    misses    lines that it must not match
    """

    name: str
    family: str = ""
    cause: Cause | None
    role: Role
    patterns: tuple[re.Pattern[str], ...]
    on: str = "both"
    contains: re.Pattern[str] | None = None
    frames: re.Pattern[str] | None = None
    weak: bool = False
    says: str = ""
    advice: tuple[str, ...] = ()
    matches: tuple[str, ...] = ()
    misses: tuple[str, ...] = ()
