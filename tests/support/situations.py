"""Whole situations on disk: a log, what its host says, and what a careful engineer concludes."""

from __future__ import annotations

import hashlib
import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.support.cases import a_case
from watchd.diagnosis import root as roots
from watchd.engines.reading import read_run
from watchd.model import (
    Case,
    Diagnosis,
    Finding,
    Launch,
    LaunchOrigin,
    Machine,
    Run,
    SourceFile,
    Tracebacks,
)
from watchd.parse import launch, machine, source, traceback

OWN = Path(__file__).parents[1] / "cases"
SHARED = Path(__file__).parents[2].parent / "shared" / "cases"
MISSING = f"{SHARED} is not there: the collection of cases is kept outside the project"


def folders(root: Path) -> tuple[Path, ...]:
    """The folders of cases below `root`, by name; none where there is no such folder."""
    return tuple(sorted(path.parent for path in root.glob("*/case.json")))


def is_aside(folder: Path) -> bool:
    """Whether this case is of the third that nobody looks at while working: by a hash of its name."""
    return hashlib.sha1(folder.name.encode(), usedforsecurity=False).hexdigest()[0] in "01234"


def truth(folder: Path) -> dict[str, Any]:
    """The situation and the right answer."""
    found: dict[str, Any] = json.loads((folder / "case.json").read_text())
    return found


def health(folder: Path) -> str:
    """What its health endpoint says: `up`, `down` or `slow`."""
    told = truth(folder)
    return str(told.get("health") or ("up" if told["alive"] else "down"))


def log(folder: Path) -> bytes:
    """The bytes of its log."""
    return (folder / "server.log").read_bytes()


def read(folder: Path, data: bytes | None = None, *, offset: int = 0) -> Case:
    """The case as the ladder would bring it: log, machine, launch, and the source around the deciding frame.

    `data` may stand in for the log's own bytes; with `offset` it is what lies from there on, its first line torn.
    """
    run = read_run(log(folder) if data is None else data, offset=offset, number=None if offset else 1)
    known: list[Finding] = [run, Tracebacks(blocks=traceback.read(run.lines))]
    texts = {name: _text(folder / "host" / f"{name}.txt") for name in ("cmdline", "dmesg", "df", "nvidia-smi")}
    if texts["cmdline"]:
        known.append(Launch(argv=launch.from_shell(texts["cmdline"]), origin=LaunchOrigin.BUNDLE))
    known.append(
        Machine(
            events=machine.events(texts["dmesg"]),
            mounts=machine.mounts(texts["df"]),
            gpus=machine.gpus(texts["nvidia-smi"]),
        )
    )
    blank = a_case(*known)
    case = Case(target=blank.target, trigger=blank.trigger, health=health(folder), findings=blank.findings)
    excerpt = _excerpt(folder, case)
    return case.with_finding(excerpt) if excerpt is not None else case


def answer(case: Case, found: Diagnosis) -> dict[str, Any]:
    """The diagnosis under the incident's keys."""
    run, root = case.get(Run), found.root
    told: dict[str, Any] = {
        "verdict": found.verdict.value,
        "cause": found.cause.value if found.cause else None,
        "confidence": found.confidence.value,
        "advice": list(found.advice),
    }
    if root is None or run is None:
        return told
    told["rank"] = root.rank
    if root.event is not None:
        told["root"] = {"file": "host/dmesg.txt", "line": root.event.number}
    elif root.index is not None:
        told["root"] = {"file": "server.log", "line": run.lines[root.index].number}
    if root.traceback is not None and root.traceback.type:
        told["exception"] = {"type": root.traceback.type, "message": root.traceback.message}
        frames = [frame for frame in root.traceback.frames if frame.path[0] != "<"]
        if frames:
            told["frame"] = {"file": frames[-1].path, "line": frames[-1].line, "function": frames[-1].function}
    return told


def scorer() -> ModuleType:
    """The scorer that lies beside the larger collection."""
    spec = importlib.util.spec_from_file_location("score", SHARED / "score.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _text(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""


def _excerpt(folder: Path, case: Case) -> Finding | None:
    root = roots.choose(case)
    frames = [frame for frame in (root.traceback.frames if root and root.traceback else ()) if frame.path[0] != "<"]
    path = folder / "source" / frames[-1].path.lstrip("/") if frames else folder / "nowhere"
    if not path.is_file():
        return None
    frame = frames[-1]
    return source.excerpt(
        SourceFile(path=frame.path, text=path.read_text(errors="replace"), sha256="", line=frame.line, code=frame.code)
    )
