"""Every command that watchd can run on a host, and the one place where a shell line is rendered.

All of it reads; nothing writes, installs, signals or restarts. Paths are quoted by `shlex.quote`, numbers are integers,
and nothing else varies. Everything that one `ask` wants to run goes into one session: `script` puts the commands one
after the other between frame lines that hold a nonce, since what a login shell's start-up files print is not an answer,
and since an answer without its end frame was cut off and must never be taken for an empty one.

    @@watchd-NONCE 0 begin          on stdout and on stderr
    …                        at most `limit(question)` bytes, and one more that says that there was more
    @@watchd-NONCE 0 end s1 0       s: exit status of the command; t: of a `tail` in front of it, where that failed; a count
    @@watchd-NONCE done

The session ends itself: a reader on its stdin kills its process group when the connection goes away.

`Processes` answers with the lines of /proc/PID/stat, an empty line, and then either

    z                                          where grep can end its lines with NUL: one record per argument,
    /proc/1/cmdline:/sbin/init\\0               …which no argument can imitate, since none holds a NUL
    h                                          else (BusyBox): the first 4096 bytes of each command line, NULs in it,
    ==> /proc/1/cmdline <==                    …under the header that `head` writes
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import assert_never

from watchd.model import (
    BootId,
    CommandLine,
    Disk,
    FoundingGrep,
    Gpus,
    KernelLog,
    Processes,
    Question,
    ReadLog,
    ReadSource,
)
from watchd.parse.processes import OURS

FOUNDING = {
    "broad": r'LC_ALL=C grep -a -i "error\|Error\|exception\|Traceback\|failed\|CUDA\|assert"',
    "assert": 'LC_ALL=C grep -a -B5 "Assert"',
}
SHOWN_LINES = 20
"""Lines that the broad command shows: its `tail -20`."""

KERNEL_LOG = "dmesg -T 2>/dev/null || journalctl -k -n 2000 --no-pager"
DISK = "df -P; echo; df -Pi"
GPUS = "nvidia-smi"
BOOT_ID = "cat /proc/sys/kernel/random/boot_id"
STATS = "cat /proc/[0-9]*/stat"
COMMAND_LINES = 'grep -a -H -z "" /proc/[0-9]*/cmdline'
HEADED_COMMAND_LINES = "head -c 4096 /proc/[0-9]*/cmdline"
NUL_LINES = "[ \"$(printf 'a\\0' | grep -a -z a 2>/dev/null | tr '\\0' x)\" = ax ]"
"""Whether this grep ends its lines with NUL: BusyBox may lack -z, or know it and write a newline all the same."""

END_GROUP = "kill -9 -$$ || kill -9 $$"
"""sshd makes each session the leader of a process group of its own; where somebody else's group were ours, it would not
be named so, and only the script ends."""

KIB = 1024


def shown(question: Question) -> str:
    """What a person would type to ask the same; evidence shows it."""
    match question:
        case FoundingGrep():
            return founding(question) + (f" | tail -{SHOWN_LINES}" if question.step == "broad" else "")
        case ReadLog(log=log, start=None, length=length):
            return f"tail -c {length:d} {path(log)}"
        case ReadLog(log=log, start=start, length=length):
            return f"tail -c +{(start or 0) + 1:d} {path(log)} | head -c {length:d}"
        case ReadSource():
            return f"sed -n '{max(1, question.line - 10):d},{question.line + 10:d}p' {path(question.path)}"
        case Processes():
            return f"{STATS}; {COMMAND_LINES}"
        case CommandLine(pid=None):
            return "cat host/cmdline.txt"
        case CommandLine(pid=pid):
            return f"cat /proc/{pid:d}/cmdline"
        case KernelLog():
            return KERNEL_LOG
        case Disk():
            return DISK
        case Gpus():
            return GPUS
        case BootId():
            return BOOT_ID
    assert_never(question)


def founding(question: FoundingGrep) -> str:
    """The grep of a founding command, with the byte window in front of it where it does not begin at 0."""
    grep = FOUNDING[question.step]
    if question.start <= 0:
        return f"{grep} {path(question.log)}"
    return f"tail -c +{question.start + 1:d} {path(question.log)} | {grep}"


def path(text: str) -> str:
    """A path as one word of a shell line; one that begins with a dash gets `./` in front, or it would be an option."""
    return shlex.quote("./" + text if text.startswith("-") else text)


def runs(question: Question) -> bool:
    """Whether a host answers this question by a command; the others are read as files."""
    return not isinstance(question, (ReadLog, ReadSource)) and question != CommandLine(pid=None)


def refusal(question: Question) -> str | None:
    """Why this question cannot be asked of any host, or None."""
    match question:
        case FoundingGrep(log=text) | ReadLog(log=text) | ReadSource(path=text) if "\0" in text or not text:
            return "no path that could be a file's"
        case CommandLine(pid=pid) if pid is None or pid <= 0:
            return "no process was named"
        case _:
            return None


def limit(question: Question) -> int:
    """At most so many bytes of an answer are kept; the newest of logs, the first of everything else."""
    match question:
        case Processes():
            return 4096 * KIB
        case ReadLog(length=length):
            return max(0, length)
        case ReadSource():
            return 1024 * KIB
        case BootId():
            return KIB
        case FoundingGrep() | CommandLine() | KernelLog() | Disk() | Gpus():
            return 256 * KIB
    assert_never(question)


def keeps_newest(question: Question) -> bool:
    """Whether the end of a long answer is kept and not its beginning."""
    return isinstance(question, (FoundingGrep, KernelLog))


def script(questions: Sequence[Question], nonce: str) -> str:
    """One POSIX sh script that runs the commands of these questions, in frames numbered as the questions are.

    Those that can hang on an ill machine (a dead mount, a GPU off its bus) come last, so that they hold up no other.
    """
    order = sorted((i for i, question in enumerate(questions) if runs(question)), key=lambda i: _patience(questions[i]))
    pieces = "".join(_framed(i, questions[i], nonce) for i in order)
    return (
        "LC_ALL=C; export LC_ALL; exec 9<&0 </dev/null 5>&1; "
        f"(while read -r x; do :; done; {END_GROUP}) <&9 >/dev/null 2>&1 5>&- & w=$!; exec 9<&-; "
        f"{pieces}printf '\\n{OURS}{nonce} done\\n'; kill $w"
    )


def session(questions: Sequence[Question], nonce: str) -> str:
    """The same, as the command line of an SSH session: any login shell hands it to sh, and stdin stays free."""
    return f"exec sh -c {shlex.quote(script(questions, nonce))}"


def _patience(question: Question) -> int:
    return 2 if isinstance(question, Gpus) else 1 if isinstance(question, Disk) else 0


def _framed(index: int, question: Question, nonce: str) -> str:
    begin = f"printf '\\n{OURS}{nonce} {index} begin\\n'"
    end = f"printf '\\n{OURS}{nonce} {index} end %s\\n' \"$(echo $r)\""
    # Descriptor 4 carries statuses and counts to the end frame, 5 is the session's stdout.
    return f"{begin}; {begin} >&2; r=$({{ {_bounded(question)} >&5; }} 4>&1); {end}; "


def _bounded(question: Question) -> str:
    """The command, its status sent to descriptor 4, its output cut one byte after the limit."""
    cut = f"{'tail' if keeps_newest(question) else 'head'} -c {limit(question) + 1:d}"
    if not isinstance(question, FoundingGrep):
        return f"{{ {_run(question)}; echo s$? >&4; }} | {cut}"
    count = "wc -l" if question.step == "broad" else 'grep -a -c "Assert"'
    last = f"tail -{SHOWN_LINES} | {cut}" if question.step == "broad" else cut
    # One pass gives both: tee sends what grep finds to the counter and, by descriptor 3, to what is shown.
    return f"{{ {{ {_run(question)}; echo s$? >&4; }} | tee /proc/self/fd/3 | {count} >&4; }} 3>&1 | {last}"


def _run(question: Question) -> str:
    match question:
        case FoundingGrep() if question.start > 0:
            # A pipeline's status is its last command's: a log that is not there must not look like one without a match.
            window, bar, grep = founding(question).partition(" | ")
            return f"{{ {window} || echo t$? >&4; }}{bar}{grep}"
        case FoundingGrep():
            return founding(question)
        case Processes():
            lines = f"echo z; {COMMAND_LINES} 2>/dev/null"
            headed = f"echo h; {HEADED_COMMAND_LINES} 2>/dev/null"
            return f"{STATS} 2>/dev/null; echo; if {NUL_LINES}; then {lines}; else {headed}; fi"
        case _:
            return shown(question)
