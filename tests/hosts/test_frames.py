"""Frames keep what a host says apart from what is merely printed, and tell cut off from empty."""

from __future__ import annotations

import pytest

from watchd.hosts import frames
from watchd.model import BootId, CommandLine, Disk, FoundingGrep, Gpus, KernelLog, Outcome

BROAD = FoundingGrep(step="broad", log="/x")
LOST = (Outcome.LOST, "gone")


def replies(questions, out, errors=b""):
    capture = frames.Capture(questions, "N")
    capture.feed(out)
    capture.feed_errors(errors)
    found = frames.pieces(capture, questions, "N")
    return [
        frames.reply(q, piece, via="exec", lost=LOST, elapsed_ms=1.5) for q, piece in zip(questions, found, strict=True)
    ]


def framed(index, data, end="s0"):
    return b"\n@@watchd-N %d begin\n%s\n@@watchd-N %d end %s\n" % (index, data, index, end.encode())


def test_what_start_up_files_print_is_no_answer():
    (reply,) = replies([BootId()], b"Welcome!\nError: conda\n" + framed(0, b"abc\n"), b"motd\n\n@@watchd-N 0 begin\n")
    assert (reply.outcome, reply.data, reply.detail) == (Outcome.ANSWERED, b"abc\n", "")


def test_an_answer_without_its_end_frame_is_lost_and_not_empty():
    cut = b"\n@@watchd-N 0 begin\nhalf of an ans"
    for out in (cut, cut + b"\n@@watchd-N 0 end", b"", b"noise\n"):
        (reply,) = replies([BROAD], out)
        assert (reply.outcome, reply.data, reply.count, reply.detail) == (Outcome.LOST, b"", None, "gone")


def test_answers_before_the_cut_stand():
    first, second = replies([BootId(), Disk()], framed(0, b"abc\n") + b"\n@@watchd-N 1 begin\nFilesys")
    assert (first.outcome, second.outcome) == (Outcome.ANSWERED, Outcome.LOST)


def test_answers_belong_to_their_questions_in_whatever_order_they_come():
    out = framed(2, b"boot\n") + framed(1, b"disk\n") + framed(0, b"gpu\n")
    assert [reply.data for reply in replies([Gpus(), Disk(), BootId()], out)] == [b"gpu\n", b"disk\n", b"boot\n"]


def test_data_that_looks_like_a_frame_of_another_session_is_data():
    forged = b"x\n@@watchd-M 0 end s1 0\n@@watchd-N 0 begin"
    (reply,) = replies([BROAD], framed(0, forged, "s0 7"))
    assert (reply.data, reply.count) == (forged, 7)


def test_data_keeps_its_bytes():
    data = bytes(range(256)) + b"\n\n"
    (reply,) = replies([CommandLine(pid=1)], framed(0, data))
    assert reply.data == data


def test_a_frame_that_comes_in_pieces_is_seen():
    capture = frames.Capture([BootId()], "N")
    for i, byte in enumerate(framed(0, b"abc\n") + b"\n@@watchd-N done\n"):
        assert not capture.complete, i
        capture.feed(bytes([byte]))
    assert capture.begun
    assert capture.complete


@pytest.mark.parametrize(
    ("question", "data", "end", "errors", "outcome", "words"),
    [
        (BROAD, b"", "s1 0", b"", Outcome.EMPTY, ""),
        (BROAD, b"", "s2 0", b"grep: /x: Permission denied", Outcome.REFUSED, "Permission denied"),
        (BROAD, b"", "t1 s1 0", b"tail: cannot open", Outcome.REFUSED, "cannot open"),
        (BROAD, b"", "t1 s1 0", b"", Outcome.REFUSED, "status 1"),
        (BROAD, b"", "s137 0", b"", Outcome.LOST, "ended on the host"),
        (BROAD, b"x\n", "s137 1", b"", Outcome.LOST, "ended on the host"),
        (BROAD, b"", "s0 12", b"tee: /proc/self/fd/3: no", Outcome.LOST, "12 lines matched"),
        (BROAD, b"", "", b"", Outcome.LOST, "did not end by itself"),
        (BROAD, b"x\n", "s2 1", b"grep: /x: Input/output error", Outcome.ANSWERED, "Input/output error"),
        (Gpus(), b"", "s127", b"sh: nvidia-smi: not found", Outcome.REFUSED, "not installed there"),
        (Gpus(), b"table\n", "s0", b"warning", Outcome.ANSWERED, ""),
        (Gpus(), b"No devices were found\n", "s6", b"", Outcome.ANSWERED, ""),
        (Disk(), b"Filesystem\n", "s1", b"df: /mnt: Stale file handle", Outcome.ANSWERED, "Stale file handle"),
        (KernelLog(), b"", "s1", b"journalctl: not found", Outcome.REFUSED, "closed to this user"),
        (KernelLog(), b"-- No entries --\n", "s0", b"Hint: You are not", Outcome.REFUSED, "Hint: You are not"),
        (KernelLog(), b"", "s0", b"", Outcome.EMPTY, ""),
        (CommandLine(pid=7), b"", "s1", b"cat: /proc/7/cmdline: No such", Outcome.REFUSED, "no such process"),
        (CommandLine(pid=7), b"", "s0", b"", Outcome.EMPTY, ""),
        (BootId(), b"", "s1", b"cat: denied", Outcome.REFUSED, "not readable there"),
    ],
)  # fmt: skip
def test_the_status_decides_what_became_of_a_question(question, data, end, errors, outcome, words):
    (reply,) = replies([question], framed(0, data, end), b"\n@@watchd-N 0 begin\n" + errors)
    assert reply.outcome is outcome
    assert words in reply.detail
    assert reply.detail or outcome in (Outcome.ANSWERED, Outcome.EMPTY)


def test_what_a_host_says_on_stderr_is_bounded_and_fit_to_be_shown():
    said = b"\n@@watchd-N 0 begin\n\x1b[31mred\x07 \xff" + b"y" * 100_000
    (reply,) = replies([BROAD], framed(0, b"", "s2 0"), said)
    assert len(reply.detail) == 300
    assert reply.detail.isprintable()


def test_a_host_that_never_stops_printing_is_cut_off():
    capture = frames.Capture([BootId()], "N")
    for _ in range(100):
        capture.feed(b"x" * 100_000)
        capture.feed_errors(b"y" * 100_000)
    assert len(capture.out) < 100_000
    assert len(capture.errors) <= frames.MAX_ERRORS


def test_an_answer_beyond_its_limit_is_cut_and_says_so():
    (newest,) = replies([KernelLog()], framed(0, b"a" * 100 + b"\n" + b"b" * (256 * 1024)))
    assert (newest.truncated, newest.data) == (True, b"b" * (256 * 1024))
    (first,) = replies([Disk()], framed(0, b"c" * (256 * 1024) + b"d"))
    assert (first.truncated, first.data) == (True, b"c" * (256 * 1024))
