"""How good the diagnosis is: by measure, by engine and by cause, with a third of the cases apart, beside simple baselines.

    python -m benchmarks.diagnosis [DIR …] [--json FILE]

Each case of the folders (`tests/cases` and `../shared/cases` where it is there) is climbed as `watchd diagnose CASE
--health …` does, in this process. The third whose names hash to 0…4 is never looked at while rules are written: its
shares stand in a column of their own, and of its cases no name is printed.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import json
import math
import re
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support import situations
from watchd import diagnose
from watchd.diagnosis import chains, signatures
from watchd.engines.reading import read_run
from watchd.model import Role, wire
from watchd.parse import lines as prefixes
from watchd.parse import traceback

BROAD = re.compile(r"error|Error|exception|Traceback|failed|CUDA|assert")
"""What the founding command looks for."""
EXIT_CAUSES = {137: "process_killed", 139: "segfault", 134: "segfault", 135: "shared_memory", 2: "launch_argument"}
"""What an exit status says by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """One case: what was expected, what was answered, and which measures were met."""

    folder: Path
    expected: dict[str, Any]
    engine: str
    answer: dict[str, Any]
    found: dict[str, float]
    took_s: float

    @property
    def aside(self) -> bool:
        """Whether it is of the third that nobody looks at."""
        return situations.is_aside(self.folder)


def watchd(folder: Path) -> dict[str, Any]:
    """What watchd answers."""
    where = diagnose.Place(kind="bundle", path=str(folder))
    found: dict[str, Any] = wire.plain(asyncio.run(diagnose.diagnose(where, asked=situations.health(folder))))
    return found


def exit_status(folder: Path) -> dict[str, Any]:
    """Alive or not, and what the last status in the log means."""
    if situations.health(folder) == "up":
        return {"verdict": "ok", "cause": "none"}
    if situations.health(folder) == "slow":
        return {"verdict": "hang", "cause": "watchdog_hang"}
    text = situations.log(folder).decode("utf-8", "replace")[-20_000:]
    said = re.findall(r"exit(?:ed)?(?:[ _](?:with )?(?:code|status))?[ :=]+(-?\d{1,3})\b", text)
    status = int(said[-1]) if said else 1
    status = 128 - status if status < 0 else status
    if status == 0:
        return {"verdict": "ok", "cause": "none"}
    return {"verdict": "crash", "cause": EXIT_CAUSES.get(status, "unhandled_exception")}


def broad_grep(folder: Path) -> dict[str, Any]:
    """The last line that the founding grep shows."""
    lines = _lines(folder)
    hits = [index for index, line in enumerate(lines) if BROAD.search(line)]
    return _of_line(folder, lines, hits[-1] if hits else None)


def keyword_vote(folder: Path) -> dict[str, Any]:
    """The cause that most lines speak of, whatever their order; its first line."""
    lines = _lines(folder)
    votes: collections.Counter[str] = collections.Counter()
    first: dict[str, int] = {}
    for index, line in enumerate(lines):
        cause = _cause(prefixes.split(line).body)
        if cause:
            votes[cause] += 1
            first.setdefault(cause, index)
    if not votes:
        return _of_line(folder, lines, None)
    cause = votes.most_common(1)[0][0]
    return {**_of_line(folder, lines, first[cause]), "cause": cause}


def last_traceback(folder: Path) -> dict[str, Any]:
    """The last line of the last traceback."""
    run = read_run(situations.log(folder), offset=0, number=1)
    blocks = traceback.read(run.lines)
    if not blocks:
        return _of_line(folder, [], None)
    block = blocks[-1]
    told = _of_line(folder, [], None)
    told["cause"] = _cause(chains.text_of(block), "exceptions") or "unhandled_exception"
    told["root"] = {"file": "server.log", "line": run.lines[block.last].number}
    told["exception"] = {"type": block.type, "message": block.message}
    frames = [frame for frame in block.frames if frame.path[0] != "<"]
    if frames:
        told["frame"] = {"file": frames[-1].path, "line": frames[-1].line}
    told["rank"] = block.rank
    return told


WAYS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "watchd": watchd,
    "exit status only": exit_status,
    "broad grep, last line": broad_grep,
    "keyword vote, unordered": keyword_vote,
    "last traceback, last line": last_traceback,
}


def _lines(folder: Path) -> list[str]:
    return situations.log(folder).decode("utf-8", "replace").split("\n")


def _cause(text: str, on: str = "lines") -> str | None:
    found = signatures.find(text, on=on)
    return found[0].cause.value if found and found[0].cause and found[0].role is not Role.NOISE else None


