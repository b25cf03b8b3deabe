"""A host that answers from what a test gave it, and keeps what it was asked."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from watchd.hosts import grep, replies
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
    Reply,
)

TEXTS: tuple[type[Question], ...] = (Processes, CommandLine, KernelLog, Disk, Gpus, BootId)


@dataclass(kw_only=True)
class FakeHost:
    """Answers questions out of memory.

    log      what lies in every log
    sources  text of source files by path
    texts    answers to the other questions, by the question's type; what is not there is refused
    fails    kinds of questions that get no answer, and what becomes of them
    slow     kinds of questions that are never answered: whoever asks has to give up
    asked    what was asked together, in the order of the asking
    """

    name: str = "gpu-01"
    log: bytes = b""
    sources: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[type[Question], bytes] = field(default_factory=dict)
    fails: Mapping[type[Question], Outcome] = field(default_factory=dict)
    slow: frozenset[type[Question]] = frozenset()
    asked: list[tuple[Question, ...]] = field(default_factory=list)
    limits: list[float] = field(default_factory=list)

    async def ask(self, questions: tuple[Question, ...], *, limit_s: float) -> tuple[Reply, ...]:
        """One reply to each question, in order."""
        self.asked.append(questions)
        self.limits.append(limit_s)
        if any(type(question) in self.slow for question in questions):
            await asyncio.Event().wait()
        await asyncio.sleep(0)
        return tuple(self._answer(question) for question in questions)

    async def close(self) -> None:
        """Nothing is held."""

    def _answer(self, question: Question) -> Reply:
        outcome = self.fails.get(type(question))
        if outcome is not None:
            return replies.unanswered(question, "sftp", f"scripted: {outcome.value}", outcome)
        match question:
            case ReadLog():
                offset, length = replies.window(question, len(self.log))
                data = self.log[offset : offset + length]
                return replies.log(question, "sftp", data, offset=offset, size=len(self.log))
            case FoundingGrep():
                return grep.reply(question, self.log[question.start :], via="sftp", cut=False)
            case ReadSource(path=path) if path in self.sources:
                return replies.source(question, "sftp", self.sources[path].encode(), real=path)
            case _ if type(question) in self.texts:
                return replies.small(question, "sftp", self.texts[type(question)])
            case _:
                return replies.unanswered(question, "sftp", "not there")
