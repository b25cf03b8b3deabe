"""A small server on the test's host that really starts, serves, and dies: its own source, its own guard, its own log.

It runs as the sshd's user on the system's Python, as a server on a GPU host would.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import socket
import subprocess
import textwrap
from pathlib import Path

from tests.support.sshd import Sshd, wait_until

ARGUMENTS = '''
"""Arguments of the servelet."""

import argparse
import dataclasses


@dataclasses.dataclass
class Arguments:
    port: int
    draft_depth: "int | None" = None
    draft_width: "int | None" = None
    draft_budget: "int | None" = None

    def __post_init__(self):
        self._settle_drafts()

    def _settle_drafts(self):
        if self.draft_depth is None:
            chosen = (self.draft_width, self.draft_budget)
            assert chosen == (None, None)


def parse(words):
    parser = argparse.ArgumentParser(prog="servelet")
    parser.add_argument("--port", type=int, required=True)
    for name in ("depth", "width", "budget"):
        parser.add_argument(f"--draft-{name}", type=int)
    parser.add_argument("--api-key")
    given = vars(parser.parse_args(words))
    given.pop("api_key")
    return Arguments(**given)
'''

LAUNCH = '''
"""Serves a health endpoint; SIGUSR1 makes the work loop raise, SIGTERM ends it in order."""

import http.server
import os
import signal
import sys
import threading
import time

from servelet.arguments import parse

FAULT = threading.Event()


class Door(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()

    def log_message(self, *words):
        pass


def fail(*_):
    FAULT.set()


def leave(*_):
    print("Received SIGTERM, shutting down gracefully", flush=True)
    raise SystemExit(0)


def work_loop():
    step = 0
    while True:
        if FAULT.wait(0.1):
            raise KeyError("model.layers.7.weight")
        step += 1
        if step % 10 == 0:
            print(f"step {step} done", flush=True)


def main():
    print("servelet starts", flush=True)
    time.sleep(float(os.environ.get("SERVELET_START", "0.3")))
    arguments = parse(sys.argv[1:])
    signal.signal(signal.SIGUSR1, fail)
    signal.signal(signal.SIGTERM, leave)
    door = http.server.ThreadingHTTPServer(("127.0.0.1", arguments.port), Door)
    threading.Thread(target=door.serve_forever, daemon=True).start()
    print("servelet serves", flush=True)
    work_loop()


if __name__ == "__main__":
    main()
'''


def free_port() -> int:
    """A port nobody listens on at the moment."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


class Servelet:
    """One server on the host of `sshd`, with a log of its own. Use it in a `with` statement."""

    def __init__(self, sshd: Sshd, name: str = "server") -> None:
        self.sshd = sshd
        self.port = free_port()
        self.name = name
        self.log = Path(sshd.write_log(f"{name}.log", ""))
        if os.getuid() == 0:
            shutil.chown(self.log, sshd.user)
        # The folder's name is what makes it a package for whoever reads the host's source.
        self.folder = sshd.folder / "venv" / "lib" / "python3" / "site-packages"
        package = self.folder / "servelet"
        package.mkdir(parents=True, exist_ok=True)
        for file, text in (("__init__.py", ""), ("arguments.py", ARGUMENTS), ("launch.py", LAUNCH)):
            (package / file).write_text(textwrap.dedent(text).lstrip())
            (package / file).chmod(0o644)
        for place in (package, self.folder, *list(self.folder.parents)[:3]):
            place.chmod(0o755)
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def source(self) -> str:
        """Path of the file with the guard."""
        return str(self.folder / "servelet" / "arguments.py")

    @property
    def health(self) -> str:
        """Its health endpoint, on the host's loopback."""
        return f"http://127.0.0.1:{self.port}/health"

    def launch(self, *flags: str, truncate: bool = False, start_s: float = 0.3) -> subprocess.Popen[bytes]:
        """Start it as `python3 -m servelet.launch --port … FLAGS >> LOG` (`> LOG` with truncate).

        `start_s` are the seconds that it takes to come to its arguments.
        """
        if self.process is not None:
            self.process.wait(20)
        words = ["/usr/bin/python3", "-m", "servelet.launch", "--port", str(self.port), *flags]
        account = {"user": self.sshd.user, "group": self.sshd.user, "extra_groups": []} if os.getuid() == 0 else {}
        with self.log.open("wb" if truncate else "ab") as log:
            self.process = subprocess.Popen(
                words, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd="/", start_new_session=True,
                env={"PYTHONPATH": str(self.folder), "PATH": "/usr/bin:/bin", "SERVELET_START": str(start_s)}, **account,
            )  # type: ignore[call-overload]  # fmt: skip
        assert self.process is not None
        return self.process

    def serve(self, *flags: str, truncate: bool = False) -> None:
        """Start it and wait until it serves."""
        self.launch(*flags, truncate=truncate)
        assert wait_until(self.answers, 20), self.log.read_text()

    def answers(self) -> bool:
        """Whether its health endpoint is open."""
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True

    def fail(self) -> None:
        """Make its work loop raise, and wait until it is gone."""
        self.end(signal.SIGUSR1)

    def end(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Send it a signal and wait until it is gone."""
        if self.process is not None:
            if self.process.poll() is None:
                self.process.send_signal(number)
            self.process.wait(20)

    @property
    def command(self) -> str:
        """Its command line as a person would type it."""
        assert self.process is not None
        return shlex.join(str(word) for word in self.process.args)  # type: ignore[union-attr]

    def __enter__(self) -> Servelet:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
