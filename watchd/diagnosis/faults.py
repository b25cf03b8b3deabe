"""From a run to everything in it that may have been what went wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from watchd.diagnosis import arguments, chains, signatures
from watchd.diagnosis.base import Fault, Role, Signature
from watchd.diagnosis.signatures import Catalogue
from watchd.model import Cause, Mark, MarkKind, Rank, Run, Traceback
from watchd.parse import lines as prefixes
from watchd.parse import traceback
from watchd.parse.lines import Words

_SILENT = frozenset((MarkKind.WORK, MarkKind.IDLE, MarkKind.QUOTED))
_BROAD = frozenset((Cause.COLLECTIVE_ERROR,))
"""Causes of which the further lines of a message may say the cause."""
_MESSAGE = 6
"""Lines behind an exception line that may belong to its message."""
_QUIET_LEVELS = frozenset(("DEBUG", "INFO"))
# Exception ignored in: <function …>        Exception ignored on threading shutdown
_IGNORED = re.compile(r"\bException ignored (?:in|on|while)\b")
# [Rank 3] …    rank 5, pid 70115    on rank 6:    rank: 3
_RANK = re.compile(r"\b(?:[Rr]ank|RANK|srun: error: \S{1,80}: task)[ =:_]{0,2}(\d{1,5})\b")
# ImportError('/opt/x.so: undefined symbol: y')      ModuleNotFoundError: No module named 'x'
_STATED = re.compile(
    r"\b(?P<type>(?:\w+\.){0,6}[A-Z]\w{2,60}(?:Error|Exception))(?:\((?P<quote>['\"])(?P<inner>.{1,600}?)(?P=quote)\)|: (?P<plain>.{1,600}))"
)


def read(
    run: Run, words: Sequence[Words], blocks: Sequence[Traceback], among: Catalogue | None = None
) -> tuple[Fault, ...]:
    """Every fault of a run in file order; what is noise is left out. `among` is what watchd and the user know."""
    bodies = [word.body for word in words]
    silent = {mark.line for mark in run.marks if mark.kind in _SILENT}
    quoted = {mark.line for mark in run.marks if mark.kind is MarkKind.QUOTED}
    owned: set[int] = set()
    found: list[Fault] = []
    for block in blocks:
        for link in chains.links(block):
            owned.update(link.indexes)
        if block.indexes[0] not in quoted:
            found.extend(_raised(block, bodies, among))
    found.extend(_said(run, words, owned | silent, among))
    return tuple(sorted(found, key=lambda fault: fault.index))


def stated(text: str, index: int) -> Traceback | None:
    """The exception that a line names without a traceback, or None."""
    match = _STATED.search(text)
    if match is None:
        return None
    message = match["inner"] or match["plain"] or ""
    return Traceback(type=match["type"], message=message.strip(), frames=(), indexes=(index,))


def rank_in(text: str) -> Rank | None:
    """The rank that a line speaks of, where it names one."""
    match = _RANK.search(text[:400])
    return int(match[1]) if match else None


def _raised(block: Traceback, bodies: Sequence[str], among: Catalogue | None) -> Iterator[Fault]:
    root = chains.origin(block, among)
    if not root.type or _noise_around(root, block, bodies, among):
        return
    text, frames = chains.text_of(root), chains.frames_of(root)
    match = signatures.find(text, on="exceptions", frames=frames, among=among)
    checked = arguments.cause_of(root)
    signature = match[0] if match and not (checked and match[0].weak) else None
    if signature is None or signature.cause in _BROAD:
        match = _detail(root, bodies, among) or match
        signature = match[0] if match and not (checked and match[0].weak) else None
    role = signature.role if signature else Role.ROOT
    if role is Role.NOISE:
        return
    if role is Role.ROOT and (root.level in ("WARNING", *_QUIET_LEVELS)):
        role = Role.SIGN
    kind = root.type.rpartition(".")[2]
    default = checked or (Cause.ASSERTION if kind == "AssertionError" else Cause.UNHANDLED_EXCEPTION)
    yield Fault(
        index=root.last,
        cause=(signature.cause or default) if signature else default,
        role=role,
        text=text,
        words={k: v for k, v in match[1].groupdict().items() if v} if match and signature else {},
        signature=signature,
        traceback=root,
        rank=root.rank if root.rank is not None else block.rank,
        process=root.process or block.process,
    )


def _detail(root: Traceback, bodies: Sequence[str], among: Catalogue | None) -> tuple[Signature, re.Match[str]] | None:
    """A cause that the further lines of the message name: `Last error: Error while creating shared memory segment …`."""
    for body in bodies[root.last + 1 : root.last + 1 + _MESSAGE]:
        if not body.strip() or traceback.HEADER.search(body):
            return None
        found = signatures.find(body, on="lines", among=among)
        if found and found[0].role is Role.ROOT and found[0].cause not in _BROAD:
            return found
    return None


def _noise_around(root: Traceback, block: Traceback, bodies: Sequence[str], among: Catalogue | None) -> bool:
    """Whether the line above says that it does not matter, or the record that holds it is a client's mistake."""
    first = min(link.indexes[0] for link in chains.links(block))
    if first and _IGNORED.search(bodies[first - 1]):
        return True
    if len(set(root.indexes)) == 1:
        found = signatures.find(bodies[root.last], on="lines", among=among)
        return bool(found and found[0].role is Role.NOISE)
    return False


def _said(run: Run, words: Sequence[Words], skip: set[int], among: Catalogue | None) -> Iterator[Fault]:
    for index, line in enumerate(words):
        if index in skip or not line.body or line.level in _QUIET_LEVELS:
            continue
        match = signatures.find(line.body, on="lines", among=among)
        if match is None or match[0].role is Role.NOISE:
            continue
        signature, found = match
        yield Fault(
            index=index,
            cause=signature.cause or Cause.PROCESS_KILLED,
            role=signature.role,
            text=line.body,
            words={name: value for name, value in found.groupdict().items() if value},
            signature=signature,
            rank=line.rank if line.rank is not None else rank_in(prefixes.clean(run.lines[index].text)),
            process=line.process,
        )


def marked(marks: Sequence[Mark], kind: MarkKind) -> tuple[int, ...]:
    """Indexes of the lines of this kind."""
    return tuple(mark.line for mark in marks if mark.kind is kind)
