"""What pydantic found wrong, in our words: the place in the file, and a reason that says what to write instead."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping, Sequence
from datetime import date, time
from typing import Any

from watchd.errors import Mistake
from watchd.settings import shapes
from watchd.settings.fields import LITERAL
from watchd.settings.locate import Place, Places

_KINDS = {
    "string_type": "a string",
    "int_type": "a whole number",
    "list_type": "an array",
    "dict_type": "a table",
    "model_type": "a table",
    "model_attributes_type": "a table",
}
_GIVEN: tuple[tuple[type, str], ...] = (
    (bool, "a boolean"),
    (int, "a whole number"),
    (float, "a number with a point"),
    (str, "a string"),
    (list, "an array"),
    (dict, "a table"),
    (date, "a date"),
    (time, "a time"),
)
# 'auto', 'sftp' or 'tail'
_EXPECTED = re.compile(r"'([^']*)'")


def sort_out(
    errors: Sequence[Mapping[str, Any]], document: Mapping[str, Any], places: Places
) -> tuple[list[Mistake], list[Mistake]]:
    """Mistakes, and apart from them the secrets that stand in the file in the clear."""
    mistakes: list[Mistake] = []
    literals: list[Mistake] = []
    for error in errors:
        found = places.mistake(_place(error, document), _reason(error))
        (literals if error["type"] == LITERAL else mistakes).append(found)
    return mistakes, literals


def did_you_mean(word: str, known: Collection[str]) -> str:
    """A question with the nearest of the known words, or a list of them, to stand behind a reason."""
    near = difflib.get_close_matches(word[:64].lower().replace("-", "_"), known, n=1, cutoff=0.5)
    if near:
        return f"; did you mean `{near[0]}`?"
    return f"; known here: {', '.join(known)}" if known else ""


def _place(error: Mapping[str, Any], document: Mapping[str, Any]) -> Place:
    place = tuple(part for part in error["loc"] if part != "[key]")
    if place[:1] == ("sinks",) and len(place) > 2:
        place = (*place[:2], *place[3:])  # the third is the type by which pydantic chose the table
    if error["type"].startswith("union_tag"):
        place = (*place, "type")
    # A string may stand for a table: then its keys are not in the file.
    value: Any = document
    for depth, part in enumerate(place):
        if not isinstance(value, (dict, list)):
            return place[:depth]
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return place
    return place


def _reason(error: Mapping[str, Any]) -> str:
    kind: str = error["type"]
    context: Mapping[str, Any] = error.get("ctx", {})
    match kind:
        case "missing":
            return "is required, but missing"
        case "extra_forbidden":
            return "unknown key" + _where_else(error["loc"][:-1], str(error["loc"][-1]))
        case "literal_error":
            return _one_of(error["input"], _EXPECTED.findall(context["expected"]))
        case "union_tag_not_found":
            return f"is required, but missing: one of {', '.join(shapes.SINKS)}"
        case "union_tag_invalid":
            return _one_of(context["tag"], tuple(shapes.SINKS))
        case "greater_than_equal":
            return f"must be at least {context['ge']}"
        case "less_than_equal":
            return f"must be at most {context['le']}"
        case "too_short":
            return "must not be empty"
        case "value_error":
            return str(context["error"])
        case _ if kind in _KINDS:
            return _wrong_type(error)
        case _ if kind == LITERAL:
            return str(context["reason"])
        case _:
            return str(error["msg"])


def _where_else(table: Place, key: str) -> str:
    owner = shapes.owner(table, key)
    return f"; it belongs in `{owner}`" if owner else did_you_mean(key, shapes.keys_at(table))


def _one_of(given: object, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(str(given)[:64].lower(), known, n=1, cutoff=0.5)
    return f"must be one of {', '.join(known)}" + (f"; did you mean `{near[0]}`?" if near else "")


def _wrong_type(error: Mapping[str, Any]) -> str:
    given = next((name for kind, name in _GIVEN if isinstance(error["input"], kind)), "something else")
    place = error["loc"]
    if place in (("targets",), ("discovery",)):
        return f"must be an array of tables, each under [[{place[0]}]], not {given}"
    return f"must be {_KINDS[error['type']]}, not {given}"
