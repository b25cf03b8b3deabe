"""What must not leave the jump host: found by form, by the name that stands before it, and by value.

A secret becomes `[redacted:rule]`; in a launch command it becomes `"$NAME"`, so that the command can still be run.
What is redacted once is not found again. Line ends stay where they were.
"""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple
from urllib.parse import quote

from watchd.parse.secret_forms import FORMS, Form
from watchd.parse.secret_names import Weight, likely, placeholder, spares, weigh

_SHORTEST_VALUE = 6
"""A shorter value would be found in half of all words."""
_NAME_REACH = 64
_VALUE_REACH = 128
"""So much of a value is looked at to decide; what follows without a break belongs to it."""
_LONGEST = 8192


def redact(text: str) -> tuple[str, Counter[str]]:
    """The text without secrets, and how many were found by each rule."""
    return Redactor().redact(text)


class Redactor:
    """Redacts by form and by name, and besides wherever one of `values` stands; `forms` are a user's own patterns."""

    def __init__(self, values: Iterable[str] = (), *, forms: Mapping[str, re.Pattern[str]] | None = None) -> None:
        self._values = _any_of(values)
        self._forms = (*(Form(rule, ("",), pattern) for rule, pattern in (forms or {}).items()), *FORMS)

    def redact(self, text: str) -> tuple[str, Counter[str]]:
        """The text without secrets, and how many were found by each rule."""
        hits: Counter[str] = Counter()
        if self._values is not None:
            text, hits["value"] = self._values.subn("[redacted:value]", text)
        lowered = text.lower()
        for form in self._forms:
            if any(needle in lowered for needle in form.needles):
                text = form.pattern.sub(partial(_masked, form.rule, hits), text)
        text = _by_name(text, hits)
        return text, +hits

    def redact_lines(self, lines: Sequence[str]) -> tuple[tuple[str, ...], Counter[str]]:
        """The same for lines of one text: a key may stretch over several. As many lines come back."""
        text, hits = self.redact("\n".join(lines))
        return (tuple(text.split("\n")) if lines else ()), hits


def redact_launch(argv: Sequence[str]) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """A launch command as a shell line and as words, secrets as `"$NAME"`, and the values that stood there.

    `--api-key X` becomes `--api-key "$API_KEY"`. Leading `NAME=value` words are a shell's assignments.
    """
    words = tuple(_words(argv))
    values = dict.fromkeys(word.value for word in words if len(word.value) >= _SHORTEST_VALUE)
    return " ".join(word.shown for word in words), tuple(word.text for word in words), tuple(values)


class _Word(NamedTuple):
    """A word of a command without its secret, as a shell would read it, and the secret or nothing."""

    text: str
    shown: str
    value: str = ""


def _words(argv: Sequence[str]) -> Iterator[_Word]:
    flag, taken, leading = "", 0, True
    for word in argv:
        name, equals, value = word.partition("=")
        leading = leading and bool(equals) and name.isidentifier()
        if word.startswith("-"):
            flag, taken = ("" if equals else name), 0
        elif _given_away(flag, word) and (not taken or flag.endswith("s") or likely(word)):
            taken += 1
            yield _hidden("", flag, word)
            continue
        else:
            flag = ""
        if equals and _ASSIGNED.fullmatch(name) and _given_away(name, value):
            yield _hidden(f"{name}=", name, value)
        elif hidden := _HIDDEN.fullmatch(word):
            yield _Word(word, f'{hidden[1]}"{hidden[2]}"')
        else:
            clean, _ = redact(word)
            bare = clean.partition("=")[2]
            yield _Word(clean, f"{name}={shlex.quote(bare)}" if leading else shlex.quote(clean))


_ASSIGNED = re.compile(r"[\w.+-]{1,100}")
# --api-key=$API_KEY: what this room wrote in an earlier life of the command
_HIDDEN = re.compile(r"([\w.+-]{1,100}=|)(\$[A-Z_]*(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|PWD|CREDENTIAL)S?)")


def _given_away(name: str, value: str) -> bool:
    """Whether the value of this flag or variable is a secret: on a command line every word is a value, none is code."""
    return bool(value) and weigh(name) is not Weight.NOTHING and not spares(name, value, literal=True)


def _hidden(before: str, name: str, value: str) -> _Word:
    """The word with a shell variable for the secret: `API_KEY` for `--llm.api-key`."""
    variable = re.sub(r"\W", "_", name.strip("-").rpartition(".")[2]).upper()
    return _Word(f"{before}${variable}", f'{before}"${variable}"', value)


