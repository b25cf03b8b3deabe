"""`python -m watchd`."""

from __future__ import annotations

from watchd.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
