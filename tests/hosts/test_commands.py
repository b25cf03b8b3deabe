"""The shell lines: verbatim where they are promised, harmless whatever a path says, read-only in any POSIX shell."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
from pathlib import Path
from typing import get_args

import pytest

from tests.support.sshd import wait_until
from watchd.hosts import commands, frames, ssh_read
from watchd.model import (
    BootId,
    CommandLine,
    Disk,
    FoundingGrep,
    Gpus,
    KernelLog,
    Outcome,
    Processes,
    Question,
    ReadLog,
    ReadSource,
)
from watchd.parse.processes import processes

SHELLS = [shell for shell in ("dash", "bash", "sh", "zsh", "ksh", "mksh", "busybox") if shutil.which(shell)]
HOSTILE = [
    "with space.log",
    "it's.log",
    'double".log',
    "semi;touch canary;.log",
    "$(touch canary).log",
    "`touch canary`.log",
    "new\nline; touch canary.log",
    "-rf",
    "--help",
    "back\\slash.log",
    "star*.log",
    "amp&pipe|.log",
    "ümlaut.log",
    b"not-utf8-\xff.log".decode("utf-8", "surrogateescape"),
]


def run(questions, shell="sh", cwd=None, nonce="N", path=None):
    """What `ask` would return for these questions from a shell on this machine."""
    words = [shell, "sh", "-c"] if shell == "busybox" else [shell, "-c"]
    process = subprocess.Popen(
        [*words, os.fsencode(commands.script(questions, nonce))],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd, start_new_session=True,
        env={**os.environ, "PATH": f"{path}:{os.environ['PATH']}"} if path else None,
    )  # fmt: skip
    try:
        capture = frames.Capture(questions, nonce)
        capture.feed(process.stdout.read())
        capture.feed_errors(process.stderr.read())
    finally:
        process.stdin.close()
        process.stdout.close()
        process.stderr.close()
        process.wait(10)
    lost = (Outcome.LOST, "lost")
    found = frames.pieces(capture, questions, nonce)
    return [
        frames.reply(q, piece, via="local", lost=lost, elapsed_ms=0) for q, piece in zip(questions, found, strict=True)
    ]


def test_the_founding_commands_are_shown_verbatim():
    assert commands.shown(FoundingGrep(step="broad", log="/data/server.log")) == (
        'LC_ALL=C grep -a -i "error\\|Error\\|exception\\|Traceback\\|failed\\|CUDA\\|assert" /data/server.log | tail -20'
    )
    assert commands.shown(FoundingGrep(step="assert", log="/data/server.log")) == (
        'LC_ALL=C grep -a -B5 "Assert" /data/server.log'
    )


def test_a_byte_window_goes_in_front_of_the_founding_commands():
    assert commands.shown(FoundingGrep(step="broad", log="/data/server.log", start=1000)) == (
        "tail -c +1001 /data/server.log |"
        ' LC_ALL=C grep -a -i "error\\|Error\\|exception\\|Traceback\\|failed\\|CUDA\\|assert" | tail -20'
    )
    assert commands.shown(FoundingGrep(step="assert", log="/data/server.log", start=1)) == (
        'tail -c +2 /data/server.log | LC_ALL=C grep -a -B5 "Assert"'
    )


def test_what_runs_holds_the_founding_commands_verbatim():
    broad, asserts = (FoundingGrep(step=step, log="/data/server.log") for step in ("broad", "assert"))
    script = commands.script((broad, asserts), "N")
    assert commands.shown(broad).removesuffix(" | tail -20") in script
    assert commands.shown(asserts) in script


def test_the_list_of_questions_is_closed_every_one_is_run_or_read():
    samples = {type(question): question for question in every_question("/data/server.log")}
    assert set(samples) == set(get_args(Question))
    for question in samples.values():
        assert commands.shown(question)
        assert commands.limit(question) > 0
        assert commands.runs(question) or ssh_read.reads(question)


def every_question(log: str):
    return (
        FoundingGrep(step="broad", log=log), ReadLog(log=log, start=None, length=100), CommandLine(pid=os.getpid()),
        ReadSource(path="/opt/x.py", line=1, code=None), Processes(), KernelLog(), Disk(), Gpus(), BootId(),
    )  # fmt: skip


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_path_is_one_word_and_nothing_more(tmp_path, shell, name):
    (tmp_path / name).write_bytes(b"fine\nValueError: no\nAssertionError: x\n")
    for log in (name, str(tmp_path / name)):
        questions = [FoundingGrep(step=step, log=log, start=start) for step in ("broad", "assert") for start in (0, 5)]
        broad, late, asserts, late_asserts = run(questions, shell, cwd=tmp_path)
        assert broad.data == late.data == b"ValueError: no\nAssertionError: x\n"
        assert asserts.data == b"fine\nValueError: no\nAssertionError: x\n"
        assert late_asserts.data == b"ValueError: no\nAssertionError: x\n"
        assert (broad.count, asserts.count) == (2, 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == [name]


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_shown_is_what_a_person_can_type(tmp_path, name):
    (tmp_path / name).write_bytes(b"zero\nValueError: no\nrest")
    for question, printed in (
        (FoundingGrep(step="broad", log=name), b"ValueError: no\n"),
        (FoundingGrep(step="broad", log=name, start=5), b"ValueError: no\n"),
        (ReadLog(log=name, start=None, length=4), b"rest"),
        (ReadLog(log=name, start=1, length=3), b"ero"),
        (ReadSource(path=name, line=1, code=None), b"zero\nValueError: no\nrest"),
    ):
        typed = os.fsencode(commands.shown(question))
        assert subprocess.run(["sh", "-c", typed], cwd=tmp_path, capture_output=True).stdout == printed


@pytest.mark.parametrize("shell", SHELLS)
def test_every_command_is_answered_or_refused_with_a_reason(tmp_path, shell):
    log = tmp_path / "server.log"
    log.write_bytes(b"RuntimeError: x\n")
    questions = [question for question in every_question(str(log)) if commands.runs(question)]
    for reply in run(questions, shell):
        assert reply.outcome in (Outcome.ANSWERED, Outcome.REFUSED), reply
        assert reply.data or reply.detail


@pytest.mark.parametrize("shell", SHELLS)
def test_a_log_without_a_match_is_empty_and_a_missing_one_is_refused(tmp_path, shell):
    quiet = tmp_path / "quiet.log"
    quiet.write_bytes(b"all is well\n")
    missing = str(tmp_path / "missing.log")
    asked = [FoundingGrep(step=s, log=p, start=n) for s in ("broad", "assert") for p in (str(quiet), missing) for n in (0, 3)]  # fmt: skip
    for reply in run(asked, shell):
        if reply.question.log == missing:
            assert reply.outcome is Outcome.REFUSED
            assert "No such file" in reply.detail
            assert reply.count is None
        else:
            assert (reply.outcome, reply.count, reply.data) == (Outcome.EMPTY, 0, b"")


def test_the_broad_grep_shows_twenty_lines_and_counts_all(tmp_path):
    log = tmp_path / "server.log"
    log.write_bytes(b"".join(b"error %d\nfine\n" % i for i in range(1000)))
    (reply,) = run([FoundingGrep(step="broad", log=str(log))])
    assert reply.data.split(b"\n")[0] == b"error 980"
    assert len(reply.data.splitlines()) == 20
    assert reply.count == 1000


def test_of_a_long_answer_the_newest_whole_lines_are_kept(tmp_path):
    log = tmp_path / "server.log"
    log.write_bytes(b"".join(b"Assert %06d %s\n" % (i, b"x" * 100) for i in range(5000)))
    (reply,) = run([FoundingGrep(step="assert", log=str(log))])
    assert reply.truncated
    assert reply.count == 5000
    assert 250 * 1024 < len(reply.data) <= 256 * 1024
    assert reply.data.startswith(b"Assert ")
    assert reply.data.endswith(b"Assert 004999 " + b"x" * 100 + b"\n")


def test_our_own_sessions_are_not_in_the_process_list(tmp_path):
    log = tmp_path / "sglang.launch_server.log"
    log.write_bytes(b"error\n")
    _, listed = run([FoundingGrep(step="broad", log=str(log)), Processes()])
    found = processes(listed.data)
    assert os.getpid() in {process.pid for process in found}
    assert not any("sglang.launch_server" in word for process in found for word in process.argv)


def test_a_grep_that_knows_no_nul_lines_still_gives_the_process_list(tmp_path):
    """BusyBox's grep lacks -z in many builds."""
    grep = tmp_path / "grep"
    grep.write_text(
        '#!/bin/sh\ncase "$*" in *" -z "*) echo "grep: invalid option -- z" >&2; exit 1;; esac\nexec /bin/grep "$@"\n'
    )
    grep.chmod(0o755)
    (reply,) = run([Processes()], path=tmp_path)
    assert b"\n\nh\n==> /proc/" in reply.data
    mine = {process.pid: process for process in processes(reply.data)}[os.getpid()]
    assert mine.argv
    assert mine.parent == os.getppid()


