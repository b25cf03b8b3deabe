"""Sinks against real receivers: what comes over the wire, and what becomes of every way in which it can fail."""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager

import pytest

from tests.sinks.test_slack import HOSTILE, everywhere
from tests.support import receiver
from tests.support.founding import T0, climbing, final, resolved
from tests.support.receiver import Fault, Receiver, Response, SlackReceiver
from watchd.http import HttpClient
from watchd.model import wire
from watchd.sinks import slack, webhook
from watchd.sinks.base import Result
from watchd.sinks.slack import SlackWebhook
from watchd.sinks.webhook import Webhook

SECRET = "s3cr3t-t0k3n"


@asynccontextmanager
async def sink(kind, url, **options):
    client = HttpClient()
    try:
        yield kind("ops", url, client, now=lambda: T0, **options)
    finally:
        await client.close()


async def test_slack_takes_every_message(monkeypatch):
    with SlackReceiver() as there:
        async with sink(SlackWebhook, there.url, mention="<!here>") as ops:
            for incident in (climbing(), final(), resolved(), everywhere(HOSTILE), everywhere('\\"&<' * 300, times=99)):
                for small in (False, True):
                    answer = await ops.send(incident, first=True, small=small)
                    assert (answer.result, answer.reason) == (Result.SENT, "")
        assert len(there.received) == 10
        assert there.received[2].json == slack.render(final(), first=True, mention="<!here>")


async def test_a_webhook_receives_the_incident_and_can_check_who_sent_it():
    with Receiver() as there:
        async with sink(Webhook, there.url, secret="key") as hook:
            answer = await hook.send(final(), first=True, small=False)
        (request,) = there.received
    assert answer.result is Result.SENT
    assert (request.method, request.path) == ("POST", receiver.PATH)
    assert wire.from_json(request.body.decode()) == final()
    assert request.headers["content-type"] == "application/json; charset=utf-8"
    assert request.headers["idempotency-key"] == f"{final().id}/2"
    assert request.headers["ce-specversion"] == "1.0"
    assert request.headers["watchd-signature"] == dict(webhook.sign(request.body, b"key", T0))["Watchd-Signature"]


async def test_without_a_secret_nothing_is_signed():
    with Receiver() as there:
        async with sink(Webhook, there.url) as hook:
            await hook.send(final(), first=True, small=False)
        assert "watchd-signature" not in there.received[0].headers


@pytest.mark.parametrize("kind", [Webhook, SlackWebhook])
async def test_every_status_that_a_server_can_send_is_read(kind):
    """As in the table of answers, and no redirect is followed."""
    statuses = [*range(200, 600)]
    away = {"Location": "/elsewhere"}
    steps = [Response(status=status, headers=away if 300 <= status < 400 else {}) for status in statuses]
    with Receiver(*steps) as there:
        async with sink(kind, there.url) as ops:
            found = {status: (await ops.send(climbing(), first=True, small=False)).result for status in statuses}
        assert {request.path for request in there.received} == {receiver.PATH}
    assert {status for status in statuses if found[status] is Result.SENT} == (
        set(range(200, 300)) if kind is Webhook else set()
    )
    assert found[302] is found[307] is found[404] is Result.HOLD
    assert found[413] is Result.SHRINK
    assert found[429] is found[500] is found[503] is Result.RETRY
    assert found[400] is found[422] is Result.DEAD


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (Fault.RESET, "connection lost before the answer"),
        (Fault.CLOSE, "connection lost before the answer"),
        (Fault.GARBAGE, "connection lost before the answer"),
        (Fault.CUT, "connection lost before the answer"),
        (Fault.HANG, "no answer in time"),
    ],
)
@pytest.mark.parametrize("kind", [Webhook, SlackWebhook])
async def test_every_way_not_to_answer_is_tried_again(kind, fault, reason, monkeypatch):
    monkeypatch.setattr(webhook, "TIMEOUT_S", 0.3)
    monkeypatch.setattr(slack, "TIMEOUT_S", 0.3)
    with Receiver(fault) as there:
        async with sink(kind, there.url) as ops:
            answer = await ops.send(climbing(), first=True, small=False)
    assert (answer.result, answer.reason) == (Result.RETRY, reason)


@pytest.mark.parametrize("kind", [Webhook, SlackWebhook])
async def test_nobody_there_is_tried_again(kind):
    with Receiver() as there:
        pass
    async with sink(kind, there.url) as ops:
        answer = await ops.send(climbing(), first=True, small=False)
    assert (answer.result, answer.reason) == (Result.RETRY, "connection refused, or the name is unknown")


async def test_slacks_limit_of_rate_holds_for_as_long_as_it_asks():
    with SlackReceiver(receiver.RATE_LIMITED) as there:
        async with sink(SlackWebhook, there.url) as ops:
            answer = await ops.send(climbing(), first=True, small=False)
            assert (answer.result, answer.retry_after_s) == (Result.RETRY, 30)
            assert answer.reason == "HTTP 429 rate_limited"
            assert (await ops.send(climbing(), first=True, small=False)).result is Result.SENT


async def test_a_hook_that_was_removed_waits_for_a_person():
    with SlackReceiver() as there:
        async with sink(SlackWebhook, there.url + "-old") as ops:
            answer = await ops.send(climbing(), first=True, small=False)
    assert (answer.result, answer.reason) == (Result.HOLD, "HTTP 404 no_service")


@pytest.mark.parametrize("kind", [Webhook, SlackWebhook])
async def test_the_address_is_nowhere_but_in_the_request(kind, caplog):
    caplog.set_level(logging.DEBUG)
    with Receiver(Response(status=404), Fault.RESET) as there:
        async with sink(kind, there.url) as ops:
            said = [repr(await ops.send(climbing(), first=True, small=False)) for _ in range(2)]
            said += [repr(ops), str(ops)]
    async with sink(kind, there.url) as ops:
        said.append(repr(await ops.send(climbing(), first=True, small=False)))
    own = [record for record in caplog.records if record.name.startswith("watchd")]
    assert SECRET not in "\n".join([*said, *(record.getMessage() for record in own)])
