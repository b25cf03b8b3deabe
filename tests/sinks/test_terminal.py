"""How an incident looks to a person, and that no log line reaches the terminal itself."""

from __future__ import annotations

import io
import os
import re
import subprocess
import unicodedata
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sinks.terminal_incidents import CLIMBING, FOUNDING, HOSTILE, KILLED, NASTY, RESOLVED, later
from watchd.model import Incident, Scope, Severity, Verdict
from watchd.sinks import draw
from watchd.sinks.base import Result
from watchd.sinks.terminal import TerminalSink, render, show, wants_colour, width_of

GOLDEN = Path(__file__).parent / "golden"
SGR = re.compile(r"\x1b\[[0-9;]*m")
DRAWN = {"founding": FOUNDING, "killed": KILLED, "climbing": CLIMBING, "resolved": RESOLVED, "hostile": HOSTILE}


class Screen(io.StringIO):
    """A stream that says what it is."""

    def __init__(self, *, tty: bool = False) -> None:
        super().__init__()
        self._tty = tty

    def isatty(self) -> bool:
        return self._tty


def as_a_shell_reads(command: str) -> list[bytes]:
    ran = subprocess.run(
        ["/bin/sh", "-c", f"printf '%s\\0' {command}"], env={"API_KEY": "a b"}, capture_output=True, check=True
    )
    return ran.stdout.split(b"\0")


def drawn(incident: Incident, *, width: int = 80, full: bool = False) -> str:
    return render(incident, width=width, colour=False, full=full)


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", sorted(DRAWN))
def test_an_incident_looks_as_the_golden_file_shows(name: str, width: int) -> None:
    """The files are written anew with UPDATE_GOLDEN=1 in the environment, to be read before they are kept."""
    golden = GOLDEN / f"terminal-{name}-{width}.txt"
    text = drawn(DRAWN[name], width=width) + "\n"
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [40, 41, 63, 64, 65, 80, 100, 200])
@pytest.mark.parametrize("name", sorted(DRAWN))
def test_no_line_is_wider_than_the_terminal_but_those_that_are_copied(name: str, width: int) -> None:
    incident = replace(DRAWN[name], look=None, launch=None)
    assert max(draw.columns(line) for line in drawn(incident, width=width, full=True).split("\n")) <= width


@pytest.mark.parametrize(("width", "used"), [(1, 40), (40, 40), (200, 200), (10_000, 200)])
def test_a_terminal_narrower_than_40_or_wider_than_200_columns_is_taken_for_that(width: int, used: int) -> None:
    assert draw.columns(drawn(FOUNDING, width=width).split("\n")[0]) == used


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("status", ["firing", "resolved", "climbing"])
def test_hostile_text_sends_nothing_to_the_terminal_but_letters(status: str, full: bool) -> None:
    incident = {
        "firing": HOSTILE,
        "resolved": replace(HOSTILE, status=RESOLVED.status, resolved_at=later(5)),
        "climbing": replace(HOSTILE, stage=CLIMBING.stage),
    }[status]
    for colour in (False, True):
        text = SGR.sub("", render(incident, width=100, colour=colour, full=full))
        bad = {char for char in text if unicodedata.category(char) in {"Cc", "Cf", "Cs", "Zl", "Zp"}} - {"\n"}
        assert bad == set()
        text.encode("utf-8")


def test_what_a_log_hides_from_the_eye_is_written_out() -> None:
    """Title, clear-screen, C1, bidi override, isolate, zero width, line separator, lone surrogate: each as its number."""
    seen = draw.plain(NASTY)
    for escape in ("\\x1b]0;owned\\x07", "\\x1b[2J", "\\x9b31m", "\\u202e", "\\u2066", "\\u200b", "\\u2028", "\\ud800"):
        assert escape in seen
    assert "\\x0d\\x0a\\x00next" in seen


def test_colour_codes_in_a_log_line_are_dropped_and_their_text_stays() -> None:
    assert draw.plain("\x1b[1;31mERROR\x1b[0m \x1b[38;5;9mred\x1b[m") == "ERROR red"


