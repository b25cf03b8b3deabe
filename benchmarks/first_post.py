"""How soon a crash is told: from the deciding line in the log to the webhook's receipt of the first post.

    python -m benchmarks.first_post [CRASHES]        from the checkout, with its test environment

Each crash is a server of its own on a real sshd, a target of its own, and dies of an exception at work. Beside it, the
arrival of the same line through `ssh host tail -F`, which is what a person would watch. Prints one JSON object.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from tests.support import daemon as watchd
from tests.support.receiver import Receiver
from tests.support.servelet import Servelet
from tests.support.sshd import Sshd, wait_until

DECIDING = b"KeyError: 'model.layers.7.weight'"


class Tail:
    """`ssh host tail -F LOG`, and when the deciding line came out of it."""

    def __init__(self, sshd: Sshd, log: Path) -> None:
        options = ["-o", f"UserKnownHostsFile={sshd.known_hosts}", "-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes"]
        self._ssh = subprocess.Popen(
            ["ssh", "-F", "none", "-T", "-p", str(sshd.port), "-i", sshd.key, *options, f"{sshd.user}@127.0.0.1",
             f"tail -n 1 -F {log}"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        self.lines = 0
        self.came: float | None = None
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._ssh.stdout is not None
        for line in self._ssh.stdout:
            self.lines += 1
            if line.startswith(DECIDING) and self.came is None:
                self.came = time.time()

    def close(self) -> None:
        self._ssh.kill()
        self._ssh.wait()
        self._reader.join()
        assert self._ssh.stdout is not None
        self._ssh.stdout.close()


def crash(server: Servelet, hook: Receiver) -> tuple[float, float]:
    """Seconds from the deciding line to its arrival by tail, and to the first post."""
    tail = Tail(server.sshd, server.log)
    try:
        assert wait_until(lambda: tail.lines > 1, 30), "tail is not there"
        server.fail()
        written = server.log.stat().st_mtime
        assert wait_until(lambda: tail.came is not None and posted(hook, server) is not None, 60), server.name
        post = posted(hook, server)
        assert tail.came is not None
        assert post is not None
        return tail.came - written, post - written
    finally:
        tail.close()


def posted(hook: Receiver, server: Servelet) -> float | None:
    """When the first post about this server came, by the time of day."""
    shift = time.time() - time.monotonic()
    for request in hook.received:
        if request.json["target"]["name"] == server.name:
            return request.at + shift
    return None


def spread(seconds: Sequence[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    return {
        "median_s": round(statistics.median(ordered), 3),
        "p99_s": round(ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))], 3),
        "longest_s": round(ordered[-1], 3),
    }


def main(crashes: int) -> None:
    with Sshd(MaxSessions=10) as sshd, Receiver() as hook, tempfile.TemporaryDirectory() as folder:
        servers = [Servelet(sshd, f"server-{number}") for number in range(crashes)]
        try:
            for server in servers:
                server.serve()
            tables = [watchd.target(server) for server in servers]
            pace = '[defaults.health]\ninterval = "10s"'
            with watchd.Daemon(Path(folder), watchd.host(sshd), *tables, watchd.webhook(hook.url), pace=pace) as daemon:
                daemon.start()
                time.sleep(12)  # a first round of everything is behind it
                took = [crash(server, hook) for server in servers]
                daemon.stop()
        finally:
            for server in servers:
                server.end()
    tails, posts = zip(*took, strict=True)
    result = {
        "crashes": crashes,
        "ssh_tail": spread(tails),
        "first_post": spread(posts),
        "post_after_tail": spread([post - tail for tail, post in took]),
    }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 50)
