"""From a judgement to sentences: the summary, the reasons, what to do."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath

from watchd.diagnosis import guard, signatures, words
from watchd.diagnosis.base import Fault, Role, Scene
from watchd.model import Cause, Confidence, Diagnosis, Root, RunnerUp, Verdict

_LONGEST = 400
"""Characters that the first three sentences of advice may have together."""
_SUMMARY = 240


def diagnosis(
    scene: Scene, verdict: Verdict, cause: Cause, confidence: Confidence, fault: Fault | None, root: Root | None
) -> Diagnosis:
    """A judgement in words: what decides, why, what to do, and what else it may have been."""
    certain = cause is Cause.LAUNCH_ARGUMENT and guard.refuses(scene.case) and bool(root and root.traceback)
    return Diagnosis(
        verdict=verdict,
        cause=cause,
        confidence=Confidence.CERTAIN if certain else confidence,
        summary=summary(scene, verdict, cause, fault, root),
        because=because(scene, fault, root),
        advice=advice(scene, verdict, cause, fault, root),
        root=root,
        runner_up=_runner_up(scene, cause, fault),
    )


def fine(reason: str, confidence: Confidence, summary: str = "Nothing is wrong") -> Diagnosis:
    """Nothing is wrong, as far as is known, and why that is thought."""
    return Diagnosis(verdict=Verdict.OK, cause=Cause.NONE, confidence=confidence, summary=summary, because=(reason,))


def place(scene: Scene, index: int) -> str:
    """Where a line of the run stands, in words: by its number, else by its byte."""
    line = scene.run.lines[index]
    return f"line {line.number}" if line.number is not None else f"byte {line.offset}"


def short(text: str, longest: int = _SUMMARY) -> str:
    """The text on one line, cut with a mark where it is longer."""
    text = " ".join(text.split())
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"


def summary(scene: Scene, verdict: Verdict, cause: Cause, fault: Fault | None, root: Root | None) -> str:
    """One line that a person can act on."""
    refusal = guard.read(scene.case) if cause is Cause.LAUNCH_ARGUMENT else None
    if refusal is not None:
        edits = guard.edited(scene.case)
        return short(_refused(refusal).rstrip(".") + (f"; {edits}." if edits else "."))
    found = words.facts(scene, fault, root)
    phrase = _phrase(cause, fault, found)
    head = {Verdict.DEGRADED: "It serves on, but: ", Verdict.HANG: "It hangs: "}.get(verdict, "")
    who = f" (rank {root.rank} first)" if root is not None and isinstance(root.rank, int) else ""
    where = (
        f", at {found['file']}:{_line(root)}"
        if "file" in found and fault is not None and fault.signature is None
        else ""
    )
    text = f"{head}{phrase}{where}{who}"
    return short(text[0].upper() + text[1:])


def advice(scene: Scene, verdict: Verdict, cause: Cause, fault: Fault | None, root: Root | None) -> tuple[str, ...]:
    """What to do, the most important first; the first three sentences stay short together."""
    found = words.facts(scene, fault, root)
    said: list[str] = []
    refusal = guard.read(scene.case) if cause in (Cause.LAUNCH_ARGUMENT, Cause.CONFIG_INVALID) else None
    if cause in (Cause.LAUNCH_ARGUMENT, Cause.CONFIG_INVALID):
        said.extend(guard.correction(scene.case))
    if refusal is not None:
        said.extend(_about_flags(refusal))
    own = fault.signature if fault is not None and fault.cause is cause else None
    if own is not None:
        said.append(words.first(own.advice, found) or "")
    if refusal is None and (own is None or not own.advice):
        said.append(words.first(signatures.causes().get(cause, {}).get("advice", ()), found) or "")
    if root is not None and isinstance(root.rank, int) and not any(f"rank {root.rank}" in text for text in said):
        said.append(f"Look at rank {root.rank} first: the others follow from it.")
    if verdict is Verdict.DEGRADED and fault is not None and "request" in found:
        said.append(f"The request: {found['request']}")
    if fault is not None and found["message"] and not any(found["message"][:40] in text for text in said):
        said.append(f"It says: {found['message']}")
    return bounded(text for text in said if text)


def bounded(texts: Iterable[str]) -> tuple[str, ...]:
    """The texts without repetition, cut so that the first three fit where only little is shown."""
    kept: list[str] = []
    left = _LONGEST
    for text in dict.fromkeys(texts):
        if len(kept) >= 3:
            kept.append(text)
        elif left > 40:
            kept.append(short(text, left - len(kept)))
            left -= len(kept[-1]) + 1
    return tuple(kept)


def because(scene: Scene, fault: Fault | None, root: Root | None) -> tuple[str, ...]:
    """Why, beginning with the deciding line."""
    reasons: list[str] = []
    if root is not None and root.event is not None:
        reasons.append(f"The kernel log says: {short(root.event.text, 200)}")
    if fault is not None:
        who = "the first sign is" if root is None or root.event is None else "the log shows only"
        reasons.append(f"In {place(scene, fault.index)} {who}: {short(fault.text, 200)}")
        later = sum(other.index > fault.index for other in scene.faults)
        if later:
            reasons.append(f"{later} later line(s) of trouble follow from it.")
    frame = words.innermost(root.traceback) if root is not None else None
    if frame is not None:
        reasons.append(f"It was raised in {PurePath(frame.path).name}:{frame.line} ({frame.function or '?'}).")
    return tuple(reasons)


def _runner_up(scene: Scene, cause: Cause, fault: Fault | None) -> RunnerUp | None:
    """The next best: the first other cause that the run names."""
    for other in scene.faults:
        if other.role is Role.ROOT and other.cause is not cause and other.named:
            return RunnerUp(
                cause=other.cause,
                flip=f"if {place(scene, other.index)} came first or stood alone: {short(other.text, 120)}",
            )
    if fault is not None and not fault.named:
        return RunnerUp(cause=Cause.LAUNCH_ARGUMENT, flip="a check of the launch's arguments at the innermost frame")
    return None


def _phrase(cause: Cause, fault: Fault | None, found: words.Facts) -> str:
    if fault is not None and fault.cause is cause:
        own = words.fill(fault.signature.says, found) if fault.signature and fault.signature.says else None
        if own:
            return own
    general = signatures.causes().get(cause, {}).get("says", ())
    phrase = general[0] if general else cause.value.replace("_", " ")
    return (
        f"{phrase}: {found['exception_text']}"
        if found.get("exception_text") and fault is not None and fault.traceback
        else phrase
    )


def _refused(refusal: guard.Refusal) -> str:
    given, missing = _list(refusal.given), _list(refusal.missing)
    if refusal.unwanted:
        return f"Launch refused: {_list(refusal.unwanted)} must not be given here; {refusal.place} checks that."
    if refusal.together:
        return (
            f"Launch refused: {missing} {_is(refusal.missing)} missing while {given} {_is(refusal.given)} given; {refusal.place} "
            f"accepts the {_many(len(refusal.given) + len(refusal.missing))} together or not at all."
        )
    if refusal.given:
        return f"Launch refused: the check at {refusal.place} does not accept {given} as given."
    if refusal.missing:
        return f"Launch refused: the check at {refusal.place} asks for {missing}, not given."
    return f"Launch refused by the check at {refusal.place}."


def _about_flags(refusal: guard.Refusal) -> list[str]:
    given, missing = _list(refusal.given), _list(refusal.missing)
    around = f", or {_list(refusal.around)}" if refusal.around else ""
    if refusal.unwanted:
        return [f"Remove {_list(refusal.unwanted)}: the condition denies it, whatever the message says."]
    if refusal.together:
        return [f"Add {missing}, or remove {given}{around}."]
    if refusal.given:
        return [
            f"Change {given}{around}; the check also reads {missing}."
            if missing
            else f"Change or remove {given}{around}."
        ]
    if refusal.missing:
        return [
            f"Give {missing}, which the check reads and the launch leaves out{around.replace(', or', ', or change')}."
        ]
    return []


def _many(count: int) -> str:
    return {2: "two", 3: "three", 4: "four", 5: "five"}.get(count, "flags")


def _list(flags: tuple[str, ...]) -> str:
    return " and ".join((", ".join(flags[:-1]), flags[-1])) if len(flags) > 1 else "".join(flags)


def _is(flags: tuple[str, ...]) -> str:
    return "are" if len(flags) > 1 else "is"


def _line(root: Root | None) -> int | str:
    frame = words.innermost(root.traceback) if root is not None else None
    return frame.line if frame is not None else "?"
