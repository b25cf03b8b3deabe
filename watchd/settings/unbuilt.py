"""What the contract knows and this version does not build: the file is right, but it cannot be run yet."""

from __future__ import annotations

from collections.abc import Iterator

from watchd.errors import Mistake
from watchd.settings import shapes
from watchd.settings.locate import Place, Places

REASON = "not in this version"

_SINKS = frozenset({"slack", "webhook", "file", "terminal"})
"""The types of sinks that there are."""
_FOLLOW = frozenset({"auto", "sftp"})
"""The ways of following that there are."""


def unbuilt(document: shapes.Document, places: Places) -> tuple[Mistake, ...]:
    """Every key of the file that asks for something that is not there yet, in line order."""
    return tuple(sorted(places.mistake(place, REASON) for place in _every(document)))


def _every(document: shapes.Document) -> Iterator[Place]:
    yield from _store(document.store)
    yield from _tables(document)
    yield from _rules(document.defaults, ("defaults",))
    for index, target in enumerate(document.targets):
        yield from _rules(target, ("targets", index))
        if len(target.log) > 1 or not _plain(target.log[0]):
            yield ("targets", index, "log")
    for name, sink in document.sinks.items():
        if sink.type not in _SINKS:
            yield ("sinks", name, "type")
        if isinstance(sink, shapes.Slack) and sink.token:
            yield ("sinks", name, "token")


def _store(store: shapes.Store) -> Iterator[Place]:
    if not store.url.startswith("sqlite:"):
        yield ("store", "url")
    if store.on_store_loss != "continue":
        yield ("store", "on_store_loss")
    if "black_box" in store.model_fields_set:
        yield ("store", "black_box")


def _tables(document: shapes.Document) -> Iterator[Place]:
    given = document.model_fields_set
    if "web" in given and document.web.listen:
        yield ("web",)
    elif "web" in given and document.web.external_url:
        yield ("web", "external_url")
    for name in ("control", "heartbeat"):
        if name in given:
            yield (name,)
    for index, _ in enumerate(document.discovery):
        yield ("discovery", index)


def _rules(rules: shapes.Rules, table: Place) -> Iterator[Place]:
    if rules.follow not in _FOLLOW:
        yield (*table, "follow")
    for name in ("flapping", "remind_every"):
        # An empty string switches off what is not there anyway.
        if name in rules.model_fields_set and getattr(rules, name):
            yield (*table, name)


def _plain(log: str) -> bool:
    return log.startswith("/") and not any(c in log for c in "*?[")
