"""Open one SSH connection: what ssh_config says, strict host keys, and why it did not come about.

Of ssh_config only what is named in `Plan` is used: asyncssh would also take a command to run, a terminal and agent
forwarding from there, and would accept any host key where `UserKnownHostsFile` is `none`.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncssh

from watchd.errors import HostError, HostKeyChangedError, HostKeyUnknownError, HostRefusedError
from watchd.hosts import ssh_errors
from watchd.hosts.ssh_address import SshAddress, config_path, home, is_host_name

SSH_PORT = 22
KEEPALIVE_S = 3
KEEPALIVE_COUNT = 2
"""A peer that is gone is noticed after interval × (count + 1) seconds: 9."""

SYSTEM_KNOWN_HOSTS = "/etc/ssh/ssh_known_hosts"
EVERY_KEY_KIND = "+ssh-ed25519,ecdsa-sha2-nistp*,rsa-sha2-*"
"""Behind the kinds that known_hosts holds for a host. asyncssh would offer those alone, and a host that was set up anew
with a key of another kind would hang up instead of showing it."""

FAST_CIPHER = "^aes128-gcm@openssh.com"
"""In front of the list: the usual first choice costs four tenths of the throughput."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is known before anything is sent.

    host, port, user  where, and as whom
    jump              ProxyJump of ssh_config: hops from here to there, or empty
    options           keyword arguments of asyncssh.connect
    known_hosts       the host keys that count
    known_path        the file to which a new key belongs
    keys              the keys that will be offered, in words
    alias             name under which the key stands in known_hosts
    """

    host: str
    port: int
    user: str
    jump: tuple[SshAddress, ...]
    options: dict[str, Any]
    known_hosts: asyncssh.SSHKnownHosts
    known_path: str
    keys: str
    alias: str | None

    @property
    def where(self) -> str:
        """Host and port as people write them."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Client(asyncssh.SSHClient):
    """Notes what the connection shows: its end, whether the host spoke at all, and a key that is not known."""

    def __init__(self) -> None:
        self.lost = False
        self.on_lost: Callable[[], None] | None = None
        self.shown: asyncssh.SSHKey | None = None
        self.shown_as_ca = False
        self.shown_by = ""
        self._connection: asyncssh.SSHClientConnection | None = None

    def connection_made(self, conn: asyncssh.SSHClientConnection) -> None:
        """Keep the connection for `greeted`."""
        self._connection = conn

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """The connection has ended, by whomever."""
        self.lost = True
        if self.on_lost is not None:
            self.on_lost()

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:  # noqa: ARG002
        """Asked only about a key that is not in known_hosts: never accepted, kept for the message."""
        self.shown, self.shown_by = key, addr
        return False

    def validate_host_ca_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:  # noqa: ARG002
        """Asked only about a certificate authority that is not in known_hosts: never accepted."""
        self.shown, self.shown_by, self.shown_as_ca = key, addr, True
        return False

    @property
    def greeted(self) -> bool:
        """Whether the host has sent its banner."""
        return bool(self._connection and self._connection.get_extra_info("server_version"))


async def plan(address: SshAddress) -> Plan:
    """Read ssh_config, keys and known hosts. Raises HostRefusedError where one of them cannot be used."""
    for name in (address.name, address.address):
        if name is not None and not is_host_name(name):
            raise HostRefusedError(address.name, f"{name!r} is no host name")
    path = config_path(address)
    given: dict[str, Any] = {"config": [path] if path else None, "host": address.name, "passphrase": None}
    if address.user is not None:
        given["username"] = address.user
    if address.port is not None:
        given["port"] = address.port
    if address.identity is not None:
        given |= {"client_keys": [address.identity], "agent_path": None}
    try:
        async with asyncio.timeout(address.connect_timeout_s):
            options = await asyncssh.SSHClientConnectionOptions.construct(**given)
            known, known_path = await asyncio.to_thread(_known_hosts, address, options.known_hosts)
    except ssh_errors.FOREIGN as error:
        place = f"{error.filename}: " if isinstance(error, OSError) and error.filename else ""
        raise HostRefusedError(address.name, f"cannot be used: {place}{ssh_errors.words(error)}") from error
    jump = options.tunnel if isinstance(options.tunnel, str) and address.via is None else ""
    return Plan(
        host=address.address or options.host,
        port=options.port,
        user=options.username,
        jump=_hops(jump, address),
        options=_options(options, address),
        known_hosts=known,
        known_path=known_path,
        keys=_keys_in_words(address, options),
        alias=options.host_key_alias,
    )


