"""Words to calls, exceptions to exit statuses."""

from __future__ import annotations


def main() -> int:
    """Run watchd with the words of the command line."""
    return 0
