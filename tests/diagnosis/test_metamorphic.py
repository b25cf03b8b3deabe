"""The same crash written down otherwise has the same answer: verdict, cause, deciding line, exception.

The rank is left out: without prefixes nobody says it, and of ranks that fail within one second any may be named. The
bounds are what was measured, a little lower. Every case is read with `-m long`, which prints the shares.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support import transformed
from tests.support.situations import MISSING, OWN, SHARED, folders, is_aside

LEAST = {
    "behind_an_older_crash": 0.96,
    "behind_its_own_older_crash": 0.98,
    "before_much_teardown": 0.97,
    "coloured": 0.99,
    "bare": 0.93,
    "shuffled": 0.97,
    "second_half": 0.97,
}
SLOW = "before_much_teardown"
EACH = 6
"""Of the larger collection each sixth case is read in the normal suite; each thirtieth where it takes long."""


def share(name: str, cases: Sequence[Path]) -> tuple[float, str]:
    """How often the answer stays, and in words; only cases that one may look at are named."""
    told = {folder: stays for folder in cases for stays in [transformed.stays(folder, name)] if stays is not None}
    changed = [folder.name for folder, stays in told.items() if not stays and not is_aside(folder)]
    kept = sum(told.values())
    if not told:
        return 1.0, f"{name}: no case fits"
    return kept / len(told), f"{name}: the answer stays in {kept} of {len(told)} cases; changed: {changed}"


def test_every_transformation_has_a_bound() -> None:
    assert set(LEAST) == set(transformed.TRANSFORMS)


@pytest.mark.parametrize("name", LEAST)
def test_the_answer_stays_the_same_for_a_sample_of_cases(name: str) -> None:
    each = EACH * (5 if name == SLOW else 1)
    own = [folder for folder in folders(OWN) if name != SLOW or "quiet" not in folder.name]
    cases = (*own, *folders(SHARED)[::each])
    found, words = share(name, cases)
    # One case in thirty weighs more than one in a hundred; and where there are only a few, one of them may change.
    assert found >= min(LEAST[name] - 0.05, 1 - 1.01 / max(1, len(cases) - 1)), words


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", LEAST)
def test_the_answer_stays_the_same_for_every_case(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    if not SHARED.exists():
        pytest.skip(MISSING)
    found, words = share(name, (*folders(OWN), *folders(SHARED)))
    with capsys.disabled():
        print(f"\n{words}")
    assert found >= LEAST[name], words


def test_a_transformation_changes_the_log_and_keeps_its_lines() -> None:
    """Otherwise the tests above would hold whatever happens."""
    log = b"[2026-12-01 10:00:00 TP0] a\n[2026-12-01 10:00:00 TP1] b\n[2026-12-01 10:00:00 TP2] c\n[2026-12-01 10:00:01 TP0] d\n"
    mixed = transformed.shuffled(log).split(b"\n")
    assert sorted(mixed) == sorted(log.split(b"\n"))
    assert mixed[3] == log.split(b"\n")[3]
    assert transformed.bare(log) == b"a\nb\nc\nd\n"
    assert transformed.coloured(b"a\n") == b"\x1b[36ma\x1b[0m\r\n"
    assert transformed.before_much_teardown(log).count(b"\n") == 4 + transformed.TEARDOWN
    assert any(transformed.shuffled(log + b"x\n" * n) != log + b"x\n" * n for n in range(9))