def _options(options: asyncssh.SSHClientConnectionOptions, address: SshAddress) -> dict[str, Any]:
    ciphers = options.config.get("Ciphers")
    return {
        "config": None,
        "port": options.port,
        "username": options.username,
        "client_keys": options.client_keys or (),
        "agent_path": options.agent_path or None,
        "agent_identities": options.agent_identities,
        "agent_forwarding": False,
        "x11_forwarding": False,
        "proxy_command": None if address.via is not None else options.proxy_command,
        "family": options.family,
        "local_addr": options.local_addr,
        "host_key_alias": options.host_key_alias,
        "kex_algs": _names(options.kex_algs),
        "encryption_algs": _names(options.encryption_algs) if ciphers else FAST_CIPHER,
        "mac_algs": _names(options.mac_algs),
        "compression_algs": _names(options.compression_algs),
        "signature_algs": _names(options.signature_algs),
        "server_host_key_algs": options.config.get("HostKeyAlgorithms") or EVERY_KEY_KIND,
        # Nobody is there to be asked for a password; and a key exchange by GSS would show no host key.
        "password_auth": False,
        "kbdint_auth": False,
        "host_based_auth": False,
        "gss_kex": False,
        "utf8_decode_errors": "replace",
        "tcp_keepalive": True,
        "keepalive_interval": KEEPALIVE_S,
        "keepalive_count_max": KEEPALIVE_COUNT,
        "connect_timeout": address.connect_timeout_s,
        "login_timeout": address.connect_timeout_s,
    }


def _names(algorithms: Sequence[bytes]) -> list[str]:
    return [name.decode("ascii") for name in algorithms]


def _known_hosts(address: SshAddress, configured: Any) -> tuple[asyncssh.SSHKnownHosts, str]:
    """All host keys that count; a file that is not there holds none, one that cannot be read is an error."""
    own = home("known_hosts")
    if address.known_hosts is not None:
        paths = [address.known_hosts]
    elif configured is None:
        # `UserKnownHostsFile none`: asyncssh would take that as leave to accept any key.
        paths = [SYSTEM_KNOWN_HOSTS]
    else:
        paths = list(configured) or ([own] if own else [])
        paths.append(SYSTEM_KNOWN_HOSTS)
    text = ""
    for path in paths:
        try:
            text += Path(path).expanduser().read_text(encoding="utf-8", errors="replace") + "\n"
        except FileNotFoundError:
            continue
    return asyncssh.import_known_hosts(text), str(Path(paths[0]).expanduser())


def _hops(jump: str, address: SshAddress) -> tuple[SshAddress, ...]:
    """ProxyJump's hops, `user@host:port,…`, each to be opened as strictly as the host itself."""
    found: list[SshAddress] = []
    for hop in filter(None, (part.strip() for part in jump.split(","))):
        user, _, place = hop.removeprefix("ssh://").rpartition("@")
        name, colon, port = place.rpartition(":")
        # A bare IPv6 address has colons of its own; ssh_config wants it in brackets where a port follows.
        with_port = colon and port.isdigit() and (":" not in name or name.endswith("]"))
        found.append(
            SshAddress(
                name=(name if with_port else place).strip("[]"),
                port=int(port) if with_port else None,
                user=user or None,
                config=address.config,
                connect_timeout_s=address.connect_timeout_s,
            )
        )
    return tuple(found)


