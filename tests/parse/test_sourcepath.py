"""Which source files may be read, and how much of each."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchd.parse import sourcepath

CODE = b"""import os
KEY = "hunter2"

@decorate(
    1,
)
async def check(
    args,
):
    \"\"\"
said at the margin
\"\"\"
    def inner():
        return 1

    assert (
args.steps is not None
    ), "no steps"
    return inner

def one(): return 3
class Kit:
    TOKEN = "s3cret"

    def method(self):
        # a comment at the end

        pass

    OTHER = "s3cret"
"""


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("app.py", "absolute"),
        ("./app.py", "absolute"),
        ("", "absolute"),
        ("~/app.py", "absolute"),
        ("/opt/app.txt", ".py"),
        ("/etc/passwd", ".py"),
        ("/opt/app.pyc", ".py"),
        ("/opt/a\0.py", "no path"),
        ("/" + "a" * 5000 + ".py", "no path"),
        ("/proc/1/root/app.py", "/proc"),
        ("/sys/x.py", "/sys"),
        ("/dev/shm/x.py", "/dev"),
        ("/etc/kit/x.py", "/etc"),
        ("//etc/x.py", "/etc"),
        ("/opt/../etc/x.py", "/etc"),
        ("/home/u/.ssh/x.py", "dot folder"),
        ("/home/u/.config/a/b.py", "dot folder"),
        ("/root/.local/lib/python3.11/site-packages/x.py", "dot folder"),
        ("/export/home/u/.cache/x.py", "dot folder"),
        ("/Users/u/.zsh/x.py", "dot folder"),
        ("/srv/u/.aws/x.py", "dot folder"),
        ("/home/u/../u/.ssh/x.py", "dot folder"),
    ],
)
def test_some_paths_are_never_read(path, words):
    assert words in (sourcepath.refusal(path) or "")


@pytest.mark.parametrize(
    "path",
    [
        "/opt/app.py", "/home/u/app.py", "/home/u/project/.venv/lib/python3.11/site-packages/x.py", "/root/app.py",
        "/etcetera/app.py", "/data/.hidden/app.py", "/opt/with space/app.py", "/home/.x/app.py",
    ],
)  # fmt: skip
def test_other_paths_may_be_asked_for(path):
    assert sourcepath.refusal(path) is None


def test_the_home_that_the_host_names_counts_too():
    assert "dot folder" in (sourcepath.refusal("/data/people/u/.secret/x.py", home="/data/people/u") or "")
    assert sourcepath.refusal("/data/people/u/x.py", home="/data/people/u") is None
    assert "dot folder" in (sourcepath.refusal("/.secret/x.py", home="/") or "")


@pytest.mark.parametrize(
    ("real", "roots", "expected"),
    [
        ("/opt/v/lib/python3.11/site-packages/kit/a.py", (), False),
        ("/usr/lib/python3/dist-packages/kit/a.py", ("/opt",), False),
        ("/usr/lib/python3.11/asyncio/events.py", (), False),
        ("/opt/py/lib64/python3.13t/json/decoder.py", (), False),
        ("/workspace/kit/a.py", (), True),
        ("/workspace/kit/a.py", ("/workspace",), False),
        ("/workspace/kit/a.py", ("/workspace/",), False),
        ("/workspace/kit/a.py", ("/",), False),
        ("/workspace2/kit/a.py", ("/workspace",), "outside the configured"),
        ("/workspace/../opt/a.py", ("/workspace",), "outside the configured"),
        ("/workspace/kit/a.py", ("workspace",), "outside the configured"),
        ("/opt/my-site-packages/a.py", (), True),
    ],
)
def test_packages_and_roots_need_no_quote(real, roots, expected):
    found = sourcepath.needs_quote(real, roots)
    if isinstance(expected, str):
        assert isinstance(found, str)
        assert expected in found
    else:
        assert found is expected


@pytest.mark.parametrize(
    ("line", "first", "last"),
    [(4, 4, 19), (7, 4, 19), (11, 4, 19), (13, 13, 14), (17, 4, 19), (19, 4, 19), (21, 21, 21), (27, 25, 28)],
)
def test_the_innermost_function_is_found_with_its_decorators(line, first, last):
    assert sourcepath.function_around(CODE, line) == (first, last)


@pytest.mark.parametrize("line", [2, 23, 30])
def test_outside_any_function_only_the_statement_is_kept(line):
    assert sourcepath.function_around(CODE, line) == (line, line)


def kept(line, code, data=CODE, real="/workspace/a.py", roots=()):
    return sourcepath.kept(data, real=real, line=line, code=code, roots=roots)


def test_only_the_enclosing_function_is_kept_and_line_numbers_stay_true():
    found = kept(16, "args.steps is not None")
    assert isinstance(found, sourcepath.Kept)
    assert not found.whole
    lines, original = found.data.split(b"\n"), CODE.split(b"\n")
    assert len(lines) == len(original)
    assert lines[3:19] == original[3:19]
    assert not any(lines[:3])
    assert not any(lines[19:])


@pytest.mark.parametrize("line", [14, 15, 16, 17, 18, 19, 20])
def test_the_quoted_line_may_stand_three_lines_away(line):
    assert isinstance(kept(line, "  args.steps is not None  "), sourcepath.Kept)


@pytest.mark.parametrize(
    ("line", "code"),
    [(13, "args.steps is not None"), (21, "args.steps is not None"), (17, "args.steps"), (17, None), (17, " ")],
)
def test_without_the_quoted_line_nothing_is_kept(line, code):
    assert isinstance(kept(line, code), str)


def test_packages_and_roots_are_kept_whole():
    for found in (kept(1, None, real="/x/site-packages/a.py"), kept(1, None, roots=("/workspace",))):
        assert found == sourcepath.Kept(data=CODE, whole=True)


def test_a_file_that_cannot_be_cut_into_tokens_gives_one_line():
    broken = b'SECRET = 1\nx = """\nassert y\nTOKEN = 2\n'
    found = kept(3, "assert y", data=broken)
    assert isinstance(found, sourcepath.Kept)
    assert found.data == b"\n\nassert y\n\n"


@given(st.binary(max_size=300), st.integers(-5, 30))
def test_nothing_makes_it_raise(data, line):
    kept(line, "x", data=data)
    kept(line, "x", data=b"def f():\n" + data + b"\nx\n")
    first, last = sourcepath.function_around(data, line)
    assert first <= last


@given(st.text(max_size=60))
def test_no_path_makes_it_raise(path):
    sourcepath.refusal(path)
    sourcepath.refusal("/home/" + path + ".py", home=path)
    sourcepath.needs_quote("/" + path, (path,))
