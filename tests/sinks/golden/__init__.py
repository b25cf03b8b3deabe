"""Payloads as files that a person can open. To write them anew after a change: `WRITE_GOLDEN=1 pytest tests/sinks`."""

from __future__ import annotations

import json
import os
from pathlib import Path

FOLDER = Path(__file__).parent


def check(name: str, payload: object) -> None:
    """Compare with the file, or write it where that was asked for."""
    text = json.dumps(payload, ensure_ascii=False, indent=2) + "\n"
    path = FOLDER / name
    if os.environ.get("WRITE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert path.exists(), f"{path} is missing: WRITE_GOLDEN=1 writes it"
    assert text == path.read_text(encoding="utf-8")
