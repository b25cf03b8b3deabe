"""The process in which a stranger's source is parsed: it may die of what it reads, and takes nothing with it.

A JSON object with the fields of a SourceFile comes in, one with those of a SourceExcerpt (or null) goes out. Nothing
but the standard library is needed, so it runs isolated and without site packages.
"""

from __future__ import annotations

import json
import resource
import sys
from dataclasses import asdict

CPU_S = 5
MEMORY = 512 * 1024 * 1024


def main() -> int:
    """Limit this process, then read, parse and answer."""
    limit()

    from watchd.model import SourceFile
    from watchd.parse import source

    found = source.excerpt(SourceFile(**json.load(sys.stdin.buffer)))
    sys.stdout.write(json.dumps(asdict(found) if found else None))
    return 0


def limit() -> None:
    """Bound the time and the memory that this process may take, and keep it from leaving a core behind."""
    _limit(resource.RLIMIT_CPU, CPU_S)
    _limit(resource.RLIMIT_AS, MEMORY)
    _limit(resource.RLIMIT_CORE, 0)


def _limit(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (value, value))


if __name__ == "__main__":
    raise SystemExit(main())
