"""What somebody who mistyped a flag or a value most likely meant, from what the program itself says that it knows."""

from __future__ import annotations

import difflib
import re

from watchd.diagnosis.base import Fault, Scene

_FLAG = re.compile(r"(?<![\w-])(--?[a-zA-Z][\w.-]{1,60})")
_USAGE = 600
"""Lines above the refusal in which the usage text stands."""


def nearest(scene: Scene, fault: Fault) -> str | None:
    """A sentence with the known spellings next to those that were refused, or None where none is near."""
    choices = re.findall(r"[\w.+-]+", fault.words.get("choices", ""))
    if choices and "value" in fault.words:
        near = difflib.get_close_matches(fault.words["value"], choices, n=1, cutoff=0.75)
        return f" The nearest choice is `{near[0]}`." if near else None
    known = {flag for body in scene.bodies[max(0, fault.index - _USAGE) : fault.index] for flag in _FLAG.findall(body)}
    known.update(value for value in scene.run.knobs.values() if value.startswith("--"))
    refused = _FLAG.findall(fault.words.get("words") or fault.words.get("flag") or "")
    pairs = [(flag, scene.run.knobs.get(flag) or _closest(flag, known - {flag})) for flag in refused]
    said = [f"`{close}` for `{flag}`" for flag, close in pairs if close]
    return f" Known is {', '.join(said)}." if said else None


def _closest(flag: str, known: set[str]) -> str | None:
    """The known flag that this one most likely means; never one that says the opposite."""
    plain = {other.strip("-").replace("_", "-"): other for other in sorted(known)}
    wanted = flag.strip("-").replace("_", "-")
    for close in difflib.get_close_matches(wanted, list(plain), n=3, cutoff=0.8):
        if _sense(close) == _sense(wanted):
            return plain[close]
    return None


def _sense(name: str) -> str:
    return next((sense for sense in ("enable", "disable", "no-") if name.startswith(sense)), "")
