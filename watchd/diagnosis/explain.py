"""How a judgement came about, in words: each rule in its turn, and why each of the other faults lost."""

from __future__ import annotations

from collections.abc import Iterator

from watchd.diagnosis import registry, say, scene, witness
from watchd.diagnosis import root as roots
from watchd.diagnosis.base import Fault, Role, Rule, Scene
from watchd.model import Case, Diagnosis, MarkKind
from watchd.parse import secrets

_MOST = 40
"""Faults that are told one by one; a cascade has thousands."""
_WIDE = 150


def lines(case: Case) -> tuple[str, ...]:
    """The judgement of a case step by step, without secrets, ready to be escaped and printed."""
    read = scene.read(case)
    found = registry.judge(case)
    told = [
        *_known(read),
        "",
        "Rules, in the order in which they are asked; the first that applies decides:",
        *_rules(read),
        "",
        "What may have gone wrong, in the order of the log:",
        *(_faults(read, found) or ("  nothing that the catalogue knows, and no exception",)),
    ]
    events = tuple(_events(read))
    if events:
        told += ["", "What the kernel log says:", *events]
    return secrets.Redactor().redact_lines(told)[0]


def _known(read: Scene) -> Iterator[str]:
    run, case = read.run, read.case
    size = f"{len(run.lines)} lines" if run.lines else "no line"
    earlier = ", behind earlier runs in the same file" if run.earlier else ""
    yield f"The current run: {size}, engine {run.engine}{earlier}" + (
        "" if run.complete else "; its beginning was not read"
    )
    alive = {True: "lives", False: "is gone", None: "was not seen"}[case.alive]
    yield f"Health: {case.health or 'not asked'}; the process {alive}"
    counts = ((kind.value, len(read.marked(kind))) for kind in MarkKind)
    yield "Its engine marks: " + (", ".join(f"{count} {name}" for name, count in counts if count) or "no line")
    if case.target.signatures:
        yield f"Asked first: {len(case.target.signatures)} signature(s) of your own"


def _rules(read: Scene) -> Iterator[str]:
    decided = False
    for rule in registry.RULES:
        found = rule(read)
        name = f"  {rule.__name__:<22}"
        if found is None:
            yield f"{name} no         {_says(rule)}"
        elif decided:
            yield f"{name} too late   {_says(rule)} It would say: {_short(found)}"
        else:
            decided = True
            yield f"{name} DECIDES    {_says(rule)} It says: {_short(found)}"
    if not decided:
        yield f"  {'silent':<22} DECIDES    No rule applies."


def _says(rule: Rule) -> str:
    """What a rule looks for: the first line of its docstring, a sentence that is true where it applies."""
    return " ".join((rule.__doc__ or "").strip().split("\n")[0].split())


def _short(found: Diagnosis) -> str:
    cause = found.cause.value if found.cause else "?"
    return f"{found.verdict.value}, {cause}, {found.confidence.value}"


def _faults(read: Scene, found: Diagnosis) -> list[str]:
    deciding = _deciding(read, found)
    chosen = read.faults[:_MOST]
    if deciding is not None and deciding not in chosen:
        chosen = (*chosen, deciding)
    told = []
    for fault in chosen:
        name = fault.signature.name if fault.signature else "by its type alone"
        told.append(f"  {say.place(read, fault.index)}: {fault.cause.value} ({fault.role.value}, {name})")
        told.append(f"      {say.short(fault.text, _WIDE)}")
        told.append(f"      {_why(read, fault, deciding, found)}")
    left = len(read.faults) - len(chosen)
    return [*told, f"  … and {left} more"] if left else told


def _deciding(read: Scene, found: Diagnosis) -> Fault | None:
    root = found.root
    if root is None or root.event is not None or root.index is None:
        return None
    lead = roots.lasting(read) if read.case.health == "up" else roots.lead(read)
    fitting = [fault for fault in read.faults if fault.index == root.index]
    return lead if lead in fitting or (lead is not None and not fitting) else next(iter(fitting), None)


def _why(read: Scene, fault: Fault, deciding: Fault | None, found: Diagnosis) -> str:
    """Why this fault decides or does not."""
    if fault is deciding:
        return "it decides"
    if roots.recovered(read, fault):
        return "lost: the server became ready or worked on after it"
    if fault.role is Role.ECHO:
        return "lost: such a line follows from something else"
    if deciding is None:
        return "lost: the host's own words decide" if found.root and found.root.event else "lost: it ended nothing"
    if fault.role is Role.SIGN and deciding.role is Role.ROOT:
        return "lost: an early or partial word, and something that may decide is there"
    if deciding.index < fault.index:
        return "lost: it comes later"
    if roots.beside(read, fault):
        return "lost: it ended only a thread or a request"
    if not fault.named and deciding.cause is not fault.cause:
        return "lost: what decides names the cause, and this does not"
    return "lost: what decides is told more exactly"


def _events(read: Scene) -> Iterator[str]:
    lead = roots.lead(read)
    deciding = witness.deciding(read, lead)
    silent = lead is None or lead.role is Role.ECHO
    for event in read.machine.events[-_MOST:]:
        cause = witness.cause_of(event)
        if event is deciding:
            why = "it explains what the log shows"
        elif cause is None:
            why = "it says no cause by itself"
        elif not witness.concerns(read, event, silent=silent, fault=lead):
            why = "neither process id nor time tie it to this run"
        else:
            why = "the log names a cause of its own"
        yield f"  line {event.number}: {cause.value if cause else event.kind.value}: {say.short(event.text, _WIDE)}"
        yield f"      {why}"
