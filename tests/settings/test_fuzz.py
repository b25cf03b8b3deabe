"""Whatever the file holds, the answer is `Settings` or a SettingsError that says where."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchd import settings
from watchd.errors import SettingsError

SAMPLE = (Path(__file__).parents[2] / "config" / "watchd.toml").read_bytes()
LINES = SAMPLE.splitlines(keepends=True)


@pytest.fixture(scope="module")
def path() -> Path:
    return Path(tempfile.mkdtemp()) / "watchd.toml"


def judged(path: Path, content: bytes) -> settings.Settings | None:
    path.write_bytes(content)
    try:
        return settings.load(path)
    except SettingsError as error:
        mistakes = error.mistakes
    lines = content.count(b"\n") + 1
    assert mistakes
    assert all(0 <= mistake.line <= lines and mistake.key and mistake.reason for mistake in mistakes)
    return None


@given(st.binary())
def test_random_bytes_are_judged(path: Path, content: bytes) -> None:
    judged(path, content)


@given(st.integers(0, len(SAMPLE)))
def test_a_sample_cut_anywhere_is_judged(path: Path, length: int) -> None:
    judged(path, SAMPLE[:length])


@given(st.integers(0, len(SAMPLE) - 1), st.binary(max_size=3), st.integers(0, 3))
def test_a_sample_with_bytes_exchanged_is_judged(path: Path, at: int, new: bytes, gone: int) -> None:
    judged(path, SAMPLE[:at] + new + SAMPLE[at + gone :])


@given(st.lists(st.integers(0, len(LINES) - 1), max_size=4))
def test_a_sample_without_some_lines_is_judged(path: Path, gone: list[int]) -> None:
    judged(path, b"".join(line for number, line in enumerate(LINES) if number not in gone))


VALUES = st.sampled_from(
    [
        '""',
        '"x"',
        "1",
        "-1",
        "1.5",
        "nan",
        "true",
        "[]",
        "{}",
        "[[]]",
        "1979-05-27",
        "07:32:00",
        '["/a"]',
        '{ file = "/a" }',
        '"' + "9" * 400 + 's"',
    ]
)


@given(st.sampled_from([n for n, line in enumerate(LINES) if b"=" in line and not line.startswith(b"#")]), VALUES)
def test_a_sample_with_another_value_is_judged(path: Path, number: int, value: str) -> None:
    key = LINES[number].partition(b"=")[0]
    judged(path, b"".join((*LINES[:number], key + b"= " + value.encode() + b"\n", *LINES[number + 1 :])))


def test_the_sample_itself_is_right(path: Path) -> None:
    assert judged(path, SAMPLE)
