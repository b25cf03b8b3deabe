"""One table of answers, held against every HTTP status there is, for every sink that speaks HTTP."""

from __future__ import annotations

import math
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.founding import T0
from watchd import errors
from watchd.http import HttpReply
from watchd.sinks import answers, slack
from watchd.sinks.base import Answer, Result

SENT, RETRY, HOLD, SHRINK, DEAD = Result.SENT, Result.RETRY, Result.HOLD, Result.SHRINK, Result.DEAD

HELD = {401, 403, 404, 405, 407, 410}
RETRIED = {408, 425, 429}


def reply(status, body=b"", **headers):
    return HttpReply(
        status=status, headers={name.replace("_", "-"): v for name, v in headers.items()}, body=body, elapsed_ms=1.0
    )


def expected(status):
    if status in HELD or 300 <= status < 400:
        return HOLD
    if status == 413:
        return SHRINK
    if status in RETRIED or status >= 500 or status < 200:
        return RETRY
    return SENT if status < 300 else DEAD


@pytest.mark.parametrize("sink", ["webhook", "slack"])
def test_every_status_has_its_meaning(sink):
    rules = {"words": slack.WORDS, "success": "ok"} if sink == "slack" else {}
    for status in range(100, 600):
        found = answers.read(reply(status, b"ok" if status < 300 else b"<html>"), T0, **rules)
        assert found.result is expected(status), status
        assert found.reason == ("" if found.result is SENT else f"HTTP {status}{' ok' if status < 200 else ''}")


@pytest.mark.parametrize(
    ("status", "body", "result"),
    [
        (200, b"ok", SENT),
        (200, b"ok\n", SENT),
        (200, b"", RETRY),
        (200, b"OK", RETRY),
        (200, b"<html>Sign in to the hotel's network</html>", RETRY),
        (200, b'{"ok":false,"error":"invalid_auth"}', HOLD),
        (200, b'{"ok":false,"error":"something_new"}', RETRY),
        (200, b'{"ok":true}', RETRY),
        (400, b"invalid_blocks", SHRINK),
        (400, b"invalid_payload", SHRINK),
        (400, b"msg_blocks_too_long", SHRINK),
        (400, b"no_text", SHRINK),
        (400, b"invalid_token", HOLD),
        (403, b"invalid_token", HOLD),
        (400, b"user_not_found", HOLD),
        (403, b"action_prohibited", HOLD),
        (404, b"channel_not_found", HOLD),
        (404, b"no_service", HOLD),
        (410, b"channel_is_archived", HOLD),
        (500, b"rollup_error", RETRY),
        (400, b"something_new", DEAD),
        (429, b'{"retry_after":1,"ok":false,"error":"rate_limited"}', RETRY),
        (302, b"ok", HOLD),
    ],
)
def test_slacks_words_go_before_the_status(status, body, result):
    assert answers.read(reply(status, body), T0, words=slack.WORDS, success="ok").result is result


@pytest.mark.parametrize(
    ("body", "result"),
    [
        (b"", SENT),
        (b"accepted", SENT),
        (b'{"ok":true}', SENT),
        (b'{"ok":false}', RETRY),
        (b'{"ok":false,"error":"later"}', RETRY),
        (b'{"ok":null}', SENT),
        (b"[" * 100_000, SENT),
        (b"\xff\xfe", SENT),
    ],
)
def test_any_receiver_may_say_that_it_did_not_take_it(body, result):
    assert answers.read(reply(200, body), T0).result is result


@pytest.mark.parametrize(
    ("headers", "body", "wait_s"),
    [
        ({}, b"", None),
        ({"retry_after": "30"}, b"", 30),
        ({"retry_after": "1.5"}, b"", 1.5),
        ({"retry_after": "Thu, 18 Sep 2025 14:10:55 GMT"}, b"", 60),
        ({"retry_after": "Thu, 18 Sep 2025 14:08:55 GMT"}, b"", 0),
        ({"retry_after": "Fri, 19 Sep 2035 14:09:55 GMT"}, b"", 3600),
        ({"retry_after": "-5"}, b"", 0),
        ({"retry_after": "1e999"}, b"", None),
        ({"retry_after": "nan"}, b"", None),
        ({"retry_after": "soon"}, b"", None),
        ({"retry_after": ""}, b"", None),
        ({"retry_after": "86400"}, b"", 3600),
        ({}, b'{"retry_after": 2.25}', 2.25),
        ({"retry_after": "1"}, b'{"retry_after": 7}', 7),
        ({}, b'{"retry_after": true}', None),
        ({}, b'{"retry_after": [1]}', None),
        ({}, b'{"retry_after": 1' + b"0" * 500 + b"}", None),
    ],
)
def test_a_wait_comes_as_seconds_as_a_date_or_in_the_body_and_is_at_most_an_hour(headers, body, wait_s):
    found = answers.read(reply(429, body, **headers), T0)
    assert (found.result, found.retry_after_s) == (RETRY, wait_s)


def test_only_what_is_retried_makes_the_sink_wait():
    assert answers.read(reply(503, retry_after="9"), T0).retry_after_s == 9
    for status in (200, 302, 400, 404, 413):
        assert answers.read(reply(status, retry_after="9"), T0).retry_after_s is None


@given(st.binary(max_size=300), st.text(max_size=60), st.integers(100, 599))
def test_no_answer_however_strange_raises_or_gets_into_the_reason(body, header, status):
    found = answers.read(reply(status, body, retry_after=header), T0 + timedelta(days=1), words=slack.WORDS)
    assert found.retry_after_s is None or (0 <= found.retry_after_s <= 3600 and math.isfinite(found.retry_after_s))
    assert found.reason == "" or set(found.reason) <= set("HTP 0123456789abcdefghijklmnopqrstuvwxyz_")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (errors.HttpRefusedError, "connection refused, or the name is unknown"),
        (errors.HttpTimeoutError, "no answer in time"),
        (errors.HttpLostError, "connection lost before the answer"),
        (errors.HttpError, "no answer"),
    ],
)
def test_no_answer_is_tried_again_and_named_without_its_text(error, reason):
    found = answers.unanswered(error("https://hooks.example/s3cr3t"))
    assert found == Answer(result=RETRY, reason=reason)
