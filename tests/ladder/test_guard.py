"""A stranger's source is parsed in a process of its own, which may die or hang without harm."""

from __future__ import annotations

import time

import pytest

from watchd.ladder import guard
from watchd.model import SourceFile
from watchd.parse import source


def a_file(text: str, line: int = 1, code: str | None = None) -> SourceFile:
    return SourceFile(path="/srv/app/args.py", text=text, sha256="ab12", line=line, code=code)


async def test_the_child_finds_what_the_parser_finds():
    file = a_file("def f(self):\n    if self.b:\n        assert self.a == 'é'\n", 3, "assert self.a == 'é'")
    found = await guard.excerpt(file)
    assert found is not None
    assert found.guard is not None
    assert found == source.excerpt(file)


async def test_the_child_is_found_wherever_the_package_lies(monkeypatch, tmp_path):
    """Neither the working directory nor PYTHONPATH leads it there, and nothing in them is imported."""
    (tmp_path / "json.py").write_text("raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    found = await guard.excerpt(a_file("assert self.a\n"))
    assert found is not None
    assert found.guard is not None


HOSTILE = {
    "parentheses without end": "(" * 900_000,
    "signs without end": "x = " + "-" * 900_000 + "1",
    "brackets in brackets": "x = " + "[" * 5000 + "]" * 5000,
    "a sum without end": "x = " + "a + " * 200_000 + "1",
    "dots without end": "x = a" + ".b" * 400_000,
    "no Python": "assert self.a ? b : c }",
    "a NUL": "assert self.a\0",
    "half a character": "assert self.a \udcff",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
async def test_hostile_source_is_shown_without_a_check_and_in_good_time(text):
    began = time.monotonic()
    found = await guard.excerpt(a_file(text + "\n"))
    assert found is not None
    assert found.guard is None
    assert found.lines[0].startswith(text[:10])
    assert time.monotonic() - began < 30


async def test_source_of_ten_megabytes_is_not_even_handed_over():
    assert await guard.excerpt(a_file("a = 1\n" * 1_700_000)) is None


async def test_a_line_that_is_not_there_shows_nothing():
    assert await guard.excerpt(a_file("a = 1\n", 99)) is None


async def test_a_child_that_takes_too_long_is_ended_and_the_lines_are_shown(monkeypatch):
    monkeypatch.setattr(guard, "_BEGIN", "import time; time.sleep(600)")
    found = await guard.excerpt(a_file("assert self.a\n"), limit_s=0.2)
    assert found is not None
    assert (found.guard, found.lines) == (None, ("assert self.a",))


async def test_the_child_may_not_take_the_memory_of_the_machine(monkeypatch):
    monkeypatch.setattr(
        guard,
        "_BEGIN",
        "import sys; sys.path.append(sys.argv[1]); from watchd.parse import source, source_child\n"
        "source.excerpt = lambda file: print(len(bytearray(1 << 30)))\n"
        "source_child.main()",
    )
    found = await guard.excerpt(a_file("assert self.a\n"))
    assert found is not None
    assert found.guard is None
