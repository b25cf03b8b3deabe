"""docs/security.md says exactly what can be asked of a host: it is held to `hosts/commands.py`.

Run this file to write the page's table anew: `PYTHONPATH=. python tests/hosts/test_security_page.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from watchd.hosts import commands, ssh_read
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

PAGE = Path(__file__).parents[2] / "docs" / "security.md"
BEGIN, END = "<!-- from hosts/commands.py: begin -->\n", "<!-- from hosts/commands.py: end -->\n"
PID = 4242

QUESTIONS: tuple[Question, ...] = (
    FoundingGrep(step="broad", log="LOG"),
    FoundingGrep(step="assert", log="LOG"),
    FoundingGrep(step="broad", log="LOG", start=1000),
    ReadLog(log="LOG", start=None, length=64 * 1024),
    ReadSource(path="SOURCE.py", line=100, code=None),
    Processes(),
    CommandLine(pid=PID),
    KernelLog(),
    Disk(),
    Gpus(),
    BootId(),
)


def cell(text: str) -> str:
    return f"`{text.replace('|', chr(92) + '|').replace(str(PID), 'PID')}`"


def size(count: int) -> str:
    return f"{count // (1024 * 1024)} MiB" if count % (1024 * 1024) == 0 else f"{count // 1024} KiB"


def generated() -> str:
    rows = ["| question | what a person would type | how | kept at most |", "|---|---|---|---|"]
    for question in QUESTIONS:
        how = "command" + (", or SFTP" if ssh_read.reads(question) else "") if commands.runs(question) else "SFTP"
        limit = "what is asked" if isinstance(question, ReadLog) else size(commands.limit(question))
        rows.append(f"| {type(question).__name__} | {cell(commands.shown(question))} | {how} | {limit} |")
    script = commands.script((FoundingGrep(step="broad", log="LOG"), BootId()), "NONCE")
    return "\n".join(
        [*rows, "", "The session that asks the first and the last of them:", "", "```sh", script, "```", ""]
    )


def test_every_question_is_on_the_page():
    assert {type(question) for question in QUESTIONS} == set(get_args(Question))


def test_the_page_lists_what_commands_renders():
    text = PAGE.read_text(encoding="utf-8")
    assert text.partition(BEGIN)[2].partition(END)[0] == generated()


if __name__ == "__main__":
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    PAGE.write_text(before + BEGIN + generated() + END + rest.partition(END)[2], encoding="utf-8")
