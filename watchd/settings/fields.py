"""The kinds of values that the tables of `shapes.py` are made of: how each is read, and how its schema describes it.

A reader raises ValueError with a reason that fits behind "FILE:LINE: KEY: ". It never shows the value of a secret.
"""

from __future__ import annotations

import copy
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import PlainValidator, ValidationInfo
from pydantic_core import PydanticCustomError

from watchd.settings import durations
from watchd.settings.secrets import Form, Source, has_password, is_http_url, unfit
from watchd.settings.types import Flapping

LITERAL = "literal_secret"
"""The type of the error for a secret that stands in the file itself, in the clear."""

# gpu-01    10.0.0.7    fe80::1
HOST_PATTERN = r"^[A-Za-z0-9._:][A-Za-z0-9._:-]{0,254}$"
# 127.0.0.1:9464    [::1]:9464    smtp.example:587
ENDPOINT_PATTERN = r"^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):[0-9]{1,5}$"
# oncall@example.org
MAIL_PATTERN = r"^[^@\s]+@[^@\s]+$"
# sglang
ENGINE_PATTERN = r"^[a-z0-9][a-z0-9_-]{0,63}$"

# journal:vllm@0.service
_UNIT = re.compile(r"journal:[A-Za-z0-9_.:\\][A-Za-z0-9_.:@\\-]{0,254}")
# container:sglang
_CONTAINER = re.compile(r"container:[A-Za-z0-9][A-Za-z0-9_.-]{0,254}")
_NOT_EXPANDED = "; `$` and `~` are never expanded"
_FORMS_WANTED = 'must be { credential = "NAME" }, { file = "PATH" } or { env = "NAME" }'
_SOURCES: dict[str, Source] = {"credential": "credential", "file": "file", "env": "env"}
# a credential's file name, a variable's name
_SECRET_NAMES = {"credential": re.compile(r"[^/\0]{1,255}"), "env": re.compile(r"[A-Za-z_][A-Za-z0-9_]*")}


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretForm:
    """How the file speaks of a secret; `Secret` adds where in the file."""

    source: Source
    form: Form
    name: str = ""
    literal: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class _Described:
    """The schema of a kind of value. A fresh copy each time, since pydantic writes a key's default into what it gets."""

    schema: dict[str, Any]

    def __get_pydantic_json_schema__(self, _core: Any, _next: Any) -> dict[str, Any]:
        return copy.deepcopy(self.schema)


@dataclass(frozen=True, slots=True, eq=False)
class OrUrl:
    """A table for which its URL alone may stand."""

    def __get_pydantic_json_schema__(self, core: Any, table: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        return {"anyOf": [_line_of("^https?://"), table(core)]}


def text(value: object) -> str:
    """One line that is not empty."""
    found = _string(value)
    if not found.strip():
        raise ValueError("must not be empty")
    if not found.isprintable():
        raise ValueError("must not hold control characters or line ends")
    return found


def host_name(value: object) -> str:
    """The name of a host, as it may stand in a command line."""
    found = _string(value)
    if not re.fullmatch(HOST_PATTERN, found):
        raise ValueError(
            "must be letters, digits and `.`, `_`, `:`, `-`, and must not begin with `-`" + _expansion_hint(found)
        )
    return found


def user_name(value: object) -> str:
    """A login name."""
    found = text(value)
    if found.startswith("-") or any(c.isspace() for c in found):
        raise ValueError("must hold no white space and must not begin with `-`")
    return found


def target_name(value: object) -> str:
    """The name of a target."""
    found = text(value)
    if found.startswith("-") or len(found) > 200:
        raise ValueError("must not begin with `-` and must be no longer than 200 characters")
    return found


def engine_name(value: object) -> str:
    """The name of an engine, known or not."""
    found = _string(value)
    if not re.fullmatch(ENGINE_PATTERN, found):
        raise ValueError("must be the name of an engine, in small letters")
    return found


def absolute_path(value: object) -> Path:
    """A path that begins at the root."""
    return Path(path_text(value))


def path_text(value: object) -> str:
    """The same as text, for paths on another machine."""
    found = text(value)
    if not found.startswith("/"):
        raise ValueError("must be an absolute path" + _expansion_hint(found))
    return found


def optional_path(value: object) -> str:
    """An absolute path, or empty."""
    return "" if value == "" else path_text(value)


def logs(value: object) -> tuple[str, ...]:
    """Where the log is: a path or glob, `journal:UNIT`, `container:NAME`, or several of them."""
    if isinstance(value, list):
        if not value:
            raise ValueError("must name at least one log")
        return tuple(_log(item) for item in value)
    return (_log(value),)


def http_url(value: object, info: ValidationInfo) -> str:
    """An http or https URL; a password in it is a literal secret."""
    found = _string(value)
    if not is_http_url(found):
        raise ValueError("must be a URL that begins with http:// or https://" + _expansion_hint(found))
    if has_password(found):
        _refuse_literal(info, "a password stands in this URL in the clear")
    return found


def optional_http_url(value: object, info: ValidationInfo) -> str:
    """An http or https URL, or empty."""
    return "" if value == "" else http_url(value, info)


def store_url(value: object, info: ValidationInfo) -> str:
    """`sqlite:////absolute/path` or `postgresql://…`."""
    found = _string(value)
    if found.startswith("sqlite:"):
        path = found.removeprefix("sqlite:///")
        if not path.startswith("/") or path.startswith("//") or not path.isprintable() or path.endswith("/"):
            raise ValueError(
                'must hold an absolute path behind three slashes, e.g. "sqlite:////var/lib/watchd/watchd.db"'
            )
    elif re.match("postgres(ql)?://", found):
        if has_password(found):
            _refuse_literal(info, "a password stands in this URL in the clear")
    else:
        raise ValueError('must be "sqlite:////absolute/path" or "postgresql://…"' + _expansion_hint(found))
    return found


def endpoint(value: object) -> str:
    """`HOST:PORT`."""
    found = _string(value)
    if not re.fullmatch(ENDPOINT_PATTERN, found) or not 0 < int(found.rpartition(":")[2]) < 65536:
        raise ValueError('must be HOST:PORT, e.g. "127.0.0.1:9464"')
    return found


def optional_endpoint(value: object) -> str:
    """`HOST:PORT`, or empty."""
    return "" if value == "" else endpoint(value)


def mail_address(value: object) -> str:
    """An e-mail address, roughly."""
    found = text(value)
    if not re.fullmatch(MAIL_PATTERN, found):
        raise ValueError("must be an e-mail address")
    return found


def mention(value: object) -> str:
    """One line, or empty."""
    return "" if value == "" else text(value)


def url_alone(value: object) -> object:
    """A string that stands for a table with nothing but a URL."""
    return {"url": value} if isinstance(value, str) else value


def pattern(value: object) -> str:
    """A regular expression."""
    found = _string(value)
    if not found or len(found) > 1000:
        raise ValueError("must be a regular expression of 1 to 1000 characters")
    try:
        with warnings.catch_warnings(action="ignore"):
            re.compile(found)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"is not a regular expression: {error}") from None
    return found


