"""The files in config/ are held to the code: whoever changes one changes the other."""

from __future__ import annotations

import json
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest

from watchd import settings
from watchd.errors import SettingsError
from watchd.model import RUNGS, wire
from watchd.settings import shapes

CONFIG = Path(__file__).parents[2] / "config"
SAMPLE = CONFIG / "watchd.toml"
EXAMPLE = CONFIG / "incident.example.json"


def test_the_schema_of_the_configuration_is_what_the_code_says() -> None:
    assert (CONFIG / "config.schema.json").read_text() == json.dumps(settings.schema(), indent=2) + "\n"


def test_the_schema_of_the_incident_is_what_the_code_says() -> None:
    assert (CONFIG / "incident.schema.json").read_text() == json.dumps(wire.schema(), indent=2) + "\n"


def test_the_sample_names_its_schema_and_agrees_with_it() -> None:
    assert SAMPLE.read_text().splitlines()[0] == "#:schema ./config.schema.json"
    schema = json.loads((CONFIG / "config.schema.json").read_text())
    jsonschema.Draft4Validator.check_schema(schema)
    jsonschema.Draft4Validator(schema).validate(tomllib.loads(SAMPLE.read_text()))


def test_the_sample_is_valid_even_where_others_may_read_it(tmp_path: Path) -> None:
    copy = shutil.copy(SAMPLE, tmp_path / "watchd.toml")
    copy.chmod(0o644)
    found = settings.load(copy)
    assert found.warnings == ()
    assert [target.name for target in found.targets] == ["eagle3"]
    assert [sink.name for sink in found.sinks] == ["ops", "pager", "hook", "alertmanager", "mail", "archive"]


def test_the_sample_marks_what_is_not_built(tmp_path: Path) -> None:
    marked = [number for number, line in enumerate(SAMPLE.read_text().splitlines(), start=1) if "(later)" in line]
    unbuilt = settings.not_built(settings.load(SAMPLE))
    assert unbuilt
    for mistake in unbuilt:
        near = {mistake.line, mistake.line - 1}  # a sink is marked at its header, not at its type
        assert near & set(marked), mistake


def test_the_sample_shows_every_key_of_every_table_but_what_it_cannot_show_together() -> None:
    sample = tomllib.loads(SAMPLE.read_text())
    shown = {
        ("store",): sample["store"],
        ("control",): sample["control"],
        ("web",): sample["web"],
        ("heartbeat",): sample["heartbeat"],
        ("defaults",): sample["defaults"],
        ("hosts", "gpu-01"): sample["hosts"]["gpu-01"],
        ("discovery", 0): sample["discovery"][0],
        (): sample,
    }
    for place, table in shown.items():
        assert set(shapes.keys_at(place)) == set(table), place
    target = sample["targets"][0]
    assert set(shapes.keys_at(("targets", 0))) == set(target) | set(sample["defaults"])
    assert set(shapes.keys_at(("targets", 0, "health"))) == set(target["health"]) | set(sample["defaults"]["health"])


def test_the_sample_shows_the_defaults_of_the_code() -> None:
    sample = tomllib.loads(SAMPLE.read_text())
    tables: tuple[tuple[type[shapes.Table], Any], ...] = (
        (shapes.Store, sample["store"]),
        (shapes.Control, sample["control"]),
        (shapes.Defaults, {key: value for key, value in sample["defaults"].items() if key != "health"}),
        (shapes.HealthDefaults, sample["defaults"]["health"]),
    )
    for shape, table in tables:
        assert shape.model_validate(table) == shape(), shape


def test_every_table_is_known_by_its_place() -> None:
    def below(shape: type[shapes.Table]) -> Iterator[type[shapes.Table]]:
        for child in shape.__subclasses__():
            yield child
            yield from below(child)

    bases = {shapes.Rules, shapes.Sink, shapes.ChatSink}
    assert {shape for _, shape in shapes.TABLES} == set(below(shapes.Table)) - bases


def test_the_rungs_of_the_configuration_are_those_of_the_ladder() -> None:
    assert get_args(shapes.Rung) == RUNGS