def test_a_slow_command_comes_last_and_holds_up_no_other():
    script = commands.script((Gpus(), Disk(), BootId()), "N")
    assert script.index("boot_id") < script.index("df -P") < script.index("nvidia-smi")


@pytest.mark.parametrize("shell", SHELLS)
def test_when_stdin_ends_the_whole_group_of_the_session_ends(tmp_path, shell):
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\necho up\nsleep 3597 | cat\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    process = started(commands.script([Gpus()], "N"), shell, tmp_path)
    assert wait_until(lambda: process.pid in groups_of("sleep 3597"))
    process.stdin.close()
    assert process.wait(20) == -signal.SIGKILL
    assert wait_until(lambda: process.pid not in groups_of("sleep 3597"))
    process.stdout.close()


@pytest.mark.parametrize("shell", SHELLS)
def test_a_session_that_leads_no_group_of_its_own_kills_no_other(tmp_path, shell):
    """An SSH server that is a plain program may start its sessions in its own group."""
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\nexec sleep 3596\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    script = commands.script([Gpus()], "N")
    outer = started(f"{shell} -c {shlex.quote(script)}; echo survived", shell, tmp_path)
    assert wait_until(lambda: outer.pid in groups_of("sleep 3596"))
    outer.stdin.close()
    assert b"survived\n" in iter(outer.stdout.readline, b"")
    assert outer.wait(20) == 0
    outer.stdout.close()
    # Its command could not be reached: without a group of its own it ends when it ends.
    os.killpg(outer.pid, signal.SIGKILL)


def started(script, shell, path):
    return subprocess.Popen(
        [shell, "-c", script],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
        env={**os.environ, "PATH": f"{path}:{os.environ['PATH']}"},
    )  # fmt: skip


def groups_of(command_line):
    """Process groups in which such a command lives."""
    found = set()
    for entry in Path("/proc").iterdir():
        try:
            if (entry / "cmdline").read_bytes().replace(b"\0", b" ").strip() == command_line.encode():
                found.add(int((entry / "stat").read_text().rpartition(")")[2].split()[2]))
        except (OSError, ValueError, IndexError):
            continue
    return found


def test_nothing_in_a_script_can_write_to_the_host():
    script = commands.script(
        [question for question in every_question("/data/server.log") if commands.runs(question)], "N"
    )
    for redirection in script.split(">")[1:]:
        assert redirection.startswith(("/dev/null", "&1", "&2", "&4", "&5", "&-", " &")), redirection[:40]
    for word in ("rm ", "mv ", "cp ", "touch", "mkdir", "chmod", "sudo"):
        assert word not in script