def secret_text(value: object, info: ValidationInfo) -> SecretForm:
    """A secret of any text."""
    return _secret(value, info, "text")


def secret_line(value: object, info: ValidationInfo) -> SecretForm:
    """A secret that goes into a header or a body."""
    return _secret(value, info, "line")


def secret_url(value: object, info: ValidationInfo) -> SecretForm:
    """A URL whose path is a secret."""
    return _secret(value, info, "url")


def open_line(value: object) -> SecretForm:
    """A value that may be a secret, but need not be."""
    return _secret(value, None, "line")


def open_url(value: object, info: ValidationInfo) -> SecretForm:
    """A URL that may be a secret, but need not be."""
    found = _secret(value, None, "url")
    if has_password(found.literal):
        _refuse_literal(info, "a password stands in this URL in the clear")
    return found


def key_file(value: object) -> SecretForm:
    """A private key, which always lies in a file."""
    if not isinstance(value, dict) or "env" in value:
        raise ValueError('must be { file = "PATH" } or { credential = "NAME" }: a key lies in a file')
    return _secret(value, None, "text")


def _secret(value: object, info: ValidationInfo | None, form: Form) -> SecretForm:
    if isinstance(value, str):
        wrong = unfit(value.strip(), form)
        if wrong:
            raise ValueError(wrong)
        if info:
            _refuse_literal(info, "a secret stands here in the clear")
        return SecretForm(source="literal", form=form, literal=value)
    if not isinstance(value, dict) or len(value) != 1 or not value.keys() <= _SOURCES.keys():
        raise ValueError(_FORMS_WANTED)
    source, name = next(iter(value.items()))
    if source == "file":
        return SecretForm(source="file", form=form, name=_named(path_text, name, "file"))
    named = _named(text, name, source)
    if not _SECRET_NAMES[source].fullmatch(named) or named in (".", ".."):
        raise ValueError(f"`{source}` must be a name")
    return SecretForm(source=_SOURCES[source], form=form, name=named)


def _named(read: Callable[[str], str], value: object, part: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"`{part}` must be a string")  # noqa: TRY004  pydantic collects no other kind
    try:
        return read(value)
    except ValueError as error:
        raise ValueError(f"`{part}` {error}") from None


def _refuse_literal(info: ValidationInfo, what: str) -> None:
    if not (info.context or {}).get("literals"):
        raise PydanticCustomError(LITERAL, "{reason}", {"reason": what})


def _log(value: object) -> str:
    found = text(value)
    if found.startswith("/"):
        return found
    if _UNIT.fullmatch(found) or _CONTAINER.fullmatch(found):
        return found
    raise ValueError("must be an absolute path or glob, journal:UNIT or container:NAME" + _expansion_hint(found))


