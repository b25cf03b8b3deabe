"""The emulated founding commands print and count what the real grep does."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from watchd.hosts import commands, grep
from watchd.model import FoundingGrep, Outcome

PIECES = (
    b"fine", b"Error", b"ERROR: x", b"cuda graph: True", b"Assert", b"AssertionError: y", b"assert", b"\n", b"\n", b"\n",
    b"\r", b"\r\n", b"\0", b"\xff\xfe", b"\xc3", "é".encode(), b"--", b"--\n", b"\x0b", b"\x85", b"fai", b"led", b"\x1b[31m",
)  # fmt: skip
TRICKY = [
    b"",
    b"\n",
    b"Error",
    b"Error\n",
    b"no match here",
    b"\0\0Assert\0\n\0",
    b"Assert\rError\r\n",
    b"\xff\xfeError\xff\n",
    b"a\nb\nc\nd\ne\nf\nAssert 1\ng\nh\nAssert 2\n",
    b"a\nb\nc\nd\ne\nf\ng\nAssert 1\nh\ni\nj\nk\nl\nAssert 2\n",
    b"Assert 1\nh\ni\nj\nk\nl\nm\nAssert 2\nAssert 3",
    b"Assert 1\n" + b"x\n" * 6 + b"Assert 2\n" + b"y\n" * 5 + b"Assert 3\n",
    b"--\nAssert\n--\n",
    b"".join(b"error %d\n" % i for i in range(25)),
    b"error\n" * 20,
    b"TRACEBACK\nfAiLeD\ncUdA\neXcEpTiOn\n",
    "ERROR\u0130 \u212aUDA fa\u0131led".encode(),
    b"x" * 100_000 + b"Assert" + b"y" * 100_000,
]


def real(step, data, folder):
    log = folder / "log"
    log.write_bytes(data)
    question = FoundingGrep(step=step, log=str(log))
    printed = subprocess.run(["sh", "-c", commands.shown(question)], capture_output=True).stdout
    every = subprocess.run(["sh", "-c", commands.founding(question)], capture_output=True).stdout
    count = every.count(b"\n") if step == "broad" else sum(b"Assert" in line for line in every.split(b"\n"))
    return count, printed


@pytest.mark.parametrize("step", ["broad", "assert"])
@pytest.mark.parametrize("data", TRICKY)
def test_tricky_bytes_come_out_as_from_grep(step, data, tmp_path):
    assert grep.grepped(step, data) == real(step, data, tmp_path)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(pieces=st.lists(st.sampled_from(PIECES), max_size=60))
@pytest.mark.parametrize("step", ["broad", "assert"])
def test_random_bytes_come_out_as_from_grep(step, pieces, tmp_path_factory):
    data = b"".join(pieces)
    assert grep.grepped(step, data) == real(step, data, tmp_path_factory.getbasetemp())


def test_no_match_is_empty_and_a_match_is_answered():
    question = FoundingGrep(step="assert", log="/x", start=5)
    empty = grep.reply(question, b"fine\n", via="sftp", cut=False)
    assert (empty.outcome, empty.count, empty.data, empty.via) == (Outcome.EMPTY, 0, b"", "sftp")
    found = grep.reply(question, b"a\nAssert\n", via="bundle", cut=False)
    assert (found.outcome, found.count, found.data) == (Outcome.ANSWERED, 1, b"a\nAssert\n")
    assert found.command == commands.shown(question)


def test_a_search_of_less_than_was_asked_says_so():
    reply = grep.reply(FoundingGrep(step="broad", log="/x"), b"error\n", via="sftp", cut=True)
    assert reply.truncated
    assert "newest 64 MiB" in reply.detail
