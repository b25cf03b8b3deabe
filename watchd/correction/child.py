"""The process in which a stranger's source is followed: it may die of what it reads, and takes nothing with it.

A job comes in and a fix (or null) goes out, both as JSON. Nothing but the standard library is needed.
"""

from __future__ import annotations

import sys

from watchd.parse.source_child import limit


def main() -> int:
    """Limit this process, then read, follow and answer."""
    limit()

    from watchd.correction import registry

    sys.setrecursionlimit(6000)
    sys.stdout.write(registry.answer(sys.stdin.buffer.read()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
