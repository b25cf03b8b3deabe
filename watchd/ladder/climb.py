"""Carries the questions of the ladder to a host and the answers back, within bounds of time and bytes.

The only file that asks. Every question stands in the evidence afterwards, with what became of it; a host that is lost,
a rung that is wrong and a budget that is spent end the asking, and what is known by then is kept. Rungs work in a
thread, since reading megabytes of log must not hold up what else this process does.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from watchd.errors import HostError
from watchd.hosts import commands
from watchd.hosts.base import Host
from watchd.ladder import registry
from watchd.ladder.base import Asking, Step
from watchd.model import Case, Evidence, Finding, Outcome, Question, Reply

EVIDENCE_LIMIT = 256 * 1024
"""Characters of evidence that are kept of one rung."""
_GRACE_S = 2.0
"""A host answers within the limit that it is given; one that does not is not waited for."""

_LOST = "not asked: the host was lost before"

OnStep = Callable[[Evidence], None]


async def climb(
    host: Host,
    case: Case,
    *,
    rungs: Sequence[str],
    budget_s: float,
    clock: Callable[[], float],
    on_step: OnStep | None = None,
) -> Case:
    """Climb as far as `budget_s` seconds by `clock` allow; the case comes back with findings and evidence.

    `on_step` hears of each piece of evidence as it comes in. Raises nothing for what a host, a log or a rung does.
    """
    climber = _Climber(
        host=host, case=case, clock=clock, deadline=clock() + budget_s, budget_s=budget_s, on_step=on_step
    )
    chosen = registry.steps(rungs)
    async with asyncio.TaskGroup() as lanes:
        for lane in dict.fromkeys(step.lane for step in chosen):
            lanes.create_task(climber.take([step for step in chosen if step.lane == lane]))
    order = {step.name: place for place, step in enumerate(registry.LADDER)}
    told = sorted(climber.told, key=lambda row: order[row[0]])
    return replace(climber.case, steps=(*case.steps, *(evidence for _, evidence in told)))


@dataclass(slots=True, kw_only=True)
class _Going:
    """A step that waits for replies, and those that it has had."""

    step: Step
    asking: Asking
    questions: tuple[Question, ...] = ()
    replies: list[Reply] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class _Climber:
    """One climb: the case as it grows, and what was told of it so far, by step."""

    host: Host
    case: Case
    clock: Callable[[], float]
    deadline: float
    budget_s: float
    on_step: OnStep | None
    told: list[tuple[str, Evidence]] = field(default_factory=list)
    kept: Counter[str] = field(default_factory=Counter)

    async def take(self, steps: list[Step]) -> None:
        """Take the steps of one lane: whatever is ready is asked together."""
        waiting = list(steps)
        going: list[_Going] = []
        lost = False
        while waiting or going:
            await self._begin(waiting, going)
            if not going:
                return
            asked = tuple(question for one in going for question in one.questions)
            limit_s = min(one.step.limit_s or self.budget_s for one in going)
            replies = _unasked(asked, Outcome.LOST, _LOST) if lost else await self._ask(asked, limit_s)
            lost = all(reply.outcome is Outcome.LOST for reply in replies)
            each = iter(replies)
            for one in list(going):
                answers = tuple(next(each) for _ in one.questions)
                one.replies += answers
                if not await self._advance(one, answers):
                    going.remove(one)

    async def _begin(self, waiting: list[Step], going: list[_Going]) -> None:
        """Begin what needs nothing that is still open; a step without questions may open the way for the next."""
        while True:
            still_open = {step.name for step in waiting} | {one.step.name for one in going}
            ready = [step for step in waiting if not still_open.intersection(step.after)]
            if not ready:
                return
            for step in ready:
                waiting.remove(step)
                one = _Going(step=step, asking=step.ask(self.case))
                if await self._advance(one, None):
                    going.append(one)

    async def _advance(self, one: _Going, answers: tuple[Reply, ...] | None) -> bool:
        """Give a rung its answers and take its next questions; False once it is done, its findings and evidence kept."""
        try:
            questions, findings = await asyncio.to_thread(_turn, one.asking, answers)
        except Exception as mistake:  # noqa: BLE001  a mistake of ours in one rung must not cost the whole climb
            questions, findings = (), ()
            self._tell(one.step, _mistaken(one.step, mistake))
        if questions:
            one.questions = questions
            return True
        for finding in findings:
            self.case = self.case.with_finding(finding)
        for evidence in await asyncio.to_thread(_rows, one, self.case):
            self._tell(one.step, evidence)
        return False

    async def _ask(self, questions: tuple[Question, ...], limit_s: float) -> tuple[Reply, ...]:
        left = self.deadline - self.clock()
        if left <= 0:
            return _unasked(
                questions, Outcome.TIMED_OUT, f"not asked: the {self.budget_s:g} s of this climb were spent"
            )
        limit_s = min(limit_s, left)
        try:
            async with asyncio.timeout(limit_s + _GRACE_S):
                return await self.host.ask(questions, limit_s=limit_s)
        except TimeoutError:
            return _unasked(questions, Outcome.TIMED_OUT, f"no answer within {limit_s:.3g} s")
        except HostError as error:
            return _unasked(questions, Outcome.LOST, str(error))

    def _tell(self, step: Step, evidence: Evidence) -> None:
        room = EVIDENCE_LIMIT - self.kept[step.rung]
        if len(evidence.excerpt) > room:
            evidence = replace(evidence, excerpt=evidence.excerpt[:room])
        self.kept[step.rung] += len(evidence.excerpt)
        self.told.append((step.name, evidence))
        if self.on_step is not None:
            self.on_step(evidence)


def _turn(asking: Asking, answers: tuple[Reply, ...] | None) -> tuple[tuple[Question, ...], tuple[Finding, ...]]:
    """One turn of a rung: its next questions; or none, and what it learnt."""
    try:
        questions = next(asking) if answers is None else asking.send(answers)
        while not questions:
            questions = asking.send(())
    except StopIteration as done:
        return (), done.value
    else:
        return questions, ()


def _rows(one: _Going, case: Case) -> tuple[Evidence, ...]:
    """What evidence says of the questions of a step that is done."""
    rows = []
    for reply in one.replies:
        try:
            excerpt, count = one.step.show(case, reply)
        except Exception as mistake:  # noqa: BLE001  as above: what was asked stands in the evidence all the same
            excerpt, count = f"watchd could not show this: {type(mistake).__name__}: {mistake}"[:500], None
        rows.append(
            Evidence(
                rung=one.step.rung,
                command=reply.command,
                outcome=reply.outcome.value,
                count=count,
                excerpt=excerpt,
                elapsed_ms=round(reply.elapsed_ms, 1),
                via=reply.via,
                detail=reply.detail,
            )
        )
    return tuple(rows)


def _mistaken(step: Step, mistake: Exception) -> Evidence:
    why = f"a mistake of watchd in this rung: {type(mistake).__name__}: {mistake}"
    return Evidence(rung=step.rung, command="", outcome="refused", detail=why[:500])


def _unasked(questions: tuple[Question, ...], outcome: Outcome, why: str) -> tuple[Reply, ...]:
    return tuple(
        Reply(question=question, outcome=outcome, command=commands.shown(question), via="exec", detail=why)
        for question in questions
    )
