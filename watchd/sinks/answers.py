"""What a destination's answer means: one table for all, and what a vendor's own words add to it.

Checked against the vendors' pages and the threads named in the tables; a word of a vendor goes before the status,
the status before its class.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import MappingProxyType

from watchd import errors
from watchd.http import HttpReply
from watchd.sinks.base import Answer, Result

LONGEST_WAIT_S = 3600.0
"""A Retry-After beyond this is cut: a wrong clock over there must not silence a sink for a day."""

STATUSES: Mapping[int, Result] = MappingProxyType(
    {
        # Not about the message but about the address or the key: mended in the configuration.
        401: Result.HOLD,
        403: Result.HOLD,
        404: Result.HOLD,
        405: Result.HOLD,
        407: Result.HOLD,
        410: Result.HOLD,
        # Too large.
        413: Result.SHRINK,
        # Not now.
        408: Result.RETRY,
        425: Result.RETRY,
        429: Result.RETRY,
    }
)

_CLASSES = {
    1: Result.RETRY,
    2: Result.SENT,
    3: Result.HOLD,  # a redirect is never followed: the configured address is not the right one
    4: Result.DEAD,
    5: Result.RETRY,
}

# rate_limited
# msg_blocks_too_long
_WORD = re.compile(r"[a-z][a-z_]{1,60}")

_UNANSWERED = (
    (errors.HttpRefusedError, "connection refused, or the name is unknown"),
    (errors.HttpTimeoutError, "no answer in time"),
    (errors.HttpLostError, "connection lost before the answer"),
)


def read(
    reply: HttpReply,
    now: datetime,
    *,
    words: Mapping[str, Result] = MappingProxyType({}),
    success: str | None = None,
) -> Answer:
    """Read a reply.

    words    the vendor's error words, found as the whole body or as `error` of a JSON object
    success  the body that alone means success; None where any 2xx does, unless it says `"ok": false`
    """
    word, denied, wait = _body(reply.body)
    result = _CLASSES.get(reply.status // 100, Result.RETRY)
    result = STATUSES.get(reply.status, result)
    if word in words:
        result = words[word]
    elif result is Result.SENT and (denied or (success is not None and reply.body.strip() != success.encode())):
        result = Result.RETRY
    if result is Result.SENT:
        return Answer(result=result)
    reason = f"HTTP {reply.status} {word}".rstrip()
    if result is not Result.RETRY:
        return Answer(result=result, reason=reason)
    return Answer(result=result, reason=reason, retry_after_s=_retry_after(reply.headers.get("retry-after"), wait, now))


def unanswered(error: errors.HttpError) -> Answer:
    """Read a failure to get any reply."""
    reasons = (reason for kind, reason in _UNANSWERED if isinstance(error, kind))
    return Answer(result=Result.RETRY, reason=next(reasons, "no answer"))


def _body(body: bytes) -> tuple[str, bool, object]:
    """The error word, whether the body denies success, and how long it asks to wait; all of it hostile."""
    text = body[:4096].decode("utf-8", "replace").strip()
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return (text if _WORD.fullmatch(text) else "", False, None)
    if not isinstance(found, dict):
        return "", False, None
    word = found.get("error")
    named = word if isinstance(word, str) and _WORD.fullmatch(word) else ""
    return named, found.get("ok") is False, found.get("retry_after")


def _retry_after(header: str | None, body: object, now: datetime) -> float | None:
    """Seconds to wait: the header has seconds or a date (RFC 9110, 10.2.3), some vendors' bodies have seconds."""
    waits = [wait for wait in (_seconds(header, now), _seconds(body, now)) if wait is not None]
    return min(max(waits), LONGEST_WAIT_S) if waits else None


def _seconds(value: object, now: datetime) -> float | None:
    if value is None or isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        wait = float(value)
    except (ValueError, OverflowError):
        wait = _until(str(value), now)
    return max(0.0, wait) if math.isfinite(wait) else None


def _until(date: str, now: datetime) -> float:
    try:
        at = parsedate_to_datetime(date[:100])
    except (ValueError, OverflowError):
        return math.nan
    aware = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return (aware - now).total_seconds()
