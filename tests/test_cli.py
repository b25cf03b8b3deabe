"""The command line: what it answers without paying for libraries, and how it says no."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.sshd import Sshd

ROOT = Path(__file__).parents[1]
HEAVY = ("asyncssh", "httpx", "httpcore", "structlog", "pydantic", "tenacity", "textual", "cryptography")


def watchd(*words: str, home: Path | None = None, stdin: int = subprocess.DEVNULL) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(home or "/nonexistent"), "NO_COLOR": "1"}
    environment.pop("XDG_CONFIG_HOME", None)
    return subprocess.run(
        [sys.executable, "-m", "watchd", *words],
        env=environment,
        stdin=stdin,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize("words", [("--help",), ("--version",), ("diagnose", "--help")])
def test_help_and_version_import_no_library(words: tuple[str, ...]) -> None:
    shown = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "watchd", *words],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert shown.returncode == 0
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in shown.stderr.splitlines()}
    assert not imported.intersection(HEAVY)


def test_no_words_is_a_usage_error() -> None:
    assert watchd().returncode == 2


def test_check_prints_file_line_key_and_reason(tmp_path: Path) -> None:
    config = tmp_path / "watchd.toml"
    config.write_text('[[targets]]\nname = "a"\nhost = "h"\nlog = "/l"\nengin = "x"\n')
    said = watchd("check", "-c", str(config))
    assert said.returncode == 78
    assert f"{config}:5: targets[0].engin: " in said.stderr
    assert "engine" in said.stderr


def test_run_refuses_what_this_version_does_not_build(tmp_path: Path) -> None:
    """By line and key, not silently."""
    config = tmp_path / "watchd.toml"
    config.write_text('[web]\nlisten = "127.0.0.1:9464"\n')
    said = watchd("run", "-c", str(config))
    assert said.returncode == 78
    assert f"{config}:1: web: not in this version" in said.stderr


def test_run_with_nothing_to_watch_is_no_daemon(tmp_path: Path) -> None:
    """Better none than one that is believed to watch."""
    config = tmp_path / "watchd.toml"
    config.write_text("")
    said = watchd("run", "-c", str(config))
    assert (said.returncode, "no target" in said.stderr) == (78, True)


def test_output_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("fine\n")
    said = subprocess.run(
        f"{sys.executable} -m watchd diagnose {log} > /dev/full",
        shell=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (said.returncode, said.stderr) == (1, "watchd: No space left on device\n")


def test_run_without_a_configuration_says_where_it_may_lie(tmp_path: Path) -> None:
    said = watchd("run", home=tmp_path)
    assert said.returncode == 78
    assert "/etc/watchd/watchd.toml" in said.stderr


@pytest.mark.parametrize("which", ["incident", "config"])
def test_schema_prints_a_json_schema(which: str) -> None:
    assert json.loads(watchd("schema", which).stdout)["type"] == "object"


def test_a_log_file_here_is_diagnosed(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text(
        'Traceback (most recent call last):\n  File "/app/train.py", line 3, in <module>\n    main()\n'
        "FileNotFoundError: [Errno 2] No such file or directory: '/data/x'\n"
    )
    said = watchd("diagnose", str(log), "--health", "down", "--json", "--exit-code")
    told = json.loads(said.stdout)
    assert said.returncode == 3
    assert told["exception"]["type"] == "FileNotFoundError"
    assert (told["root"]["line"], told["target"]["host"]) == (4, None)


def test_bytes_that_are_no_text_are_diagnosed_all_the_same(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(b"\xff\xfe\x00\x9b junk \x00\n" * 50 + b"RuntimeError: caf\xe9\n")
    said = watchd("diagnose", str(log), "--json")
    assert said.returncode == 0
    assert json.loads(said.stdout)["schema"] == "watchd.incident/1"


def test_a_log_of_one_50_mb_line_is_diagnosed_in_bounded_time(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    with log.open("wb") as file:
        for _ in range(50):
            file.write(b"x" * (1 << 20))
        file.write(
            b'\nTraceback (most recent call last):\n  File "/a.py", line 1, in <module>\nValueError: at the end\n'
        )
    told = json.loads(watchd("diagnose", str(log), "--health", "down", "--json").stdout)
    assert told["exception"]["message"] == "at the end"
    assert told["root"]["line"] is None, "the beginning was not read, so nobody counted"
    assert told["root"]["offset"] == log.stat().st_size - len("ValueError: at the end\n")


def test_a_closed_pipe_ends_quietly(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("fine\n")
    said = subprocess.run(
        f"{sys.executable} -m watchd diagnose {log} --json | true",
        shell=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert said.stderr == ""


@pytest.mark.parametrize(
    ("what", "status", "words"),
    [
        ("nowhere.log", 2, "no such file here"),
        ("-oProxyCommand=evil:/var/log/x", 2, ""),
        ("host:relative.log", 2, "absolute path"),
        ("ssh://", 2, "ssh://user@host:port/path"),
        ("no-such-host.invalid:/var/log/x", 4, "no-such-host.invalid"),
    ],
)
def test_what_cannot_be_reached_is_said_with_its_status(tmp_path: Path, what: str, status: int, words: str) -> None:
    said = watchd("diagnose", what, home=tmp_path)
    assert said.returncode == status, said.stderr
    assert words in said.stderr
    assert "Traceback" not in said.stderr


def test_an_empty_folder_is_no_bundle(tmp_path: Path) -> None:
    said = watchd("diagnose", str(tmp_path))
    assert (said.returncode, "server.log" in said.stderr) == (1, True)


class TestOverSsh:
    """`diagnose HOST:LOG` against the real sshd, reached by ~/.ssh/config alone."""

    @pytest.fixture
    def home(self, tmp_path: Path, sshd: Sshd) -> Path:
        ssh = tmp_path / ".ssh"
        ssh.mkdir(mode=0o700)
        (ssh / "config").write_text(
            f"Host gpu\n  HostName 127.0.0.1\n  Port {sshd.port}\n  User {sshd.user}\n  IdentityFile {sshd.key}\n"
            f"  UserKnownHostsFile {sshd.known_hosts}\n"
        )
        return tmp_path

    def test_a_log_is_diagnosed(self, home: Path, sshd: Sshd) -> None:
        log = sshd.write_log(
            "cli.log", 'Traceback (most recent call last):\n  File "/a.py", line 1, in <module>\nKeyError: 1\n'
        )
        said = watchd("diagnose", f"gpu:{log}", "--json", home=home)
        told = json.loads(said.stdout)
        assert told["exception"] == {"type": "KeyError", "message": "1"}
        assert told["target"]["host"] == "gpu"
        assert told["look"].startswith("ssh gpu ")

    def test_a_missing_log_is_exit_5(self, home: Path, sshd: Sshd) -> None:
        said = watchd("diagnose", f"gpu:{sshd.logs}/nothing.log", home=home)
        assert (said.returncode, "nothing.log" in said.stderr) == (5, True)

    def test_an_unreadable_log_is_exit_5_and_says_whose_it_is(self, home: Path, sshd: Sshd) -> None:
        log = Path(sshd.write_log("secret.log", "x\n"))
        log.chmod(0o000)
        said = watchd("diagnose", f"gpu:{log}", home=home)
        assert said.returncode == 5
        assert sshd.user in said.stderr

    def test_a_host_whose_key_nobody_knows_is_exit_4_with_its_fingerprint(self, home: Path, sshd: Sshd) -> None:
        empty = home / "empty"
        empty.write_text("")
        config = home / ".ssh" / "config"
        config.write_text(config.read_text().replace(sshd.known_hosts, str(empty)))
        said = watchd("diagnose", f"gpu:{sshd.logs}/x.log", home=home)
        assert said.returncode == 4
        assert sshd.fingerprint in said.stderr

    def test_health_may_be_asked_at_a_url_through_the_host(self, home: Path, sshd: Sshd) -> None:
        log = sshd.write_log("calm.log", "serving\n")
        said = watchd("diagnose", f"gpu:{log}", "--health", "http://127.0.0.1:1/health", "--json", home=home)
        health = json.loads(said.stdout)["health"]
        assert (health["state"], health["samples"][0]["result"]) == ("down", "down")


OWN = """
[[signature]]
name = "licence-server-away"
cause = "network"
patterns = ["^licence: no seat from"]
says = "no seat"
advice = ["Ask it."]
matches = ["licence: no seat from lic-1"]
misses = ["licence: seat taken"]
"""


def test_signatures_are_listed_with_cause_family_and_samples(tmp_path: Path) -> None:
    said = watchd("signatures", "list", home=tmp_path)
    assert said.stdout.splitlines()[0].split() == ["NAME", "CAUSE", "ROLE", "FAMILY", "SAMPLES"]
    assert any(line.split()[:4] == ["killed", "process_killed", "echo", "process"] for line in said.stdout.splitlines())
    rows = json.loads(watchd("signatures", "list", "--json", home=tmp_path).stdout)
    assert all(row["matches"] and row["misses"] for row in rows)


def test_a_file_of_signatures_is_tried_on_its_samples(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text(OWN)
    said = watchd("signatures", "test", str(file))
    assert said.returncode == 0
    assert "licence-server-away: 1+1 samples" in said.stdout
    file.write_text(OWN.replace('misses = ["licence: seat taken"]', 'misses = ["licence: no seat from x"]'))
    said = watchd("signatures", "test", str(file))
    assert said.returncode == 78
    assert f"{file}:2: signature 'licence-server-away': it matches what it must miss" in said.stderr


def test_signatures_are_tried_on_a_log_line_by_line(tmp_path: Path) -> None:
    log, file = tmp_path / "server.log", tmp_path / "own.toml"
    log.write_text("fine\n[2026-12-01 10:00:00] licence: no seat from lic-1\x1b[2J\nKilled\n")
    file.write_text(OWN)
    said = watchd("signatures", "test", str(file), str(log))
    assert said.stdout == "line 2: licence-server-away (network, root): licence: no seat from lic-1\n"
    assert watchd("signatures", "test", str(log), home=tmp_path).stdout.startswith("line 3: killed (")


def test_check_and_run_tell_broken_signatures(tmp_path: Path) -> None:
    folder = tmp_path / "signatures.d"
    folder.mkdir()
    (folder / "own.toml").write_text(OWN.replace("network", "hunger"))
    config = tmp_path / "watchd.toml"
    config.write_text(f'[defaults]\nsignatures = "{folder}"\n')
    for command in ("check", "run"):
        said = watchd(command, "-c", str(config))
        assert said.returncode == 78
        assert f"{folder}/own.toml:2: signature 'licence-server-away': cause 'hunger' is none of" in said.stderr
    (row,) = json.loads(watchd("check", "--json", "-c", str(config)).stdout)
    assert (row["file"], row["line"]) == (f"{folder}/own.toml", 2)


def test_explain_says_how_the_judgement_came_about(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text('Traceback (most recent call last):\n  File "/a.py", line 1, in <module>\nKeyError: 1\n')
    said = watchd("diagnose", str(log), "--health", "down", "--explain", home=tmp_path)
    assert "DECIDES" in said.stdout
    assert "line 3: unhandled_exception" in said.stdout
    said = watchd("diagnose", str(log), "--health", "down", "--explain", "--json", home=tmp_path)
    assert json.loads(said.stdout)["cause"] == "unhandled_exception"
    assert "DECIDES" in said.stderr
