"""What a text must contain before a regular expression can match it: a cheap test that spares most lines the search."""

from __future__ import annotations

import re

# An escape, a class, the head of a group, a quantifier, any other character.
_TOKEN = re.compile(
    r"(?P<escape>\\.)|(?P<class>\[\^?\]?(?:\\.|[^\]\\])*\])|(?P<group>\(\?(?:P<\w+>|<?[=!]|[a-zA-Z]*:|[a-zA-Z]+\))|\()"
    r"|(?P<close>\))|(?P<many>(?:[*+?]|\{\d*,?\d*\})\??)|(?P<other>.)",
    re.DOTALL,
)


def needle(pattern: str) -> str:
    """The longest text that every match of `pattern` contains, or "" where none is certain.

    Only what stands outside groups, classes and alternatives counts. Patterns with inline flags are not judged.
    """
    if re.match(r"\(\?[a-zA-Z]+\)", pattern):
        return ""
    runs: list[str] = [""]
    depth = 0
    for token in _TOKEN.finditer(pattern):
        kind, text = token.lastgroup, token[0]
        if kind == "many" and not depth:
            _repeat(runs, text)
        elif kind == "group":
            depth += 1
            runs.append("")
        elif kind == "close":
            depth -= 1
            runs.append("")
        elif depth or kind == "many":
            continue
        elif text == "|":
            return ""
        elif kind == "escape" and not text[1].isalnum():
            runs[-1] += text[1]
        elif kind == "other" and text not in ".^$":
            runs[-1] += text
        else:
            runs.append("")
    return max(runs, key=len)


def _repeat(runs: list[str], quantifier: str) -> None:
    """The character before a quantifier is certain only where it is wanted at least once; behind it a new run begins."""
    if quantifier[0] in "*?" or quantifier.startswith(("{0", "{,")):
        runs[-1] = runs[-1][:-1]
    runs.append("")


def nested(pattern: str) -> bool:
    """Whether a repetition without bound stands inside another one: on hostile text such a search may never end."""
    inside = [False]
    closed = False
    for token in _TOKEN.finditer(pattern):
        kind, text = token.lastgroup, token[0]
        if kind == "many":
            unbounded = text[0] in "*+" or bool(re.match(r"\{\d*,\}", text))
            if unbounded and closed:
                return True
            inside[-1] = inside[-1] or unbounded
        elif kind == "group":
            inside.append(False)
        was = closed
        closed = False
        if kind == "close" and len(inside) > 1:
            closed = inside.pop()
            inside[-1] = inside[-1] or closed
        elif kind == "many" and was:
            # A group that repeats a bounded number of times is looked into once more: (a+){3}+
            closed = True
    return False
