"""What `watchd --help` costs, beside `python -c pass`: CPU seconds of whole processes, interleaved, medians.

    python -m benchmarks.start_up [REPEATS]

Prints one JSON object. The imports are checked by tests; this is the price.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys

COMMANDS = {
    "python -c pass": (sys.executable, "-c", "pass"),
    "watchd --help": (sys.executable, "-m", "watchd", "--help"),
    "watchd --version": (sys.executable, "-m", "watchd", "--version"),
}


def cpu_s(command: tuple[str, ...]) -> float:
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = status
    assert status == 0, command
    return used.ru_utime + used.ru_stime


def main(repeats: int) -> None:
    taken: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(repeats):
        for name, command in COMMANDS.items():
            taken[name].append(cpu_s(command))
    bare = statistics.median(taken["python -c pass"])
    result = {
        name: {"cpu_ms": round(statistics.median(all_s) * 1000, 1), "ratio": round(statistics.median(all_s) / bare, 2)}
        for name, all_s in taken.items()
    }
    print(json.dumps({"repeats": repeats, **result}, indent=2))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 21)
