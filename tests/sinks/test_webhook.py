"""The generic webhook: the incident as it is, in headers that say what it is and who sent it."""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import replace

import pytest

from tests.sinks.golden import check
from tests.support.founding import T0, climbing, final, resolved, target
from watchd.model import Scope, wire
from watchd.sinks import webhook


def header(incident, name, **how):
    headers, _ = webhook.render(incident, **{"first": True} | how)
    return dict(headers)[name]


@pytest.mark.parametrize(
    ("name", "incident", "first"),
    [("firing", climbing(), True), ("updated", final(), False), ("resolved", resolved(), False)],
)
def test_the_request_is_the_one_in_the_golden_file(name, incident, first):
    headers, body = webhook.render(incident, first=first)
    check(f"webhook-{name}.json", {"headers": dict(headers), "body": json.loads(body)})


def test_the_body_is_the_incident_as_everywhere():
    _, body = webhook.render(final(), first=True)
    assert wire.from_json(body.decode()) == final()


def test_a_repeat_has_the_same_key_and_an_update_another():
    assert header(final(), "Idempotency-Key") == header(final(), "Idempotency-Key", first=False)
    assert header(final(), "Idempotency-Key") != header(climbing(), "Idempotency-Key")
    assert header(final(), "ce-id") == f"{final().id}/2"


def test_the_type_tells_firing_updated_and_resolved_apart():
    kinds = [header(final(), "ce-type"), header(final(), "ce-type", first=False), header(resolved(), "ce-type")]
    assert kinds == ["watchd.incident.firing", "watchd.incident.updated", "watchd.incident.resolved"]


@pytest.mark.parametrize(
    ("name", "subject"),
    [("eagle3", "eagle3"), ('a b%c"d', "a%20b%25c%22d"), ("modèle\n", "mod%C3%A8le%0A")],
)
def test_the_subject_is_the_target_in_characters_that_a_header_holds(name, subject):
    assert header(replace(final(), target=target(name)), "ce-subject") == subject


def test_without_a_target_the_subject_is_the_scope():
    assert header(replace(final(), target=None, scope=Scope.BASTION), "ce-subject") == "bastion"


def test_the_signature_proves_body_and_time():
    stamp, signature = webhook.sign(b"{}", b"key", T0)
    expected = hmac.new(b"key", b"1758204595.{}", hashlib.sha256).hexdigest()
    assert stamp == ("Watchd-Timestamp", "1758204595")
    assert signature == ("Watchd-Signature", f"sha256={expected}")


def test_a_small_body_is_still_an_incident_with_all_that_decides():
    long = replace(final(), traceback=("x" * 5000,) * 500)
    _, body = webhook.render(long, first=True, small=True)
    shown = wire.from_json(body.decode())
    assert len(body) < 20_000
    assert (shown.cause, shown.root, shown.launch, shown.advice) == (long.cause, long.root, long.launch, long.advice)
    assert shown.source.guard == long.source.guard


def test_text_that_is_no_unicode_does_no_harm():
    _, body = webhook.render(replace(final(), summary="bad \udcff byte"), first=True)
    assert wire.from_json(body.decode()).summary == "bad ? byte"
