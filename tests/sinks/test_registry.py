"""The list of sinks: each type of the configuration that is built, made from its settings."""

from __future__ import annotations

import io
import typing
from pathlib import Path

import pytest

from watchd.errors import SettingsError
from watchd.http import HttpClient
from watchd.settings import SinkSettings
from watchd.settings.secrets import Secret
from watchd.settings.types import SinkType
from watchd.sinks import registry


def a_secret(text="https://hooks.example/s3cr3t", **fields):
    given = {"config": "watchd.toml", "line": 7, "key": "sinks.ops.url", "source": "literal", "literal": text}
    return Secret(**given | fields)


def a_sink(kind, **fields):
    return SinkSettings(name="ops", type=kind, url=a_secret(), path=Path("/tmp/incidents.jsonl"), **fields)


@pytest.fixture
async def client():
    found = HttpClient()
    yield found
    await found.close()


@pytest.mark.parametrize(("kind", "edits"), [("slack", False), ("webhook", True), ("file", True), ("terminal", True)])
async def test_a_sink_is_made_from_its_settings_and_keeps_its_name(client, kind, edits):
    sink = registry.build(a_sink(kind), client, io.StringIO())
    assert (sink.name, sink.edits, registry.edits(kind)) == ("ops", edits, edits)
    assert "s3cr3t" not in repr(sink)


async def test_a_secret_that_cannot_be_read_is_a_mistake_with_its_line(client):
    missing = a_secret(source="env", name="NOT_SET_ANYWHERE", literal="")
    settings = SinkSettings(name="ops", type="slack", url=missing)
    with pytest.raises(SettingsError, match=r"watchd\.toml:7: sinks\.ops\.url: .*NOT_SET_ANYWHERE"):
        registry.build(settings, client, io.StringIO())


def test_every_type_that_is_built_is_one_of_the_contract():
    assert set(registry.SINKS) <= set(typing.get_args(SinkType))
