"""Of exceptions that follow from one another, the one that came first and means something."""

from __future__ import annotations

import re
from collections.abc import Iterator

from watchd.diagnosis import signatures
from watchd.diagnosis.base import Role
from watchd.diagnosis.signatures import Catalogue
from watchd.model import Link, Traceback

# A look-up that fails inside a `try` is how programs ask; what is raised while handling it is the answer.
_ASKING = re.compile(
    r"(?:^|\.)(?:KeyError|AttributeError|ImportError|ModuleNotFoundError|StopIteration|IndexError|LookupError|Empty|NotImplementedError)$"
)


def text_of(block: Traceback) -> str:
    """`Type: message` on one line, as a signature sees it."""
    message = " ".join(block.message.split("\n"))
    return f"{block.type}: {message}" if message else block.type


def frames_of(block: Traceback) -> tuple[str, ...]:
    """`path:function` of every frame."""
    return tuple(f"{frame.path}:{frame.function}" for frame in block.frames)


def links(block: Traceback) -> Iterator[Traceback]:
    """This exception and those before it, the last first."""
    current: Traceback | None = block
    while current is not None:
        yield current
        current = current.earlier


def origin(block: Traceback, among: Catalogue | None = None) -> Traceback:
    """The exception of a chain that decides.

    The earliest, but not one that only says that something else went wrong, and not a failed look-up where the
    exception raised while handling it is a cause that is known.
    """
    chain = [link for link in links(block) if not _follows(link, among)]
    if not chain:
        return list(links(block))[-1]
    best = chain[-1]
    for later in reversed(chain[:-1]):
        if not (_mute(best, later, among) or (later.link is Link.CONTEXT and _only_asked(best, later, among))):
            break
        best = later
    return best


def _mute(earlier: Traceback, later: Traceback, among: Catalogue | None) -> bool:
    """`raise TimeoutError("RPC call …") from error`: an exception without words, told by the next one."""
    return not earlier.message and _role(earlier, among) is None and _role(later, among) is Role.ROOT


def _only_asked(earlier: Traceback, later: Traceback, among: Catalogue | None) -> bool:
    return bool(_ASKING.search(earlier.type)) and _role(later, among) is Role.ROOT and _role(earlier, among) is None


def _follows(block: Traceback, among: Catalogue | None) -> bool:
    return not block.type or block.link is Link.GROUP or _role(block, among) in (Role.ECHO, Role.NOISE)


def _role(block: Traceback, among: Catalogue | None) -> Role | None:
    found = signatures.find(text_of(block), on="exceptions", frames=frames_of(block), among=among)
    return found[0].role if found else None
