from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchd.settings import durations
from watchd.settings.types import Flapping


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("250ms", 0.25), ("10s", 10.0), ("1.5m", 90.0), ("2h", 7200.0), ("90d", 7776000.0), ("0s", 0.0)],
)
def test_a_duration_is_one_number_and_one_unit(text: str, seconds: float) -> None:
    assert durations.duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "wrong",
    [10, 10.0, True, None, [], "10", "s", "", "10 s", " 10s", "10s\n", "10S", "-1s", "1h30m", "1e3s", "10sec", "٣s"],
)
def test_what_is_no_duration_is_told_what_one_looks_like(wrong: object) -> None:
    with pytest.raises(ValueError, match=r'one number and one unit .*"10s"'):
        durations.duration(wrong)


def test_a_duration_that_no_timer_takes_is_refused() -> None:
    with pytest.raises(ValueError, match="3650d"):
        durations.duration("999999999999d")


def test_some_durations_must_be_longer_than_nothing() -> None:
    with pytest.raises(ValueError, match="longer than nothing"):
        durations.positive_duration("0ms")


def test_an_empty_string_switches_an_optional_duration_off() -> None:
    assert durations.optional_duration("") is None
    assert durations.optional_duration("4h") == 4 * 3600


@pytest.mark.parametrize(("text", "size"), [("4KiB", 4096), ("512MiB", 512 << 20), ("2GiB", 2 << 30)])
def test_a_size_is_a_whole_number_and_a_unit(text: str, size: int) -> None:
    assert durations.size(text) == size


@pytest.mark.parametrize("wrong", [512, "512", "512MB", "0.5GiB", "MiB", "512 MiB", "512MiB\n"])
def test_what_is_no_size_is_told_what_one_looks_like(wrong: object) -> None:
    with pytest.raises(ValueError, match='"512MiB"'):
        durations.size(wrong)


def test_flapping_is_a_number_of_changes_in_a_duration() -> None:
    assert durations.flapping("4 in 10m") == Flapping(changes=4, within_s=600.0)
    assert durations.flapping("") is None


@pytest.mark.parametrize(
    "wrong", [4, "4", "4 in", "in 10m", "4 in 10", "four in 10m", "4  in 10m", "1 in 10m", "4 in 0s"]
)
def test_what_is_no_flapping_is_refused(wrong: object) -> None:
    with pytest.raises(ValueError, match="must be"):
        durations.flapping(wrong)


@given(st.text() | st.integers() | st.floats() | st.none())
def test_nothing_but_value_errors_come_of_odd_values(value: object) -> None:
    for read in (durations.duration, durations.optional_duration, durations.size, durations.flapping):
        with contextlib.suppress(ValueError):
            assert read(value) is None or isinstance(value, str)
