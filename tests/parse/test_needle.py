"""The cheap test before a search never hides a match."""

from __future__ import annotations

import re

import pytest

from watchd.diagnosis import signatures
from watchd.engines import registry
from watchd.parse.needle import needle


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"CUDA out of memory\. Tried", "CUDA out of memory. Tried"),
        (r"a(b|c)defg", "defg"),
        (r"foo|bar", ""),
        (r"^\[x\] hello+ wor?ld", "[x] hello"),
        (r"(?i)abc", ""),
        (r"size: \d{1,3} bytes", "size: "),
        (r"\b(?:step|epoch)[ =]{0,6}\d+.{0,80}(?:loss|lr)", ""),
        (r"(?P<x>\w+) is here", " is here"),
        (r"colou?r: red", "r: red"),
        (r"(?:abc)?def", "def"),
    ],
)
def test_the_longest_certain_text_is_found(pattern: str, text: str) -> None:
    assert needle(pattern) == text


def test_every_sample_of_the_catalogue_holds_what_its_pattern_needs() -> None:
    for signature in signatures.catalogue():
        for pattern in signature.patterns:
            for sample in signature.matches:
                if pattern.search(sample):
                    assert needle(pattern.pattern) in sample


def test_borders_of_runs_can_be_found_in_bytes() -> None:
    """Every pattern that may begin or end a run holds a literal text of at least two characters."""
    for engine in (*registry.ENGINES, registry.GENERIC):
        for pattern in (*engine.banner, *engine.opening, *engine.ending, *engine.farewell):
            assert len(needle(pattern.pattern)) >= 2, pattern.pattern
            assert re.compile(pattern.pattern)