def _masked(rule: str, hits: Counter[str], match: re.Match[str]) -> str:
    begin, end = match.span("secret") if "secret" in match.re.groupindex else match.span()
    secret = match.string[begin:end]
    if placeholder(secret):
        return match[0]
    hits[rule] += 1
    mask = f"[redacted:{rule}]" + "\n" * secret.count("\n")
    return match.string[match.start() : begin] + mask + match.string[end : match.end()]


def _any_of(values: Iterable[str]) -> re.Pattern[str] | None:
    """A pattern for these values, as they are and as JSON, a shell or a URL would write them."""
    wanted: set[str] = set()
    for value in values:
        if len(value) >= _SHORTEST_VALUE and not placeholder(value):
            wanted |= {value, json.dumps(value)[1:-1], shlex.quote(value), quote(value), quote(value, safe="")}
    if not wanted:
        return None
    # The longest first: a value may be the beginning of another.
    each = "|".join(re.escape(value) for value in sorted(wanted, key=lambda v: (-len(v), v)))
    return re.compile(rf"(?<![A-Za-z0-9])(?:{each})(?![A-Za-z0-9])")


# "api_key": "…"    --hf-token …    HF_TOKEN=…    '--api-key', '…'    password: …
_SAID = re.compile(r"(?i)(?:keys?|tokens?|secrets?|passwords?|passwd|passphrase|credentials?|pwd)(?![A-Za-z0-9_])")
_IS = re.compile(r"\\{0,2}[\"']?\s{0,4}[=:](?!=)\s{0,4}")
_IS_FLAG = re.compile(r"\\{0,2}[\"'],\s{0,4}(?=\\{0,2}[\"'])|\s{1,4}(?![-\s])")
_OPENING = re.compile(r"[bu]?(\\{0,2}[\"'])")
_BARE = re.compile(r"[^\s\"',;&)\]}\\]{1,128}")
_REST = re.compile(r"[^\s\"',;&)\]}\\]{0,8192}")
_LIST = re.compile(r"\[\s{0,4}[bu]?\\{0,2}[\"'][^\[\]\n]{1,8192}\]")
# Please set --hf-token or HF_TOKEN
_PROSE = re.compile(
    r"(?:a|an|and|as|can|cannot|flag|for|from|if|in|is|must|needs?|not|on|option|or|requires?|should|the|to|was|when|with)"
)


def _by_name(text: str, hits: Counter[str]) -> str:
    """Values that stand behind the name of a secret."""
    kept: list[str] = []
    done = 0
    for match in _SAID.finditer(text):
        if match.start() < done:
            continue
        name = _name_before(text, match)
        found = _value_behind(text, match.end(), name) if weigh(name) is not Weight.NOTHING else None
        if found is not None:
            begin, end = found
            rule = "flag" if name.startswith("-") else "field"
            kept += (text[done:begin], f"[redacted:{rule}]")
            hits[rule] += 1
            done = end
    return "".join((*kept, text[done:])) if done else text


def _name_before(text: str, match: re.Match[str]) -> str:
    begin = match.start()
    floor = max(0, begin - _NAME_REACH)
    while begin > floor and (text[begin - 1].isalnum() or text[begin - 1] in "_-."):
        begin -= 1
    return text[begin : match.end()]


def _value_behind(text: str, at: int, name: str) -> tuple[int, int] | None:
    """Where the secret begins and ends, or None where what stands there is none."""
    flag = name.startswith("-")
    sign = _IS.match(text, at) or (_IS_FLAG.match(text, at) if flag else None)
    if sign is None or text.startswith("[redacted:", sign.end()):
        return None
    begin, end, quoted = _value_at(text, sign.end())
    value = text[begin:end]
    if not value or (flag and not quoted and (_PROSE.fullmatch(value) or value.startswith("-"))):
        return None
    secret = likely(value) if weigh(name) is Weight.PERHAPS and not flag else True
    if not secret or spares(name, value, literal=quoted or flag):
        return None
    if not quoted and end - begin == _VALUE_REACH:
        end = max(end, _REST.match(text, end).end())  # type: ignore[union-attr]
    return begin, end


def _value_at(text: str, at: int) -> tuple[int, int, bool]:
    """Begin and end of the value that begins here, its quotes left out, and whether it had any."""
    if many := _LIST.match(text, at):
        return at + 1, many.end() - 1, True
    if text.startswith("[", at):
        at += 1
    if opening := _OPENING.match(text, at):
        begin = opening.end()
        end = text.find(opening[1], begin, begin + _LONGEST)
        while end > 0 and len(opening[1]) == 1 and text[end - 1] == "\\" and text[end - 2] != "\\":
            end = text.find(opening[1], end + 1, begin + _LONGEST)
        if end < 0 or "\n" in text[begin:end]:
            rest = _REST.match(text, begin)
            end = rest.end() if rest else begin
        return begin, end, True
    bare = _BARE.match(text, at)
    return at, bare.end() if bare else at, False
