"""Questions that are answered by reading files over SFTP."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

from watchd.errors import HostError, HostLostError, LogUnreadableError
from watchd.hosts import grep, replies
from watchd.hosts.ssh_files import Files, kind_of
from watchd.model import BootId, CommandLine, FoundingGrep, Outcome, Question, ReadLog, ReadSource, Reply
from watchd.parse import sourcepath

MAX_ROOTS = 16
BOOT_ID = "/proc/sys/kernel/random/boot_id"


async def answer(files: Files, question: Question) -> Reply:
    """The reply to a question that can be answered by reading; never raises a WatchdError."""
    began = time.monotonic()
    try:
        reply = await _read(files, question)
    except LogUnreadableError as error:
        reply = replies.unanswered(question, "sftp", error.reason)
    except HostLostError as error:
        reply = replies.unanswered(question, "sftp", error.reason, Outcome.LOST)
    except TimeoutError:
        reply = replies.unanswered(question, "sftp", "no answer in time from SFTP", Outcome.TIMED_OUT)
    except HostError as error:
        reply = replies.unanswered(question, "sftp", error.reason)
    return replace(reply, elapsed_ms=(time.monotonic() - began) * 1000)


def reads(question: Question) -> bool:
    """Whether reading files can answer it, where a host runs no commands."""
    return isinstance(question, (ReadLog, ReadSource, FoundingGrep, BootId)) or (
        isinstance(question, CommandLine) and question.pid is not None
    )


async def _read(files: Files, question: Question) -> Reply:
    match question:
        case ReadLog():
            return await _log(files, question)
        case ReadSource():
            return await _source(files, question)
        case FoundingGrep():
            return await _founding(files, question)
        case BootId():
            return replies.small(question, "sftp", await _whole(files, BOOT_ID))
        case CommandLine(pid=int(pid)):
            return replies.small(question, "sftp", await _whole(files, f"/proc/{pid:d}/cmdline"))
        case _:
            return replies.unanswered(question, "sftp", "no file on the host answers this")


async def _log(files: Files, question: ReadLog) -> Reply:
    log = await files.open_log(question.log)
    try:
        size = await log.size()
        offset, length = replies.window(question, size)
        return replies.log(question, "sftp", await log.read(offset, length), offset=offset, size=size)
    finally:
        await log.close()


async def _founding(files: Files, question: FoundingGrep) -> Reply:
    """Search here what the host may not search."""
    log = await files.open_log(question.log)
    try:
        size = await log.size()
        wanted = max(0, question.start)
        start = max(wanted, size - grep.MAX_BYTES)
        data = await log.read(start, max(0, size - start))
    finally:
        await log.close()
    return await asyncio.to_thread(grep.reply, question, data, via="sftp", cut=start > wanted)


async def _whole(files: Files, path: str) -> bytes:
    """A small file of /proc, whose size says nothing."""
    log = await files.open_log(path)
    try:
        return await log.read(0, 2 * 1024 * 1024)
    finally:
        await log.close()


async def _source(files: Files, question: ReadSource) -> Reply:
    """A source file by the rule of `parse.sourcepath`; nothing is opened before the rule has been asked."""
    home = await files.real_path(".")
    why_not = sourcepath.refusal(question.path, home=home)
    if why_not is not None:
        return replies.unanswered(question, "sftp", why_not)
    real = await files.real_path(question.path)
    allowed = replace(question, roots=await _real_roots(files, question.roots))
    found = await files.lstat(real)
    why_not = sourcepath.refusal(real, home=home) or _kind_refusal(kind_of(found), found.size or 0)
    if why_not is None:
        quoted = sourcepath.needs_quote(real, allowed.roots)
        why_not = quoted if isinstance(quoted, str) else None
    if why_not is not None:
        return replies.unanswered(question, "sftp", why_not if real == question.path else f"{real}: {why_not}")
    # Opened by its real path, and looked at again once open.
    log = await files.open_log(real)
    try:
        data = await log.read(0, sourcepath.MAX_BYTES + 1)
    finally:
        await log.close()
    reply = await asyncio.to_thread(replies.source, allowed, "sftp", data, real=real)
    return replace(reply, question=question)


def _kind_refusal(kind: str, size: int) -> str | None:
    if kind != "a regular file":
        return f"it is {kind}, and only regular files are read"
    return "larger than 1 MiB" if size > sourcepath.MAX_BYTES else None


async def _real_roots(files: Files, roots: tuple[str, ...]) -> tuple[str, ...]:
    """The configured roots, and where they really lie."""
    found = list(roots)
    for root in roots[:MAX_ROOTS]:
        try:
            found.append(await files.real_path(root))
        except LogUnreadableError:
            continue
    return tuple(found)
