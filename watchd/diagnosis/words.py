"""The facts that summaries and advice may speak of, as short texts under names.

A template that asks for a fact which is not known here is not used, so nothing is made up to fill a gap.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePath

from watchd.diagnosis import guard, mentions, spelling, stragglers, witness
from watchd.diagnosis.base import Fault, Scene
from watchd.model import Cause, Launch, MachineEvent, MachineEventKind, MountUse, Root, Traceback, TraceFrame

FULL = 95
"""Percent from which on a disk counts as full."""

_SHORT = 160
_SPOKEN_LINES = 400

_QUOTED = re.compile(r"['\"]([^'\"\n]{2,160})['\"]")
_PATH = re.compile(r"(?<![\w:/.])(/[\w.+@-]{1,120}(?:/[\w.+@:=-]{1,120}){1,20})")
_REMOTE = re.compile(
    r"https?://([\w.-]{1,120}(?::\d{1,5})?)|host='([\w.-]{1,120})'|\(([\w-]{1,60}\.[\w.-]{1,120}), (\d{2,5})\)"
)
_SIZE = re.compile(r"(?:Tried to allocate|allocate|requires) ([\d.]{1,12} ?[KMGT]i?B|\d{1,20} bytes)")
_GPU = re.compile(r"\bGPU (\d{1,3})\b")
_HOLDER = re.compile(r"Process (\d{2,8}) has [\d.]{1,12} [MG]iB memory")
_LIBRARY = re.compile(r" in (lib[\w+.-]{1,60})[\[ ]")
# Memory cgroup out of memory: Killed process 239 (VLLM::Worker_TP) total-vm:244841728kB, anon-rss:104004008kB, …
_HELD = re.compile(r"\banon-rss:(\d{1,15})kB")
_KIB_PER_GIB = 1 << 20
_ATTRIBUTE = re.compile(r"\b(?:self|args|opts|cfg|config|server_args)\.([a-z]\w{2,60})\b(?!\()")
_CACHES = (
    ("triton", "TRITON_CACHE_DIR"),
    ("huggingface", "HF_HOME"),
    ("torchinductor", "TORCHINDUCTOR_CACHE_DIR"),
    ("/.", "HOME or XDG_CACHE_HOME"),
    ("cache", "XDG_CACHE_HOME"),
)
"""What sets the place of a cache, by what its path contains."""

_ALWAYS = {
    "near": "",
    "native_library": "",
    "flags_words": "",
    "suspects": "",
    "earlier_checkpoint": "",
    "batch": "the batch size",
}
"""Facts without which a template still reads well."""

Facts = Mapping[str, str]


def facts(scene: Scene, fault: Fault | None, root: Root | None) -> Facts:
    """Everything that may be said about the deciding fault."""
    found: dict[str, str] = {**_ALWAYS, **scene.run.knobs, **dict(_from_text(fault.text if fault else ""))}
    if root is not None:
        found.update(_from_root(scene, root))
    found.update(_from_machine(scene, fault))
    if fault is not None:
        found.update({name: value[:_SHORT] for name, value in fault.words.items()})
        found.update(mentions.read(scene, fault))
        found.update(_from_fault(scene, fault))
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
    return next((text for text in (fill(template, found) for template in templates) if text), None)


def innermost(block: Traceback | None) -> TraceFrame | None:
    """The innermost frame that lies in a file."""
    frames = block.frames if block is not None else ()
    return next((frame for frame in reversed(frames) if not frame.path.startswith("<")), None)


def fill_of(mount: MountUse) -> int:
    """Percent to which a file system is full, of blocks or of inodes."""
    return max(mount.used_percent, mount.inodes_percent or 0)


def _from_text(text: str) -> Iterator[tuple[str, str]]:
    kind, _, message = text.partition(": ")
    yield "exception_text", text[:_SHORT]
    yield "message", (message if message and " " not in kind else text)[:_SHORT]
    for name, pattern in (("quoted", _QUOTED), ("size", _SIZE), ("gpu_number", _GPU), ("holder", _HOLDER)):
        match = pattern.search(text)
        if match:
            yield name, match[1]
    remote = _REMOTE.search(text)
    if remote:
        yield "remote", remote[1] or remote[2] or f"{remote[3]}:{remote[4]}"
    path = _PATH.search(text)
    if path:
        yield "path", path[1]
        variable = next((variable for part, variable in _CACHES if part in path[1]), None)
        if variable:
            yield "cache_variable", variable


def _from_root(scene: Scene, root: Root) -> Iterator[tuple[str, str]]:
    if root.rank is not None:
        yield "rank_words", f"rank {root.rank}" if isinstance(root.rank, int) else str(root.rank)
    frame = innermost(root.traceback)
    if frame is None or root.traceback is None:
        return
    yield "place", f"{frame.path}:{frame.line} in {frame.function}" if frame.function else f"{frame.path}:{frame.line}"
    yield "file", PurePath(frame.path).name
    if frame.code:
        yield "code", frame.code[:_SHORT]
        yield "condition_code", re.sub(r"^assert\s*|,\s*f?[\"'].*$", "", frame.code).strip("() ")[:_SHORT]
        yield "flags_words", _flags(scene, f"{frame.code} {root.traceback.message}")
    package = _package(frame.path)
    if package:
        yield "package", package
    caller = _caller(root.traceback, frame)
    if caller:
        yield "caller", caller
    if any(part.startswith("spec") for part in frame.path.split("/")[-3:]):
        flag = scene.run.knobs.get("speculation")
        yield "suspects", f" Try once without speculative decoding{f' ({flag})' if flag else ''}."


def _flags(scene: Scene, text: str) -> str:
    """Flags that a failing line and its message speak of."""
    attributes = (guard.flag_of(name) for name in _ATTRIBUTE.findall(text))
    flags = ", ".join(dict.fromkeys((*guard.spoken_of(text, scene.case.get(Launch)), *attributes)))
    return f" ({flags})" if flags else ""


def _caller(block: Traceback, inner: TraceFrame) -> str | None:
    """Where another package called into the one that raised."""
    for frame in reversed(block.frames):
        if not frame.path.startswith("<") and _package(frame.path) != _package(inner.path):
            return f"{PurePath(frame.path).name}:{frame.line} (`{frame.code[:80]}`)" if frame.code else None
    return None


def _package(path: str) -> str | None:
    """The distribution that a file belongs to, as pip writes most names."""
    parts = path.split("/")
    for home in ("site-packages", "dist-packages"):
        if home in parts[:-1]:
            return parts[parts.index(home) + 1].removesuffix(".py").replace("_", "-")
    return None


def _from_machine(scene: Scene, fault: Fault | None) -> Iterator[tuple[str, str]]:
    text = fault.text if fault is not None else ""
    full = [
        mount
        for mount in scene.machine.mounts
        if fill_of(mount) >= FULL and not mount.mount.startswith(("/dev", "/proc", "/snap"))
    ]
    if full:
        worst = max(full, key=lambda mount: (mount.mount in text, fill_of(mount)))
        yield "mount", worst.mount
        yield "mount_percent", str(fill_of(worst))
    spoken = [line.text[:200] for line in (*scene.run.lines[:_SPOKEN_LINES], *scene.run.lines[-_SPOKEN_LINES:])]
    others = [
        (memory or 0, pid, name)
        for gpu in scene.machine.gpus
        for pid, name, memory in gpu.processes
        if not any(str(pid) in line for line in spoken)
    ]
    if others:
        _, pid, name = max(others)
        yield "holder", f"{pid} ({PurePath(name).name[:40]})"


def _from_fault(scene: Scene, fault: Fault) -> Iterator[tuple[str, str]]:
    near = spelling.nearest(scene, fault)
    if near:
        yield "near", near
    astray = stragglers.find(scene, fault)
    if astray is not None:
        yield "straggler", f"rank {astray.rank}"
    if fault.cause is Cause.SEGFAULT:
        for event in scene.machine.events:
            if event.kind is MachineEventKind.SEGFAULT and witness.concerns(scene, event, silent=False, fault=fault):
                yield from _from_event(event)


def _from_event(event: MachineEvent) -> Iterator[tuple[str, str]]:
    if event.gpu:
        yield "gpu", event.gpu
    held = _HELD.search(event.text)
    if held and event.process:
        yield "held", f"{int(held[1]) / _KIB_PER_GIB:.1f} GiB"
        yield "victim", f"{event.process} (pid {event.pid})" if event.pid is not None else event.process
        grouped = "cgroup" in event.text or "memcg" in event.text
        yield "whose_limit", "its container or cgroup (memory.max, --memory)" if grouped else "the host"
    library = _LIBRARY.search(event.text)
    if library:
        yield "native_library", f" (the kernel names {library[1]})"
