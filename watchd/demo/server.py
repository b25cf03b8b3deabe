"""One launch of the demo's server: a process of its own, its output in a log, gone when the `async with` ends."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
import socket
import sys
from pathlib import Path
from types import TracebackType

from watchd.demo.host import LOOPBACK

_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PYTHONHOME", "TMPDIR")
"""Of the environment; the rest could colour the traceback or switch assertions off."""
STOP_S = 5.0


class Server:
    """The process. `log` is begun anew, as a shell's `>` does it."""

    def __init__(self, words: tuple[str, ...], *, packages: Path, log: Path) -> None:
        self.argv = (sys.executable, *words)
        self._packages = packages
        self._log = log
        self._process: asyncio.subprocess.Process | None = None

    @property
    def command(self) -> str:
        """The launch as one types it."""
        return shlex.join(self.argv)

    async def __aenter__(self) -> Server:
        """Launch it."""
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        with self._log.open("wb") as output:
            self._process = await asyncio.create_subprocess_exec(
                *self.argv,
                stdin=asyncio.subprocess.PIPE,
                stdout=output,
                stderr=output,
                cwd=self._log.parent,
                env={**kept, "PYTHONPATH": str(self._packages), "PYTHONDONTWRITEBYTECODE": "1"},
                start_new_session=True,
            )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        """End it at once, and what it may have started with it."""
        assert self._process is not None
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        await self._process.wait()

    async def stop(self) -> None:
        """Tell it to end in order and wait for that, at most `STOP_S` seconds. Raises TimeoutError."""
        assert self._process is not None
        self._process.terminate()
        async with asyncio.timeout(STOP_S):
            await self._process.wait()

    async def ended(self) -> int:
        """Wait for its end; its exit status, negative where a signal ended it."""
        assert self._process is not None
        return await self._process.wait()


def free_port() -> int:
    """A port on which nobody listens just now."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
    return port
