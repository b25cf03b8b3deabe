"""An OpenSSH sshd of the tests' own: loopback only, throw-away keys, a home and a PATH of its own.

As root it serves an unprivileged user made for it, as anybody else it serves that user alone. Every session on it has
`HOME` and `PATH` below the server's own folder, so neither start-up files nor programs of this machine weigh in.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import asyncssh

from tests.support.sshd_install import account, find_sshd, public_temp
from watchd.hosts.ssh import SshAddress, SshHost

QUIET_DMESG = "#!/bin/sh\necho '[Mon Jan  5 10:00:00 2026] Linux version 6.1.0'\n"


class Sshd:
    """One sshd. `options` are lines of sshd_config; one with value None takes a default away.

    folder      everything that it owns, mode 0755; removed by `stop`
    logs        a folder for logs that the user can read
    home        HOME of every session
    bin         in front of PATH in every session, for scripted programs
    key         path of the client's private key
    known_hosts path of a file with this host's key in it
    user        the account it serves
    """

    def __init__(self, *, rc: str | None = None, **options: str | int | None) -> None:
        self.user = account()
        self.server = find_sshd()
        self.folder = Path(tempfile.mkdtemp(prefix="watchd-sshd-", dir=public_temp()))
        self.folder.chmod(0o755)
        self.logs, self.home, self.bin = (self._subfolder(name) for name in ("logs", "home", "bin"))
        self.key, self.known_hosts = str(self.folder / "id_ed25519"), str(self.folder / "known_hosts")
        self.options = options
        self.port = _free_port()
        self.listener: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None
        self._rc = rc
        self.script("dmesg", QUIET_DMESG)
        self._write_keys()

    def _subfolder(self, name: str) -> Path:
        path = self.folder / name
        path.mkdir()
        path.chmod(0o755)
        if os.getuid() == 0:
            shutil.chown(path, self.user)
        return path

    def _write_keys(self) -> None:
        key = asyncssh.generate_private_key("ssh-ed25519")
        key.write_private_key(self.key)
        Path(self.key).chmod(0o600)
        key.write_public_key(str(self.folder / "authorized_keys"))
        (self.folder / "authorized_keys").chmod(0o644)
        self.change_host_key()
        self.trust()

    def change_host_key(self) -> None:
        """Make a new host key; a running server shows it after `restart`. `known_hosts` still has the old one."""
        key = asyncssh.generate_private_key("ssh-ed25519")
        path = self.folder / "host_ed25519"
        key.write_private_key(str(path))
        path.chmod(0o600)
        self.host_key = key.export_public_key().decode().strip()
        self.fingerprint = key.get_fingerprint()

    def trust(self) -> None:
        """Write the present host key into `known_hosts`."""
        Path(self.known_hosts).write_text(f"[127.0.0.1]:{self.port} {self.host_key}\n")

    def script(self, name: str, text: str) -> None:
        """Put a program in front of the host's PATH, `dmesg` say; `text` begins with its `#!` line."""
        path = self.bin / name
        path.write_text(text)
        path.chmod(0o755)

    def write_log(self, name: str, data: bytes | str) -> str:
        """Write a log that the user can read; returns its path on the host."""
        path = self.logs / name
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        path.chmod(0o644)
        return str(path)

    def address(self, *, via: SshHost | None = None, name: str = "gpu-test") -> SshAddress:
        """How to reach it; nothing comes from the person's own ssh_config."""
        return SshAddress(
            name=name, address="127.0.0.1", port=self.port, user=self.user, identity=self.key,
            known_hosts=self.known_hosts, config="", via=via,
        )  # fmt: skip

    def start(self) -> Sshd:
        """Start it and wait until it listens. Raises RuntimeError with its own words where it does not."""
        config = self.folder / "sshd_config"
        config.write_text("".join(f"{key} {value}\n" for key, value in self._config().items() if value is not None))
        log = self.folder / "sshd.log"
        self._log = log.open("wb")
        self.listener = subprocess.Popen(
            [str(self.server.path), "-D", "-e", "-f", str(config)],
            env={**os.environ, **self.server.environment},
            stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log, start_new_session=True,
        )  # fmt: skip
        # Its own word is waited for: a connection to see whether it listens might draw a penalty.
        if not wait_until(lambda: b"listening on" in log.read_bytes() or self.listener_ended(), 20):
            raise RuntimeError(f"sshd does not start: {log.read_text(errors='replace')}")
        if self.listener_ended():
            raise RuntimeError(f"sshd ended at once: {log.read_text(errors='replace')}")
        return self

    def _config(self) -> dict[str, str | int | None]:
        # SHLVL=1 keeps bash from reading ~/.bashrc, as it does for commands that sshd starts.
        start_up = "" if self._rc is not None else " SHLVL=1"
        if self._rc is not None:
            (self.home / ".bashrc").write_text(self._rc)
        return {
            "Port": self.port, "ListenAddress": "127.0.0.1", "HostKey": str(self.folder / "host_ed25519"),
            "AuthorizedKeysFile": str(self.folder / "authorized_keys"), "StrictModes": "no", "UsePAM": "no",
            "PidFile": "none", "PasswordAuthentication": "no", "KbdInteractiveAuthentication": "no",
            "AllowUsers": self.user, "LogLevel": "VERBOSE", "Subsystem": "sftp internal-sftp",
            "UseDNS": "no", "PrintMotd": "no", "PrintLastLog": "no", "MaxStartups": "1000:30:2000",
            "SetEnv": f"HOME={self.home} PATH={self.bin}:/usr/local/bin:/usr/bin:/bin{start_up}",
            **self.server.options, **self.options,
        }  # fmt: skip

    def listener_ended(self) -> bool:
        """Whether there is no listener."""
        return self.listener is None or self.listener.poll() is not None

    def stop(self) -> None:
        """End it and everything that it started, and remove its folder; a second call does nothing."""
        self.end()
        shutil.rmtree(self.folder, ignore_errors=True)

    def restart(self) -> Sshd:
        """End it and start it again on the same port, with the options as they are now."""
        self.end()
        return self.start()

    def end(self) -> None:
        """End it and everything that it started; its folder stays, `start` starts it again."""
        if self.listener is None:
            return
        below = {*_below(self.listener.pid), *self._session_processes()}
        self.listener.terminate()
        for pid in below:
            _signal(pid, signal.SIGCONT)
            _signal(pid, signal.SIGKILL)
        self.listener.wait(20)
        self.listener = None
        if self._log is not None:
            self._log.close()

    def kill_connections(self) -> None:
        """kill -9 every process of sshd that serves a connection; new connections are still served."""
        # Stopped first: a login that has just succeeded is about to fork once more.
        self.freeze()
        for pid in self.serving():
            _signal(pid, signal.SIGKILL)

    def freeze(self) -> None:
        """Stop every process of sshd that serves a connection, as a dead link does; the listener goes on."""

        def all_stopped() -> bool:
            going = [pid for pid in self.serving() if _state(pid) not in "TZX"]
            for pid in going:
                _signal(pid, signal.SIGSTOP)
            return not going

        wait_until(all_stopped)

    def thaw(self) -> None:
        """Let the stopped ones go on."""
        for pid in self.serving():
            _signal(pid, signal.SIGCONT)

    def serving(self) -> tuple[int, ...]:
        """Process ids of sshd itself below the listener: two for each connection, as root."""
        if self.listener is None:
            return ()
        return tuple(pid for pid in _below(self.listener.pid) if _name(pid).startswith("sshd"))

    def left_over(self) -> tuple[str, ...]:
        """Command lines of all processes that sessions on this server started and that still live."""
        return tuple(_command_line(pid) for pid in self._session_processes() if _state(pid) not in "ZX")

    def _session_processes(self) -> Iterator[int]:
        mark = f"HOME={self.home}\0".encode()
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and mark in _read(entry / "environ") + b"\0":
                yield int(entry.name)

    def server_log(self) -> str:
        """What sshd itself has written."""
        return (self.folder / "sshd.log").read_text(errors="replace")

    def __enter__(self) -> Sshd:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


def wait_until(condition: Callable[[], bool], limit_s: float = 20.0) -> bool:
    """Whether the condition came true in time; for tests that do not run a loop."""
    deadline = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def _below(pid: int) -> tuple[int, ...]:
    """All descendants of a process, nearest first."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            fields = _stat(int(entry.name))
            if len(fields) > 1:
                parents.setdefault(int(fields[1]), []).append(int(entry.name))
    found: list[int] = []
    waiting = [pid]
    while waiting:
        children = parents.get(waiting.pop(0), [])
        found += children
        waiting += children
    return tuple(found)


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat behind the name: state, parent, …; empty where the process is gone."""
    return _read(Path(f"/proc/{pid}/stat")).rpartition(b")")[2].decode().split()


def _state(pid: int) -> str:
    return (_stat(pid) or ["X"])[0]


def _name(pid: int) -> str:
    return _read(Path(f"/proc/{pid}/comm")).decode(errors="replace").strip()


def _command_line(pid: int) -> str:
    return _read(Path(f"/proc/{pid}/cmdline")).replace(b"\0", b" ").decode(errors="replace").strip()


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
