"""A user's own signatures: read from their folder when watchd starts, and never again."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from watchd.diagnosis import families, signatures
from watchd.errors import Mistake, SignaturesError
from watchd.model import Signature, Target
from watchd.settings import Settings, TargetRules

LARGEST = 1 << 20
"""Bytes: what is larger is no file of signatures."""
MOST = 200
"""Files of one folder that are read."""


def equip(settings: Settings) -> Settings:
    """The settings with each target's own signatures read. Raises SignaturesError with every mistake of every file."""
    known = {folder: read(Path(folder)) for folder in _folders(settings)}
    rules = (settings.rules.get(target.name, settings.defaults) for target in settings.targets)
    targets = tuple(
        replace(target, signatures=known[rule.signatures]) for target, rule in zip(settings.targets, rules, strict=True)
    )
    return replace(settings, targets=targets)


def for_any(target: Target, settings: Settings | None) -> Target:
    """A target that stands in no file, with the signatures that hold for those that say nothing else."""
    if settings is None:
        return target
    return replace(target, signatures=read(Path(settings.defaults.signatures)))


def for_nobody(settings: Settings | None) -> tuple[Signature, ...]:
    """All signatures that hold for a target that stands in no file, in the order in which they are asked."""
    return (*(read(Path(settings.defaults.signatures)) if settings else ()), *signatures.catalogue())


def alone(file: Path) -> tuple[Signature, ...]:
    """The signatures of one file. Raises SignaturesError with every mistake of it, those of its samples too."""
    found, mistakes = read_file(file)
    mistakes = (*mistakes, *_taken(found))
    if not found and not mistakes:
        mistakes = (_whole("holds no [[signature]]"),)
    if mistakes:
        raise SignaturesError({str(file): mistakes})
    return found


def read(folder: Path) -> tuple[Signature, ...]:
    """The signatures of every `*.toml` of this folder, in the order of the files' names; none where there is no folder.

    Raises SignaturesError where a file is broken, a name is used twice, or the folder was configured and is not there.
    """
    broken: dict[str, tuple[Mistake, ...]] = {}
    found: list[Signature] = []
    names: dict[str, str] = {}
    for file in _files(folder):
        own, mistakes = read_file(file)
        twice = (_named_twice(one.name, names[one.name]) for one in own if one.name in names)
        wrong = (*mistakes, *_taken(own), *twice)
        if wrong:
            broken[str(file)] = wrong
        names.update({one.name: file.name for one in own})
        found.extend(own)
    if broken:
        raise SignaturesError(broken)
    return tuple(found)


def read_file(file: Path) -> tuple[tuple[Signature, ...], tuple[Mistake, ...]]:
    """The signatures of one file, and its mistakes."""
    try:
        # Not to wait for a writer where somebody put a named pipe.
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as opened:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return (), (_whole("is no regular file"),)
            content = opened.read(LARGEST + 1)
        text = content.decode()
    except UnicodeDecodeError:
        return (), (_whole("is not UTF-8 text"),)
    except OSError as error:
        return (), (_whole(f"cannot be read: {error.strerror}"),)
    if len(content) > LARGEST:
        return (), (_whole(f"is larger than {LARGEST >> 20} MiB: that is no file of signatures"),)
    own, mistakes = families.read(text, file.stem)
    names = [one.name for one in own]
    twice = (_named_twice(name, file.name) for name in dict.fromkeys(names) if names.count(name) > 1)
    return own, (*mistakes, *twice)


def _folders(settings: Settings) -> Iterator[str]:
    yield settings.defaults.signatures
    yield from (rules.signatures for rules in settings.rules.values())


def _files(folder: Path) -> tuple[Path, ...]:
    try:
        found = sorted(entry for entry in folder.iterdir() if entry.suffix == ".toml")
    except FileNotFoundError:
        if str(folder) == TargetRules().signatures:
            return ()
        raise SignaturesError({str(folder): (_whole("there is no such folder"),)}) from None
    except OSError as error:
        raise SignaturesError({str(folder): (_whole(f"cannot be read: {error.strerror}"),)}) from error
    if len(found) > MOST:
        raise SignaturesError({str(folder): (_whole(f"holds {len(found)} files; at most {MOST} are read"),)})
    return tuple(found)


def _taken(own: tuple[Signature, ...]) -> Iterator[Mistake]:
    """Names that the catalogue of watchd has: its rules know some of them."""
    known = {signature.name for signature in signatures.catalogue()}
    return (_named_twice(one.name, "the catalogue of watchd") for one in own if one.name in known)


def _named_twice(name: str, where: str) -> Mistake:
    return Mistake(line=0, key=f"signature {name!r}", reason=f"{where} has another one of this name")


def _whole(reason: str) -> Mistake:
    return Mistake(line=0, key="file", reason=reason)
