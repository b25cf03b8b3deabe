"""Launch commands are read from whatever shows them, and nothing that shows one raises."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchd.parse import launch


def test_the_kernels_command_line_is_split_at_its_nuls():
    assert launch.from_cmdline(b"python3\0-m\0serve\0--name\0two words\0\0") == (
        "python3",
        "-m",
        "serve",
        "--name",
        "two words",
    )
    assert launch.from_cmdline(b"python3\0--stop\0\0--port\x0080\0") == ("python3", "--stop", "", "--port", "80")
    assert launch.from_cmdline(b"") == ()


def test_bytes_that_are_no_text_stay_countable():
    assert launch.from_cmdline(b"serve\0--name\0\xff\xfe\0") == ("serve", "--name", "��")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("python3 -m serve --port 80\n", ("python3", "-m", "serve", "--port", "80")),
        ("CUDA_VISIBLE_DEVICES=4,5 serve --tp 2", ("CUDA_VISIBLE_DEVICES=4,5", "serve", "--tp", "2")),
        ("""serve --set '{"a": "b c"}' --name "x y" """, ("serve", "--set", '{"a": "b c"}', "--name", "x y")),
        ("serve \\\n  --port 80 \\\r\n  --tp 2", ("serve", "--port", "80", "--tp", "2")),
        ("serve --note it's --port 80", ("serve", "--note", "it's", "--port", "80")),
        ("serve --tag a#b # c", ("serve", "--tag", "a#b", "#", "c")),
        ("  ", ()),
    ],
)
def test_a_shell_line_is_split_as_a_shell_would(line, words):
    assert launch.from_shell(line) == words


def test_a_kept_command_is_read_in_either_form():
    assert launch.from_any(b"serve\0--name\0a b\0") == ("serve", "--name", "a b")
    assert launch.from_any(b"serve --name 'a b'\n") == ("serve", "--name", "a b")
    assert launch.from_any(b"serve\0") == ("serve",)
    assert launch.from_any(b"") == ()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("+ python3 -m serve --tp 4", ("python3", "-m", "serve", "--tp", "4")),
        ("++ exec /opt/bin/serve --tp 4", ("/opt/bin/serve", "--tp", "4")),
        ("+ NAME=x serve --tp 4", ("NAME=x", "serve", "--tp", "4")),
        ("+ export A=b", None),
        ("+ A=b", None),
        ("+ /usr/bin/ls -l /models", None),
        ("+ exec", None),
        ("+", None),
        ("+5 python3 -m serve", None),
        ("python3 -m serve", None),
        (" + python3 -m serve", None),
    ],
)
def test_a_shells_trace_shows_a_program_or_nothing(line, words):
    assert launch.from_trace(line) == words


def test_the_last_program_with_a_flag_is_the_one_that_was_launched():
    lines = ["+ module load cuda", "+ serve --tp 2", "+ serve --tp 4\r", "+ wait", "+ hostname", "loading", "+++ done"]
    assert launch.echoed(lines) == ("serve", "--tp", "4")
    assert launch.echoed(["loading", "+ cd /srv"]) is None


def test_flags_and_attributes_name_each_other():
    assert launch.flag_of("speculative_num_steps") == "--speculative-num-steps"
    assert launch.attribute_of("--speculative-num-steps") == "speculative_num_steps"
    assert launch.attribute_of("--speculative_num_steps=3") == "speculative_num_steps"


def test_a_flag_counts_as_given_in_the_spelling_in_which_it_was_typed():
    argv = ("serve", "--num_steps=3", "--top-k", "1")
    assert launch.given(argv, "num_steps") == "--num_steps"
    assert launch.given(argv, "top_k") == "--top-k"
    assert launch.given(argv, "port") is None


@given(st.binary(max_size=200))
def test_no_bytes_raise(data):
    launch.from_any(data)
    launch.from_cmdline(data)
    launch.from_trace("+ " + data.decode("utf-8", "replace"))


def test_a_megabyte_of_quotes_is_cut_and_split():
    assert launch.from_shell("'" * 1_000_001) is not None
    assert len(launch.from_shell("a " * 500_000)) == 4096
