"""The check around a line is found whichever of its lines Python names, and the names in it are followed."""

from __future__ import annotations

import ast
import textwrap
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from watchd.model import Guard, SourceFile
from watchd.parse import source

DRAFTS = textwrap.dedent(
    '''
    """Launch arguments."""
    import dataclasses
    import os


    class Options:
        def settle(self):
            if self.method is None:
                return
            if self.method in ("tree", "chain"):
                chosen = (self.width, self.budget)
                if self.depth is None:
                    # All three, or none of them.
                    assert chosen == (None, None)
                    self.depth = 5
                else:
                    assert (
                        self.width is None
                        or self.budget
                        > self.width
                    ), "a message"
            elif self.seed < 0:
                raise ValueError(
                    "no seed below nought"
                )
    '''
).lstrip("\n")


def at(text: str, part: str) -> int:
    """The number of the one line that holds this."""
    (line,) = (number for number, line in enumerate(text.split("\n"), 1) if part in line)
    return line


def guard(text: str, part: str, code: str | None = None) -> Guard | None:
    """The check around the one line that holds `part`."""
    return source.read_guard(text, at(text, part), code)[0]


def body(*lines: str) -> str:
    """A method with these lines."""
    return "\n".join(("class Options:", "    def settle(self, args):", *(f"        {line}" for line in lines), ""))


def test_an_assertion_is_shown_with_the_names_behind_an_alias_and_those_of_the_ifs_around():
    found = guard(DRAFTS, "assert chosen", "assert chosen == (None, None)")
    assert found == Guard(
        condition="chosen == (None, None)",
        names=("width", "budget"),
        requires=("width", "budget", "depth", "method"),
        enclosing=('self.method in ("tree", "chain")', "self.depth is None"),
        line=14,
    )


@pytest.mark.parametrize("part", ["assert (", "self.width is None", "or self.budget", "> self.width", '), "a message"'])
def test_every_line_of_a_check_over_several_lines_leads_to_it(part):
    found = guard(DRAFTS, part)
    assert found is not None
    assert found.line == at(DRAFTS, "assert (")
    assert found.condition == "self.width is None or self.budget > self.width"
    assert found.names == ("width", "budget")
    assert found.enclosing == ('self.method in ("tree", "chain")', "not (self.depth is None)")


@pytest.mark.parametrize("part", ["raise ValueError(", '"no seed below nought"'])
def test_a_raise_leads_to_the_condition_under_which_it_is_reached(part):
    found = guard(DRAFTS, part)
    assert found is not None
    assert (found.condition, found.line) == ("self.seed < 0", at(DRAFTS, "elif self.seed"))
    assert found.enclosing == ('not (self.method in ("tree", "chain"))',)
    assert found.requires == ("seed", "method")


def test_a_raise_in_an_else_is_reached_when_the_condition_fails():
    text = body("if args.size > 0:", "    pass", "else:", "    raise ValueError('size')")
    found = guard(text, "raise")
    assert found is not None
    assert found.condition == "not (args.size > 0)"


def test_a_comparison_that_itself_fails_is_the_check():
    text = body("longest = args.longest", "if self.waiting < longest:", "    self.note()")
    found = guard(text, "if self.waiting")
    assert found is not None
    assert found.names == ("waiting", "longest")


@pytest.mark.parametrize(
    "lines",
    [
        ("self.total = args.total + None",),
        ("for item in args.items:", "    total = item + None"),
        ("try:", "    self.load()", "except OSError:", "    raise RuntimeError('unreadable')"),
        ("raise RuntimeError('always')",),
        ("if table[key]:", "    total = None"),
    ],
)
def test_where_nothing_is_checked_no_check_is_made_up(lines):
    text = body(*lines)
    for number in range(3, 3 + len(lines)):
        assert source.read_guard(text, number, None)[0] is None