def test_without_colour_not_one_escape_sequence_is_written() -> None:
    assert "\x1b" not in drawn(FOUNDING)


def test_colour_changes_nothing_but_the_colour() -> None:
    for incident in DRAWN.values():
        assert SGR.sub("", render(incident, width=90, colour=True)) == drawn(incident, width=90)


def test_each_colour_ends_on_the_line_on_which_it_began() -> None:
    """So that a pager, or a line taken out of the page, does not bleed."""
    for line in render(FOUNDING, width=80, colour=True).split("\n"):
        codes = SGR.findall(line)
        assert codes[1::2] == ["\x1b[0m"] * (len(codes) // 2)
        assert len(codes) % 2 == 0


@pytest.mark.parametrize(
    ("severity", "code"), [("critical", "1;31"), ("error", "1;31"), ("warning", "33"), ("info", "36")]
)
def test_the_head_is_as_loud_as_the_incident(severity: str, code: str) -> None:
    head = render(replace(FOUNDING, severity=Severity(severity)), width=80, colour=True).split("\n")[0]
    assert head.startswith(f"\x1b[{code}m━━ CRASH")


def test_the_deciding_source_line_is_marked_and_no_other() -> None:
    marked = [line for line in drawn(FOUNDING).split("\n") if "▶" in line]
    assert [line.split("│")[1].strip() for line in marked] == ["assert chosen == (None, None)"]


def test_the_mark_follows_the_quoted_line_where_a_few_lines_were_added_above_it() -> None:
    assert FOUNDING.frame is not None
    moved = replace(FOUNDING, frame=replace(FOUNDING.frame, line=2421))
    assert "▶ 2423 │     assert chosen == (None, None)" in drawn(moved)


def test_a_source_that_changed_since_is_called_so() -> None:
    assert FOUNDING.source is not None
    changed = replace(FOUNDING, source=replace(FOUNDING.source, matches_log=False))
    assert "no longer the one that the server ran" in drawn(changed)
    assert "no longer the one that the server ran" not in drawn(FOUNDING)


def test_a_source_without_the_frame_is_shown_from_its_beginning() -> None:
    text = drawn(replace(FOUNDING, frame=None))
    assert "2409 │ def _settle_pages(self):" in text
    assert "▶" not in text


@pytest.mark.parametrize("width", [40, 80, 120, 200])
def test_the_launch_command_can_be_copied_from_the_page(width: int) -> None:
    """It is broken with backslashes only where a shell joins it again."""
    lines = drawn(FOUNDING, width=width).split("\n")
    start = next(n for n, line in enumerate(lines) if "corrected" in line)
    body = lines[start:] if width >= 64 else lines[start + 1 :]
    end = next(n for n, line in enumerate(body) if not line.endswith("\\"))
    copied = "\n".join([body[0].replace("corrected", "", 1), *body[1 : end + 1]])
    assert FOUNDING.launch is not None
    assert as_a_shell_reads(copied) == as_a_shell_reads(str(FOUNDING.launch.corrected))


def test_a_quoted_value_is_never_broken() -> None:
    assert FOUNDING.launch is not None
    value = '\'{"rope": "a --b", "factor": 2.0, "why": "it is long enough not to fit into one line of this page"}\''
    launch = replace(FOUNDING.launch, command=f"serve --json {value} --port 1", corrected=None, edits=())
    assert value in drawn(replace(FOUNDING, launch=launch), width=60)


def test_the_line_to_look_at_the_place_is_whole_on_every_terminal() -> None:
    long = "ssh gpu-01 sed -n 1,20p " + "/very/long" * 600
    assert long in drawn(replace(FOUNDING, look=long), width=40).split("\n")


def test_a_flag_that_the_correction_adds_is_green_and_one_that_it_drops_is_red() -> None:
    assert FOUNDING.launch is not None
    (edit,) = FOUNDING.launch.edits
    text = render(FOUNDING, width=200, colour=True)
    assert "\x1b[32m--speculative-num-steps 3\x1b[0m" in text
    dropped = replace(edit, flag="--speculative-eagle-topk", action="drop", value=None, basis="derived")
    text = render(replace(FOUNDING, launch=replace(FOUNDING.launch, edits=(dropped,))), width=200, colour=True)
    assert "\x1b[31m--speculative-eagle-topk 1\x1b[0m" in text
    assert "- \x1b[31m--speculative-eagle-topk (derived)\x1b[0m" in text


def test_what_could_not_be_learnt_is_shown_with_its_reason() -> None:
    assert "machine  refused   dmesg -T: Operation not permitted" in drawn(FOUNDING)


def test_what_was_left_out_is_counted() -> None:
    text = drawn(KILLED)
    assert "… and 4 more" in text
    assert "… 8 more" in text
    assert "… 4 lines above" in text


def test_an_incident_of_which_nothing_is_known_yet_is_drawn_in_full_all_the_same() -> None:
    text = drawn(CLIMBING, full=True)
    assert "not known yet, unknown" in text
    assert "None" not in text


@pytest.mark.parametrize(("scope", "who"), [("host", "a host"), ("bastion", "a bastion"), ("jump", "watchd itself")])
def test_an_incident_above_a_target_says_what_it_is_about(scope: str, who: str) -> None:
    lost = replace(CLIMBING, target=None, scope=Scope(scope), verdict=Verdict.UNREACHABLE, summary="no route to host")
    assert drawn(lost) == f"14:09:58  UNREACHABLE  {who}: no route to host"


def test_a_climb_is_one_line_and_an_end_is_two() -> None:
    assert len(drawn(CLIMBING).split("\n")) == 1
    assert len(drawn(RESOLVED).split("\n")) == 2


def test_a_withdrawn_alarm_does_not_say_that_something_was_mended() -> None:
    first = drawn(replace(RESOLVED, verdict=Verdict.OK, cause=None)).split("\n")[0]
    assert first == "14:20:11  RESOLVED  eagle3 on gpu-01: ok"


@pytest.mark.parametrize(
    ("seconds", "said"), [(0, "0 s"), (61, "1 min 1 s"), (3600, "1 h"), (90_000, "1 d 1 h"), (-5, "0 s")]
)
def test_how_long_it_took_is_said_in_its_two_largest_units(seconds: int, said: str) -> None:
    assert f"after {said} (" in drawn(replace(RESOLVED, resolved_at=later(seconds)))


def test_wide_characters_are_measured_as_a_terminal_draws_them() -> None:
    assert draw.columns("日本e\u0301") == 5
    assert draw.cut("日本語", 5) == "日本…"
    assert draw.cut_front("日本語", 5) == "…本語"


@given(st.text(max_size=300), st.integers(8, 120), st.none() | st.integers(1, 4))
@settings(deadline=None)
def test_wrapping_loses_no_letter_unless_it_says_so(text: str, width: int, rows: int | None) -> None:
    harmless = draw.plain(text)
    lines = draw.wrap(harmless, width, rows=rows)
    assert all(draw.columns(line) <= width for line in lines)
    if rows is None:
        assert "".join(lines).replace(" ", "") == harmless.replace(" ", "")
    else:
        assert len(lines) <= rows
        assert lines[-1].endswith("…") or "".join(lines).replace(" ", "") == harmless.replace(" ", "")


@given(st.text(max_size=200), st.integers(40, 200))
@settings(deadline=None, max_examples=60)
def test_any_text_anywhere_leaves_the_page_whole(text: str, width: int) -> None:
    incident = replace(FOUNDING, summary=text, because=(text,), advice=(text,), look=None, launch=None)
    lines = drawn(incident, width=width).split("\n")
    assert max(map(draw.columns, lines)) <= width
    assert lines[0].startswith("━━ CRASH")


def test_a_line_of_50_megabytes_is_shown_by_its_beginning() -> None:
    assert FOUNDING.root is not None
    text = drawn(replace(FOUNDING, root=replace(FOUNDING.root, text="x" * 50_000_000)))
    assert len(text) < 6_000


@pytest.mark.parametrize(
    ("environ", "tty", "wanted"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),
        ({"TERM": "dumb"}, True, False),
        ({"TERM": "xterm-256color"}, True, True),
    ],
)
def test_colour_is_for_terminals_that_want_it(environ: dict[str, str], tty: bool, wanted: bool) -> None:
    assert wants_colour(Screen(tty=tty), environ) is wanted


