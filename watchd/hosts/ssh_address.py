"""How one machine is reached over SSH, as the configuration says it."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from watchd.hosts.ssh import SshHost

# gpu-01, 10.0.0.7, fd00::7
_HOST_NAME = re.compile(r"[A-Za-z0-9._:][A-Za-z0-9._:-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class SshAddress:
    """What is None comes from `ssh_config`, matched by `name`, and else is what OpenSSH would take.

    name               the host's name in the configuration and towards people
    address            host name or IP address to connect to
    port               TCP port
    user               account on the host
    identity           path of the one private key to offer; no agent is asked then
    known_hosts        path of the one file that says which key the host has
    via                the jump host, or None (then ProxyJump of the configuration counts)
    config             path of an ssh_config file, "" for none; None means `$HOME/.ssh/config`, where there is one
    connect_timeout_s  seconds for name, TCP, handshake and login together
    """

    name: str
    address: str | None = None
    port: int | None = None
    user: str | None = None
    identity: str | None = None
    known_hosts: str | None = None
    via: SshHost | None = None
    config: str | None = None
    connect_timeout_s: float = 10.0


def is_host_name(text: str) -> bool:
    """Whether this may be used as the name of a host: letters, digits, `.`, `_`, `:` and, not in front, `-`."""
    return len(text) <= 253 and _HOST_NAME.fullmatch(text) is not None


def config_path(address: SshAddress) -> str | None:
    """The ssh_config file to read, or None. `$HOME` counts, not the home that the system's user list gives."""
    if address.config is not None:
        return address.config or None
    path = home("config")
    return path if path is not None and os.access(path, os.R_OK) else None


def home(name: str) -> str | None:
    """Path of a file in `$HOME/.ssh`, or None where there is no `$HOME`."""
    folder = os.environ.get("HOME")
    return str(Path(folder, ".ssh", name)) if folder else None
