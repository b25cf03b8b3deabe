"""What a configuration file comes to: every key of the contract, read, checked, and laid over its defaults.

Durations are seconds, sizes bytes. A value built without arguments is what an empty file means.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from watchd.errors import Mistake
from watchd.model import RUNGS, HealthCheck, Severity, Target
from watchd.settings.secrets import Secret

Follow = Literal["auto", "sftp", "push", "tail"]
SinkType = Literal[
    "slack", "webhook", "pagerduty", "alertmanager", "email", "teams", "discord", "file", "terminal"
]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Flapping:
    """So many changes of health within so many seconds are told as one."""

    changes: int
    within_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    """Where incidents and checkpoints are kept.

    path             the SQLite file, absolute; None where `url` names PostgreSQL
    url              as given, without its password in `repr`
    retention_s      seconds that a resolved incident is kept
    black_box_bytes  bound on all kept log generations together
    on_store_loss    what to do while PostgreSQL is away
    """

    path: Path | None = Path("/var/lib/watchd/watchd.db")
    url: str = field(default="sqlite:////var/lib/watchd/watchd.db", repr=False)
    retention_s: float = 90 * 86400.0
    black_box_bytes: int = 512 << 20
    on_store_loss: Literal["continue", "standby"] = "continue"


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSettings:
    """The read-only pages; `listen` is `HOST:PORT`, empty where they are off, `external_url` what links begin with."""

    listen: str = "127.0.0.1:9464"
    external_url: str = ""
    token: Secret | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatSettings:
    """A ping that proves that watchd works, each `every_s` seconds."""

    url: Secret
    every_s: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetRules:
    """What `[defaults]` says about every target, and a target may say otherwise.

    follow          how to learn that a log has grown
    rungs           which rungs a climb may use, in the order of the ladder
    climb_budget_s  seconds that one climb may take
    source_roots    folders from which source may be read; empty means the rule of the ladder
    signatures      folder of the user's own signatures
    reopen_within_s seconds after its end within which the same thing opens its incident again
    flapping        when changes of health are told as one; None where off
    remind_every_s  seconds between reminders of an open incident; None where off
    headers         names and values that the health check sends; `reveal.reveal_target` puts them into the target
    """

    follow: Follow = "auto"
    rungs: tuple[str, ...] = RUNGS
    climb_budget_s: float = 30.0
    source_roots: tuple[str, ...] = ()
    signatures: str = "/etc/watchd/signatures.d"
    reopen_within_s: float = 600.0
    flapping: Flapping | None = Flapping(changes=4, within_s=600.0)
    remind_every_s: float | None = None
    headers: tuple[tuple[str, Secret], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSettings:
    """How to reach a host; what is None comes from ~/.ssh/config, or is what ssh itself would take.

    name         its key in the file, by which targets name it
    address      name or IP address to connect to
    identity     the private key: `identity.path()` is its file
    known_hosts  absolute path of the file with the host's key
    via          name of the host through which to connect
    """

    name: str
    address: str | None = None
    port: int | None = None
    user: str | None = None
    identity: Secret | None = None
    known_hosts: Path | None = None
    via: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkSettings:
    """One destination; which fields are set depends on its type.

    name         its key in the file; the only name by which it appears anywhere
    severity     incidents below this are not told
    targets      names or globs of the targets it is told about; empty means all
    labels       only incidents whose target has all of these
    mention      slack, teams, discord: what to put in front of a firing message, or empty
    url          slack (webhook mode), webhook, pagerduty, teams, discord
    secret       webhook: what the body is signed with, or None
    token        slack, bot mode; with `channel`
    routing_key  pagerduty
    urls         alertmanager: every peer
    server       email: `HOST:PORT`
    sender       email: the key `from`
    to           email: the receivers
    path         file: absolute path
    """

    name: str
    type: SinkType
    severity: Severity = Severity.ERROR
    targets: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    mention: str = ""
    url: Secret | None = None
    secret: Secret | None = None
    token: Secret | None = None
    channel: str = ""
    routing_key: Secret | None = None
    urls: tuple[str, ...] = ()
    server: str = ""
    sender: str = ""
    to: tuple[str, ...] = ()
    path: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoverySettings:
    """Where more hosts and targets come from."""

    type: Literal["script", "ansible", "pattern"]
    command: tuple[str, ...] = ()
    every_s: float = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """A whole configuration.

    path            the file it was read from, or None where there is none
    control_socket  absolute path of the control socket
    defaults        what holds for targets that say nothing else, and for those asked about by hand
    health          the same for their health checks; its `url` is empty
    targets         in the order of the file; `health.headers` is empty, since the values may be secrets
    rules           by target name: `defaults` with the target's own laid over
    logs            by target name: all of its logs; the first is `Target.log`
    hosts           by name
    sinks           in the order of the file
    warnings        what is allowed but should be looked at, in line order
    unbuilt         what the contract knows and this version does not build, in line order
    """

    path: Path | None = None
    store: StoreSettings = StoreSettings()
    control_socket: Path = Path("/run/watchd/control.sock")
    web: WebSettings = WebSettings()
    heartbeat: HeartbeatSettings | None = None
    defaults: TargetRules = TargetRules()
    health: HealthCheck = field(default_factory=lambda: HealthCheck(url=""))
    targets: tuple[Target, ...] = ()
    rules: Mapping[str, TargetRules] = field(default_factory=dict)
    logs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    hosts: Mapping[str, HostSettings] = field(default_factory=dict)
    sinks: tuple[SinkSettings, ...] = ()
    discovery: tuple[DiscoverySettings, ...] = ()
    warnings: tuple[Mistake, ...] = ()
    unbuilt: tuple[Mistake, ...] = ()

    @property
    def reopen_within_s(self) -> float:
        """Seconds after its end within which the same thing opens its incident again, unless a target says otherwise."""
        return self.defaults.reopen_within_s

    def target(self, *, name: str, host: str | None, log: str, health_url: str | None = None) -> Target:
        """A target that stands in no file: the defaults of this one hold for it."""
        return Target(
            name=name,
            host=host,
            log=log,
            health=None if health_url is None else replace(self.health, url=health_url),
            rungs=self.defaults.rungs,
            climb_budget_s=self.defaults.climb_budget_s,
            source_roots=self.defaults.source_roots,
        )
