"""What a parser of command lines refused, and the launch without that mistake."""

from __future__ import annotations

import pytest

from watchd.correction import near, usage
from watchd.model import Fix

USAGE = [
    "usage: app [-h] --weights DIR [--dtype {auto,half,float8}] [--num-draft-tokens N] [--host HOST]",
    "           [--enable-autotune] [--http_port HTTP_PORT] [--offset N]",
]


def fixed(error: str, *argv: str, texts: dict[str, str] | None = None) -> Fix | None:
    refused = usage.read([*USAGE, f"app: error: {error}"])
    assert refused is not None
    return usage.fix(refused, ("app", *argv), usage.known_in(refused.usage), texts or {})


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("--num-draft-token", "--num-draft-tokens"), ("--num_draft_tokens", "--num-draft-tokens"),
     ("-host", "--host"), ("--http-port", "--http_port"), ("--num-darft-tokens", "--num-draft-tokens")],
)  # fmt: skip
def test_a_flag_written_almost_right_is_put_right(typed, meant):
    fix = fixed(f"unrecognized arguments: {typed} 8", "--weights", "/w", typed, "8")
    assert fix is not None
    assert fix.argv == ("app", "--weights", "/w", meant, "8")
    assert [(e.action, e.flag, e.value) for e in fix.edits] == [("drop", typed, None), ("add", meant, "8")]


def test_a_flag_is_never_turned_into_its_opposite():
    fix = fixed("unrecognized arguments: --disable-autotune", "--disable-autotune")
    assert fix is not None
    assert fix.argv == ()
    assert "--enable-autotune" not in fix.possible


def test_a_flag_of_another_name_is_not_applied_but_told_with_what_may_have_been_meant():
    fix = fixed("unrecognized arguments: --num-speculative-tokens 16", "--num-speculative-tokens", "16")
    assert fix is not None
    assert (fix.argv, fix.possible) == ((), ("--num-draft-tokens",))
    assert "not in this version" in fix.notes[0]


def test_a_rename_that_the_source_on_the_host_tells_is_applied():
    texts = {"/a/args.py": 'RENAMED = {\n    "--tree-size": "--num-draft-tokens",\n}\n'}
    fix = fixed("unrecognized arguments: --tree-size=4", "--tree-size=4", texts=texts)
    assert fix is not None
    assert fix.argv == ("app", "--num-draft-tokens=4")


def test_a_command_that_has_not_the_refused_word_is_not_the_one_that_was_refused():
    assert fixed("unrecognized arguments: --num-draft-token 8", "--weights", "/w") is None


def test_a_choice_one_letter_off_is_put_right_and_a_farther_one_is_not():
    fix = fixed("argument --dtype: invalid choice: 'flaot8' (choose from 'auto', 'half', 'float8')", "--dtype=flaot8")
    assert fix is not None
    assert fix.argv == ("app", "--dtype=float8")
    fix = fixed("argument --dtype: invalid choice: 'int4' (choose from auto, half, float8)", "--dtype", "int4")
    assert fix is not None
    assert fix.argv == ()


def test_what_is_required_is_added_with_a_hole_for_its_value():
    fix = fixed("the following arguments are required: --weights", "--host", "a b")
    assert fix is not None
    assert fix.argv == ("app", "--host", "a b", "--weights", "<DIR>")
    assert fix.edits[0].basis == "suggestion"


def test_a_flag_and_its_value_in_one_word_become_two():
    fix = fixed("unrecognized arguments: --host 127.0.0.1", "--host 127.0.0.1")
    assert fix is not None
    assert fix.argv == ("app", "--host", "127.0.0.1")


def test_a_value_that_begins_with_a_dash_is_tied_to_its_flag():
    fix = fixed("argument --offset: expected one argument", "--offset", "-x3")
    assert fix is not None
    assert fix.argv == ("app", "--offset=-x3")


def test_other_parsers_say_it_in_their_own_words():
    lines = ["error: unexpected argument '--max-prefil' found", "", "  tip: a similar argument exists: '--max-prefill'"]
    refused = usage.read(lines)
    assert refused is not None
    fix = usage.fix(refused, ("app", "--max-prefil", "4"), usage.known_in(refused.usage), {})
    assert fix is not None
    assert fix.argv == ("app", "--max-prefill", "4")


@pytest.mark.parametrize(
    ("one", "other", "away"), [("abc", "abc", 0), ("abc", "acb", 1), ("abc", "xyz", 3), ("a", "abcd", 3)]
)
def test_the_distance_of_two_words_is_bounded(one, other, away):
    assert near.distance(one, other, 2) == away
