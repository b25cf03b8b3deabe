from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchd.settings.locate import Place, dotted, locate


def lines(text: str) -> dict[Place, int]:
    return dict(locate(text).lines)


def places(value: Any, place: Place = ()) -> Iterator[Place]:
    """Every place of a document that tomllib has read."""
    if place:
        yield place
    if isinstance(value, dict):
        for key, child in value.items():
            yield from places(child, (*place, key))
    if isinstance(value, list):
        for index, child in enumerate(value):
            yield from places(child, (*place, index))


def test_keys_stand_on_their_lines() -> None:
    text = "a = 1\n\n# b = 0\nb = 2 # c = 3\n"
    assert lines(text) == {("a",): 1, ("b",): 4}


def test_tables_and_their_keys_are_found() -> None:
    text = "[a]\nx = 1\n[a.b]\ny = 2\n[ c . d ]\n"
    assert lines(text) == {("a",): 1, ("a", "x"): 2, ("a", "b"): 3, ("a", "b", "y"): 4, ("c",): 5, ("c", "d"): 5}


def test_tables_of_an_array_are_counted_and_own_the_tables_below_them() -> None:
    text = "[[t]]\nname = 'a'\n[t.health]\nurl = 'u'\n[[t]]\n[[t.x]]\n[[t.x]]\nk = 1\n"
    assert lines(text) == {
        ("t",): 1,
        ("t", 0): 1,
        ("t", 0, "name"): 2,
        ("t", 0, "health"): 3,
        ("t", 0, "health", "url"): 4,
        ("t", 1): 5,
        ("t", 1, "x"): 6,
        ("t", 1, "x", 0): 6,
        ("t", 1, "x", 1): 7,
        ("t", 1, "x", 1, "k"): 8,
    }


def test_dotted_and_quoted_keys_are_taken_apart() -> None:
    text = 'a.b.c = 1\n"a.b".\'c d\' = 2\n"\\u0041\\"" = 3\n"" = 4\n'
    assert lines(text) == {
        ("a",): 1,
        ("a", "b"): 1,
        ("a", "b", "c"): 1,
        ("a.b",): 2,
        ("a.b", "c d"): 2,
        ('A"',): 3,
        ("",): 4,
    }


def test_inline_tables_and_arrays_over_several_lines_are_walked() -> None:
    text = "a = { b = 1, c.d = [ 1,\n  # no ] here\n  { e = 'x' }, [], ], f = {} }\ng = 1\n"
    assert lines(text) == {
        ("a",): 1,
        ("a", "b"): 1,
        ("a", "c"): 1,
        ("a", "c", "d"): 1,
        ("a", "c", "d", 0): 1,
        ("a", "c", "d", 1): 3,
        ("a", "c", "d", 1, "e"): 3,
        ("a", "c", "d", 2): 3,
        ("a", "f"): 3,
        ("g",): 4,
    }


@pytest.mark.parametrize(
    "value",
    [
        '"""\n[x]\ny = "1"\n"""',
        "'''\n[x]\ny = '1'\n'''",
        '"""a\\"""\n[x]"""',
        '"""a"""""',
        "'''a'''''",
        '""',
        "''",
        '"a\\\\"',
        '"# [x] \\" = {"',
        "'# [x] \\'",
        "1979-05-27 07:32:00Z",
        "[[1, 2], ['a]', \"b[\"]]",
        "+inf # end",
        '["""\n""", 1]',
    ],
)
def test_what_stands_in_a_value_is_no_key(value: str) -> None:
    text = f"a = {value}\nlast = 1\n"
    assert set(lines(text)) == set(places(tomllib.loads(text)))
    assert lines(text)[("last",)] == text.count("\n")


def test_windows_line_ends_count_once() -> None:
    assert lines("a = 1\r\n[b]\r\nc = 2\r\n") == {("a",): 1, ("b",): 2, ("b", "c"): 3}


def test_values_nested_without_end_are_passed_over() -> None:
    text = "a = " + "[" * 200 + "'[', 1" + "]" * 200 + "\nb = 1\n"
    assert lines(text)[("b",)] == 2


def test_a_place_that_is_not_there_has_the_line_of_the_table_around_it() -> None:
    found = locate("[a]\nb = 1\n")
    assert found.line(("a", "c", "d")) == 1
    assert found.line(("z",)) == 0


