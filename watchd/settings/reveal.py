"""Secrets put where they are used, and the question whether they can be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from watchd.errors import Mistake, SettingsError
from watchd.model import Target
from watchd.settings.secrets import Secret
from watchd.settings.types import Settings


def reveal_target(settings: Settings, target: Target, environment: Mapping[str, str] | None = None) -> Target:
    """The target with the headers of its health check filled in. Raises SettingsError with every one that is missing."""
    if target.health is None:
        return target
    rules = settings.rules.get(target.name, settings.defaults)
    headers: list[tuple[str, str]] = []
    mistakes: list[Mistake] = []
    for name, secret in rules.headers:
        try:
            headers.append((name, secret.reveal(environment)))
        except SettingsError as error:
            mistakes += error.mistakes
    if mistakes:
        raise SettingsError(str(settings.path), tuple(mistakes))
    return replace(target, health=replace(target.health, headers=tuple(headers)))


def check_secrets(settings: Settings, environment: Mapping[str, str] | None = None) -> tuple[Mistake, ...]:
    """Every secret that cannot be read here and now, in line order; all of them are read once."""
    found: set[Mistake] = set()
    for secret in _every(settings):
        try:
            secret.reveal(environment)
        except SettingsError as error:
            found.update(error.mistakes)
    return tuple(sorted(found))


def _every(settings: Settings) -> Iterator[Secret]:
    if settings.web.token:
        yield settings.web.token
    if settings.heartbeat:
        yield settings.heartbeat.url
    for host in settings.hosts.values():
        if host.identity:
            yield host.identity
    for rules in settings.rules.values():
        for _, value in rules.headers:
            yield value
    for sink in settings.sinks:
        yield from (secret for secret in (sink.url, sink.secret, sink.token, sink.routing_key) if secret)