@pytest.mark.parametrize(
    ("lines", "names"),
    [
        (("assert self.a",), ("a",)),
        (("assert not getattr(self, 'a', None)",), ("a",)),
        (("assert args.deep.a == cfg.b",), ("a", "b")),
        (("assert self.a.startswith('x')",), ("a",)),
        (("assert len(self.a) > 0",), ("a",)),
        (("assert args['a'] and args.get('b', 1)",), ("a", "b")),
        (("spec = self.spec or {}", "assert spec.get('width', 1) > spec['depth']"), ("spec.width", "spec.depth")),
        (("a, b = args.first, args.second", "assert a or b"), ("first", "second")),
        (
            ("world = args.tp * args.pp", "share, rest = divmod(world, args.nodes)", "assert not rest"),
            ("tp", "pp", "nodes"),
        ),
        (("if (n := self.a) is None:", "    pass", "assert n"), ("a",)),
        (("for n in self.items:", "    assert n > self.low"), ("items", "low")),
        (("assert any(getattr(args, n) for n in ('a', 'b'))",), ("a", "b")),
        (("a = 1", "a = self.late", "assert a"), ("late",)),
        (("assert os.environ.get('A') == self.a",), ("a",)),
        (("a = a", "assert a"), ("a",)),
        (("assert limit > LOWEST",), ("limit", "LOWEST")),
        (("assert self.a in {1: 2}, self.message",), ("a",)),
        (("assert (lambda x: x.y)(self.a)",), ("a",)),
    ],
)
def test_names_are_followed_to_what_they_stand_for(lines, names):
    text = "import os\n" + body(*lines)
    number = text.count("\n", 0, text.rindex("assert")) + 1
    found, _, _, _ = source.read_guard(text, number, None)
    assert found is not None
    assert found.names == names


def test_an_attribute_that_the_constructor_copied_is_called_what_it_was_called_there():
    text = textwrap.dedent(
        """
        class Limits:
            def __init__(self, options):
                self.waiting = options.max_queued
                self.seen = 0

            def settle(self):
                assert self.waiting > self.seen
        """
    )
    found = guard(text, "assert")
    assert found is not None
    assert found.names == ("max_queued", "seen")


def test_variables_are_named_but_tie_nothing_together():
    found = guard(body("assert limit > self.low"), "assert")
    assert found is not None
    assert (found.names, found.requires) == (("limit", "low"), ("low",))


FRAGMENT = "\n" * 2419 + textwrap.indent(
    textwrap.dedent(
        """
        # (the rest of this file is not here)
            if self.depth is None:
                assert (
                    self.width is None
                    and self.budget is None
                )
                # pick values
        """
    ).lstrip("\n"),
    "        ",
)


@pytest.mark.parametrize("line", [2422, 2423, 2424])
def test_a_piece_that_begins_in_the_middle_of_a_block_keeps_its_true_line_numbers(line):
    code = FRAGMENT.split("\n")[line - 1].strip()
    found, first_line, lines, matches_log = source.read_guard(FRAGMENT, line, code)
    assert found == Guard(
        condition="self.width is None and self.budget is None",
        names=("width", "budget"),
        requires=("width", "budget", "depth"),
        enclosing=("self.depth is None",),
        line=2422,
    )
    assert first_line == 2420
    assert lines[0].strip().startswith("# (the rest")
    assert matches_log is True


@pytest.mark.parametrize(
    "text",
    [
        "            if self.a is None:\n                assert self.b\n        else:\n            pass\n    x = 1\ny = 2\n",
        "def f(self):\n    if self.a is None:\n        assert self.b\n    print('cut of",
        "            if self.a is None:\n                assert self.b\n    except ValueError:\n        pass\n",
        "type Alias[T] = dict[\n\ndef f(self):\n    if self.a is None:\n        assert self.b\n    return 1\n\ndef g(:\n",
        "\tdef f(self):\n\t\tif self.a is None:\n\t\t\tassert self.b\n",
    ],
)
def test_a_piece_that_is_cut_at_either_end_is_still_read(text):
    found = guard(text, "assert self.b")
    assert found is not None
    assert (found.condition, found.enclosing) == ("self.b", ("self.a is None",))
    assert found.line == at(text, "assert self.b")


