"""Every kind of sink, by the name that it has in the configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TextIO

from watchd.http import HttpClient
from watchd.settings import SinkSettings
from watchd.sinks.base import Sink
from watchd.sinks.file import FileSink
from watchd.sinks.slack import SlackWebhook
from watchd.sinks.terminal import TerminalSink
from watchd.sinks.webhook import Webhook


def _now() -> datetime:
    return datetime.now(UTC)


def _slack(settings: SinkSettings, client: HttpClient, out: TextIO) -> Sink:  # noqa: ARG001
    assert settings.url is not None
    return SlackWebhook(settings.name, settings.url.reveal(), client, now=_now, mention=settings.mention)


def _webhook(settings: SinkSettings, client: HttpClient, out: TextIO) -> Sink:  # noqa: ARG001
    assert settings.url is not None
    secret = settings.secret.reveal() if settings.secret is not None else ""
    return Webhook(settings.name, settings.url.reveal(), client, now=_now, secret=secret)


def _file(settings: SinkSettings, client: HttpClient, out: TextIO) -> Sink:  # noqa: ARG001
    assert settings.path is not None
    return FileSink(settings.name, settings.path)


def _terminal(settings: SinkSettings, client: HttpClient, out: TextIO) -> Sink:  # noqa: ARG001
    return TerminalSink(name=settings.name, stream=out)


SINKS: Mapping[str, Callable[[SinkSettings, HttpClient, TextIO], Sink]] = MappingProxyType(
    {"slack": _slack, "webhook": _webhook, "file": _file, "terminal": _terminal}
)

_EDITS: Mapping[str, bool] = MappingProxyType(
    {"slack": SlackWebhook.edits, "webhook": Webhook.edits, "file": FileSink.edits, "terminal": True}
)


def build(settings: SinkSettings, client: HttpClient, out: TextIO) -> Sink:
    """The sink that these settings describe. Raises SettingsError where a secret cannot be read, KeyError for no type."""
    return SINKS[settings.type](settings, client, out)


def edits(kind: str) -> bool:
    """Whether sinks of this type take a later revision at once; see `base.Sink`."""
    return _EDITS[kind]
