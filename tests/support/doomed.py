"""A daemon that is killed at a commit: `python -m tests.support.doomed LABEL NUMBER before|after -c FILE`.

The store is wrapped from outside; nothing in the product knows of it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from watchd import daemon, settings
from watchd.store import Store


class DoomedStore(Store):
    """Kills this process by SIGKILL before or after its NUMBERth commit of one label."""

    label = ""
    number = 0
    before = True

    def _commit(self, label: str) -> None:
        if label == self.label:
            self.number -= 1
        doomed = label == self.label and self.number == 0
        if doomed and self.before:
            os.kill(os.getpid(), signal.SIGKILL)
        super()._commit(label)
        if doomed:
            os.kill(os.getpid(), signal.SIGKILL)


async def _serve(path: Path) -> None:
    loaded = settings.load(path)
    assert loaded.store.path is not None
    await daemon.serve(loaded, stop=asyncio.Event(), store=DoomedStore(loaded.store.path))


if __name__ == "__main__":
    DoomedStore.label, number, when = sys.argv[1:4]
    DoomedStore.number, DoomedStore.before = int(number), when == "before"
    daemon.set_up_logging()
    asyncio.run(_serve(Path(sys.argv[-1])))