def test_places_are_written_as_people_write_them() -> None:
    assert dotted(("targets", 2, "health", "interval")) == "targets[2].health.interval"
    assert dotted(("hosts", "gpu 1.x", "port")) == 'hosts."gpu 1.x".port'
    assert dotted(("a\x1b[31m\u202e",)) == '"a\\u001b[31m\\u202e"'


KEYS = st.text(max_size=6) | st.sampled_from(["a", "b", "name", "a.b", "x y", "[", "=", "#", '"', "'", "ä"])
SCALARS = (
    st.integers(-(10**12), 10**12).map(str)
    | st.booleans().map(lambda b: str(b).lower())
    | st.text(st.characters(exclude_categories=["Cs"])).map(
        lambda s: json.dumps(s, ensure_ascii=False).replace("\x7f", "\\u007f")
    )
    | st.sampled_from(["'[a]'", '"""\n[x]\n"""', "'''\ny = 1\n'''", "1979-05-27", '"""a"""""', "1e5", '"\\"#"'])
)
GAPS = st.sampled_from(["", " ", "\n", " # ] } a = 1\n"])


@st.composite
def arrays(draw: st.DrawFn, values: st.SearchStrategy[str]) -> str:
    elements = draw(st.lists(values, max_size=3))
    written = "".join(draw(GAPS) + element + draw(GAPS) + "," for element in elements)
    return "[" + (written if draw(st.booleans()) or not elements else written[:-1]) + draw(GAPS) + "]"


@st.composite
def inline_tables(draw: st.DrawFn, values: st.SearchStrategy[str]) -> str:
    keys = draw(st.lists(KEYS, unique=True, max_size=3))
    return "{ " + ", ".join(f"{quoted(key)} = {draw(values)}" for key in keys) + " }"


VALUES = st.recursive(SCALARS, lambda inner: arrays(inner) | inline_tables(inner), max_leaves=6)


def quoted(key: str) -> str:
    if key.isascii() and key.replace("_", "").isalnum():
        return key
    return json.dumps(key, ensure_ascii=False).replace("\x7f", "\\u007f")


@st.composite
def documents(draw: st.DrawFn) -> tuple[str, dict[Place, int]]:
    """A TOML text, and the lines on which its writer put keys."""
    text = ""
    expected: dict[Place, int] = {}
    table: Place = ()
    arrays_of: dict[str, int] = {}
    names = draw(st.lists(KEYS, unique=True, min_size=1, max_size=8))
    for name in names:
        kind = draw(st.sampled_from(["pair", "pair", "table", "array", "again", "comment", "dotted"]))
        line = text.count("\n") + 1
        if kind == "pair":
            expected[(*table, name)] = line
            text += f"{quoted(name)} = {draw(VALUES)}\n"
        elif kind == "dotted":
            expected[(*table, name, "in ner")] = line
            text += f'  {quoted(name)} . "in ner" = {draw(VALUES)}  # end\n'
        elif kind == "table":
            table = (name,)
            expected[table] = line
            text += f" [ {quoted(name)} ] # table\n"
        elif kind == "comment":
            text += f"# {json.dumps(name)} = 1\n\n"
        else:
            array = name if kind == "array" or not arrays_of else next(iter(arrays_of))
            arrays_of[array] = arrays_of.get(array, -1) + 1
            table = (array, arrays_of[array])
            expected[table] = line
            text += f"[[{quoted(array)}]]\n"
    return text, expected


@given(documents())
def test_every_key_that_tomllib_reads_is_found_where_it_was_written(case: tuple[str, dict[Place, int]]) -> None:
    text, expected = case
    found = lines(text)
    assert set(found) == set(places(tomllib.loads(text)))
    assert {place: found[place] for place in expected} == expected


@given(st.text(st.sampled_from("ab=.,#[]{}\"'\\\n \t1")) | st.text())
def test_no_text_at_all_makes_it_raise(text: str) -> None:
    ends = text.count("\n") + 1
    assert all(1 <= line <= ends for line in lines(text).values())


@given(st.text(st.sampled_from("ab=.,#[]{}\"'\\\n 1"), max_size=40))
def test_of_short_texts_that_tomllib_reads_every_key_is_found(text: str) -> None:
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    assert set(lines(text)) == set(places(document))
