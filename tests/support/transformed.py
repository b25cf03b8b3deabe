"""The same crash, written down otherwise: what must not change the answer."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.support import situations
from watchd.diagnosis import registry
from watchd.model import Case, Run
from watchd.parse import lines as prefixes

TEARDOWN = 10_000
"""Lines of teardown that are appended."""

_OLDER = b"""\
$ python3 serve.py --weights /srv/older --listen 0.0.0.0:9100
reading the settings of last week
Traceback (most recent call last):
  File "/srv/older/serve.py", line 212, in <module>
    main()
  File "/srv/older/serve.py", line 140, in main
    forward(batch)
torch.AcceleratorError: CUDA error: an illegal memory access was encountered
run.sh: line 7:  4242 Aborted                 (core dumped) python3 serve.py --weights /srv/older
"""
_NOISE = (
    "[rank{0}]: Warning: WARNING: destroy_process_group() was not called before program exit, which can leak resources.",
    "/usr/lib/python3.11/multiprocessing/resource_tracker.py:254: UserWarning: resource_tracker: There appear to be {0} leaked shared_memory objects to clean up at shutdown",
    "  warnings.warn('resource_tracker: There appear to be %d '",
    "[rank{0}]: [c10d] recvValue failed on SocketImpl(fd={1}, addr=[localhost]:{1}, remote=[localhost]:29500): Connection reset by peer",
    "Exception ignored in: <function _ConnectionBase.__del__ at 0x7f{1:010x}>",
    "free(): releasing buffer {1} of pool {0}",
)

_HEAD = 12
"""Lines with which a run begins."""
_TROUBLE = re.compile(rb"rror|xception|Traceback|[Ff]ail|[Aa]bort|Kill|ssert|Warn|WARN")


def behind_an_older_crash(data: bytes) -> bytes:
    """The log was appended to: an older run that crashed stands before this one."""
    return _OLDER + data


def behind_its_own_older_crash(data: bytes) -> bytes:
    """The same, and it was the same program: its first lines stand there twice."""
    head = list(itertools.takewhile(lambda line: not _TROUBLE.search(line), data.split(b"\n")[:_HEAD]))
    return b"\n".join((*head, *_OLDER.split(b"\n")[1:])) + data


def before_much_teardown(data: bytes) -> bytes:
    """Whatever is left of the job says its last words, ten thousand lines of them."""
    said = (_NOISE[n % len(_NOISE)].format(n % 8, n) for n in range(TEARDOWN))
    return data.rstrip(b"\n") + b"\n" + "\n".join(said).encode() + b"\n"


def coloured(data: bytes) -> bytes:
    """A terminal was in between: every line in colour, with a carriage return at its end."""
    return b"\n".join(_colour(line) for line in data.split(b"\n"))


def bare(data: bytes) -> bytes:
    """Without what stands in front of a line: no time, no rank, no process."""
    return "\n".join(prefixes.split(line).body for line in data.decode("utf-8", "replace").split("\n")).encode()


def shuffled(data: bytes) -> bytes:
    """Ranks that wrote within the same second, in another order of ranks; each rank's own lines stay in theirs."""
    mixed = random.Random(len(data))  # the same each time
    return "\n".join(_shuffled(data.decode("utf-8", "replace").split("\n"), mixed)).encode()


def second_half(data: bytes) -> tuple[bytes, int]:
    """Only the second half of its bytes, and where that begins."""
    return data[len(data) // 2 :], len(data) // 2


def _colour(line: bytes) -> bytes:
    if not line.strip() or line.startswith(b"{"):
        return line + b"\r" if line else line
    return b"\x1b[36m" + line.rstrip(b"\r") + b"\x1b[0m\r"


def _shuffled(lines: list[str], mixed: random.Random) -> Iterator[str]:
    block: list[tuple[object, str]] = []
    second: str | None = None
    for line in lines:
        words = prefixes.split(line)
        if words.rank is None or (block and words.clock is not None and words.clock != second):
            yield from _mix(block, mixed)
            block = []
        if words.rank is None:
            yield line
            continue
        if not block or words.clock is not None:
            second = words.clock
        block.append((words.rank, line))
    yield from _mix(block, mixed)


def _mix(block: list[tuple[object, str]], mixed: random.Random) -> Iterator[str]:
    queues: dict[object, list[str]] = {}
    for rank, line in block:
        queues.setdefault(rank, []).append(line)
    order = [rank for rank, _ in block]
    mixed.shuffle(order)
    heads = {rank: iter(queue) for rank, queue in queues.items()}
    return (next(heads[rank]) for rank in order)


TRANSFORMS: dict[str, Callable[[bytes], bytes | tuple[bytes, int]]] = {
    "behind_an_older_crash": behind_an_older_crash,
    "behind_its_own_older_crash": behind_its_own_older_crash,
    "before_much_teardown": before_much_teardown,
    "coloured": coloured,
    "bare": bare,
    "shuffled": shuffled,
    "second_half": second_half,
}


def stays(folder: Path, name: str) -> bool | None:
    """Whether a case's answer is the same for the transformed log; None where the transformation does not fit the case.

    Teardown is what a job that is gone leaves behind, and a half is only enough where what decides lies in it.
    """
    case = situations.read(folder)
    data = situations.log(folder)
    if name == "before_much_teardown" and case.health != "down":
        return None
    made = TRANSFORMS[name](data)
    changed, offset = made if isinstance(made, tuple) else (made, 0)
    if offset and _first_byte(case) <= offset:
        return None
    return _said(case) == _said(situations.read(folder, changed, offset=offset))


def _said(case: Case) -> tuple[object, ...]:
    found, run = registry.judge(case), case.get(Run)
    root = found.root
    text: str | None = None
    if root is not None and root.event is not None:
        text = root.event.text
    elif root is not None and root.index is not None and run is not None:
        text = prefixes.split(run.lines[root.index].text).body.strip()
    kind = root.traceback.type if root is not None and root.traceback is not None else None
    return found.verdict, found.cause, text, kind


def _first_byte(case: Case) -> int:
    """Offset of the first line that decides, that of its traceback's header; past the end where no line does."""
    root, run = registry.judge(case).root, case.get(Run)
    if root is None or root.index is None or run is None:
        return 1 << 62
    first = min((root.index, *(root.traceback.indexes if root.traceback else ())))
    return run.lines[first].offset
