"""The process list is read exactly, also where a process has given itself a hostile name."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from watchd.parse.processes import OURS, arguments, processes

TAIL = b" 4242 4242 0 -1 4194560 1 0 0 0 10 5 0 0 20 0 64 0 %d 1 2 18446744073709551615" + b" 0" * 27


def stat(pid, parent=1, started=900, name=b"python3", state=b"S"):
    return b"%d (%s) %s %d" % (pid, name, state, parent) + TAIL % started + b"\n"


def records(*lines):
    return b"".join(b"/proc/%d/cmdline:%s\0" % (pid, word) for pid, *words in lines for word in words)


def test_a_server_and_its_children_are_listed_by_pid():
    data = stat(31, 30, 902, state=b"Z") + stat(30, 1, 901) + stat(2, 0, 3, b"kthreadd") + b"\nz\n"
    data += records((30, b"python3", b"-m", b"kit.serve", b"--model", b"two words", b"--empty", b""))
    found = processes(data)
    assert [(p.pid, p.parent, p.started, p.state) for p in found] == [
        (2, 0, 3, "S"),
        (30, 1, 901, "S"),
        (31, 30, 902, "Z"),
    ]
    assert found[1].argv == ("python3", "-m", "kit.serve", "--model", "two words", "--empty", "")
    assert found[0].argv == found[2].argv == ()


def test_a_name_that_imitates_a_record_is_only_a_name():
    hostile = (b"x) S 1 1\n999 (y", b"(((", b")))", b"\n\nz\n", b"a) R 0 0", b"\n7 (evil) S 1 1")
    data = b"".join(stat(i + 10, name=name) for i, name in enumerate(hostile)) + b"\nz\n" + records((10, b"a"))
    assert [p.pid for p in processes(data)] == [10, 11, 12, 13, 14, 15]
    assert processes(data)[0].argv == ("a",)


def test_an_argument_that_imitates_a_record_is_only_an_argument():
    data = (
        stat(10)
        + stat(11)
        + b"\nz\n"
        + records((10, b"a", b"\n/proc/11/cmdline:evil", b"x\n==> /proc/11/cmdline <==\n"))
    )
    assert [len(p.argv) for p in processes(data)] == [3, 0]


def test_the_layout_without_nul_lines_is_read_too():
    data = (
        stat(10)
        + stat(11)
        + stat(12)
        + b"\nh\n==> /proc/10/cmdline <==\npython3\0-m\0kit\0\n==> /proc/11/cmdline <==\n"
    )
    data += b"\n==> /proc/12/cmdline <==\nsh\0"
    assert [p.argv for p in processes(data)] == [("python3", "-m", "kit"), (), ("sh",)]


def test_there_a_pid_that_appears_twice_is_told_by_neither():
    data = stat(10) + stat(11) + b"\nh\n==> /proc/10/cmdline <==\nsh\0x\n==> /proc/11/cmdline <==\nevil\0\n"
    data += b"\n==> /proc/11/cmdline <==\ntrue\0"
    assert [p.argv for p in processes(data)] == [("sh", "x"), ()]


def test_our_own_sessions_and_what_they_started_are_left_out():
    data = stat(10) + stat(11, 1) + stat(12, 11) + stat(13, 12) + stat(14, 10) + b"\nz\n"
    data += records(
        (10, b"server"), (11, b"sh", b"-c", f"printf {OURS}abc".encode()), (12, b"grep", b"server"), (13, b"x")
    )
    assert [p.pid for p in processes(data)] == [10, 14]


def test_an_answer_that_was_cut_keeps_what_is_whole():
    whole = stat(10) + stat(11) + b"\nz\n" + records((10, b"python3", b"-m", b"kit"), (11, b"sh"))
    assert processes(whole[: -len(b"sh\0")])[1].argv == ()
    assert [p.pid for p in processes(whole[: len(stat(10)) + 20])] == [10]
    assert processes(stat(10) + b"garbage\n" + stat(11))[1].pid == 11
    assert processes(b"") == ()


def test_a_process_that_has_ended_between_the_two_looks_has_no_command_line():
    assert [p.argv for p in processes(stat(10) + b"\nz\n" + records((99, b"late")))] == [()]


def test_bytes_that_are_no_text_are_replaced():
    assert processes(stat(10) + b"\nz\n" + records((10, b"\xff\xfe")))[0].argv == ("\ufffd\ufffd",)


def test_a_command_line_is_split_at_its_nul_bytes():
    assert arguments(b"python3\0-m\0kit\0") == ("python3", "-m", "kit")
    assert arguments(b"python3\0--flag\0\0") == ("python3", "--flag", "")
    assert arguments(b"kit: worker 3\0\0\0\0\0") == ("kit: worker 3",)
    assert arguments(b"no end") == ("no end",)
    assert arguments(b"") == ()


@given(st.binary(max_size=400))
def test_nothing_makes_it_raise(noise):
    for data in (noise, stat(10) + noise, stat(10) + b"\nz\n" + noise, stat(10) + b"\nh\n" + noise):
        processes(data)
