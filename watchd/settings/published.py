"""The JSON Schema of the configuration, as editors and other programs read it."""

from __future__ import annotations

from typing import Any

_ORDER = (
    "$schema",
    "$ref",
    "title",
    "description",
    "type",
    "enum",
    "pattern",
    "anyOf",
    "oneOf",
    "default",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "definitions",
)
_NAMED = ("properties", "definitions")
"""Keys below which names stand, and not keywords."""


def schema() -> dict[str, Any]:
    """The schema in draft 4, which is the newest that TOML editors understand."""
    from watchd.settings import shapes  # pydantic is needed only where a configuration is

    found = shapes.Document.model_json_schema(ref_template="#/definitions/{model}")
    found["definitions"] = found.pop("$defs")
    tidy: dict[str, Any] = _tidy(found)
    return {"$schema": "http://json-schema.org/draft-04/schema#", "title": "watchd.toml"} | tidy


def _tidy(node: Any) -> Any:
    """The same in draft 4, without what pydantic says about Python: titles, null, tags of unions."""
    if isinstance(node, list):
        return [_tidy(item) for item in node]
    if not isinstance(node, dict):
        return node
    found = {key: value for key, value in node.items() if key not in ("title", "discriminator")}
    if "const" in found:
        found["enum"] = [found.pop("const")]
    if "default" in found and found["default"] is None:
        del found["default"]
    options = [option for option in found.pop("anyOf", ()) if option != {"type": "null"}]
    if len(options) == 1:
        found = options[0] | found
    elif options:
        found["anyOf"] = options
    tidy = {
        key: {name: _tidy(value) for name, value in child.items()} if key in _NAMED else _tidy(child)
        for key, child in found.items()
    }
    return {key: tidy[key] for key in sorted(tidy, key=_rank)}


def _rank(key: str) -> tuple[int, str]:
    return (_ORDER.index(key) if key in _ORDER else len(_ORDER), key)
