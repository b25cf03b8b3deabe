"""watchd: says why a GPU server died, over SSH, without an agent."""

from __future__ import annotations

__version__ = "0.1.0"
