"""Many watches, one store, one outbox: what `watchd run` does.

One TaskGroup. Each host's connection and each target are kept alive by `supervise`; the store and the outbox are not:
if one of those breaks, the process ends and its supervisor starts it again, since losing incidents in silence would be
worse.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial

import structlog

from watchd import supervise, systemd
from watchd.errors import StoreError
from watchd.hosts.ssh import SshAddress, SshHost
from watchd.http import HttpClient
from watchd.outbox import Outbox, Route
from watchd.settings import Settings, SinkSettings, reveal_target
from watchd.sinks import registry as sinks
from watchd.sinks.base import Sink
from watchd.store import AsyncStore, Store
from watchd.watch.census import Census
from watchd.watch.desk import Desk
from watchd.watch.link import Link
from watchd.watch.target import Means, Observer, Watch

READY_LIMIT_S = 30.0
WATCH_AGAIN_S = 5.0
END_S = 2.0
DRAIN_S = 10.0
STATUS_S = 10.0

log = structlog.get_logger()


def main(settings: Settings) -> int:
    """Watch until SIGTERM or SIGINT; returns the exit status."""
    set_up_logging()
    return asyncio.run(_until_told(settings))


async def _until_told(settings: Settings) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    try:
        await serve(settings, stop=stop)
    except ExceptionGroup as group:
        broken = group.subgroup(StoreError)
        if broken is None:
            raise
        log.critical("store_failed", error=str(broken))
        return StoreError.exit_status
    return 0


async def serve(
    settings: Settings,
    *,
    stop: asyncio.Event,
    store: Store | None = None,
    extra: Sequence[tuple[Route, Sink]] = (),
    observe: Observer = lambda _name, _seen: None,
) -> None:
    """Watch all targets until `stop` is set. `store` and `extra` sinks may be handed in; `observe` sees everything.

    Raises StoreError, alone or in an ExceptionGroup.
    """
    if store is None:
        assert settings.store.path is not None  # PostgreSQL is refused before it comes to this
        store = await asyncio.to_thread(Store, settings.store.path)
    ledger = AsyncStore(store)
    client = HttpClient()
    try:
        outlets = [(route(sink), sinks.build(sink, client, sys.stdout)) for sink in settings.sinks]
        box = Outbox(ledger, (*outlets, *extra))
        desk = Desk(ledger, box)
        hosts = connections(settings)
        links = _links(settings, hosts, desk)
        watches = _watches(settings, hosts, links, desk, client, observe)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(box.run(), name="outbox"), group.create_task(desk.keep_places())]
            tasks += [group.create_task(_hold(link), name=f"link {link.name}") for link in links.values()]
            tasks += [group.create_task(_keep(watch), name=f"watch {watch.name}") for watch in watches]
            tasks.append(group.create_task(_report(watches, stop), name="report"))
            await stop.wait()
            log.info("stopping")
            systemd.notify("STOPPING=1", "STATUS=stopping")
            await _wind_down(hosts, watches, desk, box, tasks)
    finally:
        await client.close()
        await ledger.close()


async def _wind_down(
    hosts: Mapping[str, SshHost],
    watches: Sequence[Watch],
    desk: Desk,
    box: Outbox,
    tasks: list[asyncio.Task[None]],
) -> None:
    outbox, *rest = tasks
    for task in rest:
        task.cancel()
    await asyncio.wait(rest, timeout=END_S)
    for host in hosts.values():
        await host.close()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(END_S):
            for watch in watches:
                await watch.settle()
    await desk.flush()
    await box.drain(DRAIN_S)
    outbox.cancel()


def connections(settings: Settings) -> dict[str, SshHost]:
    """A host for each that the configuration names or a target needs; a jump host is shared by those behind it."""
    found: dict[str, SshHost] = {}

    def reach(name: str) -> SshHost:
        if name not in found:
            known = settings.hosts.get(name)
            via = reach(known.via) if known and known.via else None
            found[name] = SshHost(
                SshAddress(
                    name=name,
                    address=known.address if known else None,
                    port=known.port if known else None,
                    user=known.user if known else None,
                    identity=str(known.identity.path()) if known and known.identity else None,
                    known_hosts=str(known.known_hosts) if known and known.known_hosts else None,
                    via=via,
                )
            )
        return found[name]

    for target in settings.targets:
        assert target.host is not None
        reach(target.host)
    return found


def route(sink: SinkSettings) -> Route:
    """Which incidents go to a sink, as its settings say."""
    return Route(
        sink=sink.name,
        edits=sinks.edits(sink.type),
        severity=sink.severity,
        targets=sink.targets,
        labels=sink.labels,
    )


def _links(settings: Settings, hosts: Mapping[str, SshHost], desk: Desk) -> dict[str, Link]:
    gate = supervise.Gate()
    return {
        name: Link(host, desk, way=partial(gate.through, way(settings, name)), now=now) for name, host in hosts.items()
    }


def way(settings: Settings, host: str) -> str:
    """What bears the handshakes of this host: its bastion, for all hosts behind it together, or the host itself."""
    known = settings.hosts.get(host)
    return (known.via if known else None) or host


def _watches(
    settings: Settings,
    hosts: Mapping[str, SshHost],
    links: Mapping[str, Link],
    desk: Desk,
    client: HttpClient,
    observe: Observer,
) -> list[Watch]:
    census = {name: Census(host, clock=time.monotonic) for name, host in hosts.items()}
    found = []
    for target in settings.targets:
        assert target.host is not None
        host = hosts[target.host]
        means = Means(
            desk=desk,
            link=links[target.host],
            client=client,
            census=census[target.host],
            now=now,
            clock=time.monotonic,
            observe=observe,
        )
        found.append(Watch(reveal_target(settings, target), host, host.tunnel(), means))
    return found


async def _hold(link: Link) -> None:
    await supervise.keep(
        link.name, link.hold, sleep=asyncio.sleep, random=random.random, log=log, on_down=link.note_failure
    )


async def _keep(watch: Watch) -> None:
    # It waits for its link, which is patient already: once that is there again, nothing more is to be waited for.
    await supervise.keep(
        watch.name, watch.run, sleep=asyncio.sleep, random=random.random, log=log, most_s=WATCH_AGAIN_S
    )


async def _report(watches: Sequence[Watch], stop: asyncio.Event) -> None:
    """READY=1 when each target was looked at, or could not be; then a line of status now and again."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(READY_LIMIT_S):
            for watch in watches:
                await watch.looked()
    systemd.notify("READY=1", f"STATUS={_status(watches)}")
    log.info("ready", targets=len(watches))
    while not stop.is_set():
        systemd.notify(f"STATUS={_status(watches)}")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STATUS_S):
                await stop.wait()


def _status(watches: Sequence[Watch]) -> str:
    seen = sum(watch.sees for watch in watches)
    firing = sum(watch.firing for watch in watches)
    return f"{seen} of {len(watches)} targets followed, {firing} incidents open"


def now() -> datetime:
    """The time of day."""
    return datetime.now(UTC)


def set_up_logging() -> None:
    """Events on standard error: JSON for the journal and for pipes, coloured text at a terminal."""
    at_terminal = sys.stderr.isatty() and not systemd.under_journal()
    renderer: structlog.typing.Processor = (
        structlog.dev.ConsoleRenderer() if at_terminal else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
