"""How a judgement came about: every rule, and why each fault lost."""

from __future__ import annotations

from tests.support.diagnosed import case_of
from watchd.diagnosis import explain, registry

CASCADE = """
    [rank3]: Traceback (most recent call last):
    [rank3]:   File "/opt/collate.py", line 67, in render
    [rank3]: KeyError: 'messages'
    [rank0]: Traceback (most recent call last):
    [rank0]:   File "/opt/dist.py", line 9, in all_reduce
    [rank0]: RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.2]:4711
    E0918 14:09:52.118000 52117 torch/distributed/elastic/multiprocessing/api.py:986] failed (exitcode: 1) local_rank: 3
    """


def under(told: tuple[str, ...], place: str) -> str:
    """What is said of the fault at this place."""
    index = next(index for index, line in enumerate(told) if line.startswith(f"  {place}: "))
    return told[index + 2].strip()


def test_every_rule_is_told_and_the_first_that_applies_decides() -> None:
    told = explain.lines(case_of(CASCADE))
    rules = [line for line in told if any(line.startswith(f"  {rule.__name__} ") for rule in registry.RULES)]
    assert len(rules) == len(registry.RULES)
    assert [line.split()[0] for line in rules if " DECIDES " in line] == ["failed"]
    assert any(line.startswith("  followed ") and "too late" in line for line in rules)


def test_every_fault_that_lost_is_told_with_the_reason() -> None:
    told = explain.lines(case_of(CASCADE))
    assert under(told, "line 3") == "it decides"
    assert under(told, "line 6") == "lost: such a line follows from something else"


def test_what_the_server_survived_is_told_so() -> None:
    log = (
        CASCADE
        + "".join(f"    step {n} loss 1.{n}\n" for n in range(4))
        + '    Traceback (most recent call last):\n      File "/a.py", line 1, in <module>\n    ValueError: late\n'
    )
    assert under(explain.lines(case_of(log)), "line 3").startswith("lost: the server became ready or worked on")


def test_a_kernel_event_of_another_process_is_told_not_to_be_tied_to_the_run() -> None:
    kernel = "[Tue Dec  1 02:55:10 2026] Out of memory: Killed process 31144 (rsync) total-vm:1kB, anon-rss:1kB"
    told = explain.lines(case_of("[2026-12-01 13:59:50] serving\nKilled\n", kernel=kernel))
    assert any("neither process id nor time" in line for line in told)


def test_a_silent_death_is_explained_as_one() -> None:
    told = explain.lines(case_of("loading\n"))
    assert any(line.startswith("  silent ") and "DECIDES" in line for line in told)


def test_no_secret_is_explained() -> None:
    log = 'Traceback (most recent call last):\n  File "/a.py", line 1, in <module>\nValueError: api_key=sk-abcdefghijklmnopqrstuvwxyz012345 refused\n'
    assert "sk-abcdef" not in "\n".join(explain.lines(case_of(log)))
