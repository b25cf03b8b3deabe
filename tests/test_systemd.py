"""The unit, and the word to the service manager."""

from __future__ import annotations

import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from watchd import systemd

UNIT = Path(__file__).parents[1] / "systemd" / "watchd.service"
INSTALL = "systemd-analyze is missing. As root: apt-get install -y systemd"


@pytest.fixture
def analyze() -> str:
    found = shutil.which("systemd-analyze")
    if found is None and shutil.which("apt-get"):
        subprocess.run(["apt-get", "install", "-y", "-qq", "systemd"], check=False, capture_output=True, timeout=300)
        found = shutil.which("systemd-analyze")
    if found is None:
        pytest.fail(INSTALL)
    return found


@pytest.mark.timeout(330)
def test_the_unit_passes_systemd_analyze_verify(tmp_path: Path, analyze: str) -> None:
    """A copy whose ExecStart exists here: verify asks for an executable."""
    unit = tmp_path / "watchd.service"
    unit.write_text(UNIT.read_text().replace("/usr/local/bin/watchd", "/bin/true"))
    said = subprocess.run([analyze, "verify", str(unit)], capture_output=True, text=True, timeout=60)
    assert (said.returncode, [line for line in said.stderr.splitlines() if "watchd.service" in line]) == (0, [])


def test_the_unit_waits_for_ready_and_does_not_loop_on_a_wrong_configuration() -> None:
    unit = UNIT.read_text().splitlines()
    assert "Type=notify" in unit
    assert "RestartPreventExitStatus=78" in unit


def test_notify_sends_one_datagram(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(5)
        assert systemd.notify("READY=1", "STATUS=fine", environ={"NOTIFY_SOCKET": str(tmp_path / "notify")})
        assert manager.recv(4096) == b"READY=1\nSTATUS=fine"


def test_notify_speaks_to_abstract_sockets() -> None:
    name = f"watchd-test-{id(object())}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f"\0{name}")
        manager.settimeout(5)
        assert systemd.notify("STOPPING=1", environ={"NOTIFY_SOCKET": f"@{name}"})
        assert manager.recv(4096) == b"STOPPING=1"


@pytest.mark.parametrize("address", [None, "", "relative", "/nowhere/notify"])
def test_notify_without_a_manager_does_nothing(address: str | None) -> None:
    assert not systemd.notify("READY=1", environ={} if address is None else {"NOTIFY_SOCKET": address})
