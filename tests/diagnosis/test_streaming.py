"""Logs replayed line by line: a quiet one pages nobody, a crash is noticed by its end."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.support.replay import PAGES, replay
from tests.support.situations import MISSING, OWN, SHARED, folders, is_aside, truth
from watchd.model import TriggerKind

LAST = 20
"""Lines before its end by which a crash must be noticed, if not when its process is gone."""


def verdict(folder: Path) -> str:
    return str(truth(folder)["expected"]["verdict"])


def shown(found: list[Path]) -> list[str]:
    """Names of cases that one may look at, and how many others."""
    return [folder.name for folder in found if not is_aside(folder)] + [f"+{sum(map(is_aside, found))} aside"]


def of(verdicts: tuple[str, ...]) -> list[Path]:
    cases = {folder.name: folder for root in (SHARED, OWN) for folder in folders(root)}
    return [folder for folder in cases.values() if verdict(folder) in verdicts]


def test_no_quiet_log_pages_anybody() -> None:
    quiet = of(("ok", "stopped"))
    assert quiet
    paged = [folder for folder in quiet if any(heard.trigger.kind in PAGES for heard in replay(folder))]
    assert not paged, shown(paged)


def test_every_crash_is_noticed_by_its_last_lines_or_when_its_process_is_gone() -> None:
    crashes = of(("crash",))
    late: list[Path] = []
    how: Counter[str] = Counter()
    for folder in crashes:
        first = next(iter(replay(folder)), None)
        # A server whose endpoint answers though it can never serve is noticed by nobody but who asks it for work.
        if first is None and truth(folder)["alive"]:
            how["endpoint answers"] += 1
        elif first is None:
            late.append(folder)
        else:
            how[first.trigger.kind.value] += 1
    assert not late, shown(late)
    assert how["endpoint answers"] <= 1, how
    told_by_the_log = how[TriggerKind.FATAL_LINE.value] + how[TriggerKind.TRACEBACK.value]
    assert told_by_the_log >= 0.8 * len(crashes) or not SHARED.exists(), how


@pytest.mark.long
def test_the_figures_of_the_replay(capsys: pytest.CaptureFixture[str]) -> None:
    """Prints how soon each kind of situation is noticed."""
    if not SHARED.exists():
        pytest.skip(MISSING)
    with capsys.disabled():
        for name in ("crash", "hang", "degraded", "ok", "stopped"):
            first = [next((h for h in replay(folder) if h.trigger.kind in PAGES), None) for folder in of((name,))]
            any_at_all = [next(iter(replay(folder)), None) for folder in of((name,))]
            near = sum(heard is not None and heard.from_end <= LAST for heard in first)
            print(
                f"\n{name}: {len(first)} cases; {sum(h is not None for h in first)} told by the log, "
                f"{near} of them within the last {LAST} lines; {sum(h is not None for h in any_at_all)} noticed at all",
                end="",
            )
        print()
