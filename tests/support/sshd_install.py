"""Find an OpenSSH sshd or fetch one, and the account that it serves."""

from __future__ import annotations

import fcntl
import getpass
import os
import pwd
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

USUAL_PLACES = (Path("/usr/sbin/sshd"), Path("/usr/local/sbin/sshd"))
TEST_USER = "watchd-test"
HELP = (
    "no sshd for the tests: run `apt-get install openssh-server` (it starts a service on port 22), or be root on Debian"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """An sshd that can be started: its absolute path, what it needs in its environment, options that it must have."""

    path: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)


def find_sshd(places: tuple[Path, ...] = USUAL_PLACES) -> Server:
    """The installed sshd; else, as root on Debian, one unpacked into a private folder. Raises RuntimeError."""
    for place in places:
        if os.access(place, os.X_OK):
            return Server(path=place)
    if os.getuid() != 0 or shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        raise RuntimeError(HELP)
    cache = public_temp() / "watchd-sshd-cache"
    try:
        with locked("watchd-sshd-fetch"):
            return _unpacked(cache)
    except (OSError, subprocess.CalledProcessError) as error:
        raise RuntimeError(f"{HELP} ({error})") from error


def _unpacked(cache: Path) -> Server:
    """Download and unpack what is missing: no package is installed, no service is started."""
    root, path = cache / "root", cache / "root/usr/sbin/sshd"
    cache.mkdir(mode=0o755, parents=True, exist_ok=True)
    if cache.stat().st_uid != 0:
        raise OSError(f"{cache} belongs to somebody else")
    if not path.exists():
        _fetch("openssh-server", cache, root)
    # A library that is fetched may need others.
    for _ in range(5):
        missing = tuple(_missing_libraries(path, _environment(root)))
        for library in missing:
            _fetch_library(library, cache, root)
        if not missing:
            break
    options = {
        # From 9.8 on, sshd runs other programs of its own, by absolute paths.
        option: str(root / "usr/lib/openssh" / name)
        for option, name in (("SshdSessionPath", "sshd-session"), ("SshdAuthPath", "sshd-auth"))
        if (root / "usr/lib/openssh" / name).exists()
    }
    return Server(path=path, environment=_environment(root), options=options)


def _environment(root: Path) -> dict[str, str]:
    folders = [str(folder) for folder in (*root.glob("usr/lib/*-linux-*"), *root.glob("lib/*-linux-*"))]
    return {"LD_LIBRARY_PATH": ":".join(folders)} if folders else {}


def _fetch_library(library: str, cache: Path, root: Path) -> None:
    for package in _packages_of(library):
        if _available(package):
            _fetch(package, cache, root)
            return


def _fetch(package: str, cache: Path, root: Path) -> None:
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        # apt drops its privileges to _apt for a download, which must be able to write there.
        Path(folder).chmod(0o755)
        subprocess.run(
            ["apt-get", "-o", "APT::Sandbox::User=root", "download", package],
            cwd=folder, check=True, capture_output=True, timeout=120,
        )  # fmt: skip
        for archive in Path(folder).glob("*.deb"):
            subprocess.run(["dpkg", "-x", archive, root], check=True, capture_output=True, timeout=120)


def _missing_libraries(path: Path, environment: Mapping[str, str]) -> Iterator[str]:
    listed = subprocess.run(
        ["ldd", path], env={**os.environ, **environment}, check=True, capture_output=True, text=True, timeout=30
    )
    for line in listed.stdout.splitlines():
        # \tlibwrap.so.0 => not found
        found = re.fullmatch(r"\s*(\S+) => not found", line)
        if found:
            yield found[1]


def _packages_of(library: str) -> tuple[str, ...]:
    """Debian's rule: libwrap.so.0 is in libwrap0, libkrb5.so.3 in libkrb5-3, since 2024 perhaps with t64 behind it."""
    name, _, version = library.partition(".so.")
    name = name.replace("_", "-").lower()
    package = name + ("-" if name[-1].isdigit() else "") + version
    return package, package + "t64"


def _available(package: str) -> bool:
    shown = subprocess.run(["apt-cache", "show", package], check=False, capture_output=True, timeout=60)
    return shown.returncode == 0 and bool(shown.stdout)


def account() -> str:
    """The user that the test's sshd serves: as root an unprivileged one of its own, else oneself."""
    if os.getuid() != 0:
        return getpass.getuser()
    with locked("watchd-sshd-account"):
        if not _exists("sshd"):
            _run("useradd", "-r", "-M", "-d", "/run/sshd", "-s", "/usr/sbin/nologin", "sshd")
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        if not _exists(TEST_USER):
            _run("useradd", "-M", "-d", "/", "-s", "/bin/bash", TEST_USER)
        # useradd leaves `!` as password, which sshd without PAM takes for a locked account.
        _run("usermod", "-p", "*", TEST_USER)
    return TEST_USER


def _exists(user: str) -> bool:
    try:
        pwd.getpwnam(user)
    except KeyError:
        return False
    return True


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, timeout=60)


def public_temp() -> Path:
    """A temporary folder that every user can reach."""
    folder = Path(tempfile.gettempdir()).resolve()
    reachable = all(part.stat().st_mode & 0o001 for part in (folder, *folder.parents))
    return folder if reachable else Path("/tmp")


@contextmanager
def locked(name: str) -> Iterator[None]:
    """One process at a time, over all test runs of this machine."""
    with (public_temp() / f"{name}.{os.getuid()}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
