"""Store, outbox and sinks together, against real receivers, through SIGKILL at and between commits."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.support.founding import climbing
from tests.support.receiver import RATE_LIMITED, Fault, Receiver, Response, SlackReceiver
from watchd.model import DeliveryState
from watchd.store import Store

ROOT = Path(__file__).parent.parent

WATCHD = """
import asyncio, os, signal, sys
from datetime import UTC, datetime
from tests.support.founding import climbing, final, resolved
from watchd.http import HttpClient
from watchd.outbox import Outbox, Route
from watchd.sinks.slack import SlackWebhook
from watchd.sinks.webhook import Webhook
from watchd.store import AsyncStore, Store

path, hook_url, slack_url, label, moment, number = sys.argv[1:]
left = int(number)

class Killed(Store):
    def _commit(self, name):
        global left
        left -= name == label
        if left == 0 and name == label and moment == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        super()._commit(name)
        if left == 0 and name == label:
            os.kill(os.getpid(), signal.SIGKILL)

def now():
    return datetime.now(UTC)

async def main():
    client, store = HttpClient(), AsyncStore(Killed(path))
    hook, slack = Webhook("hook", hook_url, client, now=now, secret="key"), SlackWebhook("slack", slack_url, client, now=now)
    outlets = [(Route(sink="hook", edits=True), hook)]
    if slack_url:
        outlets.append((Route(sink="slack", edits=False), slack))
    box = Outbox(store, outlets, random=lambda: 0.1)  # of a second, mostly
    running = asyncio.ensure_future(box.run())
    before = await store.last_incident(climbing().key)
    for state in (climbing(), final(), resolved()):
        if before is None or before.revision < state.revision:
            await box.file(before, state)
            before = state
            await box.drain(5)
    await box.drain(20)
    running.cancel()
    await asyncio.wait([running])
    await client.close()
    await store.close()

asyncio.run(main())
"""


def run(path, hook, slack=None, label="none", moment="-", number=1):
    urls = [hook.url, slack.url if slack else ""]
    command = [sys.executable, "-c", WATCHD, str(path), *urls, label, moment, str(number)]
    return subprocess.run(command, cwd=ROOT, timeout=50, check=False, capture_output=True, text=True)


def settled(path):
    with Store(path) as store:
        return {d.state for d in store.deliveries(climbing().id)} <= {DeliveryState.SENT, DeliveryState.DROPPED}


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("label", ["file", "lease", "settle"])
def test_a_process_killed_at_a_commit_loses_nothing_and_repeats_only_what_was_sent_and_not_noted(
    tmp_path, label, moment, number
):
    path = tmp_path / "watchd.db"
    with Receiver() as hook:
        assert run(path, hook, None, label, moment, number).returncode == -signal.SIGKILL
        assert run(path, hook).returncode == 0
        keys = Counter(request.headers["idempotency-key"] for request in hook.received)
    assert sum(keys.values()) - len(keys) <= ((label, moment) == ("settle", "before"))
    assert hook.received[-1].json["status"] == "resolved"
    assert settled(path)


@pytest.mark.parametrize(
    ("label", "moment", "number"), [("settle", "before", 2), ("lease", "after", 3), ("file", "after", 2)]
)
def test_a_kill_costs_each_of_two_sinks_at_most_one_repeat(tmp_path, label, moment, number):
    path = tmp_path / "watchd.db"
    with Receiver() as hook, SlackReceiver() as slack:
        assert run(path, hook, slack, label, moment, number).returncode == -signal.SIGKILL
        assert run(path, hook, slack).returncode == 0
        for sink in (hook, slack):
            bodies = Counter(request.body for request in sink.received)
            assert sum(bodies.values()) - len(bodies) <= 1
        assert hook.received[-1].json["status"] == "resolved"
        assert "🟢" in slack.received[-1].json["text"]
    assert settled(path)


def test_what_was_sent_and_not_noted_is_sent_again_under_the_same_key(tmp_path):
    path = tmp_path / "watchd.db"
    with Receiver() as hook:
        assert run(path, hook, None, "settle", "before", 3).returncode == -signal.SIGKILL
        assert run(path, hook).returncode == 0
        (*_, first, second) = hook.received
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"] == f"{climbing().id}/3"
    assert first.body == second.body
    assert settled(path)


def test_undisturbed_every_revision_is_told_once_and_slack_hears_two_messages(tmp_path):
    with Receiver() as hook, SlackReceiver() as slack:
        ended = run(tmp_path / "watchd.db", hook, slack)
        assert ended.returncode == 0, ended.stderr
        assert [request.json["revision"] for request in hook.received] == [1, 2, 3]
        causes = ["not known yet", "launch_argument", "launch_argument"]
        assert len(slack.received) == 3  # the cause was not known in time
        assert all(cause in request.json["text"] for cause, request in zip(causes, slack.received, strict=True))


def test_a_sink_that_fails_in_every_way_hears_the_end_of_it_all_the_same(tmp_path):
    """And what it is asked to wait does not reach the other one."""
    troubles = [Fault.RESET, Response(status=503), Fault.GARBAGE, Fault.CUT, Response(status=500, body=b"<html>")]
    with Receiver(*troubles) as hook, SlackReceiver() as slack:
        ended = run(tmp_path / "watchd.db", hook, slack)
        assert ended.returncode == 0, ended.stderr
        assert hook.received[-1].json["status"] == "resolved"
        assert len({request.headers["watchd-signature"] for request in hook.received}) > 1


def test_the_address_of_a_sink_is_in_neither_the_store_nor_the_log(tmp_path):
    troubles = [RATE_LIMITED, Fault.RESET, Response(status=404), Response(status=400)]
    with Receiver(*troubles) as hook, SlackReceiver(Response(status=404, body=b"no_service")) as slack:
        ended = run(tmp_path / "watchd.db", hook, slack)
    kept = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"SQLite format 3" in kept
    for written in (kept, ended.stdout.encode(), ended.stderr.encode()):
        assert b"s3cr3t" not in written
        assert b"services/T0000" not in written
    assert "delivery_held" in ended.stdout + ended.stderr
