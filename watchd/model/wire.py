"""Incidents as JSON text, and back; and the schema that says what the text looks like.

pydantic reads and describes the dataclasses; it is imported on first use, since the nouns themselves must be cheap.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import Enum
from functools import cache
from typing import Any

from watchd.model import incident as nouns
from watchd.model.incident import Incident, LogGap

_GAP_KEYS = {"start": "from", "end": "to"}


def to_json(incident: Incident, *, indent: int | None = None) -> str:
    """The incident as one JSON document, its keys in the order of the contract."""
    return json.dumps(plain(incident), ensure_ascii=False, indent=indent)


def from_json(text: str) -> Incident:
    """Read what `to_json` wrote. Raises ValueError where it is no incident of this schema."""
    document = json.loads(text)
    for gap in document.get("log", {}).get("gaps", ()):
        for field, key in _GAP_KEYS.items():
            if key in gap:
                gap[field] = gap.pop(key)
    incident: Incident = _adapter().validate_python(document)
    return incident


def schema() -> dict[str, Any]:
    """The JSON Schema of an incident."""
    found: dict[str, Any] = _adapter().json_schema()
    gap = found["$defs"]["LogGap"]
    for field, key in _GAP_KEYS.items():
        gap["properties"][key] = gap["properties"].pop(field)
    gap["required"] = ["from", "to", "reason"]
    for name, definition in (*found["$defs"].items(), ("Incident", found)):
        if "properties" in definition and name != "LogGap":
            # to_json writes every key, so a reader may rely on each.
            definition["required"] = list(definition["properties"])
        # Not every pydantic takes the docstrings of dataclasses.
        definition["description"] = inspect.cleandoc(getattr(nouns, name).__doc__)
    ordered = {key: found[key] for key in sorted(found)}
    ordered["$defs"] = {
        name: {key: definition[key] for key in sorted(definition)} for name, definition in found["$defs"].items()
    }
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "watchd.incident/1", **ordered}


def plain(value: Any) -> Any:
    """Dataclasses, enums, tuples and times as what JSON knows; times as RFC 3339 in UTC with milliseconds."""
    if isinstance(value, LogGap):
        return {"from": value.start, "to": value.end, "reason": value.reason}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    return value


@cache
def _adapter() -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(Incident)
