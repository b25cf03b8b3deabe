"""One target that cannot be watched says why, and the others are watched all the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support import daemon as watchd
from tests.support.receiver import Receiver
from tests.support.servelet import Servelet, free_port
from tests.support.sshd import Sshd, wait_until

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def server(sshd: Sshd) -> Iterator[Servelet]:
    with Servelet(sshd, "good") as server:
        yield server


def also(host: str, log: str, name: str = "bad") -> str:
    return f'[[targets]]\nname = "{name}"\nhost = "{host}"\nlog = "{log}"'


def assert_the_good_one_is_watched(hook: Receiver, server: Servelet) -> None:
    server.fail()
    assert wait_until(
        lambda: any(request.json["target"] and request.json["target"]["name"] == "good" for request in hook.received),
        30,
    )


def test_a_missing_log_is_said_and_awaited(tmp_path: Path, sshd: Sshd, server: Servelet) -> None:
    log = f"{sshd.logs}/later.log"
    with Receiver() as hook:
        tables = (watchd.host(sshd), watchd.target(server), also("gpu-test", log), watchd.webhook(hook.url))
        with watchd.Daemon(tmp_path, *tables) as daemon:
            server.serve()
            daemon.start()
            assert log in daemon.logged("log_missing")["log"]
            assert_the_good_one_is_watched(hook, server)
            sshd.write_log("later.log", "here\n")
            assert wait_until(lambda: any(event["log"] == log for event in daemon.events("log_live")), 30)
            assert daemon.stop() == 0


def test_an_unreadable_log_is_said_with_its_owner(tmp_path: Path, sshd: Sshd, server: Servelet) -> None:
    log = Path(sshd.write_log("closed.log", "x\n"))
    log.chmod(0o000)
    with Receiver() as hook:
        tables = (watchd.host(sshd), watchd.target(server), also("gpu-test", str(log)), watchd.webhook(hook.url))
        with watchd.Daemon(tmp_path, *tables) as daemon:
            server.serve()
            daemon.start()
            assert sshd.user in daemon.logged("log_denied")["detail"]
            assert_the_good_one_is_watched(hook, server)
            assert daemon.stop() == 0


def unknown_key(sshd: Sshd) -> str:
    Path(sshd.known_hosts).write_text("")
    return sshd.fingerprint


def changed_key(sshd: Sshd) -> str:
    sshd.change_host_key()
    sshd.restart()
    return "key"


def refused_key(sshd: Sshd) -> str:
    (sshd.folder / "authorized_keys").write_text("")
    return sshd.user


def unreachable(sshd: Sshd) -> str:
    sshd.end()
    return "refused"


@pytest.mark.parametrize("break_it", [unknown_key, changed_key, refused_key, unreachable])
def test_a_host_that_cannot_be_reached_is_said_and_the_others_go_on(
    tmp_path: Path,
    sshd: Sshd,
    server: Servelet,
    make_sshd: Callable[..., Sshd],
    break_it: Callable[[Sshd], str],
) -> None:
    broken = make_sshd()
    words = break_it(broken)
    log = broken.write_log("server.log", "x\n")
    with Receiver() as hook:
        tables = (
            watchd.host(sshd), watchd.host(broken, "broken"), watchd.target(server), also("broken", log),
            watchd.webhook(hook.url),
        )  # fmt: skip
        with watchd.Daemon(tmp_path, *tables) as daemon:
            server.serve()
            daemon.start()
            event = daemon.logged("host_down")
            assert event["host"] == "broken"
            assert words in event["error"]
            assert_the_good_one_is_watched(hook, server)
            assert daemon.stop() == 0


def test_a_health_endpoint_that_is_not_there_is_no_alarm_while_the_server_starts(
    tmp_path: Path, sshd: Sshd, server: Servelet
) -> None:
    """A server whose health port nobody has opened yet is starting, not down."""
    log = sshd.write_log("starting.log", "loading weights\n")
    target = also("gpu-test", log, "starting") + f'\nhealth = "http://127.0.0.1:{free_port()}/health"'
    with Receiver() as hook:
        tables = (watchd.host(sshd), watchd.target(server), target, watchd.webhook(hook.url))
        with watchd.Daemon(tmp_path, *tables) as daemon:
            server.serve()
            daemon.start()
            assert_the_good_one_is_watched(hook, server)
            assert not any(request.json["target"]["name"] == "starting" for request in hook.received)
            daemon.stop()


def test_a_line_of_50_mb_and_bytes_that_are_no_text_do_not_stop_the_watch(
    tmp_path: Path, sshd: Sshd, server: Servelet
) -> None:
    """The crash after them is found, and watchd's memory stays bounded meanwhile."""
    with (
        Receiver() as hook,
        watchd.Daemon(tmp_path, watchd.host(sshd), watchd.target(server), watchd.webhook(hook.url)) as daemon,
    ):
        server.serve()
        daemon.start()
        before = daemon.peak_mib()
        with server.log.open("ab") as log:
            log.write(b"\xff\xfe\x00\x80 not text \xc3\n")
            for _ in range(50):
                log.write(b"x" * (1 << 20))
            log.write(b"\n")
        assert_the_good_one_is_watched(hook, server)
        assert wait_until(lambda: hook.received[-1].json["stage"] == "final", 60)
        assert hook.received[-1].json["exception"]["type"] == "KeyError"
        assert daemon.peak_mib() - before < 150
        daemon.stop()
