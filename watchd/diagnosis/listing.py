"""Signatures as a person looks at them: listed, tried on their samples, tried on a log."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from watchd.diagnosis import chains, signatures
from watchd.errors import LogUnreadableError
from watchd.model import Cause, Line, Role, Signature
from watchd.parse import lines as prefixes
from watchd.parse import secrets, traceback

_HEAD = """\
# Causes

What `watchd signatures list --markdown` prints: each cause, and by which lines it is recognised. Every row is one entry
of `watchd/diagnosis/signatures/*.toml`, with its first sample and its first advice; words in braces are facts of the
case. How an entry is added stands in [diagnosis.md](diagnosis.md).
"""
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


def page(known: Sequence[Signature]) -> str:
    """The catalogue as a Markdown page: cause by cause what is recognised, by which words, and what is advised."""
    told = [_HEAD]
    for cause, words in sorted(signatures.causes().items(), key=lambda item: list(Cause).index(item[0])):
        told += [f"## {cause.value}", "", f"{words['covers'][0][0].upper()}{words['covers'][0][1:]}.", ""]
        rows = [one for one in known if one.cause is cause and one.role is not Role.NOISE]
        told += [row for one in rows for row in _entry(one)]
        if words["advice"]:
            told += [f"Without words of its own: {_markdown(words['advice'][0])}", ""]
    told += ["## Noise", "", "Recognised so that it never leads.", ""]
    told += [f"- **{one.name}**: {_code(one.matches[0])}" for one in known if one.role is Role.NOISE]
    told += ["", "## Consequences", "", "Whatever caused them; none leads while anything better is there.", ""]
    told += [f"- **{one.name}**: {_code(one.matches[0])}" for one in known if one.role is Role.ECHO and not one.cause]
    return "\n".join(told) + "\n"


def _entry(one: Signature) -> Iterator[str]:
    role = {Role.ROOT: "", Role.SIGN: " (an early or partial sign)", Role.ECHO: " (a consequence)"}.get(one.role, "")
    yield f"- **{one.name}**{role}: {_markdown(one.says) or 'see the line'}  "
    yield f"  {_code(one.matches[0])}  "
    if one.advice:
        yield f"  → {_markdown(one.advice[0])}"
    yield ""


def _code(text: str) -> str:
    shown = " ".join(text.split())
    return f"`` {shown if len(shown) <= _WIDE else shown[:_WIDE] + '…'} ``"


def _markdown(text: str) -> str:
    """Facts in braces read as such in a page; what a page would take for markup is left to backquotes."""
    return text.replace("<", "&lt;").replace("*", "\\*")


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
