"""The founding story: a server dies on a real SSH host, and one incident names the cause."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import daemon as watchd
from tests.support.receiver import Receiver, SlackReceiver
from tests.support.servelet import Servelet
from tests.support.sshd import Sshd, wait_until

pytestmark = pytest.mark.timeout(120)

GOOD = ("--draft-depth", "3", "--draft-width", "1", "--draft-budget", "4")
BAD = ("--draft-width", "1", "--draft-budget", "16", "--api-key", "sk-live-0123456789abcdef")


@pytest.fixture
def server(sshd: Sshd, request: pytest.FixtureRequest) -> Iterator[Servelet]:
    with Servelet(sshd, request.node.name[:40].strip("[]")) as server:
        yield server


@pytest.fixture
def hook() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


def watching(folder: Path, server: Servelet, hook: Receiver, *more: str, **how: bool) -> watchd.Daemon:
    return watchd.Daemon(
        folder, watchd.host(server.sshd), watchd.target(server, **how), watchd.webhook(hook.url), *more
    )


def incidents(hook: Receiver) -> list[dict[str, Any]]:
    """The newest revision of each incident that was told, the oldest incident first."""
    newest: dict[str, dict[str, Any]] = {}
    for request in hook.received:
        told = request.json
        if told["revision"] >= newest.get(told["id"], told)["revision"]:
            newest[told["id"]] = told
    return list(newest.values())


def said(hook: Receiver) -> list[tuple[Any, ...]]:
    """What was told, for a person who looks at a test that failed."""
    told = [request.json for request in hook.received]
    return [
        (t["revision"], t["stage"], t["status"], t["verdict"], t["cause"], t["summary"], t["timeline"]) for t in told
    ]


def crashes(hook: Receiver) -> list[dict[str, Any]]:
    return [told for told in incidents(hook) if told["verdict"] == "crash"]


def concluded(hook: Receiver, count: int = 1, *, limit_s: float = 40) -> list[dict[str, Any]]:
    """Wait for so many crashes whose ladder was climbed."""
    assert wait_until(lambda: sum(told["stage"] == "final" for told in crashes(hook)) >= count, limit_s), said(hook)
    return crashes(hook)


def concluded_times(hook: Receiver) -> int:
    """How often the one crash occurred, once its ladder was climbed; else 0."""
    return sum(told["occurrences"] for told in crashes(hook) if told["stage"] == "final")


def test_one_incident_names_the_guard_and_the_flags(tmp_path: Path, server: Servelet, hook: Receiver) -> None:
    """A launch with two of three flags that belong together dies, and the incident says which one is missing."""
    with watching(tmp_path, server, hook) as daemon:
        server.serve(*GOOD)
        daemon.start()
        server.end(signal.SIGTERM)
        hook.wait(1)
        server.launch(*BAD, start_s=4)
        (told,) = concluded(hook)

        assert told["status"] == "firing"
        assert told["cause"] == "launch_argument"
        assert told["root"]["text"] == "AssertionError"
        assert told["exception"] == {"type": "AssertionError", "message": ""}
        assert told["frame"]["file"] == server.source
        assert told["frame"]["function"] == "_settle_drafts"
        guard = told["source"]["guard"]
        assert set(guard["requires"]) == {"draft_depth", "draft_width", "draft_budget"}
        assert "--draft-depth" in " ".join(told["advice"])
        assert told["launch"]["origin"] == "recorded"
        assert "--draft-budget 16" in told["launch"]["command"]

        server.serve(*GOOD)
        assert wait_until(lambda: crashes(hook)[0]["status"] == "resolved", 30)
        assert daemon.stop() == 0
    first = next(request.json for request in hook.received if request.json["verdict"] == "crash")
    assert first["stage"] == "climbing", "the first word comes before the ladder is climbed"


def test_no_secret_of_the_launch_is_stored_or_sent(tmp_path: Path, server: Servelet, hook: Receiver) -> None:
    with watching(tmp_path, server, hook) as daemon:
        daemon.start()
        server.launch(*BAD, start_s=4)
        (told,) = concluded(hook)
        daemon.stop()
    assert '--api-key "$API_KEY"' in told["launch"]["command"]
    everything = b"".join(request.body for request in hook.received)
    everything += b"".join(path.read_bytes() for path in (tmp_path / "store").iterdir())
    everything += daemon.words.read_bytes() + daemon.printed.read_bytes()
    assert b"0123456789abcdef" not in everything


def test_the_founding_commands_stand_verbatim_in_the_evidence(tmp_path: Path, server: Servelet, hook: Receiver) -> None:
    with watching(tmp_path, server, hook) as daemon:
        daemon.start()
        server.launch(*BAD)
        (told,) = concluded(hook)
        daemon.stop()
    broad, context = told["evidence"][0], next(step for step in told["evidence"] if "-B5" in step["command"])
    assert broad["command"] == (
        rf'LC_ALL=C grep -a -i "error\|Error\|exception\|Traceback\|failed\|CUDA\|assert" {server.log} | tail -20'
    )
    assert broad["excerpt"].splitlines()[0] == "Traceback (most recent call last):"
    assert broad["excerpt"].splitlines()[-1] == "AssertionError"
    assert context["command"] == f'LC_ALL=C grep -a -B5 "Assert" {server.log}'
    assert "assert chosen == (None, None)" in context["excerpt"]


def test_a_slack_webhook_hears_exactly_two_messages(tmp_path: Path, server: Servelet, hook: Receiver) -> None:
    """An incoming webhook cannot edit: one complete firing message, one resolved message, nothing else."""
    with SlackReceiver() as slack:
        sink = f'[sinks.ops]\ntype = "slack"\nurl = "{slack.url}"'
        with watching(tmp_path, server, hook, sink) as daemon:
            daemon.start()
            server.launch(*BAD)
            concluded(hook)
            slack.wait(1)
            server.serve(*GOOD)
            slack.wait(2, limit_s=40)
            assert daemon.stop() == 0
        firing, resolved = (request.json for request in slack.received)
    assert "--draft-depth" in str(firing)
    assert "is back" in resolved["text"]


def test_file_and_terminal_are_told_too(tmp_path: Path, server: Servelet, hook: Receiver) -> None:
    tables = (
        f'[sinks.archive]\ntype = "file"\npath = "{tmp_path}/incidents.jsonl"',
        '[sinks.screen]\ntype = "terminal"',
    )
    with watching(tmp_path, server, hook, *tables) as daemon:
        daemon.start()
        server.launch(*BAD)
        (told,) = concluded(hook)
        daemon.stop()
    assert told["id"] in (tmp_path / "incidents.jsonl").read_text()
    assert "AssertionError" in daemon.printed.read_text()


def test_a_server_killed_without_a_word_is_a_crash(tmp_path: Path, server: Servelet, hook: Receiver) -> None:
    """SIGKILL leaves no line in the log: the process list tells."""
    with watching(tmp_path, server, hook) as daemon:
        server.serve(*GOOD)
        daemon.start()
        server.end(signal.SIGKILL)
        (told,) = concluded(hook)
        daemon.stop()
    assert told["cause"] == "process_killed"


def test_a_server_stopped_in_order_is_no_alarm(tmp_path: Path, server: Servelet, hook: Receiver) -> None:
    with watching(tmp_path, server, hook) as daemon:
        server.serve(*GOOD)
        daemon.start()
        server.end(signal.SIGTERM)
        assert wait_until(lambda: bool(incidents(hook)), 30)
        daemon.stop()
    (told,) = incidents(hook)
    assert (told["verdict"], told["severity"], told["status"]) == ("stopped", "info", "resolved")


def test_a_traceback_without_a_health_endpoint_is_a_crash(tmp_path: Path, server: Servelet, hook: Receiver) -> None:
    with watching(tmp_path, server, hook, health=False, process=False) as daemon:
        daemon.start()
        server.launch(*BAD)
        (told,) = concluded(hook)
        daemon.stop()
    assert told["cause"] == "launch_argument"


def test_a_crash_at_work_names_the_exception(tmp_path: Path, server: Servelet, hook: Receiver) -> None:
    with watching(tmp_path, server, hook) as daemon:
        server.serve(*GOOD)
        daemon.start()
        server.fail()
        (told,) = concluded(hook)
        daemon.stop()
    assert told["exception"] == {"type": "KeyError", "message": "'model.layers.7.weight'"}
    assert told["frame"]["function"] == "work_loop"


def test_a_crash_while_watchd_was_away_is_found_on_return(tmp_path: Path, server: Servelet, hook: Receiver) -> None:
    with watching(tmp_path, server, hook) as daemon:
        server.serve(*GOOD)
        daemon.start()
        daemon.logged("ready")
        assert daemon.stop() == 0
        server.fail()
        daemon.start()
        (told,) = concluded(hook)
        daemon.stop()
    assert told["exception"]["type"] == "KeyError"


def test_a_crash_met_at_first_sight_is_found(tmp_path: Path, server: Servelet, hook: Receiver) -> None:
    """The log was never seen before, and nobody answers: its last run is diagnosed once."""
    server.serve(*GOOD)
    server.fail()
    with watching(tmp_path, server, hook) as daemon:
        daemon.start()
        (told,) = concluded(hook)
        daemon.stop()
    assert told["exception"]["type"] == "KeyError"


def test_last_months_crash_raises_no_alarm(tmp_path: Path, server: Servelet, hook: Receiver) -> None:
    """A log with an old traceback, of a server that answers: context, not news."""
    server.serve(*GOOD)
    server.fail()
    server.serve(*GOOD)
    with watching(tmp_path, server, hook) as daemon:
        daemon.start()
        daemon.logged("ready")
        assert not wait_until(lambda: bool(hook.received), 6)
        assert daemon.stop() == 0


def test_a_crash_between_two_looks_is_found(tmp_path: Path, server: Servelet, hook: Receiver) -> None:
    """A supervisor starts the server again at once: by the next health check all is well, and the crash is told all the same."""
    with watching(tmp_path, server, hook) as daemon:
        server.serve(*GOOD)
        daemon.start()
        server.fail()
        server.serve(*GOOD)
        (told,) = concluded(hook)
        assert wait_until(lambda: crashes(hook)[0]["status"] == "resolved", 30)
        daemon.stop()
    assert told["exception"]["type"] == "KeyError"


def test_a_relaunch_over_the_log_does_not_destroy_the_evidence(
    tmp_path: Path, server: Servelet, hook: Receiver
) -> None:
    """`> server.log` truncates the traceback in place; what watchd had read of it is looked into all the same."""
    with watching(tmp_path, server, hook) as daemon:
        server.serve(*GOOD)
        daemon.start()
        server.fail()
        hook.wait(1)
        server.serve(*GOOD, truncate=True)
        (told,) = concluded(hook)
        daemon.stop()
    assert told["exception"] == {"type": "KeyError", "message": "'model.layers.7.weight'"}
    assert told["frame"]["function"] == "work_loop"
    broad = next(step for step in told["evidence"] if "grep" in step["command"])
    assert (broad["via"], "was replaced" in broad["detail"]) == ("local", True)


def test_a_stop_and_a_crash_over_the_log_are_two_things(tmp_path: Path, server: Servelet, hook: Receiver) -> None:
    """A server is stopped and relaunched with `>` a moment later, and that launch dies: one orderly end, one crash."""
    with watching(tmp_path, server, hook) as daemon:
        server.serve(*GOOD)
        daemon.start()
        server.end(signal.SIGTERM)
        # Its last words must have been read: what is written and truncated between two looks is a gap, and said to be.
        time.sleep(1.2)
        server.launch(*BAD, truncate=True, start_s=2)
        (told,) = concluded(hook)
        daemon.stop()
    assert told["cause"] == "launch_argument"
    assert told["log"]["complete"]
    assert [found["verdict"] for found in incidents(hook) if found["verdict"] != "crash"] == ["stopped"]


def test_a_crash_loop_is_one_incident_with_occurrences(tmp_path: Path, server: Servelet, hook: Receiver) -> None:
    with watching(tmp_path, server, hook) as daemon:
        daemon.start()
        for count in (1, 2, 3):
            server.launch(*BAD, start_s=3)
            assert wait_until(lambda: concluded_times(hook) == count, 40), said(hook)  # noqa: B023
        daemon.stop()
    (told,) = crashes(hook)
    assert (told["occurrences"], told["cause"], told["status"]) == (3, "launch_argument", "firing")


def test_a_crash_during_a_lost_connection_is_found(tmp_path: Path, server: Servelet, hook: Receiver, make_sshd) -> None:  # type: ignore[no-untyped-def]
    sshd = make_sshd()
    with Servelet(sshd) as server, watching(tmp_path, server, hook) as daemon:
        server.serve(*GOOD)
        daemon.start()
        sshd.end()

        daemon.logged("host_down")
        server.fail()
        sshd.start()
        (told,) = concluded(hook)
        daemon.stop()
    assert told["exception"]["type"] == "KeyError"


def test_a_lost_host_is_told_and_resolved(tmp_path: Path, server: Servelet, hook: Receiver, make_sshd) -> None:  # type: ignore[no-untyped-def]
    """A host that refuses watchd's key is an incident of the host, not of its servers."""
    sshd = make_sshd()
    with Servelet(sshd) as server, watching(tmp_path, server, hook) as daemon:
        server.serve(*GOOD)
        daemon.start()
        sshd.change_host_key()
        sshd.restart()
        assert wait_until(lambda: any(told["scope"] == "host" for told in incidents(hook)), 60)
        (told,) = incidents(hook)
        assert (told["verdict"], told["severity"], told["target"]) == ("unreachable", "critical", None)
        assert "key" in told["summary"]
        daemon.stop()
