"""`watchd run` as users run it: a process of its own, with a configuration file."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.support.servelet import Servelet
from tests.support.sshd import Sshd, wait_until


def host(sshd: Sshd, name: str = "gpu-test", **more: str) -> str:
    """The `[hosts.NAME]` table that reaches this sshd."""
    lines = [
        f"[hosts.{name}]",
        'address = "127.0.0.1"',
        f"port = {sshd.port}",
        f'user = "{sshd.user}"',
        f'identity = {{ file = "{sshd.key}" }}',
        f'known_hosts = "{sshd.known_hosts}"',
        *(f'{key} = "{value}"' for key, value in more.items()),
    ]
    return "\n".join(lines)


def target(server: Servelet, host: str = "gpu-test", *, health: bool = True, process: bool = True) -> str:
    """The `[[targets]]` entry of this server."""
    lines = ["[[targets]]", f'name = "{server.name}"', f'host = "{host}"', f'log = "{server.log}"']
    if process:
        lines.append(f'process = "servelet.launch --port {server.port}"')
    if health:
        lines.append(f'health = "{server.health}"')
    return "\n".join(lines)


EACH_SECOND = '[defaults.health]\ninterval = "1s"\ntimeout = "5s"'


class Daemon:
    """One `watchd run`. `tables` are TOML; health checks run each second unless `pace` says otherwise."""

    def __init__(
        self, folder: Path, *tables: str, command: Sequence[str] | None = None, pace: str = EACH_SECOND
    ) -> None:
        self.folder = folder
        self.config = folder / "watchd.toml"
        store = f'[store]\nurl = "sqlite:///{folder}/store/watchd.db"'
        self.config.write_text("\n\n".join((store, pace, *tables)) + "\n")
        self.config.chmod(0o600)
        self.command = command or (sys.executable, "-m", "watchd", "run")
        self.process: subprocess.Popen[bytes] | None = None
        self.words = folder / "watchd.err"
        self.printed = folder / "watchd.out"
        self.told: list[str] = []

    def start(self) -> Daemon:
        """Start it and wait for READY=1."""
        path = self.folder / "notify"
        path.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as door:
            door.bind(str(path))
            door.settimeout(40)
            self.launch({"NOTIFY_SOCKET": str(path)})
            while True:
                told = door.recv(4096).decode()
                self.told.append(told)
                if "READY=1" in told.split("\n"):
                    return self

    def launch(self, environment: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
        """Start it and do not wait."""
        with self.printed.open("ab") as printed, self.words.open("ab") as words:
            self.process = subprocess.Popen(
                [*self.command, "-c", str(self.config)],
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=words,
                env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), **(environment or {})},
            )
        return self.process

    def kill(self) -> None:
        """SIGKILL, and wait."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(20)

    def stop(self) -> int:
        """SIGTERM; returns the exit status."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)

    def peak_mib(self) -> float:
        """The most memory that it has held so far, in MiB."""
        assert self.process is not None
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024

    def events(self, name: str = "") -> list[dict[str, Any]]:
        """What it logged, all or by event name."""
        found = []
        for line in self.words.read_text(errors="replace").splitlines():
            if line.startswith("{"):
                event = json.loads(line)
                if not name or event.get("event") == name:
                    found.append(event)
        return found

    def logged(self, name: str, *, limit_s: float = 30) -> dict[str, Any]:
        """Wait until an event of this name was logged, and return it."""
        assert wait_until(lambda: bool(self.events(name)), limit_s), self.words.read_text(errors="replace")[-4000:]
        return self.events(name)[-1]

    def __enter__(self) -> Daemon:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process is not None and self.process.poll() is None:
            self.kill()


def webhook(url: str, name: str = "hook", severity: str = "info") -> str:
    """A webhook sink that hears everything."""
    return f'[sinks.{name}]\ntype = "webhook"\nurl = "{url}"\nseverity = "{severity}"'
