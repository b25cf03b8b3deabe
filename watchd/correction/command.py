"""A command line as its program reads it, and the same command with other flags."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from watchd.correction.flags import Flag, Known
from watchd.correction.values import Unknown, Value

_OFF = ("disable", "no")
_TYPES: Mapping[str, type] = {"int": int, "float": float}
GUESSED = "guessed"
"""The type of a flag of which nothing is known but its name: its value is taken for a number where it looks like one."""
_JSON = frozenset(("loads", "dict", "json"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """One flag of a command: `words` are the indexes of its words, `path` the keys of a dotted flag."""

    typed: str
    flag: Flag
    words: tuple[int, ...]
    value: Value
    path: tuple[str, ...] = ()
    text: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command line, read: its words, its flags in order, and those that the program does not know."""

    words: tuple[str, ...]
    given: tuple[Given, ...] = ()
    strange: tuple[str, ...] = ()
    values: Mapping[str, Value] = field(default_factory=dict)
    also: Mapping[str, str] = field(default_factory=dict)

    def of(self, dest: str) -> Given | None:
        """The flag that sets an attribute, the last of them; `a.b` is a key of the attribute `a`."""
        name, *path = dest.split(".")
        pole, _, rest = name.partition("_")
        names = {name, *(f"{other}_{rest}" for other in _OFF if pole in _OFF and rest)}
        typed = [g for g in self.given if g.flag.dest == name or (g.flag.type == GUESSED and g.flag.dest in names)]
        return next((g for g in reversed(typed) if list(g.path) == path), None)


def read(words: Sequence[str], known: Known, settings: Mapping[str, Value] | None = None) -> Command:
    """Read a command line; `settings` are values of a settings file that the program puts before its flags."""
    given: list[Given] = []
    strange: list[str] = []
    at = _begin(words)
    while at < len(words):
        word = words[at]
        if not _is_flag(word):
            at += 1
            continue
        typed, equals, text = word.partition("=")
        flag, path, off = find(typed, known)
        if flag is None:
            strange.append(typed)
            at += 1
            continue
        used = [at]
        at += 1
        if flag.type == GUESSED and not equals and (at >= len(words) or _is_flag(words[at])):
            given.append(Given(typed=typed, flag=flag, words=tuple(used), value=True))
            continue
        if flag.kind == "value" or path:
            if equals:
                values = [text]
            else:
                values = []
                while at < len(words) and not _is_flag(words[at]) and (flag.many or not values):
                    values.append(words[at])
                    used.append(at)
                    at += 1
            value = typed_value(flag, values, dotted=bool(path))
            shown = values[0] if len(values) == 1 else None
        else:
            value, shown = (False if off else flag.kind != "off"), None
        given.append(Given(typed=typed, flag=flag, words=tuple(used), value=value, path=path, text=shown))
    return Command(
        words=tuple(words),
        given=tuple(given),
        strange=tuple(strange),
        values=_values(given, known, settings or {}),
        also=known.also,
    )


# /opt/env/bin/python3.11    python
_PYTHON = re.compile(r"(?:.*/)?(?:python|pypy)[\d.]*")


def _begin(words: Sequence[str]) -> int:
    """Where the program's own arguments begin: behind Python's flags and the module or script that it runs."""
    python = next((at for at, word in enumerate(words) if _PYTHON.fullmatch(word)), None)
    if python is None:
        return 0
    for at in range(python + 1, len(words)):
        if words[at] == "-m":
            return at + 2
        if not words[at].startswith("-"):
            return at + 1
    return python + 1


def _values(given: Sequence[Given], known: Known, settings: Mapping[str, Value]) -> dict[str, Value]:
    found: dict[str, Value] = {flag.dest: flag.default for flag in known.flags}
    found |= settings
    if not known.read:
        # Written the other way round: `--disable-x` sets `no_x` as often as `disable_x`.
        for one in given:
            pole, _, rest = one.flag.dest.partition("_")
            if pole in _OFF and rest:
                found |= {f"{other}_{rest}": one.value for other in _OFF}
    trees: dict[str, dict[str, Value]] = {}
    for one in given:
        if not one.path:
            found[one.flag.dest] = one.value
            continue
        before = found.get(one.flag.dest)
        tree = trees.setdefault(one.flag.dest, dict(before) if isinstance(before, dict) else {})
        node: dict[str, Value] = tree
        for key in one.path[:-1]:
            inner = node.get(key)
            node[key] = made = dict(inner) if isinstance(inner, dict) else {}
            node = made
        node[one.path[-1]] = one.value
    found |= trees
    return found | {dest: found[attribute] for attribute, dest in known.also.items()}