@pytest.mark.parametrize(
    "wrong",
    [
        {"stroe": {}},
        {"store": {"retention": 90}},
        {"store": {"black_box": "512MB"}},
        {"targets": [{"name": "t", "host": "h"}]},
        {"targets": [{"name": "t", "host": "-h", "log": "/l"}]},
        {"targets": [{"name": "t", "host": "h", "log": "/l", "health": {}}]},
        {"sinks": {"s": {"type": "slakc"}}},
        {"sinks": {"s": {"type": "file"}}},
        {"sinks": {"s": {"type": "slack", "url": {"file": "/a", "env": "B"}}}},
    ],
)
def test_the_schema_refuses_what_an_editor_can_see(wrong: Any) -> None:
    assert list(jsonschema.Draft4Validator(settings.schema()).iter_errors(wrong))


def test_the_schema_allows_a_url_for_a_health_table() -> None:
    target = {"name": "t", "host": "h", "log": "/l", "health": "http://127.0.0.1:1/health"}
    jsonschema.Draft4Validator(settings.schema()).validate({"targets": [target]})


def test_the_example_incident_agrees_with_its_schema() -> None:
    schema = json.loads((CONFIG / "incident.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(json.loads(EXAMPLE.read_text()))


def test_the_example_incident_is_what_the_code_would_write() -> None:
    text = EXAMPLE.read_text()
    assert wire.to_json(wire.from_json(text), indent=2) + "\n" == text


def test_the_example_incident_fills_every_key() -> None:
    filled: set[str] = set()
    empty: set[str] = set()

    def look(value: Any, path: str) -> None:
        (filled if value not in (None, "", [], {}) else empty).add(path)
        if isinstance(value, dict):
            for key, child in value.items():
                look(child, f"{path}.{key}")
        if isinstance(value, list):
            for child in value:
                look(child, f"{path}[]")

    look(json.loads(EXAMPLE.read_text()), "")
    # The founding exception has no message, and it was raised before there were ranks.
    honest = {".exception.message", ".rank"}
    assert {path for path in empty - filled if not path.endswith("[]")} == honest


def test_the_example_incident_is_consistent_in_itself() -> None:
    incident = wire.from_json(EXAMPLE.read_text())
    assert incident.source
    assert incident.frame
    assert incident.root
    assert incident.launch
    assert incident.launch.corrected
    assert incident.source.lines[incident.frame.line - incident.source.first_line].strip() == incident.frame.code
    assert incident.traceback[-1] == incident.root.text
    assert '--api-key "$API_KEY"' in incident.launch.command
    assert all(edit.flag in incident.launch.corrected for edit in incident.launch.edits if edit.action != "drop")
    shown = sum(step.excerpt.count("[redacted:") for step in incident.evidence)
    assert shown == sum(incident.redactions.values())


DOCUMENTED = Path(__file__).parents[2] / "docs" / "configuration.md"


def test_the_configuration_that_the_documentation_begins_with_can_be_run(tmp_path: Path) -> None:
    block = DOCUMENTED.read_text().partition("```toml\n")[2].partition("```")[0]
    path = tmp_path / "watchd.toml"
    path.write_text(block)
    found = settings.load(path)
    assert (len(found.targets), len(found.sinks)) == (1, 1)
    assert found.warnings == settings.not_built(found) == ()


def test_the_mistakes_that_the_documentation_shows_are_said_so(tmp_path: Path) -> None:
    path = tmp_path / "watchd.toml"
    path.write_text(
        '[[targets]]\nname = "a"\nheath = 1\nhost = "h"\nlog = "/a"\n\n\n'
        '[[targets]]\nname = "a"\nhost = "h"\nlog = "/b"\n[targets.health]\nurl = "http://a/"\ninterval = "10"\n'
    )
    with pytest.raises(SettingsError) as caught:
        settings.load(path)
    shown = DOCUMENTED.read_text().partition("KEY: REASON`:\n\n```\n")[2].partition("```")[0]
    assert str(caught.value).replace(str(path), "watchd.toml") + "\n" == shown
