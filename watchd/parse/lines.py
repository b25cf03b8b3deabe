"""What stands in front of a line's own words: colours, container and launcher tags, ranks, times, levels.

Every writer puts its own things in front, and wrappers put theirs before those, so the prefixes are taken off one
after the other until none is left. Indentation behind a prefix is kept: it is how tracebacks are read.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from watchd.model import Rank

LONGEST = 8_192
"""Characters of a line that are looked at; what is longer is kept as it is, but not searched."""

# Colours and cursor movements (`ESC [ … letter`), titles (`ESC ] … BEL`), and the echo of a key: `^C`.
_CONTROL = re.compile(r"\x1b\[[0-9;:?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)|\x1b[@-Z\\-_]|\x00")
_ECHO = re.compile(r"\^[A-Z\\]")

_LEVELS = {
    "I": "INFO", "W": "WARNING", "E": "ERROR", "F": "FATAL", "D": "DEBUG", "C": "FATAL",
    "WARN": "WARNING", "ERR": "ERROR", "CRITICAL": "FATAL", "PANIC": "FATAL", "TRACE": "DEBUG",
}  # fmt: skip
_WORD = r"(?P<level>TRACE|DEBUG|INFO|WARNING|WARN|ERROR|ERR|CRITICAL|FATAL|PANIC|trace|debug|info|warning|warn|error|critical|fatal|panic)"
_CLOCK = r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
_ZONE = r"(?:Z|\ ?[+-]\d\d:?\d\d)?"
_SOURCE = r"[\w./<>-]{1,160}:\d{1,6}(?::\w{1,60})?"


class Words(NamedTuple):
    """A line without what stands in front of its own words.

    body       what is left, its indentation kept
    rank       who spoke, where a prefix says so
    process    name of the process, as logged
    container  container, unit or machine that a wrapper puts in front of all lines of one
    pid        its process id, where a prefix says so
    level      `DEBUG`, `INFO`, `WARNING`, `ERROR` or `FATAL`, where a prefix says so
    clock      time of day, `HH:MM:SS`, where a prefix says so
    source     the place in the program that a prefix names (`core.py:702`)
    """

    body: str
    rank: Rank | None = None
    process: str | None = None
    container: str | None = None
    pid: int | None = None
    level: str | None = None
    clock: str | None = None
    source: str | None = None


# One list per first character; each pattern takes one prefix off, with exactly one space behind it.
_BRACKET = tuple(
    re.compile(text, re.VERBOSE)
    for text in (
        # [rank3]: Traceback …        [default0]:…  (torchrun --tee)
        r"\[(?P<process>(?:rank|default|trainer)\d{1,5})\]:\ ?",
        # [E1218 20:27:21.426415540 ProcessGroupNCCL.cpp:629] …
        rf"\[(?P<level>[IWEF])\d{{3,4}}\ (?P<clock>{_CLOCK})\ (?P<source>{_SOURCE})\]\ ?",
        # [2026-01-31 10:00:00 DP0 PP0 TP3 EP3] …       [2026-12-01 14:04:26 +0000] …
        rf"\[\d{{4}}-\d\d-\d\d[ T](?P<clock>{_CLOCK})(?:\ [+-]\d{{4}})?(?P<tags>(?:\ [A-Z]{{2,4}}\d{{1,5}})*)\]\ ?",
        # [07/16/2025-08:25:14] …
        rf"\[\d\d/\d\d/\d{{4}}-(?P<clock>{_CLOCK})\]\ ?",
        # [20:11:09] …
        rf"\[(?P<clock>{_CLOCK})\]\ ?",
        # [TRT-LLM] [RANK 6] [E] …
        r"\[TRT-LLM\]\ (?:\[RANK\ (?P<rank>\d{1,5})\]\ )?\[(?P<level>[IWEFD])\]\ ?",
        # [29291] [INFO] …
        rf"\[(?P<pid>\d{{1,8}})\]\ \[{_WORD}\]\ ?",
        # [WARNING] [runner.py:215:fetch_hostfile] …      [INFO] …       [TensorRT-LLM][ERROR] …
        rf"(?:\[[A-Z][\w-]{{1,20}}\])?\[{_WORD}\]\ ?",
        # [runner.py:215:fetch_hostfile] …
        rf"\[(?P<source>{_SOURCE})\]\ ?",
        # [Rank 0] …
        r"\[[Rr]ank\ (?P<rank>\d{1,5})\]\ ?",
        # [pod/llm-0/engine] …
        r"\[pod/(?P<container>[\w./-]{1,120})\]\ ",
    )
)
_PAREN = tuple(
    re.compile(text, re.VERBOSE)
    for text in (
        # (EngineCore_DP0 pid=268) …   (VllmWorker rank=0 pid=12) …   (ServeReplica:chat:Generator pid=9344, ip=10.9.1.6) …
        r"\((?P<process>[^()\s]{1,120})(?P<facts>(?:,?\ [a-z_]{1,12}=[^()\s,]{1,60}){1,4})\)\ ?",
    )
)
_DIGIT = tuple(
    re.compile(text, re.VERBOSE)
    for text in (
        # 2026-01-01T00:00:00.000000000Z stderr F …
        rf"\d{{4}}-\d\d-\d\dT(?P<clock>{_CLOCK}){_ZONE}\ (?:stdout|stderr)\ [FP]\ ",
        # 2026-01-01T00:00:00.000000Z  INFO shard-manager: text_generation_launcher: …
        rf"\d{{4}}-\d\d-\d\dT(?P<clock>{_CLOCK}){_ZONE}\s{{1,4}}{_WORD}\s(?:[\w:-]{{1,60}}(?:\{{[^{{}}]{{0,2000}}\}})?:\ ){{0,3}}",
        # 2024-07-18 10:03:00,561 - lmdeploy - INFO - turbomind.py:253 - …
        rf"\d{{4}}-\d\d-\d\d[ T](?P<clock>{_CLOCK})\ -\ (?:[\w.]{{1,60}}\ -\ )?{_WORD}\ -\ (?:(?P<source>{_SOURCE})\ -\ )?",
        # 2026-12-01 13:53:52,371 INFO server: …       2024-12-10 12:00:31.200000: E external/xla/…cc:477] …
        rf"\d{{4}}[-/]\d\d[-/]\d\d[ T](?P<clock>{_CLOCK}){_ZONE}\s{{1,4}}\[?{_WORD}\]?(?::|\s)\s{{0,8}}(?:(?:\[|\ )?(?P<source>{_SOURCE})[\]:]\ )?",
        rf"\d{{4}}-\d\d-\d\d\ (?P<clock>{_CLOCK}):\ (?P<level>[IWEF])\ (?P<source>{_SOURCE})\]\ ",
        # 2025-07-02 04:00:58,158 | train | …    2025/04/13 19:20:05 routes.go:1230: …    2026-04-08 10:47:52,754 …
        rf"\d{{4}}[-/]\d\d[-/]\d\d[ T](?P<clock>{_CLOCK}){_ZONE}(?:\ (?P<source>[\w-]{{1,60}}\.go:\d{{1,6}}):)?\ ",
        # 20:58:36,984 rank0 INFO  …
        rf"(?P<clock>{_CLOCK})\ (?P<process>rank\d{{1,5}})\ {_WORD}\s{{1,4}}",
        rf"(?P<clock>{_CLOCK})\ {_WORD}\ ",
        rf"(?P<clock>{_CLOCK})\ ",
        # 0.00.005.787 E …
        r"\d{1,4}\.\d\d\.\d{3}\.\d{3}\ (?P<level>[IWEFD])\ ",
    )
)
_LETTER = tuple(
    re.compile(text, re.VERBOSE)
    for text in (
        # triton-1     | …  (docker compose)
        r"(?P<container>[a-z][a-z0-9_.-]{0,60})\ {1,40}\|\ ",
        # Dec  1 13:53:52 gpu-01 sglang[812]: …  (journalctl)
        rf"[A-Z][a-z]{{2}}\ [ \d]\d\ (?P<clock>{_CLOCK})\ [\w.-]{{1,80}}\ (?P<container>[\w.@:-]{{1,80}})\[(?P<pid>\d{{1,8}})\]:\ ",
        # node-0: …  (one launcher per node)
        r"(?P<container>(?:node|worker|host|pod|gpu)[-_]?\d{1,5}):\ ",
        # W0918 14:09:52.118000 52117 torch/utils/cpp_extension.py:2425] …
        rf"(?P<level>[IWEF])\d{{3,4}}\ (?P<clock>{_CLOCK})\ (?:(?P<pid>\d{{1,16}})\ )?(?:(?P<source>{_SOURCE})\]|[\w.-]{{1,60}}:)\ ?",
        # E0000 00:00:1780449604.190771    5210 cuda_dnn.cc:8579] …
        rf"(?P<level>[IWEF])\d{{4}}\ \d\d:\d\d:\d{{1,12}}\.\d{{1,9}}\s{{1,8}}(?:(?P<pid>\d{{1,16}})\ )?(?P<source>{_SOURCE})\]\ ?",
        # ERROR 06-15 13:57:57 [core.py:702] …     INFO 10-30 17:12:00 api_server.py:528] …     INFO 2026-05-11 18:40:00,479 …
        rf"{_WORD}\ (?:\d{{4}}-)?\d\d-\d\d\ (?P<clock>{_CLOCK})\ (?:\[?(?P<source>{_SOURCE})\]\ ?)?",
        # INFO 01:41:08 tts step 400 …
        rf"{_WORD}\ (?P<clock>{_CLOCK})\ ",
        # INFO:2025-02-25 17:10:14,005:jax._src.xla_bridge:925: …
        rf"{_WORD}:\d{{4}}-\d\d-\d\d\ (?P<clock>{_CLOCK}):(?P<source>{_SOURCE}):\ ",
        # INFO:tune.dist:rank 0 of 8 up …
        rf"{_WORD}:[\w.]{{1,80}}:",
        # INFO:     10.0.0.1:3 - "GET /health HTTP/1.1" 200 OK
        r"(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL):\s{1,10}",
        # ERROR server: scheduler exited with code 1
        r"(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) [\w.-]{1,40}: ".replace(" ", "\\ "),
        # time=2025-04-13T19:20:06.013Z level=WARN source=gpu.go:605 msg="…"
        rf"(?:time|ts)=\"?[\d-]{{10}}T(?P<clock>{_CLOCK}){_ZONE}\"?\ level={_WORD}\ (?:source=(?P<source>{_SOURCE})\ )?(?:msg=)?",
    )
)
# "12: …", " 7: …" at the very beginning of a line: srun -l, which aligns its task numbers.
_TASK = re.compile(r"[ ]{0,4}(?P<rank>\d{1,5}):[ ]")
_TAG = re.compile(r"([A-Z]{2,4})(\d{1,5})")
_TRAILING = re.compile(r"(\d{1,6})$")
_PREFIXES_AT_MOST = 6


def clean(text: str) -> str:
    """The line as a terminal shows it in the end: no control sequences, of carriage-return progress the last state."""
    if "\x1b" in text or "\x00" in text:
        text = _CONTROL.sub("", text)
    if "\r" in text:
        # Before it is cut: hours of progress may stand in front of the last words on one line.
        text = text.rstrip("\r").rpartition("\r")[2]
    return text[:LONGEST]


def split(text: str) -> Words:
    """Take every known prefix off; the innermost name and level win, since wrappers know less than the writer."""
    body = clean(unwrapped(text))
    if body.startswith("^"):
        body = _ECHO.sub("", body, count=1)
    found: dict[str, str] = {}
    match = _TASK.match(body) or _prefix(body)
    for _ in range(_PREFIXES_AT_MOST):
        if match is None or not match.end():
            break
        found.update({name: value for name, value in match.groupdict().items() if value})
        body = body[match.end() :]
        match = (_TASK.match(body) if _is_wrapper(match) else None) or _prefix(body)
    return _words(body, found) if found else Words(body)


def rank_of(name: str) -> Rank:
    """Who a name means: the integer where it ends in one (`TP3`, `Worker_TP3`, `rank3`: 3), else the name itself."""
    tags = dict(_TAG.findall(name.replace("_", " ")))
    if "TP" in tags:
        return int(tags["TP"])
    ending = _TRAILING.search(name)
    return int(ending[1]) if ending else name


def _is_wrapper(match: re.Match[str]) -> bool:
    """Whether only a container, a machine or a bare time was taken off: behind it a task number may still come."""
    found = match.groupdict()
    return "rank" not in found and not any(found.get(name) for name in ("level", "source", "process", "tags"))


def _prefix(body: str) -> re.Match[str] | None:
    first = body[:1]
    if first == "[":
        shapes = _BRACKET
    elif first == "(":
        shapes = _PAREN
    elif first.isdigit():
        shapes = _DIGIT
    elif first.isalpha():
        shapes = _LETTER
    else:
        return None
    for shape in shapes:
        match = shape.match(body)
        if match:
            return match
    return None


def _words(body: str, found: dict[str, str]) -> Words:
    process = found.get("process")
    rank: Rank | None = None
    if "rank" in found:
        rank = int(found["rank"])
    elif found.get("tags"):
        process = found["tags"].strip()
        rank = rank_of(process)
    elif process:
        rank = _named_rank(process)
    pid = found.get("pid")
    for fact in re.findall(r"([a-z_]+)=([^\s,]+)", found.get("facts", "")):
        if fact[0] == "pid":
            pid = fact[1]
        elif fact[0] == "rank" and fact[1].isdigit():
            rank = int(fact[1])
    level = found.get("level")
    return Words(
        body,
        rank=rank,
        process=process,
        container=found.get("container"),
        pid=int(pid) if pid and pid.isdigit() and len(pid) <= 8 else None,
        level=_LEVELS.get(level.upper(), level.upper()) if level else None,
        clock=found["clock"][:8] if "clock" in found else None,
        source=found.get("source"),
    )


# rank3, default0, Worker_TP3, EngineCore_DP1, VllmWorkerProcess-2
_RANKED = re.compile(r"(?:rank|default|trainer|[TPDE]P)\d{1,5}$|[Ww]orker\w*[-_]\d{1,5}$")


def _named_rank(process: str) -> Rank | None:
    return rank_of(process) if _RANKED.search(process) else None


def unwrapped(text: str) -> str:
    """The line inside a container runtime's JSON wrapping: `{"log":"…\\n","stream":"stderr","time":"…"}`."""
    if not text.startswith(('{"log":"', '{"log": "')):
        return text
    try:
        wrapped = json.loads(text)
    except ValueError:
        return text
    inner = wrapped.get("log") if isinstance(wrapped, dict) else None
    return inner.rstrip("\n") if isinstance(inner, str) else text
