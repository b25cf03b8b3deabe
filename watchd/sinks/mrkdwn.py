"""Text for Slack: made harmless, measured and cut. Everything here is pure.

Log text is hostile: it reaches a message only through these functions, which leave nothing in it that Slack would obey
(docs.slack.dev, "Formatting message text"): `&`, `<` and `>` become entities, which also takes the meaning from
`<!channel>`, `<@U…>` and `<https://…|…>`; three back-ticks no longer end a code block; `@here` and its like are broken,
since a workspace may link them even without brackets. There is no escape for `*`, `_` and `~`: log text stands in code.

A text's cost is its length in the JSON that is sent, after escaping: what Slack measures of all blocks together is
nearer to that than to what people read (slackapi/bolt-js#2867).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

ELLIPSIS = "…"
_JOINER = "\u200b"
"""A space of no width."""

_MORE = 24
"""What `and 999 more` costs."""
_COSTS = {"&": 5, "<": 4, ">": 4, '"': 2, "\\": 2, "\n": 2}
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})

# \x1b[31mERROR\x1b[0m
_SGR = re.compile(r"\x1b\[[0-9;]{0,40}m")
# @channel   @here   @everyone
_CALL = re.compile(r"@(?=channel|here|everyone)", re.IGNORECASE)


def code(text: str, limit: int) -> str:
    """Code within a line, in back-ticks, of at most this cost; the text's own back-ticks become quotes."""
    flat = " ".join(_plain(text[: 2 * limit]).split()).replace("`", "'")
    return f"`{_escape(_head(flat, limit - 2))}`" if flat else ""


def block(text: str, limit: int, *, end: bool = False) -> str:
    """A code block of at most this cost; with `end`, the text's end is kept rather than its beginning."""
    near = text[-2 * limit :] if end else text[: 2 * limit]
    clean = _unfenced(_plain(near)).strip("\n")
    cut = _tail if end else _head
    return f"```\n{_escape(cut(clean, limit - 10))}\n```" if clean.strip() else ""


def prose(text: str, limit: int) -> str:
    """A sentence of watchd's own, of at most this cost; a log's words may stand in it."""
    return _escape(_head(_unfenced(" ".join(_plain(text[: 2 * limit]).split())), limit))


def items(texts: Sequence[str], limit: int) -> str:
    """A list with a bullet in front of each text, of at most this cost together; what does not fit is counted."""
    rows: list[str] = []
    left = limit - _MORE
    for text in texts:
        row = f"• {prose(text, limit if rows else left - 4)}"
        if rows and cost(row) + 2 > left:
            rows.append(f"• and {len(texts) - len(rows)} more")
            break
        rows.append(row)
        left -= cost(row) + 2
    return "\n".join(rows)


def cost(text: str) -> int:
    """Characters that this text, escaped already, takes in the JSON that is sent."""
    return sum(2 if char in '"\\\n' else 1 for char in text)


def _plain(text: str) -> str:
    """The text without what nobody sees."""
    shown = _SGR.sub("", text).replace("\r\n", "\n").replace("\r", "\n").replace("\t", "    ")
    return _CALL.sub("@" + _JOINER, "".join(char for char in shown if char == "\n" or _visible(char)))


def _visible(char: str) -> bool:
    return (char.isascii() and char.isprintable()) or unicodedata.category(char) not in {"Cc", "Cf", "Cs", "Zl", "Zp"}


def _unfenced(text: str) -> str:
    """The text with every two neighbouring back-ticks parted: ```` becomes `​`​`​`."""
    return re.sub("`(?=`)", "`" + _JOINER, text)


def _escape(text: str) -> str:
    return text.translate(_ENTITIES)


def _head(text: str, limit: int) -> str:
    """The longest beginning of a text not yet escaped that costs at most `limit`, an ellipsis where it was cut."""
    used = 0
    fits = 0
    for index, char in enumerate(text):
        used += _COSTS.get(char, 1)
        if used <= limit - 1:
            fits = index + 1
        elif used > limit:
            return text[:fits] + ELLIPSIS
    return text


def _tail(text: str, limit: int) -> str:
    return _head(text[::-1], limit)[::-1]
