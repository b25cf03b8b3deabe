"""Launch commands: the words of one, from what the kernel, a shell line or a shell's trace shows; flags and attributes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence

_TEXT_LIMIT = 256 * 1024
_WORDS = 4096


def from_cmdline(data: bytes) -> tuple[str, ...]:
    """The words of `/proc/PID/cmdline`: each ends with a NUL. A process that renamed itself shows one long word."""
    text = data[:_TEXT_LIMIT].decode("utf-8", "replace").rstrip("\0\n")
    return tuple(text.split("\0")[:_WORDS]) if text else ()


def from_shell(text: str) -> tuple[str, ...]:
    """The words of a shell line; leading `NAME=value` words stay. Where a quote is left open, split at white space."""
    line = text[:_TEXT_LIMIT].replace("\\\r\n", " ").replace("\\\n", " ").strip()
    try:
        words = shlex.split(line, comments=False)
    except ValueError:
        words = line.split()
    return tuple(words[:_WORDS])


def from_any(data: bytes) -> tuple[str, ...]:
    """The words of a command that was kept in a file: as the kernel shows it, or as a shell line."""
    if b"\0" in data.rstrip(b"\0\n"):
        return from_cmdline(data)
    return from_shell(data[:_TEXT_LIMIT].decode("utf-8", "replace").replace("\0", ""))


# + exec python3 -m some.server --model-path /models/a --tp 4
# ++ python3 -m some.server --model-path /models/a
_TRACED = re.compile(r"\+{1,8} (?=\S)")
_WRAPPERS = frozenset({"exec", "command", "nohup", "time", "sudo"})
_SHELL_WORK = frozenset(
    {
        ".",
        "[",
        "[[",
        "alias",
        "cat",
        "cd",
        "chmod",
        "cp",
        "date",
        "declare",
        "echo",
        "export",
        "false",
        "hash",
        "hostname",
        "let",
    }
    | {
        "local",
        "ln",
        "ls",
        "mkdir",
        "module",
        "mv",
        "printf",
        "pwd",
        "read",
        "rm",
        "set",
        "shift",
        "sleep",
        "source",
        "tee",
    }
    | {"test", "touch", "trap", "true", "type", "ulimit", "umask", "unset", "wait", "which"}
)


def from_trace(line: str) -> tuple[str, ...] | None:
    """The command in a line that a shell printed under `set -x` before it ran it, or None where it started no program."""
    match = _TRACED.match(line)
    if match is None:
        return None
    words = list(from_shell(line[match.end() :]))
    while words and words[0] in _WRAPPERS:
        del words[0]
    program = next((word for word in words if not _ASSIGNMENT.match(word)), "")
    return tuple(words) if program and program.rpartition("/")[2] not in _SHELL_WORK else None


def echoed(lines: Iterable[str]) -> tuple[str, ...] | None:
    """The last command with a flag that a shell's trace among these lines shows, or None."""
    found: tuple[str, ...] | None = None
    for line in lines:
        if line.startswith("+"):
            words = from_trace(line.rstrip("\r"))
            if words and any(word.startswith("-") for word in words):
                found = words
    return found


_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


def flag_of(attribute: str) -> str:
    """The flag by which an attribute is set, as most parsers name it: `num_steps` gives `--num-steps`."""
    return "--" + attribute.strip("_").replace("_", "-")


def attribute_of(flag: str) -> str:
    """The attribute that a flag sets: `--num-steps` and `--num_steps=3` give `num_steps`."""
    return flag.partition("=")[0].lstrip("-").replace("-", "_")


def given(argv: Sequence[str], attribute: str) -> str | None:
    """The flag of this command that sets the attribute, as it was typed, or None: `--num_steps` counts as `--num-steps`."""
    for word in argv:
        if word.startswith("-") and attribute_of(word) == attribute:
            return word.partition("=")[0]
    return None
