"""Signatures as a person looks at them: listed, tried on their samples, tried on a log."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from watchd.diagnosis import chains, signatures
from watchd.errors import LogUnreadableError
from watchd.model import Line, Signature
from watchd.parse import lines as prefixes
from watchd.parse import secrets, traceback

WINDOW = 8 << 20
"""Bytes at the end of a log that are looked at."""
_WIDE = 160


def table(known: Sequence[Signature]) -> str:
    """One row a signature: its name, cause, role, family, and how many samples it has."""
    rows = [("NAME", "CAUSE", "ROLE", "FAMILY", "SAMPLES")]
    rows += [
        (one.name, one.cause.value if one.cause else "-", one.role.value, one.family, _count(one)) for one in known
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def as_json(known: Sequence[Signature]) -> str:
    """The same in full: patterns, samples and words."""
    return json.dumps([_plain(one) for one in known], indent=2, ensure_ascii=False)


def tried(file: Path, own: Sequence[Signature]) -> str:
    """What became of the samples of a file that has no mistakes."""
    rows = [f"  {one.name}: {_count(one)} samples" for one in own]
    return "\n".join((f"{file}: {len(own)} signatures, every sample as it should be", *rows))


def matched(log: Path, known: Sequence[Signature]) -> tuple[str, ...]:
    """Which signature counts for which line and exception of a log, in file order, without secrets.

    Raises LogUnreadableError.
    """
    lines = _lines(log)
    among = signatures.only(tuple(known))
    hits = sorted((*_in_lines(lines, among), *_in_exceptions(lines, among)), key=lambda hit: hit[0])
    told = [f"{_place(lines[index])}: {_named(one)}: {' '.join(text.split())[:_WIDE]}" for index, one, text in hits]
    if not told:
        told = [f"{log}: no line that any of {len(known)} signatures matches"]
    return secrets.Redactor().redact_lines(told)[0]


def _in_lines(lines: Sequence[Line], among: signatures.Catalogue) -> Iterator[tuple[int, Signature, str]]:
    for index, line in enumerate(lines):
        body = prefixes.split(line.text).body
        found = signatures.find(body, on="lines", among=among) if body else None
        if found:
            yield index, found[0], body


def _in_exceptions(lines: Sequence[Line], among: signatures.Catalogue) -> Iterator[tuple[int, Signature, str]]:
    for block in traceback.read(lines):
        for link in chains.links(block):
            text = chains.text_of(link)
            found = signatures.find(text, on="exceptions", frames=chains.frames_of(link), among=among)
            if found:
                yield link.last, found[0], f"(exception) {text}"


def _lines(log: Path) -> tuple[Line, ...]:
    if log.exists() and not log.is_file():
        raise LogUnreadableError("this machine", str(log), "is no regular file")
    try:
        with log.open("rb") as file:
            size = file.seek(0, 2)
            begin = max(0, size - WINDOW)
            file.seek(begin)
            data = file.read(WINDOW)
    except OSError as error:
        raise LogUnreadableError("this machine", str(log), error.strerror or "cannot be read") from error
    found, offset = [], begin
    for number, raw in enumerate(data.split(b"\n"), 1):
        found.append(Line(number if not begin else None, offset, raw.decode("utf-8", "replace")))
        offset += len(raw) + 1
    return tuple(found)


def _place(line: Line) -> str:
    return f"line {line.number}" if line.number is not None else f"byte {line.offset}"


def _named(one: Signature) -> str:
    return f"{one.name} ({', '.join((one.cause.value, one.role.value)) if one.cause else one.role.value})"


def _count(one: Signature) -> str:
    return f"{len(one.matches)}+{len(one.misses)}"


def _plain(one: Signature) -> dict[str, object]:
    return {
        "name": one.name,
        "family": one.family,
        "cause": one.cause.value if one.cause else None,
        "role": one.role.value,
        "on": one.on,
        "patterns": [pattern.pattern for pattern in one.patterns],
        "contains": one.contains.pattern if one.contains else None,
        "frames": one.frames.pattern if one.frames else None,
        "weak": one.weak,
        "says": one.says,
        "advice": list(one.advice),
        "matches": list(one.matches),
        "misses": list(one.misses),
    }
