"""The check in the source that refused the launch, told in the flags of the command line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath

from watchd.model import Case, Edit, Fix, Guard, Launch, SourceExcerpt

# a is None and b is None      (a, b) == (None, None)
_ALL_NONE = re.compile(r"\bis None\b|\bNone, None\b|== None\b")
# self.speculative_num_steps is None
_IS_NONE = re.compile(r"\b(\w+) is None\b")
# not self.enable_mixed_chunk
_DENIED = re.compile(r"\bnot (?:\w+\.)?(\w+)\b(?! in\b)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """What a guard asks of the launch.

    place     file name and line of the check
    given     flags that it ties together and that the launch has, as they were typed
    missing   flags that it ties together and that the launch lacks
    around    flags of the launch that lead to this check
    unwanted  flags that the launch has and the condition denies
    together  True where the check wants all of them or none
    """

    place: str
    given: tuple[str, ...]
    missing: tuple[str, ...]
    around: tuple[str, ...]
    unwanted: tuple[str, ...]
    together: bool


def read(case: Case) -> Refusal | None:
    """The refusal of this case; None where no guard was read, or the source is not what crashed."""
    excerpt = case.get(SourceExcerpt)
    guard = excerpt.guard if excerpt else None
    if excerpt is None or guard is None or excerpt.matches_log is False:
        return None
    launch = case.get(Launch)
    tied = dict.fromkeys((*guard.names, *_absent(guard)))
    typed = {name: given(name, launch) for name in tied}
    have = tuple(flag for flag in typed.values() if flag)
    lack = tuple(flag_of(name, launch) for name, flag in typed.items() if not flag)
    around = (given(name, launch) for name in guard.requires if name not in tied)
    denied = {match[1] for match in _DENIED.finditer(guard.condition)}
    return Refusal(
        place=f"{PurePath(excerpt.path).name}:{guard.line}",
        given=have,
        missing=lack,
        around=tuple(flag for flag in around if flag),
        unwanted=tuple(flag for name, flag in typed.items() if flag and name in denied),
        together=bool(_ALL_NONE.search(guard.condition)) and bool(have) and bool(lack),
    )


def correction(case: Case) -> tuple[str, ...]:
    """What the corrected launch command changes, in a sentence, and what else is known of it; the shortest way first."""
    fix = case.get(Fix)
    if fix is None:
        return ()
    said = [_changed(fix.edits, fix)] if fix.argv else []
    return (*said, *fix.notes)


def refuses(case: Case) -> bool:
    """Whether the check was read on the host and fails for the recorded arguments."""
    fix = case.get(Fix)
    return fix is not None and fix.fails


def edited(case: Case) -> str:
    """The edits of the corrected command as a clause, or nothing."""
    fix = case.get(Fix)
    return _clause(fix.edits) if fix is not None and fix.argv else ""


_VERBS = {"add": "add", "set": "set", "drop": "drop"}
_BASES = {"derived": "derived from the source", "suggestion": "a suggestion"}


def _changed(edits: tuple[Edit, ...], fix: Fix) -> str:
    bases = {edit.basis for edit in edits}
    note = next((text for basis, text in _BASES.items() if basis in bases), "")
    checks = f"passes {fix.passed} of {fix.evaluated} checks that could be told" if fix.evaluated else ""
    holes = [edit.value for edit in edits if edit.value and edit.value.startswith("<")]
    note = f"replace {', '.join(holes)} by your own" if holes else note
    more = "; ".join(filter(None, (note, checks)))
    clause = _clause(edits)
    return f"{clause[0].upper()}{clause[1:]}{f' ({more})' if more else ''}."


def _clause(edits: tuple[Edit, ...]) -> str:
    """`add --steps 15 and drop --topk`."""
    parts = [" ".join(filter(None, (_VERBS[edit.action], edit.flag, edit.value))) for edit in edits]
    return " and ".join((", ".join(parts[:-1]), parts[-1])) if len(parts) > 1 else "".join(parts)


def flag_of(attribute: str, launch: Launch | None = None) -> str:
    """An attribute as it is written on a command line: `speculative_num_steps` is `--speculative-num-steps`.

    Where the launch writes its own flags with `_`, so is this one.
    """
    name = attribute.strip("_")
    underscored = launch is not None and sum("_" in flag for flag in launch.flags) > sum(
        "-" in flag[2:] for flag in launch.flags
    )
    return "--" + (name if underscored else name.replace("_", "-"))


def given(attribute: str, launch: Launch | None) -> str | None:
    """The flag of the launch that sets this attribute, as it was typed: it may be shortened, or written with `_`."""
    if launch is None:
        return None
    wanted = attribute.strip("_").replace("_", "-")
    fitting = [flag for flag in launch.flags if _means(flag.lstrip("-").replace("_", "-"), wanted)]
    return max(fitting, key=len, default=None)


def spoken_of(text: str, launch: Launch | None) -> tuple[str, ...]:
    """Flags of the launch that a text names, or whose last word it uses as a name: `spares` is `--expert-spares`."""
    if launch is None:
        return ()
    names = set(re.findall(r"[A-Za-z]\w{3,}", text))
    return tuple(
        flag
        for flag in launch.flags
        if flag in text or any(_last_word(flag) == name.rpartition("_")[2] for name in names)
    )


def _means(typed: str, wanted: str) -> bool:
    """argparse takes any beginning of a flag that is unique; a short one counts only where it is a whole word."""
    if not typed or not wanted.startswith(typed):
        return False
    return typed == wanted or len(typed) >= 6 or wanted[len(typed)] == "-"


def _absent(guard: Guard) -> Iterator[str]:
    """What the `if`s around the check found not to be given: that it is missing is half of the refusal."""
    for condition in guard.enclosing:
        for match in _IS_NONE.finditer(condition):
            if match[1] in guard.requires:
                yield match[1]


def _last_word(flag: str) -> str:
    word = re.split(r"[-_.]", flag.lstrip("-"))[-1]
    return word if len(word) > 3 else ""
