"""A user's own signatures: read once, checked in full, asked before those of watchd."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.diagnosed import case_of, diagnosed, root_line
from watchd import settings
from watchd.diagnosis import own, signatures
from watchd.errors import SignaturesError
from watchd.model import Case, Cause
from watchd.parse.needle import nested

LICENCE = """
[[signature]]
name = "licence-server-away"
cause = "network"
patterns = ['^licence: no seat from (?P<seat>\\S+)']
says = "the licence server at {seat} gave no seat"
advice = ["Ask the licence server: `lmstat -c {seat}`."]
matches = ["licence: no seat from lic-1:27000"]
misses = ["licence: seat taken"]
"""
LOG = """
    step 10 loss 1.5
    licence: no seat from lic-1:27000
    Traceback (most recent call last):
      File "/opt/train.py", line 9, in <module>
    RuntimeError: cannot go on
    """


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "signatures.d"
    found.mkdir()
    return found


def knowing(case: Case, folder: Path) -> Case:
    return replace(case, target=replace(case.target, signatures=own.read(folder)))


def test_a_line_that_only_the_user_knows_decides_in_the_users_words(folder: Path) -> None:
    case = case_of(LOG)
    assert diagnosed(case).cause is Cause.UNHANDLED_EXCEPTION
    (folder / "lab.toml").write_text(LICENCE)
    case = knowing(case, folder)
    found = diagnosed(case)
    assert (found.cause, root_line(case, found)) == (Cause.NETWORK, 2)
    assert "lic-1:27000 gave no seat" in found.summary
    assert found.advice[0] == "Ask the licence server: `lmstat -c lic-1:27000`."


def test_a_users_noise_goes_before_the_catalogue(folder: Path) -> None:
    log = 'Traceback (most recent call last):\n  File "/opt/a.py", line 1, in <module>\ntorch.OutOfMemoryError: CUDA out of memory. probe\n'
    assert diagnosed(case_of(log)).cause is Cause.GPU_OUT_OF_MEMORY
    (folder / "probe.toml").write_text(
        '[[signature]]\nname = "probe"\nrole = "noise"\npatterns = ["CUDA out of memory. probe"]\n'
        'matches = ["CUDA out of memory. probe"]\nmisses = ["CUDA out of memory."]\n'
    )
    assert diagnosed(knowing(case_of(log), folder)).cause is Cause.PROCESS_KILLED


@pytest.mark.parametrize(
    ("text", "line", "key", "reason"),
    [
        (LICENCE.replace('"network"', '"hunger"'), 2, "signature 'licence-server-away'", "cause 'hunger' is none of"),
        (LICENCE.replace('misses = ["licence: seat taken"]', ""), 2, "'licence-server-away'", "at least one line"),
        (LICENCE.replace('matches = ["licence: no', 'matches = ["license: no'), 2, "'licence-", "does not match its own sample"),
        (LICENCE.replace("seat taken", "no seat from x"), 2, "'licence-", "matches what it must miss"),
        (LICENCE.replace("(?P<seat>\\S+)", "(\\S+"), 2, "'licence-", "unterminated subpattern"),
        (LICENCE.replace("(?P<seat>\\S+)", "(?P<seat>(?:\\S+)+)"), 2, "'licence-", "inside another one"),
        (LICENCE.replace('name = "licence-server-away"\n', ""), 2, "signature number 1", "give it a name"),
        (LICENCE.replace("licence-server-away", "killed"), 0, "signature 'killed'", "the catalogue of watchd has another"),
        (LICENCE + LICENCE, 0, "'licence-server-away'", "has another one of this name"),
        (LICENCE + "\n[[signature]\n", 11, "syntax", "Expected ']]'"),
        ("signature = 3\n", 0, "signature", "[[signature]]"),
        (LICENCE + '\n[defaults]\nfollow = "auto"\n', 0, "defaults", "only [[signature]] tables"),
    ],
)  # fmt: skip
def test_a_broken_file_is_told_by_file_signature_and_reason(
    folder: Path, text: str, line: int, key: str, reason: str
) -> None:
    file = folder / "lab.toml"
    file.write_text(text)
    with pytest.raises(SignaturesError) as caught:
        own.read(folder)
    assert any(
        mistake.line == line and key in mistake.key and reason in mistake.reason for mistake in caught.value.mistakes
    ), str(caught.value)
    assert str(caught.value).startswith(f"{file}:")


def test_every_mistake_of_every_file_is_told_at_once(folder: Path) -> None:
    (folder / "a.toml").write_text(LICENCE.replace("network", "hunger"))
    (folder / "b.toml").write_bytes(b"\xff")
    os.mkfifo(folder / "c.toml")
    (folder / "d.toml").symlink_to(folder / "nowhere")
    (folder / "notes.txt").write_text("not read")
    with pytest.raises(SignaturesError) as caught:
        own.read(folder)
    assert [Path(file).name for file in caught.value.files] == ["a.toml", "b.toml", "c.toml", "d.toml"]
    assert "no regular file" in str(caught.value)


def test_a_name_may_be_used_in_one_file_only(folder: Path) -> None:
    (folder / "a.toml").write_text(LICENCE)
    (folder / "b.toml").write_text(LICENCE)
    with pytest.raises(SignaturesError, match=r"a\.toml has another one of this name"):
        own.read(folder)


def test_a_folder_that_was_asked_for_must_be_there_and_the_usual_one_need_not(tmp_path: Path) -> None:
    with pytest.raises(SignaturesError, match="no such folder"):
        own.read(tmp_path / "nowhere")
    assert own.read(Path(settings.TargetRules().signatures)) == ()


def test_each_target_gets_the_signatures_of_its_own_folder(folder: Path, tmp_path: Path) -> None:
    (folder / "lab.toml").write_text(LICENCE)
    config = tmp_path / "watchd.toml"
    table = '[[targets]]\nname = "{}"\nhost = "h"\nlog = "/l"\n'
    config.write_text(table.format("plain") + table.format("lab") + f'signatures = "{folder}"\n')
    plain, lab = own.equip(settings.load(config)).targets
    assert plain.signatures == ()
    assert [one.name for one in lab.signatures] == ["licence-server-away"]


def test_no_pattern_of_the_catalogue_repeats_without_bound_inside_a_repetition() -> None:
    for one in signatures.catalogue():
        for pattern in (*one.patterns, *(p for p in (one.contains, one.frames) if p)):
            assert not nested(pattern.pattern), one.name


@pytest.mark.parametrize(
    ("pattern", "is_nested"),
    [
        ("(a+)+", True),
        ("(?:a|b*)*", True),
        ("(?:x{2,})+", True),
        ("((a+)b)*", True),
        ("a+b+", False),
        ("(ab)+", False),
        ("(?:\\w+\\.){0,8}x", False),
        ("[a+]+", False),
        ("(a+)?", False),
    ],
)
def test_nested_repetitions_are_told_from_others(pattern: str, is_nested: bool) -> None:
    assert nested(pattern) is is_nested
