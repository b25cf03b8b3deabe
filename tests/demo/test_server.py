"""The server of the demo: it really serves, really dies on its arguments, and leaves nothing."""

from __future__ import annotations

import asyncio
import shlex
import socket
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from watchd.demo.host import LOOPBACK
from watchd.demo.program import Check, Program
from watchd.demo.server import Server, free_port
from watchd.model import SourceFile
from watchd.parse import source


def program(check: Check, names: str = "real") -> Program:
    """The program as the demo has it, or with every name changed."""
    if names == "real":
        return Program(check=check, start_s=0.1)
    return Program(
        package="sketcher",
        module="options",
        steps="--sketch-depth",
        topk="--sketch-breadth",
        tokens="--sketch-size",
        check=check,
        start_s=0.1,
    )


def launched(found: Program, folder: Path, *words: str) -> Server:
    packages = folder / "site-packages"
    if not packages.exists():
        found.write(packages)
    return Server(words, packages=packages, log=folder / "server.log")


def status_of(url: str) -> int | None:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return None


async def healthy(port: int) -> None:
    async with asyncio.timeout(30):
        while await asyncio.to_thread(status_of, f"http://{LOOPBACK}:{port}/health") != 200:
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("names", ["real", "other"])
@pytest.mark.parametrize("check", Check)
async def test_without_the_first_flag_it_dies_on_its_check(tmp_path: Path, check: Check, names: str) -> None:
    found = program(check, names)
    async with launched(found, tmp_path, *found.words(free_port(), steps=False)) as server:
        async with asyncio.timeout(30):
            assert await server.ended() == 1
    lines = (tmp_path / "server.log").read_text().splitlines()
    assert lines[-1].partition(":")[0] == found.exception
    assert f'{found.package}/{found.module}.py", line ' in "\n".join(lines[-4:])
    assert sum(line.startswith("Traceback") for line in lines) == 1


@pytest.mark.parametrize("check", Check)
async def test_with_all_three_flags_it_serves_its_health_until_it_is_told_to_stop(tmp_path: Path, check: Check) -> None:
    found, port = program(check), free_port()
    async with launched(found, tmp_path, *found.words(port, steps=True)) as server:
        await healthy(port)
        assert await asyncio.to_thread(status_of, f"http://{LOOPBACK}:{port}/elsewhere") == 404
        await server.stop()
        assert await server.ended() == 0
    assert "received SIGTERM" in (tmp_path / "server.log").read_text()
    assert await asyncio.to_thread(status_of, f"http://{LOOPBACK}:{port}/health") is None


@pytest.mark.parametrize("check", Check)
async def test_with_none_of_the_three_flags_it_serves_too(tmp_path: Path, check: Check) -> None:
    found, port = program(check), free_port()
    words = [word for word in found.words(port, steps=False) if word not in (found.topk, "1", found.tokens, "16")]
    async with launched(found, tmp_path, *words):
        await healthy(port)


@pytest.mark.parametrize("names", ["real", "other"])
@pytest.mark.parametrize("check", Check)
async def test_its_check_ties_the_three_settings_together_as_its_source_says(
    tmp_path: Path, check: Check, names: str
) -> None:
    """Read by the parser that watchd uses, at the line that this Python reports."""
    found = program(check, names)
    async with launched(found, tmp_path, *found.words(free_port(), steps=False)) as server:
        await server.ended()
    path = tmp_path / "site-packages" / found.package / f"{found.module}.py"
    frames = [line for line in (tmp_path / "server.log").read_text().splitlines() if f'"{path}"' in line]
    line = int(frames[-1].split(", ")[1].removeprefix("line "))
    shown = source.excerpt(SourceFile(path=str(path), text=path.read_text(), sha256="", line=line, code=None))
    assert shown is not None
    assert shown.guard is not None
    assert set(shown.guard.requires) >= set(found.attributes)


async def test_a_launch_begins_the_log_anew(tmp_path: Path) -> None:
    (tmp_path / "server.log").write_text("what was there before\n" * 1_000)
    found = program(Check.ASSERT)
    async with launched(found, tmp_path, *found.words(free_port(), steps=False)) as server:
        await server.ended()
    assert "what was there before" not in (tmp_path / "server.log").read_text()


async def test_it_ends_with_the_block_that_launched_it(tmp_path: Path) -> None:
    found, port = program(Check.ASSERT), free_port()
    async with launched(found, tmp_path, *found.words(port, steps=True)):
        await healthy(port)
    assert await asyncio.to_thread(status_of, f"http://{LOOPBACK}:{port}/health") is None


async def test_it_ends_when_whoever_launched_it_is_killed(tmp_path: Path) -> None:
    found, port = program(Check.ASSERT), free_port()
    async with launched(found, tmp_path, *found.words(port, steps=True)) as server:
        await healthy(port)
        assert server._process is not None
        assert server._process.stdin is not None
        server._process.stdin.close()  # as the kernel does it for a process that is killed
        async with asyncio.timeout(30):
            await server.ended()


async def test_switches_of_the_surrounding_python_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PYTHONOPTIMIZE would strip the assertion, FORCE_COLOR would colour the traceback."""
    for name, value in {"PYTHONOPTIMIZE": "2", "FORCE_COLOR": "1", "PYTHONPATH": "/nowhere"}.items():
        monkeypatch.setenv(name, value)
    found = program(Check.ASSERT)
    async with launched(found, tmp_path, *found.words(free_port(), steps=False)) as server:
        assert await server.ended() == 1
    text = (tmp_path / "server.log").read_text()
    assert text.endswith("AssertionError\n")
    assert "\x1b" not in text


def test_the_command_is_shown_as_one_types_it(tmp_path: Path) -> None:
    found = Program()
    server = launched(found, tmp_path, *found.words(8000, steps=True))
    assert server.command == (
        f"{shlex.quote(sys.executable)} -m draftserve.launch --model-path /srv/models/atlas-8b-instruct --speculative-algorithm EAGLE3"
        " --speculative-draft-model-path /srv/models/atlas-8b-eagle3 --speculative-num-steps 3"
        " --speculative-eagle-topk 1 --speculative-num-draft-tokens 16 --port 8000"
    )


def test_a_free_port_is_one_that_can_be_listened_on() -> None:
    with socket.socket() as listener:
        listener.bind((LOOPBACK, free_port()))