def _of_line(folder: Path, lines: Sequence[str], index: int | None) -> dict[str, Any]:
    health = situations.health(folder)
    told: dict[str, Any] = {
        "verdict": {"up": "ok", "slow": "hang"}.get(health, "crash"),
        "cause": "unhandled_exception",
    }
    if health == "up":
        return {"verdict": "ok", "cause": "none"}
    if index is not None:
        told["root"] = {"file": "server.log", "line": index + 1}
        told["cause"] = _cause(prefixes.split(lines[index]).body) or "unhandled_exception"
    return told


def score(way: str, cases: Iterable[Path], scorer: Any) -> list[Scored]:
    """Every case by one way."""
    done = []
    for folder in cases:
        told = situations.truth(folder)
        begun = time.monotonic()
        answer = WAYS[way](folder)
        took = time.monotonic() - begun
        command = folder / "host" / "cmdline.txt"
        found = scorer.compare(told["expected"], answer, command.read_text() if command.exists() else "")
        done.append(
            Scored(
                folder=folder, expected=told["expected"], engine=told["engine"], answer=answer,
                found={name: float(value) for name, value in found.items()}, took_s=took,
            )
        )  # fmt: skip
    return done


def shares(done: Sequence[Scored], measures: Sequence[str]) -> dict[str, str]:
    """Per measure the share that was met and how many cases state it."""
    told = {}
    for measure in measures:
        values = [one.found[measure] for one in done if measure in one.found]
        if values:
            told[measure] = f"{100 * sum(values) / len(values):5.1f} % of {len(values)} ± {_spread(values):.0f}"
    return told


def _spread(values: Sequence[float]) -> float:
    """Half of Wilson's 95 % interval, in points."""
    n, p, z = len(values), sum(values) / len(values), 1.96
    return 100 * z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)


def summary(done: Sequence[Scored], scorer: Any) -> dict[str, Any]:
    """Every measure, and what must not happen."""
    pairs = [
        (one.expected["cause"], one.expected["cause"] if one.found["cause"] else one.answer.get("cause"))
        for one in done
    ]
    quiet = [one for one in done if one.expected["verdict"] in scorer.QUIET]
    faults = [one for one in done if one.expected["verdict"] in ("crash", "hang")]
    loud = ("crash", "hang", "degraded")
    invented = [name for one in done for name in scorer.invented(one.expected, one.answer, one.found)]
    return {
        "cases": len(done),
        **shares(done, scorer.MEASURES),
        "macro-F1": round(scorer.macro_f1(pairs), 3),
        "false alarms": f"{sum(o.answer.get('verdict') in loud and not o.found['verdict'] for o in quiet)} of {len(quiet)}",
        "missed faults": f"{sum(o.answer.get('verdict') not in loud for o in faults)} of {len(faults)}",
        "invented": dict(collections.Counter(invented)),
    }


def grouped(done: Sequence[Scored], key: Callable[[Scored], str], measures: Sequence[str]) -> str:
    """A table: one row a group, cases looked at and aside in turn."""
    rows = [f"  {'':<24}{'cases':>7}" + "".join(f"{measure:>12}" for measure in measures)]
    groups: dict[str, list[Scored]] = collections.defaultdict(list)
    for one in done:
        groups[key(one)].append(one)
    for name in sorted(groups):
        cells = ""
        for measure in measures:
            values = [one.found[measure] for one in groups[name] if measure in one.found]
            cells += f"{100 * sum(values) / len(values):>11.0f}%" if values else f"{'-':>12}"
        rows.append(f"  {name:<24}{len(groups[name]):>7}{cells}")
    return "\n".join(rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, default=[situations.OWN, situations.SHARED])
    parser.add_argument("--json", type=Path, help="write every answer to a case that one may look at here")
    given = parser.parse_args()
    if not (situations.SHARED / "score.py").exists():
        print(situations.MISSING, file=sys.stderr)
        return 2
    scorer = situations.scorer()
    cases = {folder.name: folder for root in given.folders for folder in situations.folders(root)}
    for way in WAYS:
        done = score(way, cases.values(), scorer)
        print(f"\n{way}")
        parts = {"all": done, "looked at": [o for o in done if not o.aside], "aside": [o for o in done if o.aside]}
        for part, chosen in parts.items():
            if chosen:
                print(f"  {part}: {json.dumps(summary(chosen, scorer), ensure_ascii=False, indent=4)}")
        if way == "watchd":
            print(
                f"  median {statistics.median(o.took_s for o in done):.3f} s, longest {max(o.took_s for o in done):.2f} s"
            )
            for title, key in (("engine", lambda o: str(o.engine)), ("cause", lambda o: str(o.expected["cause"]))):
                for part in ("looked at", "aside"):
                    print(f"\n  by {title}, {part}:\n{grouped(parts[part], key, scorer.MEASURES)}")
            if given.json:
                rows = [
                    {"case": o.folder.name, "found": o.found, "expected": o.expected, "answer": o.answer}
                    for o in parts["looked at"]
                ]
                given.json.write_text(json.dumps(rows, indent=1, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
