"""The tables of the configuration file as the contract has them: every key, its kind and its default.

What a table inherits it shares: a target may say all that `[defaults]` says, and its health table all that
`[defaults.health]` says. These classes are read from the file and published as its JSON Schema; `build.py` turns them
into `Settings`, and no other room sees them.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from watchd.settings import fields
from watchd.settings.locate import Place
from watchd.settings.types import Follow

Rung = Literal["broad", "context", "traceback", "source", "launch", "machine", "stack"]
Labels = dict[str, fields.Text]
Port = Annotated[int, Field(ge=1, le=65535)]
Count = Annotated[int, Field(ge=1, le=1000)]
HttpStatus = Annotated[int, Field(ge=100, le=599)]


def _text(default: str, description: str) -> Any:
    """A key that has a default, which is given as the file would say it."""
    return Field(default, description=description)


def _table(shape: Any) -> Any:
    """A table that may be left out."""
    return Field(default_factory=shape)


class Table(BaseModel):
    """A table of the file: no unknown keys, nothing converted silently."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, validate_default=True)


class Store(Table):
    """Where incidents and checkpoints are kept."""

    url: fields.StoreUrl = _text(
        "sqlite:////var/lib/watchd/watchd.db", "SQLite file, or PostgreSQL to share the work between jump hosts"
    )
    retention: fields.PositiveDuration = _text("90d", "how long resolved incidents are kept")
    black_box: fields.Size = _text("512MiB", "bound on all kept log generations together")
    on_store_loss: Literal["continue", "standby"] = _text("continue", "what to do while PostgreSQL is away")


class Control(Table):
    """The socket over which a running daemon is operated."""

    socket: fields.AbsolutePath = _text("/run/watchd/control.sock", "Unix socket, mode 0660")


class Web(Table):
    """Read-only pages, /metrics and /healthz."""

    listen: fields.OptionalEndpoint = _text("127.0.0.1:9464", "HOST:PORT; empty switches it off")
    external_url: fields.OptionalHttpUrl = _text("", "what links in alerts begin with; empty: no links")
    token: fields.SecretLine | None = Field(None, description="asked for by all but /healthz and /metrics")


class Heartbeat(Table):
    """A ping with proof of work."""

    url: fields.SecretUrl = Field(description="what to ping")
    every: fields.PositiveDuration = _text("60s", "how often")


class HealthDefaults(Table):
    """How health endpoints are asked, unless a target says otherwise."""

    interval: fields.PositiveDuration = _text("10s", "from the start of one sample to the next")
    timeout: fields.PositiveDuration = _text("25s", "how long one sample may take; it may exceed the interval")
    fail: Count = Field(3, description="samples `down` in a row that make it down")
    success: Count = Field(2, description="samples `up` in a row that make it up again")
    start: fields.Duration = _text("30m", "how long a start may take")
    via: Literal["host", "jump"] = _text("host", "ask through the SSH connection, or from here")
    expect: list[HttpStatus] = Field([200], min_length=1, description="HTTP statuses that mean up")
    headers: dict[str, fields.OpenLine] = Field(default_factory=dict, description="headers to send")
    ca: fields.OptionalPath = _text("", "a CA file for https; empty: the system's")


class Health(HealthDefaults):
    """A target's health endpoint; what it does not say, [defaults.health] says."""

    url: fields.HttpUrl = Field(description="the endpoint, as seen from where it is asked")


HealthOrUrl = Annotated[Health, BeforeValidator(fields.url_alone), fields.OrUrl()]


class Rules(Table):
    """What holds for every target that says nothing else."""

    follow: Follow = _text("auto", "how to learn that the log has grown")
    rungs: list[Rung] = Field(
        ["broad", "context", "traceback", "source", "launch", "machine", "stack"],
        min_length=1,
        description="which rungs of the ladder may be used",
    )
    climb_budget: fields.PositiveDuration = _text("30s", "time for one climb")
    source_roots: list[fields.PathText] = Field(
        [],
        description="folders from which source may be read; empty: packages, and files that agree with the traceback",
    )
    signatures: fields.AbsolutePath = _text("/etc/watchd/signatures.d", "folder of your own signatures")
    reopen_within: fields.Duration = _text("10m", "how soon after its end the same thing opens its incident again")
    flapping: fields.FlappingRate = _text("4 in 10m", "changes of health that are told as one; empty: off")
    remind_every: fields.OptionalDuration = _text("", "reminders of open incidents; empty: off")


class Defaults(Rules):
    """What holds for every target that says nothing else."""

    health: HealthDefaults = _table(HealthDefaults)


class Target(Rules):
    """One server whose log is followed; what it does not say, [defaults] says."""

    name: fields.TargetName = Field(description="its name in incidents and commands; unique")
    host: fields.HostName = Field(description="a host of this file or of ~/.ssh/config")
    log: fields.Logs = Field(description="an absolute path, a glob, journal:UNIT, container:NAME, or a list of them")
    engine: fields.EngineName | None = Field(
        None, description="which server it is; recognised from the log where absent"
    )
    process: fields.Pattern | None = Field(
        None, description="regular expression by which its process is told from others"
    )
    labels: Labels = Field(default_factory=dict, description="passed on with every incident")
    health: HealthOrUrl | None = Field(None, description="its health endpoint: a URL, or a table")


