"""The check in a source file, read in a process of its own: source comes from a host, and can kill a parser."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from watchd.correction import registry as correction
from watchd.model import Case, Fix, Guard, Root, SourceExcerpt, SourceFile
from watchd.parse.source import TEXT_LIMIT, plain_excerpt

_PARENT = str(Path(__file__).resolve().parents[2])
"""The folder that holds the package: an isolated Python does not look for it by itself."""
_FLAGS = ("-I", "-S")
"""Isolated, and without site packages: what the child does needs neither."""
_BEGIN = "import sys; sys.path.append(sys.argv[1]); from watchd.{room} import main; sys.exit(main())"


async def excerpt(source: SourceFile, *, limit_s: float = 10.0) -> SourceExcerpt | None:
    """The lines around the frame and the check among them, within `limit_s` seconds.

    Where the source kills the parser or takes too long, the lines without a check; None where it is longer than 1 MiB
    or has no such line.
    """
    if len(source.text) > TEXT_LIMIT:
        return None
    answer = await ask("parse.source_child", json.dumps(asdict(source)).encode(), limit_s)
    return plain_excerpt(source) if answer is None else _excerpt(answer)


async def fix(case: Case, root: Root | None, *, limit_s: float = 10.0) -> Fix | None:
    """What is known of a corrected launch command, within `limit_s` seconds; None where nothing is."""
    job = correction.job(case, root)
    if job is None:
        return None
    answer = await ask("correction.child", correction.to_json(job), limit_s)
    return None if answer is None else correction.from_json(answer)


async def ask(room: str, question: bytes, limit_s: float) -> bytes | None:
    """What the child of this room answered, or None where it died or had to be ended."""
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, *_FLAGS, "-c", _BEGIN.format(room=room), _PARENT),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={"LC_ALL": "C.UTF-8"},
    )
    try:
        async with asyncio.timeout(limit_s):
            answer, _ = await child.communicate(question)
    except TimeoutError:
        return None
    finally:
        if child.returncode is None:
            with suppress(ProcessLookupError):
                child.kill()
            await child.wait()
    return answer if child.returncode == 0 else None


def _excerpt(answer: bytes) -> SourceExcerpt | None:
    found: dict[str, Any] | None = json.loads(answer)
    if found is None:
        return None
    guard = found["guard"]
    return SourceExcerpt(**_tuples({**found, "guard": Guard(**_tuples(guard)) if guard else None}))


def _tuples(fields: dict[str, Any]) -> dict[str, Any]:
    """JSON knows no tuples."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}
