"""The newest bytes of the log, kept here for a while: a relaunch with `>` must not destroy what is being looked into."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from watchd.hosts import grep, replies
from watchd.hosts.base import Host
from watchd.model import Block, FoundingGrep, Question, ReadLog, Reply

KEPT = 512 * 1024
"""bytes of each generation that are kept; of generations the present one and the one before"""

WHY = "the log was replaced meanwhile: from what watchd had read of it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The newest bytes of one generation, beginning at `offset`."""

    generation: int
    offset: int
    data: bytes


class Recent:
    """What was read last."""

    def __init__(self) -> None:
        self._kept: tuple[Kept, ...] = ()

    def note(self, block: Block) -> None:
        """Keep these bytes."""
        last = self._kept[-1] if self._kept else None
        if last is None or last.generation != block.generation:
            fresh = Kept(generation=block.generation, offset=block.offset, data=block.data[-KEPT:])
            offset = block.offset + len(block.data) - len(fresh.data)
            self._kept = (*self._kept[-1:], replace(fresh, offset=offset))
            return
        whole = last.offset + len(last.data) == block.offset
        data = (last.data + block.data)[-KEPT:] if whole else block.data[-KEPT:]
        end = block.offset + len(block.data)
        self._kept = (*self._kept[:-1], replace(last, data=data, offset=end - len(data)))

    def host(self, host: Host, generation: int) -> Host:
        """This host, with the log as it was in this generation, as far as it is kept."""
        kept = next((kept for kept in self._kept if kept.generation == generation), None)
        return Remembered(host, kept)


class Remembered:
    """A host whose log is not the one of now; all other questions go to the machine."""

    def __init__(self, host: Host, kept: Kept | None) -> None:
        self._host = host
        self._kept = kept

    @property
    def name(self) -> str:
        """Its name in the configuration."""
        return self._host.name

    async def ask(self, questions: tuple[Question, ...], *, limit_s: float) -> tuple[Reply, ...]:
        """See `hosts.base.Host`."""
        others = tuple(question for question in questions if not isinstance(question, (ReadLog, FoundingGrep)))
        answered = iter(await self._host.ask(others, limit_s=limit_s) if others else ())
        return tuple(
            self._remembered(question) if isinstance(question, (ReadLog, FoundingGrep)) else next(answered)
            for question in questions
        )

    async def close(self) -> None:
        """Nothing of its own is open."""

    def _remembered(self, question: ReadLog | FoundingGrep) -> Reply:
        began = time.perf_counter()
        kept = self._kept
        if kept is None:
            return replies.unanswered(question, "local", "the log was replaced before it could be read")
        if isinstance(question, FoundingGrep):
            start = max(0, question.start - kept.offset)
            found = grep.reply(question, kept.data[start:], via="local", cut=kept.offset > question.start)
        else:
            size = kept.offset + len(kept.data)
            offset, length = replies.window(question, size)
            offset, end = max(offset, kept.offset), offset + length
            piece = kept.data[offset - kept.offset : end - kept.offset]
            found = replies.log(question, "local", piece, offset=offset, size=size)
        return replace(found, detail=WHY, elapsed_ms=(time.perf_counter() - began) * 1000)
