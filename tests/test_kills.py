"""watchd killed by SIGKILL at and between the commits of an incident's life: nothing is lost, whatever the moment."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import daemon as watchd
from tests.support.receiver import Receiver
from tests.support.servelet import Servelet
from tests.support.sshd import Sshd, wait_until

pytestmark = pytest.mark.timeout(150)

AT_COMMITS = [
    (label, number, when)
    for label, number in (("file", 1), ("lease", 1), ("settle", 1), ("file", 2), ("lease", 2), ("settle", 2))
    for when in ("before", "after")
]
BETWEEN = [0.0, 0.3, 0.6, 0.9, 1.3, 1.8, 2.5, 3.5]
"""Seconds from the server's end to the kill."""


@pytest.fixture
def server(sshd: Sshd, request: pytest.FixtureRequest) -> Iterator[Servelet]:
    with Servelet(sshd, f"kill-{abs(hash(request.node.name)):x}") as server:
        yield server


def tables(server: Servelet, hook: Receiver) -> tuple[str, str, str]:
    return watchd.host(server.sshd), watchd.target(server), watchd.webhook(hook.url)


def assert_told(hook: Receiver) -> None:
    """The sink knows the one incident in its final state, and no revision of it says anything else."""
    assert wait_until(lambda: any(final(request.json) for request in hook.received), 60), [
        (request.json["stage"], request.json["summary"]) for request in hook.received
    ]
    assert len({request.json["id"] for request in hook.received}) == 1
    keys = [request.headers["idempotency-key"] for request in hook.received]
    assert len(keys) - len(set(keys)) <= 1, "only the message that the kill caught may come twice"


def final(told: dict[str, Any]) -> bool:
    return told["stage"] == "final" and (told["exception"] or {}).get("type") == "KeyError"


@pytest.mark.parametrize(("label", "number", "when"), AT_COMMITS)
def test_a_kill_at_a_commit_loses_no_incident(
    tmp_path: Path, server: Servelet, label: str, number: int, when: str
) -> None:
    command = (sys.executable, "-m", "tests.support.doomed", label, str(number), when)
    with Receiver() as hook:
        server.serve()
        with watchd.Daemon(tmp_path, *tables(server, hook), command=command) as doomed:
            doomed.start()
            server.fail()
            assert doomed.process is not None
            assert doomed.process.wait(60) == -9, doomed.words.read_text()
        with watchd.Daemon(tmp_path, *tables(server, hook)) as heir:
            heir.start()
            assert_told(hook)
            assert heir.stop() == 0


@pytest.mark.parametrize("delay_s", BETWEEN)
def test_a_kill_between_commits_loses_no_incident(tmp_path: Path, server: Servelet, delay_s: float) -> None:
    with Receiver() as hook:
        server.serve()
        with watchd.Daemon(tmp_path, *tables(server, hook)) as daemon:
            daemon.start()
            server.fail()
            time.sleep(delay_s)
            daemon.kill()
            daemon.start()
            assert_told(hook)
            assert daemon.stop() == 0
