"""From the tables of the file to `Settings`: defaults laid under, secrets given their place, paths and numbers as is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from watchd.errors import Mistake
from watchd.model import RUNGS, HealthCheck, Severity, Target
from watchd.settings import shapes
from watchd.settings.fields import SecretForm
from watchd.settings.locate import Place, Places
from watchd.settings.secrets import Secret
from watchd.settings.types import (
    DiscoverySettings,
    HeartbeatSettings,
    HostSettings,
    Settings,
    SinkSettings,
    StoreSettings,
    TargetRules,
    WebSettings,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    """The file that is being read: secrets must say where in it they are spoken of."""

    path: Path
    places: Places

    def secret(self, form: SecretForm | None, *place: str | int) -> Secret | None:
        """The secret of a key that may be missing."""
        return None if form is None else self.given(form, place)

    def given(self, form: SecretForm, place: Place) -> Secret:
        """The secret at this place."""
        found = self.places.mistake(place, "")
        return Secret(
            config=str(self.path),
            line=found.line,
            key=found.key,
            source=form.source,
            name=form.name,
            form=form.form,
            literal=form.literal,
        )


def build(
    document: shapes.Document,
    path: Path,
    places: Places,
    *,
    warnings: tuple[Mistake, ...],
    unbuilt: tuple[Mistake, ...],
) -> Settings:
    """Everything that the file says."""
    file = _File(path=path, places=places)
    defaults = document.defaults
    return Settings(
        path=path,
        store=_store(document.store),
        control_socket=document.control.socket,
        web=_web(document.web, file),
        heartbeat=_heartbeat(document.heartbeat, file),
        defaults=_rules(defaults, _headers(defaults.health, ("defaults", "health"), file)),
        health=_check("", defaults.health, None),
        targets=tuple(_target(target, defaults) for target in document.targets),
        rules={target.name: _target_rules(index, document, file) for index, target in enumerate(document.targets)},
        logs={target.name: target.log for target in document.targets},
        hosts={name: _host(name, host, file) for name, host in document.hosts.items()},
        sinks=tuple(_sink(name, sink, file) for name, sink in document.sinks.items()),
        discovery=tuple(
            DiscoverySettings(type=found.type, command=tuple(found.command), every_s=found.every)
            for found in document.discovery
        ),
        warnings=warnings,
        unbuilt=unbuilt,
    )


def _store(store: shapes.Store) -> StoreSettings:
    path = Path(store.url.removeprefix("sqlite:///")) if store.url.startswith("sqlite:") else None
    return StoreSettings(
        path=path,
        url=store.url,
        retention_s=store.retention,
        black_box_bytes=store.black_box,
        on_store_loss=store.on_store_loss,
    )


def _web(web: shapes.Web, file: _File) -> WebSettings:
    return WebSettings(listen=web.listen, external_url=web.external_url, token=file.secret(web.token, "web", "token"))


def _heartbeat(heartbeat: shapes.Heartbeat | None, file: _File) -> HeartbeatSettings | None:
    if heartbeat is None:
        return None
    return HeartbeatSettings(url=file.given(heartbeat.url, ("heartbeat", "url")), every_s=heartbeat.every)


def _target(target: shapes.Target, defaults: shapes.Defaults) -> Target:
    rules = _rules(_laid_over(defaults, target), ())
    return Target(
        name=target.name,
        host=target.host,
        log=target.log[0],
        engine=target.engine,
        process=target.process,
        labels=dict(target.labels),
        health=None if target.health is None else _check(target.health.url, defaults.health, target.health),
        rungs=rules.rungs,
        climb_budget_s=rules.climb_budget_s,
        source_roots=rules.source_roots,
    )


def _target_rules(index: int, document: shapes.Document, file: _File) -> TargetRules:
    target = document.targets[index]
    headers: tuple[tuple[str, Secret], ...] = ()
    if target.health and "headers" in target.health.model_fields_set:
        headers = _headers(target.health, ("targets", index, "health"), file)
    elif target.health:
        headers = _headers(document.defaults.health, ("defaults", "health"), file)
    return _rules(_laid_over(document.defaults, target), headers)


def _laid_over(defaults: shapes.Rules, own: shapes.Rules) -> shapes.Rules:
    said = own.model_fields_set & shapes.Rules.model_fields.keys()
    return defaults.model_copy(update={name: getattr(own, name) for name in said})


def _rules(rules: shapes.Rules, headers: tuple[tuple[str, Secret], ...]) -> TargetRules:
    return TargetRules(
        follow=rules.follow,
        rungs=tuple(rung for rung in RUNGS if rung in rules.rungs),
        climb_budget_s=rules.climb_budget,
        source_roots=tuple(rules.source_roots),
        signatures=str(rules.signatures),
        reopen_within_s=rules.reopen_within,
        flapping=rules.flapping,
        remind_every_s=rules.remind_every,
        headers=headers,
    )


def _check(url: str, defaults: shapes.HealthDefaults, own: shapes.Health | None) -> HealthCheck:
    said: Mapping[str, Any] = {name: getattr(own, name) for name in own.model_fields_set} if own else {}
    health = defaults.model_copy(update={name: said[name] for name in said if name != "url"})
    return HealthCheck(
        url=url,
        interval_s=health.interval,
        timeout_s=health.timeout,
        fail=health.fail,
        success=health.success,
        start_s=health.start,
        via=health.via,
        expect=tuple(health.expect),
        ca=health.ca,
    )


def _headers(health: shapes.HealthDefaults, table: Place, file: _File) -> tuple[tuple[str, Secret], ...]:
    return tuple((name, file.given(value, (*table, "headers", name))) for name, value in health.headers.items())


def _host(name: str, host: shapes.Host, file: _File) -> HostSettings:
    return HostSettings(
        name=name,
        address=host.address,
        port=host.port,
        user=host.user,
        identity=file.secret(host.identity, "hosts", name, "identity"),
        known_hosts=host.known_hosts,
        via=host.via,
        labels=dict(host.labels),
    )


def _sink(name: str, sink: shapes.AnySink, file: _File) -> SinkSettings:
    def own(key: str, otherwise: Any = None) -> Any:
        return getattr(sink, key, None) or otherwise

    return SinkSettings(
        name=name,
        type=sink.type,
        severity=Severity(sink.severity),
        targets=tuple(sink.targets),
        labels=dict(sink.labels),
        mention=own("mention", ""),
        url=file.secret(own("url"), "sinks", name, "url"),
        secret=file.secret(own("secret"), "sinks", name, "secret"),
        token=file.secret(own("token"), "sinks", name, "token"),
        channel=own("channel", ""),
        routing_key=file.secret(own("routing_key"), "sinks", name, "routing_key"),
        urls=tuple(own("urls", ())),
        server=own("server", ""),
        sender=own("sender", ""),
        to=tuple(own("to", ())),
        path=own("path"),
    )
