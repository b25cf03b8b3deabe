"""Python tracebacks out of a log that several processes write at once.

Lines are taken apart by who wrote them (`lines.split`), so that the traceback of one rank is whole though lines of
others stand between its own. Where only the first line of a traceback has a prefix, what follows without any belongs
to it. Chained exceptions, exception groups, and tracebacks that one process carries for another are tied together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from watchd.model import Line, Link, Rank, Traceback, TraceFrame
from watchd.parse import embedded, pybind
from watchd.parse import lines as prefixes

# Traceback (most recent call last):      + Exception Group Traceback (most recent call last):
# Scheduler hit an exception: Traceback (most recent call last):
HEADER = re.compile(r"(?P<kind>Original |Exception Group )?Traceback \(most recent call last\):[ \t]*$")
# File "/opt/x.py", line 12, in f        File "/opt/x.py", line 3   (SyntaxError)
_FRAME = re.compile(
    r'^(?P<indent> *)File "(?P<path>[^"\n]{1,4096})", line (?P<line>\d{1,9})(?:, in (?P<function>.{1,400}))?$'
)
# torch.OutOfMemoryError: CUDA out of memory…      AssertionError      ray.exceptions.RayTaskError(ValueError): …
_EXCEPTION = re.compile(
    r"^(?P<indent> *)(?P<type>(?:[A-Za-z_]\w{0,120}\.){0,12}[A-Za-z_]\w{0,120}(?:\([\w.]{1,120}\))?)(?::(?: (?P<message>.*))?)?$"
)
_LEVEL = re.compile(
    r"(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|CRITICAL|FATAL|HINT|NOTE|Killed|Aborted|Terminated|Error)$"
)
_MARKER = re.compile(r"^\s*[~^]+[~^ ]*$")
_REPEATED = re.compile(r"^\s*\[Previous line repeated \d+ more times?\]$")
_CAUSE = "The above exception was the direct cause of the following exception:"
_CONTEXT = "During handling of the above exception, another exception occurred:"
# "  | ", "    | ", "  +-+----------- 1 -----------": the margin of an exception group.
_MARGIN = re.compile(r"^((?:  )+)[|+](?: |-|$)")
# Process scheduler-TP0:      Process EngineCore_DP0:
_PROCESS = re.compile(r"^Process ([\w.:-]{1,120}):$")
# "-- Process 1 terminated with the following error:", '"""', "traceback : Traceback (…": somebody else's traceback.
_CARRIED = re.compile(
    r'^(?:-- Process \d+ terminated with the following error:|"""|.*Shard complete standard error output:.*)$'
)
# Fatal Python error: Segmentation fault
_FATAL = re.compile(r"^Fatal Python error: (.{1,400})$")
_THREAD = re.compile(r"^(?:Current thread|Thread) 0x[0-9a-f]+ .{0,80}\(most recent call first\):$")
_FAULT_FRAME = re.compile(r'^ +File "(?P<path>[^"\n]{1,4096})", line (?P<line>\d{1,9}) in (?P<function>.{1,400})$')

# WARNING app: status probe failed:      ERROR server: request 2 failed      ERROR:    Exception in ASGI application
_TOLD = re.compile(r"(?i:fail|error|exception|unable|could not|cannot|crash|:$)")

_PATIENCE = 200
"""Foreign lines without a prefix that may stand inside a traceback before it is given up."""

_PYDANTIC = re.compile(r"^\d+ validation errors? for ")

Stream = tuple[str | None, str | None, Rank | None, int]
"""Container, process, rank, and depth of the margin of an exception group."""


@dataclass(slots=True)
class _Block:
    """A traceback that is being read."""

    stream: Stream
    process: str | None
    rank: Rank | None
    level: str | None
    quoted: bool
    indexes: list[int]
    frames: list[TraceFrame] = field(default_factory=list)
    indent: int | None = None
    foreign: int = 0
    earlier: Traceback | None = None
    link: Link | None = None
    group: bool = False
    carrier: int | None = None


