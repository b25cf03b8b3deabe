"""The edits that make a failing check pass, from the source, the traceback and the launch command."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from watchd.correction import command as commands
from watchd.correction import settings
from watchd.correction.command import Change, Command
from watchd.correction.follow import Follower, Place, Ran, frames_in, modules_of, place_of, quoted_values
from watchd.correction.search import Found, Search, names_in, path_to
from watchd.correction.values import Unknown, Value, depends
from watchd.correction.world import Frame
from watchd.model import Edit, Fix

_READS = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Crash:
    """What is known of a launch that a check of its own refused.

    texts     source files as they lie on the host, by path
    frames    (path, line, function, quoted code) of the traceback, outermost first
    message   what the exception said
    launch    the command to correct
    running   the words that the program saw, where a script added some; else the same
    settings  values that a settings file gives, by attribute
    unread    True where the launch names a settings file that could not be read: what it does not give is not known
    """

    texts: Mapping[str, str]
    frames: Sequence[tuple[str, int, str, str | None]]
    message: str
    launch: tuple[str, ...]
    running: tuple[str, ...]
    settings: Mapping[str, Value]
    unread: bool = False


def fix(crash: Crash) -> Fix | None:
    """The corrected command, or what is known without one; None where the check cannot be told from the arguments."""
    if not crash.frames or crash.frames[-1][0] not in crash.texts:
        return None
    frames = frames_in(crash.texts, crash.frames)
    innermost = crash.frames[-1]
    if not frames or frames[-1].path != innermost[0] or frames[-1].function != innermost[2]:
        return None  # the file changed since the crash
    modules = modules_of(crash.texts, frames)
    module = modules.get(frames[-1].path)
    place = place_of(module, frames[-1]) if module is not None else None
    if module is None or place is None:
        return None
    follower = Follower(modules, frames, place)
    follower.facts = quoted_values(place, crash.message)
    command = commands.read(crash.running, follower.known, _settings(crash, follower))
    if set(command.strange) - settings.FLAGS and follower.known.flags:
        # The program took these flags, so they are defined in a file that is not at hand.
        follower.known = replace(follower.known, partial=True)
        command = commands.read(crash.running, follower.known, _settings(crash, follower))
    follower.given = frozenset(given.flag.dest for given in command.given)
    shown = _shown(follower, command) or (_told(follower, command) if crash.unread else None)
    if shown is None:
        return None
    near, far, recorded = shown
    own, around = attributes(follower, place, command, recorded)
    search = Search(follower, command, near, far, recorded, own, around)
    found = search.best() if own or around else None
    fails = Fix(fails=recorded.failed is True)
    return fails if found is None else _fix(found, crash, follower, fails)


def _shown(follower: Follower, command: Command) -> tuple[Frame, Frame, Ran] | None:
    """The innermost and the outermost frame from which a run surely fails as the log says, and the run of the first."""
    entries = follower.entries()
    far = next((e for e in entries if follower.run(e, command.values).failed is True), None)
    if far is None:
        return None
    for entry in reversed(entries):
        ran = follower.run(entry, command.values)
        if ran.failed is True:
            return entry, far, ran
    return None


def _settings(crash: Crash, follower: Follower) -> Mapping[str, Value]:
    if not crash.unread:
        return crash.settings
    return {flag.dest: Unknown(frozenset({flag.dest})) for flag in follower.known.flags}


def _told(follower: Follower, command: Command) -> tuple[Frame, Frame, Ran] | None:
    """The same where the check depends on flags alone, some of which stand in a file that could not be read.

    That it failed, the log says; an edit counts only where the check passes whatever the file sets.
    """
    dests = {flag.dest for flag in follower.known.flags}
    for entry in reversed(follower.entries()):
        ran = follower.run(entry, command.values)
        refusing = depends((ran.world.refusing,))
        if ran.failed is None and refusing and refusing <= dests:
            return entry, entry, ran
    return None


def attributes(
    follower: Follower, place: Place, command: Command, recorded: Ran
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What the condition of the check reads of the arguments, and what leads to it; dotted keys as `a.b`."""
    test = getattr(place.guard, "test", None)
    own = dict.fromkeys(names_in(test, follower)) if test is not None else {}
    around: dict[str, None] = {}
    for frame in reversed(follower.frames):
        for node in path_to(follower.modules[frame.path].tree, frame.line):
            if isinstance(node, ast.If) and node is not place.guard:
                around |= (
                    dict.fromkeys(names_in(node.test, follower)) if frame.path == place.path else _plain(node.test)
                )
    read = [name for path, function, name in recorded.world.reads if (path, function) == (place.path, place.function)]
    others = [name for _, _, name in recorded.world.reads]
    settable = _settable(follower, command)
    own_names = tuple(name for name in own if settable(name))
    if not own_names:
        own_names = tuple(name for name in dict.fromkeys(others) if settable(name) and name not in around)[:8]
    more = dict.fromkeys((*around, *read[:_READS]))
    names = tuple(name for name in more if settable(name) and name not in own_names)
    return own_names, names


def _plain(test: ast.expr) -> dict[str, None]:
    return {node.attr: None for node in ast.walk(test) if isinstance(node, ast.Attribute)}


class _Settable:
    def __init__(self, follower: Follower, command: Command) -> None:
        self._follower = follower
        self._command = command

    def __call__(self, name: str) -> bool:
        """Whether a flag sets this attribute."""
        if "." in name:
            return self._command.of(name) is not None
        return name in self._follower.known.by_dest or not self._follower.known.read


def _settable(follower: Follower, command: Command) -> _Settable:
    return _Settable(follower, command)


def _fix(found: Found, crash: Crash, follower: Follower, fails: Fix) -> Fix:
    launch = commands.read(crash.launch, follower.known)
    changes = tuple(_on(change, launch) for change in found.changes)
    if any(change.action == "drop" and launch.of(change.dest) is None for change in changes):
        return fails  # a script adds that flag: it is not ours to take away
    return replace(
        fails,
        argv=commands.apply(changes, launch),
        edits=tuple(
            Edit(flag=c.flag, action=c.action, value=c.text or None, basis=c.basis)  # type: ignore[arg-type]
            for c in changes
        ),
        passed=found.passed,
        evaluated=found.evaluated,
        notes=_notes(changes, crash.message),
    )


def _notes(changes: Sequence[Change], message: str) -> tuple[str, ...]:
    """Where the message asks for a flag that the condition forbids: the source decides."""
    against = [c.flag for c in changes if c.action == "drop" and re.search(rf"{re.escape(c.flag)}(?![\w-])", message)]
    if not against or not _ASKS.search(message):
        return ()
    return (
        f"The message asks for {', '.join(against)}, but the condition in the source forbids it: the source decides.",
    )


# host tier needs --disable-prefix-reuse
_ASKS = re.compile(
    r"(?i)\b(?:needs?|requires?|must (?:be )?(?:set|given|used|enabled)|please (?:set|use|add|enable)|add|asks for)\b"
)


def _on(change: Change, launch: Command) -> Change:
    """An edit as the launch needs it: what a script sets before is set again behind."""
    own = launch.of(change.dest)
    if change.action == "set" and own is None:
        return replace(change, action="add")
    return change if own is None else replace(change, flag=own.typed)
