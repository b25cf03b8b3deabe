"""Find the configuration file, read it, and say everything that is wrong with it at once."""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from watchd.errors import Mistake, SettingsError
from watchd.settings.locate import Places, locate
from watchd.settings.types import Settings

LARGEST = 4 << 20
"""Bytes: what is larger is not a configuration file."""

# Expected '=' after a key in a key/value pair (at line 3, column 5)
# Unclosed array (at end of document)
_SYNTAX = re.compile(r"(?s)(?P<what>.*) \(at (?:line (?P<line>[0-9]+), column (?P<column>[0-9]+)|end of document)\)")
_SHARED = "; others may read this file: keep the secret elsewhere, or run `chmod o-r` on it"
_CLEAR = '; { credential = "NAME" }, { file = "PATH" } or { env = "NAME" } would keep it elsewhere'


def usual_places(
    home: Path, *, environment: Mapping[str, str] | None = None, system: Path = Path("/etc")
) -> tuple[Path, ...]:
    """Where a configuration file may lie, one's own before that of the machine."""
    given = Path((os.environ if environment is None else environment).get("XDG_CONFIG_HOME", ""))
    own = given if given.is_absolute() else home / ".config"
    return (own / "watchd" / "watchd.toml", system / "watchd" / "watchd.toml")


def find(
    explicit: Path | None,
    home: Path,
    *,
    environment: Mapping[str, str] | None = None,
    system: Path = Path("/etc"),
) -> Path | None:
    """The file that was asked for, whether it is there or not; else the first of the usual places that can be read."""
    if explicit is not None:
        return explicit
    for place in usual_places(home, environment=environment, system=system):
        if os.access(place, os.R_OK) and place.is_file():
            return place
    return None


def load(path: Path, *, engines: Collection[str] = ()) -> Settings:
    """Read and check a configuration file; secrets are not read yet.

    Any engine may be named where `engines` is empty. Raises SettingsError with every mistake of the file.
    """
    content, others_may_read = _content(path)
    text = _text(path, content)
    document = _document(path, text)
    return _settings(path, document, locate(text), others_may_read, engines)


def _content(path: Path) -> tuple[bytes, bool]:
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            content = file.read(LARGEST + 1)
    except FileNotFoundError:
        raise _whole(path, "there is no such file") from None
    except (OSError, ValueError) as error:
        raise _whole(path, f"cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if len(content) > LARGEST:
        raise _whole(path, f"is larger than {LARGEST >> 20} MiB: that is no configuration file")
    return content, bool(mode & stat.S_IROTH)


def _text(path: Path, content: bytes) -> str:
    if content.startswith(b"\xef\xbb\xbf"):
        raise _whole(path, "begins with a byte order mark: save it as UTF-8 without one")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _whole(path, f"is not UTF-8 text: byte 0x{content[error.start]:02x} on line {line}") from None


def _document(path: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(str(path), (_syntax(str(error), text),)) from None
    except RecursionError:
        raise _whole(path, "is nested too deeply") from None
    except (ValueError, OverflowError) as error:  # numbers and dates that Python cannot hold
        raise _whole(path, f"holds a value that cannot be read: {error}") from None


def _syntax(message: str, text: str) -> Mistake:
    found = _SYNTAX.fullmatch(message)
    if not found:
        return Mistake(line=0, key="syntax", reason=message)
    if not found["line"]:
        return Mistake(
            line=text.rstrip().count("\n") + 1, key="syntax", reason=f"{found['what']} at the end of the file"
        )
    return Mistake(line=int(found["line"]), key="syntax", reason=f"{found['what']} (column {found['column']})")


def _settings(
    path: Path, document: dict[str, Any], places: Places, others_may_read: bool, engines: Collection[str]
) -> Settings:
    # pydantic is loaded only where a configuration is.
    from pydantic import ValidationError

    from watchd.settings import build, mistakes, relations, shapes, unbuilt

    wrong: list[Mistake] = []
    literals: list[Mistake] = []
    try:
        shapes.Document.model_validate(document)
    except ValidationError as error:
        wrong, literals = mistakes.sort_out(error.errors(include_url=False), document, places)
    wrong += relations.mistakes(document, places, engines)
    literals += relations.literals(document, places)
    if others_may_read:
        wrong += (_more(literal, _SHARED) for literal in literals)
    if wrong:
        raise SettingsError(str(path), tuple(set(wrong)))
    shape = shapes.Document.model_validate(document, context={"literals": True})
    warnings = [_more(literal, _CLEAR) for literal in literals]
    warnings += relations.warnings(document, places)
    return build.build(shape, path, places, warnings=tuple(sorted(warnings)), unbuilt=unbuilt.unbuilt(shape, places))


def _more(mistake: Mistake, words: str) -> Mistake:
    return Mistake(line=mistake.line, key=mistake.key, reason=mistake.reason + words)


def _whole(path: Path, reason: str) -> SettingsError:
    return SettingsError(str(path), (Mistake(line=0, key="file", reason=reason),))