def test_the_width_is_asked_of_the_terminal_itself() -> None:
    import fcntl
    import struct
    import termios

    master, slave = os.openpty()
    try:
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 133, 0, 0))
        with os.fdopen(os.dup(slave), "w") as stream:
            assert width_of(stream) == 133
    finally:
        os.close(master)
        os.close(slave)


def test_the_width_of_what_is_no_terminal_is_80(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr("sys.__stdout__", None)
    assert width_of(Screen()) == 80


def test_a_terminal_of_an_old_encoding_gets_what_it_can_draw() -> None:
    raw = io.BytesIO()
    with io.TextIOWrapper(raw, encoding="iso-8859-1") as stream:
        show("━━ CRASH │ ▶ … · 日 é", stream)
        assert raw.getvalue() == "== CRASH | > ... - \\u65e5 é\n".encode("iso-8859-1")


async def test_the_sink_prints_the_climb_then_everything_then_the_end() -> None:
    screen = Screen()
    sink = TerminalSink(name="screen", stream=screen, width=100)
    for n, incident in enumerate((CLIMBING, FOUNDING, RESOLVED)):
        answer = await sink.send(incident, first=n == 0, small=False)
        assert answer.result is Result.SENT
    shown = "\n".join(render(i, width=100, colour=False) for i in (CLIMBING, FOUNDING, RESOLVED))
    assert screen.getvalue() == shown + "\n"
    assert sink.edits is True


async def test_the_sink_does_not_print_the_same_page_twice() -> None:
    screen = Screen()
    sink = TerminalSink(name="screen", stream=screen, width=100)
    await sink.send(FOUNDING, first=True, small=False)
    before = len(screen.getvalue())
    await sink.send(replace(FOUNDING, occurrences=2, revision=3, updated_at=later(60)), first=False, small=False)
    assert screen.getvalue()[before:] == "14:10:58  STILL  eagle3 on gpu-01: launch_argument, 2 times\n"


async def test_the_sink_prints_a_page_again_when_the_cause_is_another() -> None:
    screen = Screen()
    sink = TerminalSink(name="screen", stream=screen, width=100)
    await sink.send(FOUNDING, first=True, small=False)
    await sink.send(replace(FOUNDING, cause=KILLED.cause, revision=3), first=False, small=False)
    assert screen.getvalue().count("━━ CRASH") == 2


async def test_a_shorter_form_is_one_line() -> None:
    screen = Screen()
    await TerminalSink(name="screen", stream=screen, width=100).send(FOUNDING, first=True, small=True)
    assert screen.getvalue().count("\n") == 1


async def test_a_closed_output_is_an_answer_and_no_exception() -> None:
    read, write = os.pipe()
    os.close(read)
    pipe = io.TextIOWrapper(io.FileIO(write, "w"), write_through=True)
    try:
        answer = await TerminalSink(name="screen", stream=pipe, width=80, colour=False).send(
            FOUNDING, first=True, small=False
        )
    finally:
        pipe.detach().close()
    assert (answer.result, answer.reason) == (Result.DEAD, "the output is closed: BrokenPipeError")
    closed = Screen()
    closed.close()
    sink = TerminalSink(name="screen", stream=closed, width=80, colour=False)
    assert (await sink.send(FOUNDING, first=True, small=False)).result is Result.DEAD
