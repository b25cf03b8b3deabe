"""What must be true of several keys together.

These checks look at the document as it was read, whatever its types: so they speak up beside every other mistake, and
not only once the others are mended.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from watchd.errors import Mistake
from watchd.settings import fields
from watchd.settings.locate import Place, Places
from watchd.settings.mistakes import did_you_mean

Raw = Mapping[str, Any]

# Authorization    X-Api-Key    Cookie    PRIVATE-TOKEN
_TELLING_HEADER = re.compile(r"auth|token|key|secret|password|cookie", re.IGNORECASE)
# A header's name: RFC 9110, section 5.6.2
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


def mistakes(document: Raw, places: Places, engines: Collection[str]) -> Iterator[Mistake]:
    """Everything that is wrong between keys; of engines, any name is right where none are known."""
    yield from _host_names(document, places)
    yield from _ways_to_hosts(document, places)
    yield from _target_names(document, places)
    yield from _engine_names(document, places, engines)
    yield from _slack_modes(document, places)
    yield from _scripts(document, places)
    for place, header, _ in _headers(document):
        if not _HEADER_NAME.fullmatch(header):
            yield places.mistake(place, "is not the name of a header")


def literals(document: Raw, places: Places) -> Iterator[Mistake]:
    """Headers whose name says that their value is a secret, with the value in the clear."""
    for place, header, value in _headers(document):
        if isinstance(value, str) and _TELLING_HEADER.search(header):
            yield places.mistake(place, "a secret stands here in the clear")


def warnings(document: Raw, places: Places) -> Iterator[Mistake]:
    """What is allowed and probably not meant; the document is known to be right."""
    names = [target["name"] for _, target in _targets(document)]
    if not names and "discovery" not in document:
        yield places.mistake(("targets",), "no target: nothing is watched")
    if names and not document.get("sinks"):
        yield places.mistake(("sinks",), "no sink: incidents are kept in the store, and nobody is told")
    hosts = list(_table(document, "hosts"))
    for index, target in _targets(document):
        close = difflib.get_close_matches(str(target["host"]), hosts, n=1) if target["host"] not in hosts else []
        if close:
            reason = f"no [hosts.{target['host']}] here, so ~/.ssh/config is asked; did you mean `{close[0]}`?"
            yield places.mistake(("targets", index, "host"), reason)
    for sink, table in _table(document, "sinks").items():
        for index, wanted in enumerate(table.get("targets", ())):
            if "discovery" not in document and not any(fnmatchcase(name, wanted) for name in names):
                yield places.mistake(("sinks", sink, "targets", index), "no target of this file has such a name")


def _host_names(document: Raw, places: Places) -> Iterator[Mistake]:
    for name in _table(document, "hosts"):
        try:
            fields.host_name(name)
        except ValueError as error:
            yield places.mistake(("hosts", name), f"a host's name {error}")


def _ways_to_hosts(document: Raw, places: Places) -> Iterator[Mistake]:
    hosts = _table(document, "hosts")
    told: set[str] = set()
    for name in hosts:
        way = [name]
        while True:
            onward = _table(hosts, way[-1]).get("via")
            if not isinstance(onward, str) or onward not in hosts:
                break
            if onward in way:
                if onward == name and name not in told:
                    told.update(way)
                    loop = " → ".join((*way, name))
                    yield places.mistake(("hosts", name, "via"), f"leads back to where it began: {loop}")
                break
            way.append(onward)


def _target_names(document: Raw, places: Places) -> Iterator[Mistake]:
    first: dict[str, int] = {}
    for index, target in _targets(document):
        name = target.get("name")
        if not isinstance(name, str):
            continue
        place = ("targets", index, "name")
        if name in first:
            line = places.line(("targets", first[name], "name"))
            yield places.mistake(place, f"must be unique: targets[{first[name]}] has this name, too (line {line})")
        first.setdefault(name, index)


def _engine_names(document: Raw, places: Places, engines: Collection[str]) -> Iterator[Mistake]:
    for index, target in _targets(document):
        engine = target.get("engine")
        if engines and isinstance(engine, str) and engine not in engines:
            yield places.mistake(("targets", index, "engine"), "unknown engine" + did_you_mean(engine, engines))


def _slack_modes(document: Raw, places: Places) -> Iterator[Mistake]:
    for name, sink in _table(document, "sinks").items():
        if not isinstance(sink, dict) or sink.get("type") != "slack":
            continue
        bot = [key for key in ("token", "channel") if key in sink]
        if "url" in sink and bot:
            yield places.mistake(
                ("sinks", name, bot[0]), "is for the bot, `url` for the webhook: leave one of them out"
            )
        elif "url" not in sink and not bot:
            yield places.mistake(("sinks", name), "needs `url` (incoming webhook), or `token` and `channel` (bot)")
        elif len(bot) == 1:
            other = "channel" if bot == ["token"] else "token"
            yield places.mistake(("sinks", name, other), f"is required beside `{bot[0]}`, but missing")


def _scripts(document: Raw, places: Places) -> Iterator[Mistake]:
    found = document.get("discovery")
    for index, table in enumerate(found if isinstance(found, list) else ()):
        if isinstance(table, dict) and table.get("type") == "script" and not table.get("command"):
            yield places.mistake(("discovery", index, "command"), "is required for a script, but missing")


def _headers(document: Raw) -> Iterator[tuple[Place, str, Any]]:
    tables: list[tuple[Place, Raw]] = [(("defaults", "health"), _table(_table(document, "defaults"), "health"))]
    tables += [(("targets", index, "health"), _table(target, "health")) for index, target in _targets(document)]
    for place, health in tables:
        for header, value in _table(health, "headers").items():
            yield (*place, "headers", header), header, value


def _targets(document: Raw) -> Iterator[tuple[int, Raw]]:
    found = document.get("targets")
    for index, target in enumerate(found if isinstance(found, list) else ()):
        if isinstance(target, dict):
            yield index, target


def _table(document: Raw, key: str) -> Raw:
    found = document.get(key)
    return found if isinstance(found, dict) else {}