def _keys_in_words(address: SshAddress, options: asyncssh.SSHClientConnectionOptions) -> str:
    shown = [_fingerprint(pair.public_data) for pair in options.client_keys or ()]
    if address.identity is not None:
        return f"key {address.identity} ({', '.join(shown[:3])})"
    words = [f"keys {', '.join(shown[:5])}"] if shown else []
    if options.agent_path:
        words.append("the keys of the ssh-agent")
    return " and ".join(words) or "no key: none in ~/.ssh, no agent, no identity configured"


def _fingerprint(public: bytes) -> str:
    return "SHA256:" + base64.b64encode(hashlib.sha256(public).digest()).decode().rstrip("=")


async def open_connection(
    address: SshAddress, plan: Plan, tunnel: asyncssh.SSHClientConnection | None
) -> tuple[asyncssh.SSHClientConnection, Client]:
    """Connect and log in. Raises HostUnreachableError, HostRefusedError and the two about host keys."""
    clients: list[Client] = []

    def client() -> Client:
        clients.append(Client())
        return clients[-1]

    task = asyncio.current_task()
    asked_before = task.cancelling() if task else 0
    try:
        connection = await asyncssh.connect(
            plan.host, client_factory=client, known_hosts=plan.known_hosts, tunnel=tunnel, **plan.options
        )
    except ssh_errors.FOREIGN as error:
        if task and task.cancelling() > asked_before:
            # `asyncio.wait_for`, in there, gives a failure of the same moment instead (Python 3.11): whoever was told to
            # end would try again.
            raise asyncio.CancelledError from error
        raise _failure(address, plan, clients[-1] if clients else Client(), error) from error
    return connection, clients[-1]


def _failure(address: SshAddress, plan: Plan, client: Client, error: BaseException) -> HostError:
    if isinstance(error, asyncssh.HostKeyNotVerifiable):
        return _key_failure(address, plan, client, error)
    if isinstance(error, asyncssh.PermissionDenied) or "authentication failures" in str(error):
        return HostRefusedError(
            address.name, f"user {plan.user} is not let in at {plan.where}; offered was {plan.keys}"
        )
    return ssh_errors.unreachable(address.name, plan.where, error, address.connect_timeout_s, greeted=client.greeted)


def _key_failure(address: SshAddress, plan: Plan, client: Client, error: asyncssh.HostKeyNotVerifiable) -> HostError:
    """Unknown and changed keys come as the same exception; what known_hosts holds tells them apart."""
    if client.shown is None:
        return HostRefusedError(address.name, f"{plan.where}: {ssh_errors.words(error)} (see {plan.known_path})")
    fingerprint = client.shown.get_fingerprint()
    kind = f"{client.shown.get_algorithm()} {'authority' if client.shown_as_ca else 'key'}"
    keys, authorities = plan.known_hosts.match(plan.alias or plan.host, client.shown_by, _lookup_port(plan))[:2]
    # The very key that was shown: asking the network once more might bring another.
    shown = client.shown.export_public_key().decode("ascii").split()
    line = " ".join((_known_name(plan), *shown[:2]))
    add = f"echo '{line}' >> {plan.known_path}"
    if keys or authorities:
        return HostKeyChangedError(
            address.name,
            f"{plan.where} shows another host key than {plan.known_path} holds: now {kind} {fingerprint}. Somebody may"
            f" be in between, or the machine was set up anew. Ask its owner; only then: {_forget(plan)} && {add}",
            fingerprint,
        )
    return HostKeyUnknownError(
        address.name,
        f"host key unknown: {plan.where} shows {kind} {fingerprint}, and no line of known_hosts is about it. Compare"
        f" that with its owner or console, then add it: {add}",
        fingerprint,
    )


def _lookup_port(plan: Plan) -> int | None:
    return plan.port if plan.port != SSH_PORT else None


def _known_name(plan: Plan) -> str:
    place = plan.host if _lookup_port(plan) is None else f"[{plan.host}]:{plan.port}"
    return plan.alias or place


def _forget(plan: Plan) -> str:
    return f"ssh-keygen -f {plan.known_path} -R '{_known_name(plan)}'"
