"""The file sink: whole lines on the disk, whatever happens to the file."""

from __future__ import annotations

import errno
import os
import stat

import pytest

from tests.support.founding import climbing, final, resolved
from watchd.model import wire
from watchd.sinks import file
from watchd.sinks.base import Answer, Result
from watchd.sinks.file import FileSink


@pytest.fixture
def path(tmp_path):
    return tmp_path / "incidents.jsonl"


async def write(path, *incidents):
    sink = FileSink("archive", path)
    return [await sink.send(incident, first=True, small=False) for incident in incidents]


def read(path):
    return [wire.from_json(line) for line in path.read_text().splitlines()]


async def test_each_revision_is_a_line(path):
    answers = await write(path, climbing(), final(), resolved())
    assert [answer.result for answer in answers] == [Result.SENT] * 3
    assert read(path) == [climbing(), final(), resolved()]
    assert path.read_bytes().endswith(b"\n")


async def test_others_cannot_read_it(path):
    before = os.umask(0)
    try:
        await write(path, climbing())
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


async def test_after_a_rotation_it_goes_on_in_a_new_file(path):
    await write(path, climbing())
    path.rename(path.with_suffix(".1"))
    await write(path, final())
    assert read(path) == [final()]
    assert read(path.with_suffix(".1")) == [climbing()]


async def test_a_line_that_somebody_left_unfinished_spoils_no_other(path):
    path.write_text('{"schema": "watchd.inc')
    await write(path, final())
    first, second = path.read_text().splitlines()
    assert first == '{"schema": "watchd.inc'
    assert wire.from_json(second) == final()


async def test_a_line_break_in_a_log_is_none_in_the_file(path):
    assert "\n" in final().evidence[0].excerpt
    await write(path, final())
    assert len(path.read_text().splitlines()) == 1


async def test_a_full_disk_leaves_no_half_line_and_is_tried_again(path, monkeypatch):
    await write(path, climbing())
    real = os.write

    def full(descriptor, content):
        if len(content) < 100:
            return real(descriptor, content)
        real(descriptor, content[:50])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(file.os, "write", full)
    (answer,) = await write(path, final())
    monkeypatch.undo()
    assert answer == Answer(result=Result.RETRY, reason="No space left on device")
    await write(path, final())
    assert read(path) == [climbing(), final()]


async def test_what_a_person_must_mend_is_held_and_named_without_its_path(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "device").symlink_to("/dev/full")
    os.mkfifo(tmp_path / "fifo")
    held = [
        (tmp_path / "device", "is no regular file"),
        (tmp_path / "folder", "Is a directory"),
        (tmp_path / "fifo", "is no regular file"),
        (tmp_path / "missing" / "file", "No such file or directory"),
    ]
    for path, reason in held:
        assert await write(path, final()) == [Answer(result=Result.HOLD, reason=reason)]
