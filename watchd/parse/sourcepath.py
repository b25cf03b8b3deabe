"""Which source files may be read, and how much of each: paths and quotes come from a log, and a log may lie.

The rule: `.py` only, absolute, never under /proc, /sys, /dev, /etc or a dot folder of a home. Under `site-packages`,
`dist-packages`, Python's own library or a configured root that is enough. Elsewhere, and only where no roots are
configured, the quoted line must stand in the file at that place; and then only the enclosing function is kept.
"""

from __future__ import annotations

import io
import posixpath
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass

MAX_BYTES = 1024 * 1024
MAX_PATH = 4096
NEARBY_LINES = 3
"""Python versions report a statement over several lines differently: so far up or down the quoted line may stand."""

_CLOSED = ("proc", "sys", "dev", "etc")
_HOMES = ("home", "Users")
_PACKAGES = ("site-packages", "dist-packages")
_SECRET = frozenset({".ssh", ".gnupg", ".aws", ".azure", ".config", ".docker", ".kube"})
# /usr/lib/python3.11/asyncio/base_events.py, /opt/python/cpython-3.12.4/lib/python3.12/json/decoder.py
_LIBRARY = re.compile(r"/lib(?:64)?/python3(?:\.\d{1,3})?t?/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What may leave the host of a file: `data` has as many lines as the file, empty where they are not kept."""

    data: bytes
    whole: bool


def refusal(path: str, *, home: str | None = None) -> str | None:
    """Why this path is not read, or None; `home` is the home of the user on the host, where known.

    To be asked twice: about the path as the log has it, and about the real path behind its links.
    """
    if not path.startswith("/"):
        return "not an absolute path"
    if not path.endswith(".py"):
        return "not a .py file"
    if len(path) > MAX_PATH or "\0" in path:
        return "no path that could be a file's"
    plain = posixpath.normpath(path)
    parts = plain.lstrip("/").split("/")
    if parts[0] in _CLOSED:
        return f"never read under /{parts[0]}"
    if _SECRET.intersection(parts) or _in_dot_folder(plain, parts, home):
        return "never read in a dot folder of a home"
    return None


def _in_dot_folder(path: str, parts: list[str], home: str | None) -> bool:
    homes = [1] if parts[0] == "root" else []
    # /home/NAME, /export/home/NAME, /Users/NAME
    homes += [i + 2 for i, part in enumerate(parts[:-2]) if part in _HOMES]
    if home and path.startswith(home.rstrip("/") + "/"):
        homes.append(len([part for part in home.split("/") if part]))
    return any(parts[i].startswith(".") for i in homes if i < len(parts))


def needs_quote(real: str, roots: tuple[str, ...]) -> bool | str:
    """Whether the quoted line must be found in the file at this real path; a text says why it is not read at all."""
    plain = posixpath.normpath(real)
    parts = plain.split("/")
    if any(part in parts for part in _PACKAGES) or _LIBRARY.search(plain):
        return False
    if any(_below(plain, root) for root in roots):
        return False
    if roots:
        return "outside the configured source roots and the installed packages"
    return True


def _below(path: str, root: str) -> bool:
    folder = posixpath.normpath(root)
    return folder.startswith("/") and (path.startswith(folder.rstrip("/") + "/"))


def kept(data: bytes, *, real: str, line: int, code: str | None, roots: tuple[str, ...]) -> Kept | str:
    """What of this file may leave the host; a text says why nothing may. Never raises."""
    quoted = needs_quote(real, roots)
    if isinstance(quoted, str):
        return quoted
    if not quoted:
        return Kept(data=data, whole=True)
    if code is None or not code.strip():
        return "outside the installed packages, and the log quotes no line that could prove that this is the file"
    lines = data.split(b"\n")
    found = _where(lines, line, code)
    if found is None:
        return (
            f"outside the installed packages, and the quoted line does not stand within {NEARBY_LINES} lines of {line}"
        )
    first, last = function_around(data, found)
    shown = [text if first <= number <= last else b"" for number, text in enumerate(lines, 1)]
    return Kept(data=b"\n".join(shown), whole=False)


def _where(lines: list[bytes], line: int, code: str) -> int | None:
    """The line nearest to `line` that is the quoted one."""
    wanted = code.strip()
    for distance in range(NEARBY_LINES + 1):
        for number in (line - distance, line + distance):
            if 1 <= number <= len(lines) and lines[number - 1].decode("utf-8", "replace").strip() == wanted:
                return number
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Statement:
    """A logical line: its first and last line, how deep it is indented, and whether it begins a function or decorates one."""

    first: int
    last: int
    depth: int
    defines: bool
    decorates: bool


def function_around(data: bytes, line: int) -> tuple[int, int]:
    """First and last line of the innermost function around `line`, decorators included; of its statement, if in none.

    The file is cut into tokens and not parsed: a hostile file costs time in proportion to its size.
    """
    statements = list(_statements(data))
    around = [block for block in _functions(statements) if block[0] <= line <= block[1]]
    if around:
        return max(around)
    return next(((s.first, s.last) for s in statements if s.first <= line <= s.last), (line, line))


def _statements(data: bytes) -> Iterator[_Statement]:
    """The logical lines, up to where the text cannot be cut into tokens."""
    depth = first = 0
    words: list[str] = []
    text = io.StringIO(data.decode("utf-8", "replace"))
    try:
        for token in tokenize.generate_tokens(text.readline):
            if token.type in (tokenize.INDENT, tokenize.DEDENT):
                depth += 1 if token.type == tokenize.INDENT else -1
            elif token.type == tokenize.NEWLINE:
                yield _Statement(
                    first=first,
                    last=token.end[0],
                    depth=depth,
                    defines=words[:1] == ["def"] or words[:2] == ["async", "def"],
                    decorates=words[:1] == ["@"],
                )
                words = []
            elif token.type not in (tokenize.NL, tokenize.COMMENT):
                first = first if words else token.start[0]
                words = [*words[:1], token.string] if len(words) < 2 else words
    except (tokenize.TokenError, SyntaxError, ValueError):
        return


def _functions(statements: list[_Statement]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    still_open: list[tuple[int, int]] = []
    last = decorated = 0
    for statement in statements:
        while still_open and still_open[-1][1] >= statement.depth:
            found.append((still_open.pop()[0], last))
        if statement.decorates:
            decorated = decorated or statement.first
        else:
            if statement.defines:
                still_open.append((decorated or statement.first, statement.depth))
            decorated = 0
        last = statement.last
    return [*found, *((first, last) for first, _ in still_open)]
