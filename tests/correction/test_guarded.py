"""The corrected command follows from the source, the traceback and the launch; what they do not say is not claimed."""

from __future__ import annotations

import shlex

import pytest

from watchd.correction import guarded
from watchd.model import Fix

PATH = "/opt/app/lib/python3/site-packages/app/arguments.py"

HEAD = """\
import argparse
import dataclasses
from typing import Optional

FAST = ("fast", "faster")


@dataclasses.dataclass
class Settings:
    model: str = ""
    mode: Optional[str] = None
    depth: Optional[int] = None
    width: Optional[int] = None
    budget: Optional[int] = None
    ranks: int = 1
    nodes: int = 1
    page: int = 1
    key: Optional[str] = None
    cert: Optional[str] = None
    kernel: str = "auto"
    reuse: bool = False
    no_reuse: bool = False

    def __post_init__(self):
        self.check()

"""
TAIL = """

def read(words):
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--mode")
    parser.add_argument("--depth", type=int)
    parser.add_argument("--width", type=int)
    parser.add_argument("--budget", type=int)
    parser.add_argument("--ranks", "-r", type=int, default=Settings.ranks)
    parser.add_argument("--nodes", type=int, default=Settings.nodes)
    parser.add_argument("--page", type=int, choices=[1, 16, 64], default=Settings.page)
    parser.add_argument("--key")
    parser.add_argument("--cert")
    parser.add_argument("--kernel", choices=["auto", "fast", "faster", "slow"], default=Settings.kernel)
    parser.add_argument("--reuse", action="store_true")
    parser.add_argument("--disable-reuse", dest="no_reuse", action="store_true")
    return Settings(**vars(parser.parse_args(words)))
"""


def corrected(check: str, launch: str, failing: str, *, quoted: str | None = None, message: str = "") -> Fix | None:
    """What is found for a `check` method of which the line with `failing` stood in the traceback."""
    body = "".join(f"    {line}\n" if line else "\n" for line in check.strip("\n").split("\n"))
    text = HEAD + body + TAIL
    lines = text.split("\n")
    line = next(n for n, row in enumerate(lines, 1) if failing in row)
    post = next(n for n, row in enumerate(lines, 1) if "self.check()" in row)
    called = lines.index("    return Settings(**vars(parser.parse_args(words)))") + 1
    frames = [
        (PATH, called, "read", lines[called - 1].strip()),
        (PATH, post, "__post_init__", "self.check()"),
        (PATH, line, "check", lines[line - 1].strip() if quoted is None else quoted),
    ]
    argv = tuple(shlex.split(launch))
    return guarded.fix(
        guarded.Crash(texts={PATH: text}, frames=frames, message=message, launch=argv, running=argv, settings={})
    )


def edits(fix: Fix | None) -> list[tuple[str, str, str | None, str]]:
    assert fix is not None
    return [(edit.action, edit.flag, edit.value, edit.basis) for edit in fix.edits]


ALL_OR_NONE = """
def check(self):
    if self.mode is None:
        return
    if self.depth is None:
        assert (
            self.width is None
            and self.budget is None
        )
        self.depth, self.width, self.budget = 5, 4, 24
        return
    if self.width == 1:
        assert self.budget == self.depth + 1
"""


@pytest.mark.parametrize("line", ["assert (", "self.width is None", "and self.budget is None"])
def test_a_missing_one_of_three_gets_the_only_value_that_the_next_equality_allows(line):
    fix = corrected(ALL_OR_NONE, "app --model /m --mode tree --width 1 --budget 12", line)
    assert edits(fix) == [("add", "--depth", "11", "derived")]
    assert fix is not None
    assert fix.fails
    assert fix.argv == ("app", "--model", "/m", "--mode", "tree", "--width", "1", "--budget", "12", "--depth", "11")
    assert fix.passed == fix.evaluated > 0


def test_a_check_that_does_not_fail_for_the_recorded_arguments_was_read_wrongly_and_nothing_is_offered():
    assert corrected(ALL_OR_NONE, "app --model /m --mode tree", "assert (") is None


def test_a_source_that_is_no_longer_what_crashed_is_not_read():
    launch = "app --model /m --mode tree --width 1 --budget 12"
    assert corrected(ALL_OR_NONE, launch, "assert (", quoted="assert self.other_thing") is None


def test_what_cannot_be_told_from_the_arguments_is_not_corrected():
    check = """
def check(self):
    if self.mode is not None:
        if not links_between_devices():
            raise ValueError("no links")
"""
    assert corrected(check, "app --model /m --mode tree", 'raise ValueError("no links")') is None


def test_a_value_that_has_to_divide_gets_the_nearest_one_that_does():
    check = """
def check(self):
    share, rest = divmod(self.ranks, self.nodes)
    if rest:
        raise RuntimeError("ranks left over")
"""
    fix = corrected(check, "app --model /m -r 16 --nodes 3", "raise RuntimeError")
    assert edits(fix)[0] in {("set", "--nodes", "2", "proven"), ("set", "-r", "15", "proven")}