class Host(Table):
    """How to reach a host; every key may come from ~/.ssh/config instead."""

    address: fields.HostName | None = Field(None, description="name or IP address to connect to")
    port: Port | None = Field(None, description="port of its SSH server")
    user: fields.UserName | None = Field(None, description="user to log in as")
    identity: fields.KeyFile | None = Field(None, description="the private key")
    known_hosts: fields.AbsolutePath | None = Field(None, description="file with the host's key")
    via: fields.HostName | None = Field(None, description="a host through which to connect")
    labels: Labels = Field(default_factory=dict, description="your own")


class Sink(Table):
    """What every sink has."""

    severity: Literal["info", "warning", "error", "critical"] = _text("error", "this and above")
    targets: list[fields.Text] = Field([], description="names or globs of targets; empty: all")
    labels: Labels = Field(default_factory=dict, description="only incidents whose target has these labels")


class ChatSink(Sink):
    """What every sink has that people talk in."""

    mention: fields.Mention = _text("", "what to put in front of a firing message")


class Slack(ChatSink):
    """Slack: an incoming webhook (`url`), or a bot (`token` and `channel`)."""

    type: Literal["slack"]
    url: fields.SecretUrl | None = Field(None, description="incoming webhook")
    token: fields.SecretLine | None = Field(None, description="bot token")
    channel: fields.Text | None = Field(None, description="id of the channel, for the bot")


class Webhook(Sink):
    """A POST of the incident as JSON."""

    type: Literal["webhook"]
    url: fields.OpenUrl = Field(description="where to post")
    secret: fields.SecretText | None = Field(None, description="HMAC-SHA256 of time stamp and body")


class PagerDuty(Sink):
    """PagerDuty, Events API v2."""

    type: Literal["pagerduty"]
    routing_key: fields.SecretLine = Field(description="integration key")
    url: fields.OpenUrl = _text("https://events.pagerduty.com/v2/enqueue", "the Events API")


class Alertmanager(Sink):
    """Prometheus Alertmanager, API v2."""

    type: Literal["alertmanager"]
    urls: list[fields.HttpUrl] = Field(min_length=1, description="every peer")


class Email(Sink):
    """E-mail."""

    type: Literal["email"]
    server: fields.Endpoint = Field(description="HOST:PORT")
    sender: fields.MailAddress = Field(alias="from", description="the sender")
    to: list[fields.MailAddress] = Field(min_length=1, description="the receivers")


class Teams(ChatSink):
    """Microsoft Teams."""

    type: Literal["teams"]
    url: fields.SecretUrl = Field(description="webhook of the workflow")


class Discord(ChatSink):
    """Discord."""

    type: Literal["discord"]
    url: fields.SecretUrl = Field(description="webhook of the channel")


class File(Sink):
    """A file, one line of JSON for each revision that is told."""

    type: Literal["file"]
    path: fields.AbsolutePath = Field(description="the file; it is created")


class Terminal(Sink):
    """The terminal on which watchd runs."""

    type: Literal["terminal"]


AnySink = Annotated[
    Slack | Webhook | PagerDuty | Alertmanager | Email | Teams | Discord | File | Terminal, Field(discriminator="type")
]
SINKS: dict[str, type[Sink]] = {
    "slack": Slack,
    "webhook": Webhook,
    "pagerduty": PagerDuty,
    "alertmanager": Alertmanager,
    "email": Email,
    "teams": Teams,
    "discord": Discord,
    "file": File,
    "terminal": Terminal,
}


class Discovery(Table):
    """More hosts and targets."""

    type: Literal["script", "ansible", "pattern"] = Field(description="script prints JSON")
    command: list[fields.Text] = Field([], description="the script and its arguments")
    every: fields.PositiveDuration = _text("5m", "how often")


class Document(Table):
    """The configuration of watchd."""

    store: Store = _table(Store)
    control: Control = _table(Control)
    web: Web = _table(Web)
    heartbeat: Heartbeat | None = None
    defaults: Defaults = _table(Defaults)
    hosts: dict[str, Host] = Field(default_factory=dict, description="hosts by name")
    targets: list[Target] = Field([], description="what is watched")
    sinks: dict[str, AnySink] = Field(default_factory=dict, description="who is told, by name")
    discovery: list[Discovery] = Field([], description="where more hosts and targets come from")


TABLES: tuple[tuple[tuple[str, ...], type[Table]], ...] = (
    ((), Document),
    (("store",), Store),
    (("control",), Control),
    (("web",), Web),
    (("heartbeat",), Heartbeat),
    (("defaults",), Defaults),
    (("defaults", "health"), HealthDefaults),
    (("hosts", "*"), Host),
    (("targets", "*"), Target),
    (("targets", "*", "health"), Health),
    (("discovery", "*"), Discovery),
    *((("sinks", "*", name), sink) for name, sink in SINKS.items()),
)
"""Which table stands where: a star is any name or index; of sinks, the type is the last part."""


def keys_at(place: Place) -> tuple[str, ...]:
    """The keys that are valid in the table at this place; none where no table is known there."""
    for where, table in TABLES:
        if _stands_at(where, place):
            return _keys(table)
    return ()


def owner(place: Place, key: str) -> str:
    """The name of the table just below this place in which the key is valid, or empty."""
    for where, table in TABLES:
        if where and where[-1] != "*" and where[0] != "sinks" and _stands_at(where[:-1], place) and key in _keys(table):
            return where[-1]
    return ""


def _stands_at(where: tuple[str, ...], place: Place) -> bool:
    return len(where) == len(place) and all(a in ("*", b) for a, b in zip(where, place, strict=True))


def _keys(table: type[Table]) -> tuple[str, ...]:
    return tuple(field.alias or name for name, field in table.model_fields.items())
