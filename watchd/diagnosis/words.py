"""The facts that summaries and advice may speak of, as short texts under names.

A template that asks for a fact which is not known here is not used, so nothing is made up to fill a gap.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from pathlib import PurePath

from watchd.diagnosis import guard, stragglers, witness
from watchd.diagnosis.base import Fault, Scene
from watchd.model import Cause, Launch, MachineEvent, MachineEventKind, MarkKind, Root, Traceback, TraceFrame

_SHORT = 160
FULL = 95
"""Percent from which on a disk counts as full."""

_QUOTED = re.compile(r"['\"]([^'\"\n]{2,160})['\"]")
_PATH = re.compile(r"(?<![\w:/.])(/[\w.+@-]+(?:/[\w.+@:=-]+)+)")
_REMOTE = re.compile(r"https?://([\w.-]+(?::\d+)?)|host='([\w.-]+)'|\(([\w.-]+\.[\w.-]+), (\d{2,5})\)")
_SIZE = re.compile(r"(?:Tried to allocate|allocate|requires) ([\d.]+ ?[KMGT]i?B|\d+ bytes)")
_GPU = re.compile(r"\bGPU (\d{1,3})\b")
_HOLDER = re.compile(r"Process (\d{2,8}) has ([\d.]+ [MG]iB) memory")
_PORT = re.compile(r"(?:, |:|[Pp]ort )(\d{2,5})\b(?![.\d])")
_CONFIG = re.compile(r"[\w./-]{1,200}\.(?:json|ya?ml|toml|pbtxt)\b")
_WEIGHTS = re.compile(r"[\w./-]{0,200}(?:checkpoint[-_]\d+[\w./-]*|[\w-]+\.(?:safetensors|gguf|bin|pt|pth|ckpt))")
_FLAG = re.compile(r"(?<![\w-])(--?[a-zA-Z][\w.-]{1,60})")
_LIBRARY = re.compile(r" in (lib[\w+.-]{1,60})[\[ ]")
_SCRIPT = re.compile(r"([\w-]{2,60}\.py)\b")
_CACHES = (("triton", "TRITON_CACHE_DIR"), ("huggingface", "HF_HOME"), ("torchinductor", "TORCHINDUCTOR_CACHE_DIR"), ("/.", "HOME or XDG_CACHE_HOME"), ("cache", "XDG_CACHE_HOME"))
_ABOVE = 40
"""Lines above the deciding one in which a file that it does not name is looked for."""

Facts = Mapping[str, str]


def facts(scene: Scene, fault: Fault | None, root: Root | None) -> Facts:
    """Everything that may be said about the deciding fault."""
    found: dict[str, str] = {"near": "", "native_library": "", "flags_words": "", "stuck_in": "", "suspects": "", "earlier_checkpoint": "", "batch": "the batch size"}
    found.update(scene.run.knobs)
    text = fault.text if fault else ""
    found.update(_from_text(text))
    if root is not None:
        found.update(_from_root(scene, root))
    found.update(_from_machine(scene, text))
    if fault is not None:
        astray = stragglers.find(scene, fault)
        if astray is not None:
            found["straggler"] = f"rank {astray.rank}"
        found.update({name: value[:_SHORT] for name, value in fault.words.items()})
        found.update(_from_run(scene, fault))
    found.update(_segfault_beside(scene, fault))
    if root is not None and root.event is not None:
        found.update(_from_event(root.event))
    return found


def fill(template: str, found: Facts) -> str | None:
    """The template with its facts, or None where one of them is not known."""
    try:
        return template.format_map(found)
    except (KeyError, IndexError, ValueError):
        return None


def first(templates: tuple[str, ...], found: Facts) -> str | None:
    """The first template whose facts are all known."""
    for template in templates:
        text = fill(template, found)
        if text:
            return text
    return None


def _from_text(text: str) -> Iterator[tuple[str, str]]:
    kind, _, message = text.partition(": ")
    yield "exception_text", text[:_SHORT]
    yield "message", (message if message and " " not in kind else text)[:_SHORT]
    for name, pattern in (("quoted", _QUOTED), ("path", _PATH), ("size", _SIZE), ("gpu_number", _GPU), ("holder", _HOLDER)):
        match = pattern.search(text)
        if match:
            yield name, match[1]
    remote = _REMOTE.search(text)
    if remote:
        yield "remote", remote[1] or remote[2] or f"{remote[3]}:{remote[4]}"


def _from_root(scene: Scene, root: Root) -> Iterator[tuple[str, str]]:
    if root.rank is not None:
        yield "rank_words", f"rank {root.rank}" if isinstance(root.rank, int) else str(root.rank)
    frame = innermost(root.traceback)
    if frame is None:
        return
    yield "place", f"{frame.path}:{frame.line} in {frame.function}" if frame.function else f"{frame.path}:{frame.line}"
    yield "file", PurePath(frame.path).name
    yield "function", frame.function
    if frame.code:
        yield "code", frame.code[:_SHORT]
        yield "condition_code", re.sub(r"^assert\s*|,\s*f?[\"'].*$", "", frame.code).strip("() ")[:_SHORT]
        spoken = guard.spoken_of(f"{frame.code} {root.traceback.message if root.traceback else ''}", scene.case.get(Launch))
        flags = ", ".join(dict.fromkeys((*spoken, *_attributes(frame.code))))
        if flags:
            yield "flags_words", f" ({flags})"
    package = _package(frame.path)
    if package:
        yield "package", package
    caller = _caller(root.traceback, frame)
    if caller:
        yield "caller", caller
    if any(part.startswith("spec") for part in frame.path.split("/")[-3:]):
        speculation = scene.run.knobs.get("speculation")
        yield "suspects", f" Try once without speculative decoding{f' ({speculation})' if speculation else ''}."


def _caller(block: Traceback | None, inner: TraceFrame) -> str | None:
    """Where another package called into the one that raised."""
    for frame in reversed(block.frames if block is not None else ()):
        if not frame.path.startswith("<") and _package(frame.path) != _package(inner.path):
            return f"{PurePath(frame.path).name}:{frame.line} (`{frame.code[:80]}`)" if frame.code else None
    return None


def _attributes(code: str) -> Iterator[str]:
    """`self.page_size` -> `--page-size`: attributes that may be flags."""
    for name in re.findall(r"\b(?:self|args|opts|cfg|config|server_args)\.([a-z]\w{2,60})\b(?!\()", code):
        yield guard.flag_of(name)


def _package(path: str) -> str | None:
    parts = path.split("/")
    for home in ("site-packages", "dist-packages"):
        if home in parts[:-1]:
            return parts[parts.index(home) + 1].removesuffix(".py").replace("_", "-")
    return None


def _from_machine(scene: Scene, text: str) -> Iterator[tuple[str, str]]:
    full = [mount for mount in scene.machine.mounts if max(mount.used_percent, mount.inodes_percent or 0) >= FULL and not mount.mount.startswith(("/dev", "/proc", "/snap"))]
    if full:
        worst = max(full, key=lambda mount: (mount.mount in text, mount.used_percent))
        yield "mount", worst.mount
        yield "mount_percent", str(max(worst.used_percent, worst.inodes_percent or 0))
    others = [(memory or 0, pid, name) for gpu in scene.machine.gpus for pid, name, memory in gpu.processes if not _ours(scene, pid, name)]
    if others:
        memory, pid, name = max(others)
        yield "holder", f"{pid} ({PurePath(name).name[:40]})"


def _ours(scene: Scene, pid: int, name: str) -> bool:
    del name
    mark = str(pid)
    return any(mark in line.text[:200] for line in (*scene.run.lines[:400], *scene.run.lines[-400:]))


def _from_run(scene: Scene, fault: Fault) -> Iterator[tuple[str, str]]:
    launch = scene.case.get(Launch)
    request = _request(scene, fault)
    if request:
        yield "request", request
    near = _near(scene, fault, launch)
    if near:
        yield "near", near
    port = _PORT.search(fault.text) or next((match for body in scene.bodies[max(0, fault.index - _ABOVE) : fault.index] for match in [re.search(r"\bport[=': ]{1,4}(\d{2,5})\b", body)] if match), None)
    given = next((values[0] for flag, values in (launch.flags if launch else {}).items() if flag.endswith(("-port", "port", "-p")) and values), None)
    number = given or (port[1] if port else None)
    if number:
        yield "port_number", number
    for name, pattern in (("config_file", _CONFIG), ("weights", _WEIGHTS)):
        mention = _mention(scene, fault, launch, pattern)
        if mention:
            yield name, mention
    path = _PATH.search(fault.text)
    if path:
        variable = next((variable for part, variable in _CACHES if part in path[1]), None)
        if variable:
            yield "cache_variable", variable
    broken = re.search(r"(checkpoint[-_])(\d+)", found_weights) if (found_weights := _mention(scene, fault, launch, _WEIGHTS) or "") else None
    if broken:
        steps = {int(step) for body in scene.bodies for step in re.findall(rf"{broken[1]}(\d+)", body)}
        before = max((step for step in steps if step < int(broken[2])), default=None)
        if before is not None:
            yield "earlier_checkpoint", f" ({broken[1]}{before})"
    architecture = next((match[0] for body in scene.bodies[:200] for match in [re.search(r"\bsm_\d{2,3}\w?\b", body)] if match), None)
    if architecture:
        yield "architecture", architecture
    script = next((match[1] for body in scene.bodies[fault.index : fault.index + 12] for match in [_SCRIPT.search(body)] if match), None)
    if script and fault.traceback is None:
        yield "native_library", f" (the dump names {script})"


def _request(scene: Scene, fault: Fault) -> str | None:
    """What the server said of the request that failed, right above its traceback."""
    if fault.traceback is None:
        return None
    first = fault.traceback.indexes[0]
    failed = set(scene.marked(MarkKind.REQUEST))
    return next((scene.bodies[index].strip()[:100] for index in range(first, max(-1, first - 3), -1) if index in failed), None)


def _mention(scene: Scene, fault: Fault, launch: Launch | None, pattern: re.Pattern[str]) -> str | None:
    """The nearest text that matches: in the fault, its later exceptions, the launch, or the lines above."""
    own = pattern.search(fault.text)
    if own:
        return own[0]
    below = scene.bodies[fault.index + 1 : fault.index + _ABOVE]
    above = scene.bodies[max(0, fault.index - _ABOVE) : fault.index][::-1]
    words = launch.argv if launch else ()
    for text in (*(body for body in below if "Error" in body), *words, *above):
        match = pattern.search(text)
        if match and 'File "' not in text:
            return match[0]
    return None


def _near(scene: Scene, fault: Fault, launch: Launch | None) -> str | None:
    """Known spellings next to those that were refused: from the choices in the message or the usage in the log."""
    choices = re.findall(r"[\w.+-]+", fault.words.get("choices", ""))
    if choices and "value" in fault.words:
        close = difflib.get_close_matches(fault.words["value"], choices, n=1, cutoff=0.75)
        return f" The nearest choice is `{close[0]}`." if close else None
    refused = _FLAG.findall(fault.words.get("words") or fault.words.get("flag") or "")
    known = {flag for body in scene.bodies[max(0, fault.index - 600) : fault.index] for flag in _FLAG.findall(body)}
    known.update(value for value in scene.run.knobs.values() if value.startswith("--"))
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


def _from_event(event: MachineEvent) -> Iterator[tuple[str, str]]:
    if event.gpu:
        yield "gpu", event.gpu
    library = _LIBRARY.search(event.text)
    if library:
        yield "native_library", f" (the kernel names {library[1]})"


def _segfault_beside(scene: Scene, fault: Fault | None) -> Iterator[tuple[str, str]]:
    """The library that the kernel names for a crash that the log states itself."""
    if fault is None or fault.cause is not Cause.SEGFAULT:
        return
    for event in scene.machine.events:
        if event.kind is MachineEventKind.SEGFAULT and witness.concerns(scene, event, silent=False, fault=fault):
            yield from _from_event(event)


def innermost(block: Traceback | None) -> TraceFrame | None:
    """The innermost frame that lies in a file."""
    if block is None:
        return None
    return next((frame for frame in reversed(block.frames) if not frame.path.startswith("<")), None)