@pytest.mark.parametrize("distance", [-3, -1, 0, 2, 3])
def test_the_quoted_line_is_looked_for_a_few_lines_up_and_down(distance):
    line = at(DRAFTS, "assert chosen")
    found, _, _, matches_log = source.read_guard(DRAFTS, line + distance, "assert  chosen == (None, None)")
    assert matches_log is True
    assert found is not None
    assert found.line == line


def test_a_file_that_changed_since_the_crash_proves_nothing():
    line = at(DRAFTS, "assert chosen")
    found, first_line, lines, matches_log = source.read_guard(DRAFTS, line, "assert self.other is None")
    assert (found, matches_log) == (None, False)
    assert lines[line - first_line].strip() == "assert chosen == (None, None)"


def test_where_the_log_quotes_no_line_nobody_knows_whether_the_file_is_the_same():
    found, _, _, matches_log = source.read_guard(DRAFTS, at(DRAFTS, "assert chosen"), None)
    assert found is not None
    assert matches_log is None


def test_the_lines_around_are_a_dozen_without_empty_ones_at_their_ends():
    first_line, lines = source.read_guard("\n" * 40 + "a = 1\n" + "\n" * 40, 41, "a = 1")[1:3]
    assert (first_line, lines) == (41, ("a = 1",))
    first_line, lines = source.read_guard("a = 1\n" * 100, 50, "a = 1")[1:3]
    assert (first_line, len(lines)) == (43, 12)


def test_a_check_over_many_lines_is_shown_around_the_line_that_is_named():
    text = "assert all((\n" + "".join(f"    self.a{n},\n" for n in range(100)) + "))\n"
    found, first_line, lines, _ = source.read_guard(text, 60, "self.a58,")
    assert found is not None
    assert found.line == 1
    assert first_line < 60 < first_line + len(lines)
    assert len(lines) <= 24


@pytest.mark.parametrize("line", [0, -1, 10_000])
def test_a_line_that_the_file_does_not_have_shows_nothing(line):
    assert source.read_guard(DRAFTS, line, None) == (None, line, (), None)
    assert source.excerpt(SourceFile(path="/a.py", text=DRAFTS, sha256="", line=line, code=None)) is None


def test_an_excerpt_carries_path_and_hash():
    found = source.excerpt(SourceFile(path="/a.py", text=DRAFTS, sha256="ab", line=14, code=None))
    assert found is not None
    assert (found.path, found.sha256) == ("/a.py", "ab")
    assert found.guard is not None


def test_a_file_of_more_than_a_mebibyte_is_not_read():
    file = SourceFile(path="/a.py", text="a = 1\n" * 200_000, sha256="", line=1, code=None)
    assert source.excerpt(file) is None
    assert source.plain_excerpt(file) is None


def test_names_that_stand_for_names_without_end_are_given_up():
    chain = ["n0 = (self.a,) * 9", *(f"n{i} = ({', '.join([f'n{i - 1}'] * 30)},)" for i in range(1, 9)), "assert n8"]
    text = body(*chain)
    began = time.process_time()
    found = guard(text, "assert n8")
    assert found is not None
    assert found.names == ("a",)
    assert time.process_time() - began < 10


@settings(max_examples=50)
@given(
    st.text(alphabet=st.sampled_from("assert if:()\n\t self.ab=\"'\\{}\x00é\udcff")),
    st.integers(min_value=1, max_value=5),
    st.none() | st.just("assert"),
)
def test_no_source_raises(text, line, code):
    source.read_guard(text, line, code)


def test_source_is_read_and_never_run(tmp_path):
    mark = tmp_path / "ran"
    text = f"open({str(mark)!r}, 'w')\nassert self.a\n"
    assert guard(text, "assert self.a") is not None
    ast.parse(text)
    assert not mark.exists()
