"""What a corrected command costs: CPU seconds of one job on a synthetic argument module of 10,000 lines.

    python benchmarks/correction.py [LINES]

Prints the lines of the module, the CPU time of following it in this process (parsing included), and the whole time of
the child process that the daemon starts for it.
"""

from __future__ import annotations

import asyncio
import resource
import sys
import time

from watchd.correction import registry
from watchd.ladder import guard

PATH = "/opt/app/lib/python3/site-packages/app/arguments.py"


def module(lines: int) -> str:
    """A dataclass of settings with a check for each, the one that fails among them, and a parser."""
    count = max(10, lines // 10)
    names = [f"part_{n}" for n in range(count)]
    rows = ["import argparse", "import dataclasses", "from typing import Optional", "", "", "@dataclasses.dataclass"]
    rows += ["class Settings:", *(f"    {name}: int = {n % 90 + 10}" for n, name in enumerate(names))]
    rows += [f"    {name}: Optional[int] = None" for name in ("depth", "width", "budget")]
    rows += ["", "    def __post_init__(self):", *(f"        self.check_{name}()" for name in names[: count // 2])]
    rows += ["        self.check_tree()", *(f"        self.check_{name}()" for name in names[count // 2 :]), ""]
    for n, name in enumerate(names):
        other = names[(n + 7) % count]
        rows += [f"    def check_{name}(self):", f"        value = self.{name}", "        if value < 1:"]
        rows += [f"            raise ValueError('{name}')", f"        if value > self.{other} * 100:"]
        rows += [f"            self.{name} = self.{other}", ""]
    rows += [
        "    def check_tree(self):",
        "        if self.depth is None:",
        "            assert (",
        "                self.width is None",
    ]
    rows += ["                and self.budget is None", "            )", "            self.depth = 3"]
    rows += ["        if self.width == 1:", "            assert self.budget == self.depth + 1", ""]
    rows += ["", "def read(words):", "    parser = argparse.ArgumentParser()"]
    rows += [
        f"    parser.add_argument('--{name.replace('_', '-')}', type=int, default={n % 90 + 10})"
        for n, name in enumerate(names)
    ]
    rows += [f"    parser.add_argument('--{name}', type=int)" for name in ("depth", "width", "budget")]
    rows += ["    return Settings(**vars(parser.parse_args(words)))"]
    return "\n".join(rows) + "\n"


def job(text: str) -> registry.Job:
    """The crash of a launch without a depth."""
    lines = text.split("\n")
    at = {row.strip(): n for n, row in enumerate(lines, 1)}
    frames = [
        (PATH, at["self.check_tree()"], "__post_init__", "self.check_tree()"),
        (PATH, at["self.width is None"], "check_tree", "self.width is None"),
    ]
    argv = ["python3", "-m", "app", "--width", "1", "--budget", "12", "--part-3", "40"]
    return registry.Job(texts={PATH: text}, frames=list(frames), message="", launch=argv, running=argv, lines=[])


def main() -> None:
    text = module(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
    asked = job(text)
    began = time.process_time()
    found = registry.solve(asked)
    print(f"lines {text.count(chr(10))}")
    print(f"cpu_s {time.process_time() - began:.2f}")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    answer = asyncio.run(guard.ask("correction.child", registry.to_json(asked), 30.0))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"child_cpu_s {after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime:.2f}")
    print(f"child_wall_s {time.perf_counter() - started:.2f}")
    print("edits", [(e.action, e.flag, e.value, e.basis) for e in found.edits] if found else None, answer is not None)


if __name__ == "__main__":
    main()
