"""What programs say when they fail, gathered without a look at any case: each phrase must name its cause by itself.

One phrase a line in `phrases.tsv`: the cause, a tab, the line. Whoever meets another one adds it there first.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from watchd.diagnosis import signatures
from watchd.model import Cause
from watchd.parse import lines

PHRASES = [row.split("\t", 1) for row in (Path(__file__).parent / "phrases.tsv").read_text().splitlines()]
_EXCEPTION = re.compile(r"^[\w.]+(?:: |$)")


@pytest.mark.parametrize(("cause", "text"), PHRASES, ids=[f"{cause}-{n}" for n, (cause, _) in enumerate(PHRASES)])
def test_a_phrase_names_its_cause(cause: str, text: str) -> None:
    body = lines.split(text).body
    ways = ("lines", "exceptions") if _EXCEPTION.match(body) else ("lines",)
    found = [hit[0] for way in ways for hit in [signatures.find(body, on=way)] if hit]
    assert Cause(cause) in {signature.cause for signature in found}, [signature.name for signature in found]


def test_no_phrase_stands_there_twice() -> None:
    assert len({text for _, text in PHRASES}) == len(PHRASES)


def test_no_row_that_may_match_a_text_is_passed_over() -> None:
    rows = signatures.shipped().lines
    for _, text in PHRASES:
        near = list(rows.near(text))
        wanted = [place for place, (literal, _, _) in enumerate(rows.rows) if literal in text]
        assert set(wanted) <= set(near), text
        assert near == sorted(near)
        assert len(near) < len(rows.rows) or len(text) > 400
