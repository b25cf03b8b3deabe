"""The process list, from `stat` files and command lines as `hosts/commands.py` lays them out."""

from __future__ import annotations

import re

from watchd.model import Process

OURS = "@@watchd-"
"""Begins the frame lines of our own sessions, and so stands in the command line of each."""

MAX_PROCESSES = 100_000

# 4242 (python3) S 4200 4242 4242 0 -1 4194560 … 812345 …
# A name is 15 bytes at most and may hold anything, newlines and brackets too; no name is long enough to hold the
# forty numbers that end a record.
_STAT = re.compile(rb"(\d{1,10}) \((.{0,64}?)\) ([A-Za-z])((?: -?\d{1,20}){40,60})\n", re.DOTALL)
# /proc/4242/cmdline:--model
_RECORD = re.compile(rb"/proc/(\d{1,10})/cmdline:")
# ==> /proc/4242/cmdline <==
_HEADER = re.compile(rb"(?:\A|\n)==> /proc/(\d{1,10})/cmdline <==\n")

_PARENT = 0
_STARTED = 18


def processes(data: bytes) -> tuple[Process, ...]:
    """Every process in the answer, by pid; without our own sessions and what they started. Never raises.

    A process that ended between the two looks has no command line; one whose command line cannot be told for certain
    has none either.
    """
    stats, rest = _stats(data)
    lines = _command_lines(rest)
    found = {
        pid: Process(pid=pid, parent=parent, started=started, argv=lines.get(pid, ()), state=state)
        for pid, (state, parent, started) in stats.items()
    }
    ours = _ours(found)
    return tuple(found[pid] for pid in sorted(found) if pid not in ours)


def arguments(command_line: bytes) -> tuple[str, ...]:
    """The arguments of a NUL-separated command line; a title that a process gave itself loses its padding."""
    return _words(command_line.removesuffix(b"\0").split(b"\0") if command_line else [])


def _stats(data: bytes) -> tuple[dict[int, tuple[str, int, int]], bytes]:
    """State, parent and start by pid; and what follows the empty line behind the records."""
    found: dict[int, tuple[str, int, int]] = {}
    place = 0
    while len(found) < MAX_PROCESSES:
        record = _STAT.match(data, place)
        if record is not None:
            numbers = record[4].split()
            found[int(record[1])] = (record[3].decode(), int(numbers[_PARENT]), int(numbers[_STARTED]))
            place = record.end()
        elif data.startswith(b"\n", place):
            return found, data[place + 1 :]
        else:
            # A record that does not look like one: go on behind its line.
            end = data.find(b"\n", place)
            if end < 0:
                break
            place = end + 1
    return found, b""


def _command_lines(data: bytes) -> dict[int, tuple[str, ...]]:
    kind, _, body = data.partition(b"\n")
    if kind == b"z":
        return _from_records(body)
    if kind == b"h":
        return _from_headed(body)
    return {}


def _from_records(body: bytes) -> dict[int, tuple[str, ...]]:
    words: dict[int, list[bytes]] = {}
    # What follows the last NUL was cut off.
    for record in body.split(b"\0")[:-1]:
        found = _RECORD.match(record)
        if found is not None:
            words.setdefault(int(found[1]), []).append(record[found.end() :])
    return {pid: _words(parts) for pid, parts in words.items()}


def _from_headed(body: bytes) -> dict[int, tuple[str, ...]]:
    """An argument may imitate a header: a pid that appears twice is told for certain by neither."""
    parts = _HEADER.split(body)
    found: dict[int, tuple[str, ...]] = {}
    twice: set[int] = set()
    for number, text in zip(parts[1::2], parts[2::2], strict=False):
        pid = int(number)
        if pid in found:
            twice.add(pid)
        found[pid] = arguments(text.removesuffix(b"\n"))
    return {pid: words for pid, words in found.items() if pid not in twice}


def _words(parts: list[bytes]) -> tuple[str, ...]:
    if len(parts) > 1 and not parts[-1] and not parts[-2]:
        while parts and not parts[-1]:
            parts.pop()
    return tuple(part.decode("utf-8", "replace") for part in parts)


def _ours(found: dict[int, Process]) -> set[int]:
    """Our own sessions and their children: a grep for an error in a log is not the server that writes it."""
    ours = {pid for pid, process in found.items() if any(OURS in word for word in process.argv)}
    children: dict[int, list[int]] = {}
    for process in found.values():
        children.setdefault(process.parent, []).append(process.pid)
    waiting = list(ours)
    while waiting:
        fresh = [pid for pid in children.get(waiting.pop(), ()) if pid not in ours]
        ours.update(fresh)
        waiting += fresh
    return ours