def test_of_two_that_exclude_each_other_the_one_typed_later_goes():
    check = """
def check(self):
    if self.reuse and self.no_reuse:
        raise ValueError("either or")
"""
    fix = corrected(check, "app --disable-reuse --model /m --reuse", "raise ValueError")
    assert edits(fix) == [("drop", "--reuse", None, "proven")]
    assert fix is not None
    assert fix.argv == ("app", "--disable-reuse", "--model", "/m")


def test_a_flag_that_another_needs_is_added_before_the_other_is_dropped():
    check = """
def check(self):
    if (self.key is None) != (self.cert is None):
        raise ValueError("both or none")
"""
    fix = corrected(check, "app --model /m --key /k.pem", "raise ValueError")
    assert edits(fix) == [("add", "--cert", "<CERT>", "suggestion")]
    assert fix is not None
    assert shlex.split(shlex.join(fix.argv)) == list(fix.argv)


def test_a_member_of_the_allowed_set_is_picked_through_aliases_and_tuples():
    check = """
def check(self):
    width, kernel = self.width or 1, self.kernel
    if (width > 1, self.page > 1) == (True, True) and kernel not in FAST:
        raise NotImplementedError(f"no trees in {kernel}")
"""
    launch = "app --model /m --width 4 --page 16 --kernel slow"
    fix = corrected(check, launch, "raise NotImplementedError")
    assert fix is not None
    assert {edit.flag for edit in fix.edits} <= {"--kernel", "--width", "--page"}
    assert [edit.basis for edit in fix.edits] == ["proven"]
    assert corrected(check, shlex.join(fix.argv), "raise NotImplementedError") is None


def test_any_over_getattr_with_names_is_followed():
    check = """
def check(self):
    place = getattr(self, "cert", None)
    if any(getattr(self, "no_" + name) for name in ("reuse",)) and not place:
        raise ValueError("nowhere to go")
"""
    fix = corrected(check, "app --model /m --disable-reuse", "raise ValueError")
    assert edits(fix) == [("add", "--cert", "<CERT>", "suggestion")]


def test_a_comparison_with_none_is_a_check_too():
    check = """
def check(self):
    if self.reuse:
        if self.depth > self.ranks:
            print("deep")
"""
    fix = corrected(check, "app --model /m --reuse --ranks 8", "if self.depth > self.ranks")
    (edit,) = edits(fix)
    assert edit[:2] in {("add", "--depth"), ("drop", "--reuse")}


def test_a_value_that_the_message_quotes_stands_in_for_one_that_the_source_does_not_give():
    check = """
def check(self):
    model = load(self.model)
    if model.heads % self.ranks != 0:
        raise ValueError(f"{model.heads} heads cannot be shared")
"""
    fix = corrected(check, "app --model /m --ranks 6", "raise ValueError", message="40 heads cannot be shared")
    assert edits(fix) == [("set", "--ranks", "5", "proven")]


def test_an_edit_that_another_check_refuses_is_not_offered():
    check = """
def check(self):
    if self.ranks not in (1, 2, 4, 8):
        raise ValueError("a power of two")
    if self.ranks % self.nodes:
        raise ValueError("left over")
"""
    fix = corrected(check, "app --model /m --ranks 8 --nodes 3", 'ValueError("left over")')
    assert edits(fix) == [("set", "--nodes", "2", "proven")]


def test_where_the_message_asks_for_what_the_condition_forbids_the_source_decides_and_it_is_said():
    check = """
def check(self):
    assert not self.no_reuse, "the tier needs --disable-reuse"
"""
    fix = corrected(check, "app --model /m --disable-reuse", "assert not", message="the tier needs --disable-reuse")
    assert edits(fix) == [("drop", "--disable-reuse", None, "proven")]
    assert fix is not None
    assert "the source decides" in " ".join(fix.notes)


def test_a_flag_given_with_its_value_in_one_word_keeps_that_form():
    check = """
def check(self):
    assert self.ranks % 4 == 0
"""
    fix = corrected(check, "app --model=/m --ranks=7", "assert self.ranks")
    assert fix is not None
    assert fix.argv == ("app", "--model=/m", "--ranks=8")


@pytest.mark.parametrize(
    "body",
    [
        "while True:\n        x = 1",
        "x = [0] * 10 ** 9",
        "x = 2 ** 10 ** 9",
        "x = '%s' * 10 ** 9",
        "return self.check()",
        "__import__('os').abort()",
        "eval('1/0')",
    ],
)
def test_hostile_source_costs_little_and_is_never_run(body):
    check = f"""
def check(self):
    {body}
    assert self.ranks == 2
"""
    corrected(check, "app --model /m --ranks 1", "assert self.ranks")