def find(typed: str, known: Known) -> tuple[Flag | None, tuple[str, ...], bool]:
    """The flag that a typed word means, the keys of a dotted one, and whether it is its `--no-` form.

    As argparse does it: the name itself, else the only one that begins with it. `_` counts as `-` where only that fits.
    """
    exact = known.by_name.get(typed)
    if exact is not None:
        return exact, (), False
    if not known.flags:
        return _guessed(typed), (), False
    if typed.startswith("--no-"):
        flag = known.by_name.get("--" + typed[5:])
        if flag is not None and flag.kind == "either":
            return flag, (), True
    if typed.startswith("--"):
        near = {id(flag): flag for name, flag in known.by_name.items() if name.startswith(typed)}
        if len(near) == 1:
            return next(iter(near.values())), (), False
    dashed = known.by_name.get("--" + typed[2:].replace("_", "-")) if typed.startswith("--") else None
    if dashed is not None:
        return dashed, (), False
    name, *path = typed.split(".")
    owner = known.by_name.get(name.replace("_", "-") if name.startswith("--") else name) if path else None
    if owner is not None and all(path):
        return owner, tuple(path), False
    return (_guessed(typed) if known.partial else None), (), False


def _guessed(typed: str) -> Flag | None:
    """A flag of a program whose flags are not known: it sets the attribute of its name."""
    name = typed.lstrip("-")
    if not name or "." in name:
        return None
    return Flag(names=(typed,), dest=name.replace("-", "_"), type=GUESSED)


def _is_flag(word: str) -> bool:
    return len(word) > 1 and word.startswith("-") and not word[1:2].isdigit() and word[1:2] != "."


def typed_value(flag: Flag, texts: Sequence[str], *, dotted: bool = False) -> Value:
    """What the words of a flag mean, by its type; something given where the type is not known here."""
    if flag.many and not dotted:
        return [_one(flag, text) for text in texts]
    if not texts:
        return Unknown(frozenset({flag.dest}))
    if dotted:
        try:
            loaded: Value = json.loads(texts[0])
        except ValueError:
            return texts[0]
        return loaded
    return _one(flag, texts[0])


def _one(flag: Flag, text: str) -> Value:
    if flag.type in _TYPES:
        try:
            number: Value = _TYPES[flag.type](text)
        except ValueError:
            return Unknown(frozenset({flag.dest}), given=True)
        return number
    if flag.type in _JSON:
        try:
            loaded: Value = json.loads(text)
        except ValueError:
            return Unknown(frozenset({flag.dest}), given=True)
        return loaded
    if flag.type == GUESSED:
        return int(text) if text.lstrip("-").isdecimal() else text
    if flag.type in ("str", "Path"):
        return text
    if flag.type == "bool":
        return Unknown(frozenset({flag.dest}))
    # The type is a function of the program's own, or nothing is known of the flag but its name.
    return Unknown(frozenset({flag.dest}), given=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One edit: `dest` is the attribute (`a.b` for a dotted flag), `value` its new value; `text` None takes the flag away.

    basis  `proven`, `derived` or `suggestion`
    """

    dest: str
    flag: str
    text: str | None
    value: Value
    action: str
    basis: str = "proven"

    def __hash__(self) -> int:
        return hash((self.dest, self.flag, self.text))


def apply(changes: Sequence[Change], command: Command) -> tuple[str, ...]:
    """The words of the command with these edits; everything else stays as it was typed."""
    words: list[str | None] = list(command.words)
    tail: list[str] = []
    for change in changes:
        name, *path = change.dest.split(".")
        last = command.of(change.dest)
        dest = last.flag.dest if last else name
        own = [g for g in command.given if g.flag.dest == dest and list(g.path) == path]
        if change.action in ("drop", "set"):
            for at in (at for one in own[:-1] for at in one.words):
                words[at] = None
        if change.action == "drop" or not own:
            for at in own[-1].words if own else ():
                words[at] = None
            if change.action != "drop":
                tail += [change.flag, *([change.text] if change.text else [])]
            continue
        first, *rest = own[-1].words
        text = change.text or ""
        if "=" in command.words[first] or not rest:
            words[first] = f"{own[-1].typed}={text}" if "=" in command.words[first] else own[-1].typed
        else:
            words[rest[0]] = text
            for at in rest[1:]:
                words[at] = None
    return (*(word for word in words if word is not None), *tail)
