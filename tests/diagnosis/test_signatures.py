"""No signature without samples, no sample unmatched, none slow on hostile text."""

from __future__ import annotations

import re
import time
from importlib import resources
from pathlib import Path

import pytest

from watchd.diagnosis import families, listing, signatures
from watchd.diagnosis.base import Role, Signature
from watchd.model import Cause
from watchd.parse.needle import needle

ROOT = Path(__file__).parents[2]
CATALOGUE = signatures.catalogue()
ADVERSARY_BYTES = 1 << 20
ADVERSARY_S = 5.0
"""Generous: a linear search over 1 MiB takes well under a second; a quadratic one takes hours."""

# What is left of a pattern when escaped punctuation is plain: anything here is more than a phrase.
_META = re.compile(r"[\[(|*+?{^$.]|\\[dwsSWDb]")


def texts_for(signature: Signature) -> tuple[str, ...]:
    return ("lines", "exceptions") if signature.on == "both" else (signature.on,)


@pytest.mark.parametrize("signature", CATALOGUE, ids=lambda signature: signature.name)
def test_a_signature_matches_its_samples_and_misses_its_counterexamples(signature: Signature) -> None:
    assert signature.matches
    assert signature.misses
    for sample in signature.matches:
        assert any(pattern.search(sample) for pattern in signature.patterns), sample
    for sample in signature.misses:
        hit = any(pattern.search(sample) for pattern in signature.patterns)
        assert not (hit and (signature.contains is None or signature.contains.search(sample))), sample


@pytest.mark.parametrize("signature", CATALOGUE, ids=lambda signature: signature.name)
def test_a_sample_finds_its_own_signature_in_the_whole_catalogue(signature: Signature) -> None:
    """Order is knowledge: no signature hides behind one that stands before it."""
    frames = ("/opt/x/config/load_weights.py:load_weights",)
    for sample in signature.matches:
        for on in texts_for(signature):
            found = signatures.find(sample, on=on, frames=frames)
            assert found is not None
            assert found[0].name == signature.name, sample


@pytest.mark.parametrize("signature", CATALOGUE, ids=lambda signature: signature.name)
def test_every_pattern_that_is_more_than_a_phrase_is_exercised_by_a_sample(signature: Signature) -> None:
    for pattern in signature.patterns:
        if _META.search(re.sub(r"\\[^\w\s]", "x", pattern.pattern)):
            assert any(pattern.search(sample) for sample in signature.matches), pattern.pattern


@pytest.mark.parametrize("signature", CATALOGUE, ids=lambda signature: signature.name)
def test_a_signature_is_linear_on_hostile_text(signature: Signature) -> None:
    begun = time.process_time()
    for pattern in (*signature.patterns, *(p for p in (signature.contains, signature.frames) if p is not None)):
        bait = needle(pattern.pattern) or signature.matches[0][:-1]
        text = (f"{bait} " * (ADVERSARY_BYTES // (len(bait) + 1) + 1))[:ADVERSARY_BYTES]
        pattern.search(text)
        pattern.search("0" * ADVERSARY_BYTES)
    assert time.process_time() - begun < ADVERSARY_S * (1 + len(signature.patterns))


def test_names_are_unique() -> None:
    names = [signature.name for signature in CATALOGUE]
    assert len(names) == len(set(names))


def test_every_file_of_the_folder_is_read() -> None:
    folder = resources.files("watchd.diagnosis").joinpath("signatures")
    files = {entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml")}
    assert files - {"causes"} == set(signatures.FAMILIES)


def test_every_cause_that_a_log_can_show_has_a_signature_or_words_of_its_own() -> None:
    own = {cause for cause, words in signatures.causes().items() if words["says"]}
    told = {signature.cause for signature in CATALOGUE} | own
    assert set(Cause) - {Cause.NONE} <= told


def test_every_cause_says_what_it_covers_in_the_order_of_the_contract() -> None:
    assert set(signatures.causes()) == set(Cause)
    assert all(words["covers"][0] for words in signatures.causes().values())


def test_the_page_of_causes_is_what_the_catalogue_says() -> None:
    """Written anew by `watchd signatures list --markdown > docs/causes.md`."""
    assert (ROOT / "docs" / "causes.md").read_text() == listing.page(CATALOGUE)


def test_what_may_decide_says_what_to_do() -> None:
    for signature in CATALOGUE:
        if signature.role in (Role.ROOT, Role.SIGN):
            assert signature.says, signature.name
            assert signature.advice, signature.name


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('[[signature]]\nname = "x"\ncause = "hunger"\npatterns = ["a"]\nmatches = ["a"]\nmisses = ["b"]', "cause 'hunger'"),
        ('[[signature]]\nname = "x"\ncause = "network"\npatterns = ["("]\nmatches = ["a"]\nmisses = ["b"]', "patterns"),
        ('[[signature]]\nname = "x"\ncause = "network"\npatterns = ["a"]\nmisses = ["b"]', "at least one line"),
        ('[[signature]]\nname = "x"\ncause = "network"\npattern = "a"', "unknown key 'pattern'"),
        ('[[signature]]\nname = "x"\npatterns = ["a"]\nmatches = ["a"]\nmisses = ["b"]', "needs a cause"),
        ("[[signature]", "own.toml"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_family_is_named_with_its_place(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)) as caught:
        families.parse(text, "own.toml")
    assert "own.toml" in str(caught.value)
