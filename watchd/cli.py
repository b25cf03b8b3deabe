"""Words to calls, exceptions to exit statuses.

The rooms are imported inside the commands: `--help` must not pay for SSH and HTTP libraries.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from watchd import __version__
from watchd.errors import Mistake, SettingsError, WatchdError

if TYPE_CHECKING:
    from watchd.model import Case
    from watchd.settings import Settings

OK, FAILED, USAGE, CRASHED, INTERRUPTED = 0, 1, 2, 3, 130
BAD_SETTINGS = 78


def main(words: Sequence[str] | None = None) -> int:
    """Run watchd with these words, or those of the command line; returns the exit status."""
    given = _parser().parse_args(words)
    command: Callable[[argparse.Namespace], int] = given.command
    try:
        return command(given)
    except WatchdError as error:
        _say(str(error) if isinstance(error, SettingsError) else f"watchd: {error}")
        return error.exit_status
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has gone; Python must not try to flush the rest at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except OSError as error:
        # What every room expects of files, hosts and sockets is a WatchdError; what is left is our own output.
        _say(f"watchd: {error.strerror or error}")
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="watchd", description="Says why a GPU server died: over SSH, without an agent on its host."
    )
    parser.add_argument("--version", action="version", version=f"watchd {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    demo = commands.add_parser("demo", help="see a server die and watchd say why, on this machine, in half a minute")
    demo.add_argument("--json", action="store_true", help="print the incident alone")
    demo.set_defaults(command=_demo)

    run = commands.add_parser("run", help="watch the targets of a configuration until told to stop")
    _configured(run)
    run.set_defaults(command=_run)

    diagnose = commands.add_parser("diagnose", help="climb the ladder once on a log, and say what happened")
    diagnose.add_argument("what", metavar="WHAT", help="HOST:LOG, a log file here, or a bundle folder")
    diagnose.add_argument("--health", metavar="up|down|slow|URL", help="what its health check says, or where to ask it")
    diagnose.add_argument("--json", action="store_true", help="print the incident as JSON")
    diagnose.add_argument(
        "--exit-code", action="store_true", help="exit with 3 for a crash, a hang or a degraded server"
    )
    diagnose.add_argument(
        "--explain", action="store_true", help="say as well which rules were asked, and why the other faults lost"
    )
    _configured(diagnose)
    diagnose.set_defaults(command=_diagnose)

    check = commands.add_parser("check", help="say every mistake in a configuration, with its line")
    _configured(check)
    check.add_argument("--json", action="store_true", help="print the mistakes as JSON")
    check.set_defaults(command=_check)

    _signatures_parser(
        commands.add_parser("signatures", help="what watchd recognises in a log, and your own signatures")
    )

    schema = commands.add_parser("schema", help="print a JSON Schema")
    schema.add_argument("which", choices=("incident", "config"))
    schema.set_defaults(command=_schema)
    return parser


def _signatures_parser(parser: argparse.ArgumentParser) -> None:
    parts = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    listed = parts.add_parser("list", help="every signature: name, cause, family, samples")
    shape = listed.add_mutually_exclusive_group()
    shape.add_argument("--json", action="store_true", help="print them as JSON, with patterns and samples")
    shape.add_argument("--markdown", action="store_true", help="print them as a page, cause by cause")
    _configured(listed)
    listed.set_defaults(command=_signatures_list)
    test = parts.add_parser("test", help="try a file of signatures on its samples, or all signatures on a log")
    test.add_argument("file", metavar="FILE", type=Path, help="a .toml file of signatures, or a log")
    test.add_argument("log", metavar="LOG", type=Path, nargs="?", help="a log to try the .toml file on")
    _configured(test)
    test.set_defaults(command=_signatures_test)


def _configured(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-c", "--config", metavar="FILE", type=Path, help="configuration; else the usual places")


def _demo(given: argparse.Namespace) -> int:
    from watchd.demo import story

    return story.main(as_json=given.json)


def _run(given: argparse.Namespace) -> int:
    from watchd import settings

    path = settings.find(given.config, Path.home())
    if path is None:
        return _no_settings()
    loaded = settings.load(path, engines=_engines())
    for warning in loaded.warnings:
        _say(f"{path}:{warning.line}: {warning.key}: {warning.reason}")
    mistakes = (*settings.not_built(loaded), *settings.check_secrets(loaded))
    if mistakes:
        raise SettingsError(str(path), mistakes)

    from watchd import daemon
    from watchd.diagnosis import own

    equipped = own.equip(loaded)
    if not loaded.targets:
        raise SettingsError(str(path), (Mistake(line=0, key="targets", reason="no target: there is nothing to watch"),))
    return daemon.main(equipped)


def _diagnose(given: argparse.Namespace) -> int:
    from watchd import diagnose
    from watchd.model import Verdict, wire

    cases: list[Case] = []
    found = diagnose.main(given.what, health=given.health, settings=_settings(given.config), on_case=cases.append)
    if given.json:
        _print(wire.to_json(found, indent=2))
    else:
        _print(diagnose.drawn(found, sys.stdout))
    if given.explain:
        # Beside JSON it must not stand on standard output.
        (_say if given.json else _print)("\n" + "\n".join(_explained(cases[-1])))
    alarming = found.verdict in (Verdict.CRASH, Verdict.HANG, Verdict.DEGRADED)
    return CRASHED if given.exit_code and alarming else OK


def _explained(case: Case) -> tuple[str, ...]:
    from watchd.diagnosis import explain
    from watchd.sinks import draw

    return tuple(draw.plain(line) for line in explain.lines(case))


def _signatures_list(given: argparse.Namespace) -> int:
    from watchd.diagnosis import listing, own

    known = own.for_nobody(_settings(given.config))
    shape = listing.as_json if given.json else listing.page if given.markdown else listing.table
    _print(shape(known))
    return OK


def _signatures_test(given: argparse.Namespace) -> int:
    from watchd.diagnosis import listing, own
    from watchd.sinks import draw

    if given.file.suffix == ".toml":
        signatures = own.alone(given.file)
        if given.log is None:
            _print(listing.tried(given.file, signatures))
            return OK
        log = given.log
    else:
        signatures, log = own.for_nobody(_settings(given.config)), given.file
    _print("\n".join(draw.plain(line) for line in listing.matched(log, signatures)))
    return OK


def _check(given: argparse.Namespace) -> int:
    import json

    from watchd import settings
    from watchd.diagnosis import own

    path = settings.find(given.config, Path.home())
    if path is None:
        return _no_settings()
    try:
        loaded = own.equip(settings.load(path, engines=_engines()))
    except SettingsError as error:
        if given.json:
            found = [(file, mistake) for file, mistakes in error.files.items() for mistake in mistakes]
            rows = [{"file": file, "line": m.line, "key": m.key, "reason": m.reason} for file, m in found]
            _print(json.dumps(rows, indent=2))
            return error.exit_status
        raise
    for warning in loaded.warnings:
        _say(f"{path}:{warning.line}: {warning.key}: {warning.reason}")
    missing = settings.not_built(loaded)
    for mistake in missing:
        _say(f"{path}:{mistake.line}: {mistake.key}: valid, but {mistake.reason}")
    if given.json:
        _print("[]")
    else:
        _say(f"{path}: valid; targets: {len(loaded.targets)}, sinks: {len(loaded.sinks)}")
    return OK


def _settings(config: Path | None) -> Settings | None:
    """The configuration that is meant or lies in a usual place, with the user's own signatures read; or None."""
    from watchd import settings
    from watchd.diagnosis import own

    path = settings.find(config, Path.home())
    return own.equip(settings.load(path)) if path else None


def _no_settings() -> int:
    from watchd import settings

    places = " or ".join(str(place) for place in settings.usual_places(Path.home()))
    _say(f"watchd: no configuration: give one with -c FILE, or put it at {places}")
    return BAD_SETTINGS


def _engines() -> tuple[str, ...]:
    from watchd.engines import registry

    return tuple(engine.name for engine in registry.ENGINES)


def _schema(given: argparse.Namespace) -> int:
    import json

    if given.which == "incident":
        from watchd.model import wire

        found = wire.schema()
    else:
        from watchd import settings

        found = settings.schema()
    _print(json.dumps(found, indent=2, ensure_ascii=False))
    return OK


def _print(text: str) -> None:
    sys.stdout.write(text if text.endswith("\n") else text + "\n")
    sys.stdout.flush()


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