def read(run_lines: Sequence[Line]) -> tuple[Traceback, ...]:
    """Every traceback of a run, by place of its exception line; of a chain only the last, the others hang on it."""
    reader = _Reader(run_lines)
    for index, line in enumerate(run_lines):
        reader.take(index, line.text)
    reader.end()
    return tuple(sorted((*reader.blocks(), *pybind.read(run_lines)), key=lambda block: block.last))


class _Reader:
    """Takes one line after the other; `found` holds what is complete, None where a later block took it over."""

    def __init__(self, run_lines: Sequence[Line]) -> None:
        self.lines = run_lines
        self.open: dict[Stream, _Block] = {}
        self.closed: dict[Stream, int] = {}
        self.found: list[Traceback | None] = []
        self.links: dict[Stream, tuple[Link, int]] = {}
        self.before = prefixes.Words("")
        self.message: tuple[int, Stream] | None = None
        self.fault: _Block | None = None

    def take(self, index: int, text: str) -> None:
        """Look at the next line."""
        idle = not (self.open or self.closed or self.fault)
        if idle and "Traceback (most" not in text and "Fatal Python error" not in text:
            self.before = prefixes.Words(text)
            return
        text = prefixes.unwrapped(text)
        if "Traceback (most recent call last):\\n" in text:
            self.found.extend(embedded.read(index, text))
            return
        words = prefixes.split(text)
        margin = _MARGIN.match(words.body)
        depth = len(margin[1]) if margin else 0
        body = words.body[margin.end() :] if margin and not words.body.lstrip().startswith("+ Exc") else words.body
        header = HEADER.search(body)
        if header:
            self._begin(index, words, header, depth)
        elif not (self._fault(index, body) or self._continue(index, words, body, depth)):
            self._between(words, body.strip(), depth)
        self.before = words if body.strip() else self.before

    def end(self) -> None:
        """The log ends here: what is open was cut."""
        for stream in list(self.open):
            self._close(stream, "", "")
        self._end_fault()

    def blocks(self) -> Iterator[Traceback]:
        """What was found, without the blocks that hang on a later one."""
        return (block for block in self.found if block is not None)

    def _begin(self, index: int, words: prefixes.Words, header: re.Match[str], depth: int) -> None:
        stream = _stream(words, depth)
        if stream in self.open:
            self._close(stream, "", "")
        lead = words if header.start() and words.body[: header.start()].strip() else self._lead(index)
        named = _PROCESS.match(lead.body)
        process = words.process or (named[1] if named else lead.process)
        rank = words.rank
        if rank is None:
            rank = prefixes.rank_of(named[1]) if named and named[1][-1].isdigit() else lead.rank
        block = _Block(
            stream=stream,
            process=process,
            rank=rank,
            level=words.level or lead.level,
            quoted=header["kind"] == "Original " or bool(_CARRIED.match(lead.body.strip())),
            indexes=[index],
            group=header["kind"] == "Exception Group ",
        )
        link, earlier = self.links.pop(stream, (None, -1))
        if link is not None:
            block.earlier, block.link = self.found[earlier], link
            self.found[earlier] = None
        elif block.quoted and stream in self.closed:
            block.carrier = self.closed[stream]
        elif depth:
            block.carrier = self._group(words, depth)
        self.open[stream] = block

    def _lead(self, index: int) -> prefixes.Words:
        """The line above a bare header: what a logger, multiprocessing or a pool says before it."""
        above = prefixes.split(self.lines[index - 1].text) if index else prefixes.Words("")
        if not above.body.strip() and index > 1:
            above = prefixes.split(self.lines[index - 2].text)
        body = above.body.strip()
        known = (above.level and _TOLD.search(body)) or _PROCESS.match(body) or _CARRIED.match(body)
        return above if known else prefixes.Words(above.body)

    def _group(self, words: prefixes.Words, depth: int) -> int | None:
        """The group above that a leaf belongs to: complete, without a leaf so far."""
        for stream, place in self.closed.items():
            block = self.found[place]
            above = stream[:3] == _stream(words, depth)[:3] and stream[3] < depth
            if above and block is not None and block.type.endswith("Group"):
                return place
        return None

    def _continue(self, index: int, words: prefixes.Words, body: str, depth: int) -> bool:
        block = self.open.get(_stream(words, depth))
        bare = words.process is None and words.rank is None
        if block is None and bare and words.level is None:
            # Only the header had a prefix: the last one opened goes on.
            home = (words.container, depth)
            block = next((b for b in reversed(self.open.values()) if (b.stream[0], b.stream[3]) == home), None)
        if block is None:
            return False
        return (
            self._frame(index, block, body) or self._exception(index, block, body) or self._inside(index, block, body)
        )

    def _frame(self, index: int, block: _Block, body: str) -> bool:
        frame = _FRAME.match(body)
        if frame is None:
            return False
        if block.indent is None:
            block.indent = max(0, len(frame["indent"]) - 2)
        block.frames.append(TraceFrame(path=frame["path"], line=int(frame["line"]), function=frame["function"] or ""))
        block.indexes.append(index)
        return True

    def _exception(self, index: int, block: _Block, body: str) -> bool:
        match = _EXCEPTION.match(body)
        if match is None or not _is_exception(match["type"], match["message"] is not None or body.endswith(":")):
            return False
        if len(match["indent"]) != (block.indent or 0):
            return False
        block.indexes.append(index)
        self._close(block.stream, match["type"], match["message"] or "")
        return True

    def _inside(self, index: int, block: _Block, body: str) -> bool:
        """A quoted source line, a marker under it, or something foreign."""
        deep = body.startswith(" " * ((block.indent or 0) + 4))
        if block.frames and (deep or _REPEATED.match(body)):
            block.indexes.append(index)
            if deep and block.frames[-1].code is None and not _MARKER.match(body) and not _REPEATED.match(body):
                block.frames[-1] = replace(block.frames[-1], code=body.strip())
            return True
        block.foreign += 1
        if block.foreign > _PATIENCE or (not block.frames and block.foreign > 3):
            self._close(block.stream, "", "")
        return False

    def _close(self, stream: Stream, kind: str, message: str) -> None:
        block = self.open.pop(stream)
        if not block.frames and not kind:
            if block.earlier is not None:
                self._keep(stream, block.earlier)
            return
        done = Traceback(
            type=kind,
            message=message,
            frames=tuple(block.frames),
            indexes=tuple(block.indexes),
            rank=block.rank,
            process=block.process,
            earlier=block.earlier,
            link=block.link,
            quoted=block.quoted,
            level=block.level,
        )
        if block.carrier is not None and self.found[block.carrier] is not None:
            self._hang(block.carrier, done, Link.GROUP if stream[3] else Link.CAUSE)
            return
        self._keep(stream, done)
        if _PYDANTIC.match(message):
            self.message = (len(self.found) - 1, stream)

    def _keep(self, stream: Stream, block: Traceback) -> None:
        self.closed[stream] = len(self.found)
        self.found.append(block)

    def _hang(self, place: int, inner: Traceback, link: Link) -> None:
        """Tie `inner` to the exception that carries it, as what was there first."""
        outer = self.found[place]
        assert outer is not None
        if outer.link is link is Link.GROUP or (outer.earlier is not None and link is not Link.GROUP):
            return
        self.found[place] = replace(outer, earlier=_before(inner, outer.earlier, outer.link), link=link)

    def _between(self, words: prefixes.Words, body: str, depth: int) -> None:
        """A line outside every traceback: a link to the next one, or the rest of a message."""
        stream = _stream(words, depth)
        if self.message is not None and body:
            self._second_line(body)
        if body in (_CAUSE, _CONTEXT):
            last = self._last(stream)
            if last is not None:
                self.links[stream] = (Link.CAUSE if body == _CAUSE else Link.CONTEXT, last)
        elif body.startswith('File "') and stream in self.closed:
            self._headless(stream, words)

    def _last(self, stream: Stream) -> int | None:
        """The block that this stream, or the prefixed header above its bare lines, completed last."""
        place = self.closed.get(stream)
        if place is None and stream[1:3] == (None, None):
            place = max((p for s, p in self.closed.items() if s[0] == stream[0]), default=None)
        return place if place is not None and self.found[place] is not None else None

    def _second_line(self, body: str) -> None:
        """pydantic says on the second line what is wrong: `  Value error, …`."""
        assert self.message is not None
        place, _ = self.message
        self.message = None
        block = self.found[place]
        if block is not None:
            self.found[place] = replace(block, message=f"{block.message}\n{body}")

    def _headless(self, stream: Stream, words: prefixes.Words) -> None:
        """Frames behind an exception line: Ray prints a task's traceback inside the message, without a header."""
        place = self.closed[stream]
        carrier = self.found[place]
        if carrier is None or "RayTaskError" not in carrier.type:
            return
        index = carrier.last + 1
        while index < len(self.lines) and 'File "' not in self.lines[index].text:
            index += 1
        block = _Block(stream, words.process, words.rank, carrier.level, True, [], carrier=place)
        self.open[stream] = block
        self._frame(index, block, prefixes.split(self.lines[index].text).body)

    def _fault(self, index: int, body: str) -> bool:
        """Python's own dump when it is killed by a signal; frames come innermost first."""
        fatal = _FATAL.match(body)
        if fatal and "Fatal Python error" not in fatal[1]:
            self._end_fault()
            self.fault = _Block((None, None, None, 0), None, None, "FATAL", False, [index])
            return True
        if self.fault is None:
            return False
        frame = _FAULT_FRAME.match(body)
        if frame and not self.fault.group:
            self.fault.frames.insert(
                0, TraceFrame(path=frame["path"], line=int(frame["line"]), function=frame["function"])
            )
            self.fault.indexes.append(index)
            return True
        if _THREAD.match(body):
            # Only the thread that was struck counts; it is the first, or marked `Current`.
            self.fault.group = bool(self.fault.frames)
            return True
        if body.strip() and not frame:
            self._end_fault()
        return bool(frame)

    def _end_fault(self) -> None:
        if self.fault is None:
            return
        block, self.fault = self.fault, None
        if not block.frames:
            return
        fatal = _FATAL.match(prefixes.split(self.lines[block.indexes[0]].text).body)
        order = (*block.indexes[1:], block.indexes[0])
        self.found.append(
            Traceback(
                type="Fatal Python error",
                message=fatal[1] if fatal else "",
                frames=tuple(block.frames),
                indexes=order,
                level="FATAL",
            )
        )


def _stream(words: prefixes.Words, depth: int) -> Stream:
    return (words.container, words.process, words.rank, depth)


def _before(block: Traceback, earlier: Traceback | None, link: Link | None) -> Traceback:
    """`block` with `earlier` hung on the first exception of its chain."""
    if earlier is None:
        return block
    if block.earlier is None:
        return replace(block, earlier=earlier, link=link)
    return replace(block, earlier=_before(block.earlier, earlier, link))


def _is_exception(name: str, has_message: bool) -> bool:
    """Whether a word at the left margin, perhaps with a colon behind it, names an exception and is not a log line's."""
    last = name.rpartition(".")[2]
    if _LEVEL.match(name):
        return False
    if re.search(
        r"(?:Error|Exception|Exit|Interrupt|Timeout|Warning|Failure|Fault|Group|Empty|Full|Iteration|Disconnect|Abort)\)?$",
        last,
    ):
        return True
    if "." in name:
        return last[:1].isalpha() and not name.endswith((".py", ".so", ".json", ".log"))
    return name[:1].isupper() and not name.isupper() and (has_message or len(name) > 3)
