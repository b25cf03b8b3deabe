"""Climb the ladder once: on a log of a host, a log file here, or a bundle."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TextIO
from urllib.parse import urlsplit

from watchd import health, incident, investigate
from watchd.diagnosis import own
from watchd.errors import HostRefusedError, WatchdError
from watchd.hosts.base import Host
from watchd.hosts.bundle import BundleHost
from watchd.hosts.local import LocalHost
from watchd.hosts.ssh import SshAddress, SshHost, is_host_name
from watchd.http import HttpClient
from watchd.model import (
    Case,
    Dialer,
    HealthCheck,
    HealthResult,
    HealthSample,
    Incident,
    Target,
    Trigger,
    TriggerKind,
    Verdict,
)
from watchd.settings import Settings
from watchd.sinks import terminal

_ADDRESS = re.compile(
    r"ssh://(?:(?P<user>[^@/:]{1,64})@)?(?P<host>\[[0-9a-fA-F:.]+\]|[^@/:]{1,253})(?::(?P<port>\d{1,5}))?(?P<path>/.*)"
)
_ANSWERS = ("up", "down", "slow")


class UsageError(WatchdError):
    """What was asked makes no sense."""

    exit_status = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What WHAT names: `kind`, the log's path or the bundle's folder, and for a host how to reach it."""

    kind: Literal["host", "file", "bundle"]
    path: str
    address: SshAddress | None = None


def main(
    what: str, *, health: str | None, settings: Settings | None, on_case: Callable[[Case], None] = lambda _: None
) -> Incident:
    """Diagnose WHAT and return the incident; `on_case` gets the case that was judged.

    Raises WatchdError: UsageError, HostError, LogUnreadableError, BundleError, SignaturesError.
    """
    return asyncio.run(diagnose(place(what, settings), asked=health, settings=settings, on_case=on_case))


def drawn(found: Incident, out: TextIO) -> str:
    """The incident as a person reads it on `out`."""
    at_terminal = out.isatty()
    colour = at_terminal and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    width = shutil.get_terminal_size((100, 24)).columns if at_terminal else 100
    return terminal.render(found, width=width, colour=colour)


def place(what: str, settings: Settings | None) -> Place:
    """Read WHAT: an existing path is local, anything else is HOST:LOG, split at the first colon outside `ssh://`."""
    path = Path(what)
    with suppress(OSError, ValueError):
        if path.is_dir():
            return Place(kind="bundle", path=str(path.absolute()))
        if path.exists():
            if what.endswith((".tar.gz", ".tgz")):
                raise UsageError(f"{what}: bundle archives are not in this version; unpack it and name the folder")
            return Place(kind="file", path=str(path.absolute()))
    address, log = _address(what) if what.startswith("ssh://") else _host_and_log(what)
    if log.startswith(("journal:", "container:")) or any(mark in log for mark in "*?["):
        raise UsageError(f"{log}: only paths of files are followed in this version")
    if not log.startswith("/"):
        raise UsageError(f"{what}: the log must be an absolute path, as in HOST:/var/log/server.log")
    return Place(kind="host", path=log, address=_configured(address, settings))


def _address(what: str) -> tuple[SshAddress, str]:
    found = _ADDRESS.fullmatch(what)
    if found is None:
        raise UsageError(f"{what}: give ssh://user@host:port/path/of/the/log")
    host = found["host"].strip("[]")
    port = int(found["port"]) if found["port"] else None
    return SshAddress(name=host, user=found["user"], port=port), found["path"]


def _host_and_log(what: str) -> tuple[SshAddress, str]:
    host, colon, log = what.partition(":")
    if not colon:
        raise UsageError(f"{what}: there is no such file here, and it is no HOST:LOG")
    user, at, name = host.rpartition("@")
    return SshAddress(name=name, user=user if at else None), log


def _configured(address: SshAddress, settings: Settings | None) -> SshAddress:
    if not is_host_name(address.name):
        raise UsageError(f"{address.name!r} is no host name: letters, digits and . _ : - (not in front)")
    known = settings.hosts.get(address.name) if settings else None
    if known is None:
        return address
    via = SshHost(_configured(SshAddress(name=known.via), settings)) if known.via else None
    return replace(
        address,
        address=known.address,
        port=address.port or known.port,
        user=address.user or known.user,
        identity=str(known.identity.path()) if known.identity else None,
        known_hosts=str(known.known_hosts) if known.known_hosts else None,
        via=via,
    )


async def diagnose(
    where: Place,
    *,
    asked: str | None,
    settings: Settings | None = None,
    on_case: Callable[[Case], None] = lambda _: None,
) -> Incident:
    """Reach what WHAT names, climb, and write it up."""
    if asked is not None and asked not in _ANSWERS and urlsplit(asked).scheme not in ("http", "https"):
        raise UsageError(f"--health {asked}: give up, down, slow, or a URL that begins with http:// or https://")
    target, host, dial = await _reach(where)
    client = HttpClient()
    try:
        sample = await _sample(asked, client, dial)
        target = _as_configured(target, settings)
        now = datetime.now(UTC)
        trigger = Trigger(kind=TriggerKind.ASKED, summary=f"asked about {target.log}", at=now)
        result = sample.result.value if sample else asked
        case = Case(
            target=target,
            trigger=trigger,
            health=result if result in _ANSWERS else None,
            samples=(sample,) if sample else (),
            # Only a bundle says by its health alone whether the process lives.
            alive=None if result is None or where.kind != "bundle" else result in ("up", "slow"),
        )
        case, diagnosis = await investigate.investigate(host, case)
        on_case(case)
        opened = incident.open_target(target, trigger, now=now, id=incident.new_id(now, os.urandom(10)))
        found = incident.conclude(opened, case, diagnosis, now=datetime.now(UTC))
        check = HealthCheck(url=asked) if sample and asked else None
        found = replace(found, revision=1, health=incident.health(result or "unknown", check, case.samples))
        if found.verdict is Verdict.OK:
            found = incident.resolve(found, now=found.updated_at, why="nothing is wrong", verdict=Verdict.OK)
        elif found.verdict is Verdict.STOPPED:
            found = incident.resolve(found, now=found.updated_at, why="it was stopped in order")
        return found
    finally:
        await client.close()
        await host.close()


async def _reach(where: Place) -> tuple[Target, Host, Dialer | None]:
    if where.kind == "bundle":
        return Target(name=Path(where.path).name, host=None, log="server.log"), BundleHost(Path(where.path)), None
    if where.kind == "file":
        handle = await LocalHost().open_log(where.path)
        await handle.close()
        return Target(name=Path(where.path).name, host=None, log=where.path), LocalHost(), None
    assert where.address is not None
    host = SshHost(where.address)
    await host.connect()
    try:
        handle = await host.open_log(where.path)
        await handle.close()
    except BaseException:
        await host.close()
        raise
    return Target(name=f"{host.name}:{where.path}", host=host.name, log=where.path), host, host.tunnel()


async def _sample(asked: str | None, client: HttpClient, dial: Dialer | None) -> HealthSample | None:
    if asked is None or asked in _ANSWERS:
        return None
    sample = await health.sample(HealthCheck(url=asked), client, dial, lambda: datetime.now(UTC))
    if sample.result is HealthResult.BLIND:
        raise HostRefusedError("health", sample.detail)
    return sample


def _as_configured(target: Target, settings: Settings | None) -> Target:
    """What the configuration says of this log, where it speaks of it."""
    for known in settings.targets if settings else ():
        if known.host == target.host and known.log == target.log:
            return known
    return own.for_any(target, settings)
