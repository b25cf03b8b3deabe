"""Things that the deciding line does not name, but the lines around it, the launch or the exception do."""

from __future__ import annotations

import re
from collections.abc import Iterator

from watchd.diagnosis.base import Fault, Scene
from watchd.model import Launch, MarkKind

_ABOVE = 40
"""Lines above the deciding one in which a file or a port is looked for."""
_BELOW = 12
"""Lines below a native crash in which its dump names a Python file."""

_TOKEN = re.compile(r"[\w./@-]{4,400}")
_CONFIG = re.compile(r"\.(?:json|ya?ml|toml|pbtxt)$")
_WEIGHTS = re.compile(r"\.(?:safetensors|gguf|bin|pt|pth|ckpt)$|checkpoint[-_]\d")
_STEP = re.compile(r"(checkpoint[-_])(\d{1,9})")
_PORT = re.compile(r"(?:, |:|[Pp]ort )(\d{2,5})\b(?![.\d])")
_SET_PORT = re.compile(r"\bport[=': ]{1,4}(\d{2,5})\b")
_ARCHITECTURE = re.compile(r"\bsm_\d{2,3}\w?\b")
_SCRIPT = re.compile(r"([\w-]{2,60}\.py)\b")


def read(scene: Scene, fault: Fault) -> Iterator[tuple[str, str]]:
    """Pairs of a fact's name and its text."""
    for name, text in (
        ("request", _request(scene, fault)),
        ("port_number", _port(scene, fault)),
        ("config_file", _mention(scene, fault, _CONFIG)),
        ("weights", _mention(scene, fault, _WEIGHTS)),
        ("architecture", _first(_ARCHITECTURE, scene.bodies[:200])),
    ):
        if text:
            yield name, text
    yield from _checkpoint(scene, _mention(scene, fault, _WEIGHTS) or "")
    script = _first(_SCRIPT, scene.bodies[fault.index : fault.index + _BELOW])
    if script and fault.traceback is None:
        yield "native_library", f" (the dump names {script})"


def _request(scene: Scene, fault: Fault) -> str | None:
    """What the server said of the request that failed, right above its traceback."""
    if fault.traceback is None:
        return None
    first = fault.traceback.indexes[0]
    failed = set(scene.marked(MarkKind.REQUEST))
    return next(
        (scene.bodies[index].strip()[:100] for index in range(first, max(-1, first - 3), -1) if index in failed), None
    )


def _port(scene: Scene, fault: Fault) -> str | None:
    """The port: as the launch gives it, as the line names it, or as the lines above set it."""
    launch = scene.case.get(Launch)
    for flag, values in (launch.flags if launch else {}).items():
        if flag.endswith(("-port", "_port")) and values:
            return values[0]
    return _first(_PORT, (fault.text,)) or _first(_SET_PORT, scene.bodies[max(0, fault.index - _ABOVE) : fault.index])


def _mention(scene: Scene, fault: Fault, pattern: re.Pattern[str]) -> str | None:
    """The nearest text that matches: in the fault, in exceptions that follow, in the launch, or in the lines above."""
    launch = scene.case.get(Launch)
    below = (body for body in scene.bodies[fault.index + 1 : fault.index + _ABOVE] if "Error" in body)
    above = (body for body in scene.bodies[max(0, fault.index - _ABOVE) : fault.index][::-1] if 'File "' not in body)
    for text in (fault.text, *below, *(launch.argv if launch else ()), *above):
        for token in _TOKEN.findall(text):
            if pattern.search(token.rstrip(".")):
                return str(token.rstrip("."))
    return None


def _checkpoint(scene: Scene, weights: str) -> Iterator[tuple[str, str]]:
    """The newest checkpoint that the log names before the one that is broken."""
    broken = _STEP.search(weights)
    if broken is None:
        return
    steps = {int(match[2]) for body in scene.bodies for match in _STEP.finditer(body) if match[1] == broken[1]}
    before = max((step for step in steps if step < int(broken[2])), default=None)
    if before is not None:
        yield "earlier_checkpoint", f" ({broken[1]}{before})"


def _first(pattern: re.Pattern[str], texts: tuple[str, ...]) -> str | None:
    for text in texts:
        match = pattern.search(text)
        if match:
            return match[match.lastindex or 0]
    return None
