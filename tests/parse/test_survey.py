"""A survey tells which families of trouble a log speaks of: how often, where first, where last."""

from __future__ import annotations

import pytest

from watchd.model import Line
from watchd.parse import survey


def lines(*texts: str) -> list[Line]:
    return [Line(number, number * 10, text) for number, text in enumerate(texts, 1)]


def test_each_family_has_its_count_and_its_ends_in_order_of_appearance():
    found = survey.families(
        lines(
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate",
            "all is well",
            "[Errno 28] No space left on device",
            "torch.OutOfMemoryError: CUDA out of memory again",
        )
    )
    assert [(f.name, f.count, f.first.number, f.last.number) for f in found] == [
        ("device memory", 2, 1, 4),
        ("disk", 1, 3, 3),
    ]


@pytest.mark.parametrize(
    ("text", "family"),
    [
        ("serve: error: unrecognized arguments: --num-step", "arguments"),
        ("AssertionError", "assertion"),
        ("ModuleNotFoundError: No module named 'flash_attn'", "missing piece"),
        ("RuntimeError: CUDA error: an illegal memory access was encountered", "device"),
        ("numpy._core._exceptions._ArrayMemoryError: Unable to allocate", "host memory"),
        ("DataLoader worker (pid 88) is killed by signal: Bus error", "shared memory"),
        ("[Rank 3] Watchdog caught collective operation timeout", "watchdog"),
        ("[Errno 98] Address already in use", "port"),
        ("Killed", "signal"),
        ("ValueError: no", "exception"),
        ("could not reach it", "failure"),
    ],
)
def test_a_line_belongs_to_the_first_family_of_which_it_holds_a_phrase(text, family):
    assert [found.name for found in survey.families(lines(text))] == [family]


@pytest.mark.parametrize("text", ["cuda graph: True", "Decode batch. #running-req: 3", '"POST /generate" 200 OK', ""])
def test_what_healthy_servers_print_all_day_belongs_to_none(text):
    assert survey.families(lines(text)) == ()


def test_the_survey_as_text_names_lines_by_number_or_by_place():
    found = survey.families([Line(None, 77, "  Killed  "), Line(9, 99, "Killed " + "x" * 1000)])
    shown = survey.text(found)
    assert shown.startswith("signal: 2 lines\n  byte 77: Killed\n  line 9: Killed xxx")
    assert len(shown) < 500


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Traceback (most recent call last):", True),
        ("[rank1]: Traceback (most recent call last):", True),
        ("AssertionError", True),
        ("torch.OutOfMemoryError: CUDA out of memory", True),
        ("(EngineCore pid=3) ValueError: no", True),
        ("an Error happened", False),
        ("ErrorBudget: 3", False),
    ],
)
def test_the_ends_of_a_traceback_are_recognised(text, expected):
    assert survey.raised(text) is expected
