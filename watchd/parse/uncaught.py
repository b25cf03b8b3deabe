"""Tracebacks as they are written, line by line: which of them nobody caught.

The whole of a traceback is read later, by `traceback`; here only its ends count: in which function it began, for that
tells a request that failed from a process that ends.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from watchd.parse.lines import Words

HEADER = "Traceback (most recent call last):"

_OPEN = 32
"""Tracebacks of different processes that may be open at once."""
_LONGEST = 3_000
"""Lines that one may have."""

# File "/opt/engine/launch.py", line 18, in <module>
_FRAME = re.compile(r'^\s*File "[^"\n]{1,1000}", line \d{1,7}, in (?P<function>\S{1,200})')
# AssertionError
# torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.
# but not "srun: error: …": a bare name of an exception begins with a capital
_EXCEPTION = re.compile(r"^(?:[A-Z_]\w{0,100}|[A-Za-z_]\w{0,60}\.[\w.]{1,200})(?::\s|:?$|\()")
# The above exception was the direct cause of the following exception:
# During handling of the above exception, another exception occurred:
_CHAIN = ("The above exception was the direct cause", "During handling of the above exception")
# KeyboardInterrupt
# torch.distributed.elastic.multiprocessing.api.SignalException: Process 51200 got signal: 15
_ORDER = re.compile(r"^(?:\w+\.){0,8}(?:KeyboardInterrupt|SignalException|SIGTERMException|SystemExit: 0)\b")
# <module>, run_scheduler_process, run_busy_loop, _run_code, main
_TOP = re.compile(r"^(?:<module>|_?run_\w+|main|\w+_process|\w*_loop|_bootstrap(?:_inner)?)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A traceback that is being read: who writes it, the offset of its header, the function of its outermost frame."""

    process: str
    start: int
    outermost: str | None = None
    lines: int = 0


Readings = tuple[Reading, ...]


def follow(reading: Readings, offset: int, words: Words) -> tuple[Readings, int | None]:
    """Take one line in, at this byte offset: what is being read behind it, and where an uncaught traceback began.

    That is None unless this line is the exception of one that began at the top of a program. An order to go that a
    program hears as an exception is none: whether it goes, its process tells.
    """
    body, process = words.body, str(words.rank) if words.process is None else words.process
    if body.rstrip().endswith(HEADER):
        known = next((one for one in reading if one.process == process), None)
        begun = Reading(process=process, start=known.start if known else offset)
        return (*[one for one in reading if one.process != process][-_OPEN:], begun), None
    current = next((one for one in reading if one.process == process), reading[-1] if reading else None)
    if current is None:
        return reading, None
    others = tuple(one for one in reading if one is not current)
    frame = _FRAME.match(body)
    if frame or not body.strip() or body[0] in " \t" or body.startswith(_CHAIN):
        if current.lines >= _LONGEST:
            return others, None
        outermost = current.outermost or (frame["function"] if frame else None)
        return (*others, replace(current, outermost=outermost, lines=current.lines + 1)), None
    if not _EXCEPTION.match(body):
        # A line of somebody else between the lines of this traceback.
        return (*others, replace(current, lines=current.lines + 1)), None
    top = current.outermost is not None and bool(_TOP.match(current.outermost))
    return others, current.start if top and not _ORDER.match(body) else None
