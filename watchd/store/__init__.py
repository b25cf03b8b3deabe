"""What survives a restart: incidents, who must be told of them, how far each log was read, what was last launched.

An incident, its deliveries and the checkpoint that it rests on are written in one transaction, so that a process
killed at any moment either has all three or none. Nothing unredacted comes in here, and no sink's URL.
"""

from __future__ import annotations

from watchd.store.rows import Lease
from watchd.store.sqlite import Store
from watchd.store.threaded import AsyncStore

__all__ = ["AsyncStore", "Lease", "Store"]
