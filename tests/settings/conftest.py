"""Configuration files as tests write them: readable by their owner alone, unless the test is about that."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a configuration file and returns its path."""

    def write(text: str, *, mode: int = 0o600) -> Path:
        path = tmp_path / "watchd.toml"
        path.write_text(text, encoding="utf-8")
        path.chmod(mode)
        return path

    return write