def _string(value: object) -> str:
    if not isinstance(value, str):
        raise PydanticCustomError("string_type", "a string")
    return value


def _expansion_hint(value: str) -> str:
    return _NOT_EXPANDED if value.startswith("~") or "$" in value else ""


def _secret_schema(shown: str) -> dict[str, Any]:
    named = {name: {"type": "string", "minLength": 1} for name in _SOURCES}
    table = {
        "type": "object",
        "properties": named,
        "minProperties": 1,
        "maxProperties": 1,
        "additionalProperties": False,
    }
    return {"anyOf": [{"type": "string", "minLength": 1, "description": shown}, table]}


def _line_of(regex: str) -> dict[str, Any]:
    return {"type": "string", "pattern": regex}


_LITERAL_SHOWN = "in the clear: draws a warning, and is refused where others may read the file"
_OPEN_SHOWN = "in the clear"
_NOT_EMPTY = {"type": "string", "minLength": 1}
_ABSOLUTE = _line_of("^/")
_LOG = _line_of("^(/|journal:|container:)")

Text = Annotated[str, PlainValidator(text), _Described(_NOT_EMPTY)]
HostName = Annotated[str, PlainValidator(host_name), _Described(_line_of(HOST_PATTERN))]
UserName = Annotated[str, PlainValidator(user_name), _Described(_NOT_EMPTY)]
TargetName = Annotated[str, PlainValidator(target_name), _Described(_NOT_EMPTY | {"maxLength": 200})]
EngineName = Annotated[str, PlainValidator(engine_name), _Described(_line_of(ENGINE_PATTERN))]
AbsolutePath = Annotated[Path, PlainValidator(absolute_path), _Described(_ABSOLUTE)]
PathText = Annotated[str, PlainValidator(path_text), _Described(_ABSOLUTE)]
OptionalPath = Annotated[str, PlainValidator(optional_path), _Described(_line_of("^(/|$)"))]
Logs = Annotated[
    tuple[str, ...],
    PlainValidator(logs),
    _Described({"anyOf": [_LOG, {"type": "array", "items": _LOG, "minItems": 1}]}),
]
HttpUrl = Annotated[str, PlainValidator(http_url), _Described(_line_of("^https?://"))]
OptionalHttpUrl = Annotated[str, PlainValidator(optional_http_url), _Described(_line_of("^(https?://|$)"))]
StoreUrl = Annotated[str, PlainValidator(store_url), _Described(_line_of("^(sqlite:////|postgres(ql)?://)"))]
Endpoint = Annotated[str, PlainValidator(endpoint), _Described(_line_of(ENDPOINT_PATTERN))]
OptionalEndpoint = Annotated[
    str, PlainValidator(optional_endpoint), _Described({"anyOf": [_line_of(ENDPOINT_PATTERN), {"enum": [""]}]})
]
MailAddress = Annotated[str, PlainValidator(mail_address), _Described(_line_of(MAIL_PATTERN))]
Mention = Annotated[str, PlainValidator(mention), _Described({"type": "string"})]
Pattern = Annotated[str, PlainValidator(pattern), _Described(_NOT_EMPTY | {"maxLength": 1000})]
SecretText = Annotated[SecretForm, PlainValidator(secret_text), _Described(_secret_schema(_LITERAL_SHOWN))]
SecretLine = Annotated[SecretForm, PlainValidator(secret_line), _Described(_secret_schema(_LITERAL_SHOWN))]
SecretUrl = Annotated[SecretForm, PlainValidator(secret_url), _Described(_secret_schema(_LITERAL_SHOWN))]
OpenLine = Annotated[SecretForm, PlainValidator(open_line), _Described(_secret_schema(_OPEN_SHOWN))]
OpenUrl = Annotated[SecretForm, PlainValidator(open_url), _Described(_secret_schema(_OPEN_SHOWN))]
KeyFile = Annotated[SecretForm, PlainValidator(key_file), _Described(_secret_schema(_OPEN_SHOWN)["anyOf"][1])]

_DURATION = _line_of(durations.DURATION_PATTERN)
Duration = Annotated[float, PlainValidator(durations.duration), _Described(_DURATION)]
PositiveDuration = Annotated[float, PlainValidator(durations.positive_duration), _Described(_DURATION)]
OptionalDuration = Annotated[
    float | None, PlainValidator(durations.optional_duration), _Described({"anyOf": [_DURATION, {"enum": [""]}]})
]
Size = Annotated[int, PlainValidator(durations.size), _Described(_line_of(durations.SIZE_PATTERN))]
FlappingRate = Annotated[
    Flapping | None,
    PlainValidator(durations.flapping),
    _Described({"anyOf": [_line_of(durations.FLAPPING_PATTERN), {"enum": [""]}]}),
]
