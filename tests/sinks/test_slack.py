"""Slack messages: what they say, what they never say, and that Slack takes them whatever the log held."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sinks.golden import check
from tests.support import receiver
from tests.support.founding import T0, climbing, final, resolved, target, withdrawn
from watchd.model import (
    Cause,
    Evidence,
    HostEvent,
    IncidentException,
    IncidentGuard,
    IncidentHost,
    IncidentLaunch,
    IncidentRoot,
    IncidentSource,
    Scope,
    Severity,
    Verdict,
)
from watchd.sinks import message, mrkdwn, slack

MENTION = "<!subteam^S123>"
HOSTILE = "<!channel> <@U012AB3CD> <https://evil.example|click> @here & ``` ``` `x` *bold* \x1b[31mred\x1b[0m \u202e \r"


def said(payload):
    return "\n".join(receiver.texts(payload))


def accepted(payload):
    body = json.dumps(payload, ensure_ascii=False).encode()
    headers = {"content-type": "application/json"}
    return receiver.complaint(receiver.Received(method="POST", path="/", headers=headers, body=body, at=0)) == ""


@pytest.mark.parametrize(
    ("name", "incident", "first", "small"),
    [
        ("firing", final(), True, False),
        ("firing-climbing", climbing(), True, False),
        ("updated", final(), False, False),
        ("resolved", resolved(), False, False),
        ("resolved-untold", resolved(), True, False),
        ("withdrawn", withdrawn(), False, False),
        ("firing-small", final(), True, True),
    ],
)
def test_the_message_is_the_one_in_the_golden_file(name, incident, first, small):
    payload = slack.render(incident, first=first, small=small, mention=MENTION)
    assert accepted(payload)
    check(f"slack-{name}.json", payload)


def test_a_firing_message_says_what_a_good_engineer_would():
    text = said(slack.render(final(), first=True))
    for words in (
        "eagle3 on gpu-01 crashed",
        "launch_argument",
        "certain",
        "server.log:43",
        "AssertionError",
        "server_args.py:2423",
        "_settle_speculation",
        "chosen == (None, None)",
        "speculative_eagle_topk",
        "--speculative-num-draft-tokens 16",
        "add `--speculative-num-steps 3` (suggestion)",
        "passes 4 of the 4 checks",
        "Add --speculative-num-steps to the launch command.",
        "ssh gpu-01 'sed -n 23,48p",
        "`broad` found 14 lines",
        "3 answered, 1 refused",
        "`/data` is 93 % full",
    ):
        assert words in text, words


def test_only_firing_messages_call_people():
    assert MENTION in said(slack.render(climbing(), first=True, mention=MENTION))
    assert MENTION in said(slack.render(final(), first=False, mention=MENTION))
    assert MENTION in said(slack.render(final(), first=True, small=True, mention=MENTION))
    for over in (resolved(), withdrawn()):
        for first in (True, False):
            assert MENTION not in said(slack.render(over, first=first, mention=MENTION))


@pytest.mark.parametrize(
    ("incident", "first", "headline"),
    [
        (climbing(), True, "🔴 eagle3 on gpu-01 crashed"),
        (final(), False, "🔴 Update: eagle3 on gpu-01 crashed"),
        (replace(final(), verdict=Verdict.HANG), True, "🔴 eagle3 on gpu-01 hangs"),
        (
            replace(final(), verdict=Verdict.DEGRADED, severity=Severity.WARNING),
            True,
            "🟠 eagle3 on gpu-01 is degraded",
        ),
        (resolved(), False, "🟢 eagle3 on gpu-01 is back after 4 min 12 s"),
        (resolved(), True, "🟢 eagle3 on gpu-01 crashed and is back after 4 min 12 s"),
        (withdrawn(), False, "🟢 eagle3 on gpu-01: alarm withdrawn"),
        (replace(resolved(), verdict=Verdict.STOPPED), True, "⚪ eagle3 on gpu-01 was stopped"),
        (
            replace(climbing(), scope=Scope.HOST, target=None, verdict=Verdict.UNREACHABLE),
            True,
            "🔴 a host cannot be reached",
        ),
        (replace(climbing(), target=replace(target(), host=None)), True, "🔴 eagle3 crashed"),
    ],
)
def test_the_headline_says_what_happened_and_for_how_long(incident, first, headline):
    payload = slack.render(incident, first=first)
    assert payload["blocks"][0]["text"]["text"] == headline
    assert payload["text"].startswith(headline)


def test_the_first_failing_rank_and_the_number_of_times_are_said():
    assert "first failing rank `3` · 5 times" in said(slack.render(replace(final(), rank=3, occurrences=5), first=True))
    assert "first failing rank `scheduler`" in said(slack.render(replace(final(), rank="scheduler"), first=True))


def test_a_cause_that_is_not_known_is_said_to_be_unknown():
    assert "*Cause* not known yet" in said(slack.render(climbing(), first=True))
    unknown = said(slack.render(replace(final(), cause=None), first=True))
    assert "*Cause* not known" in unknown
    assert "not known yet" not in unknown


def test_a_file_that_changed_since_the_crash_is_said_to_have_changed():
    changed = replace(final(), source=replace(final().source, matches_log=False))
    assert "The file has changed since the crash." in said(slack.render(changed, first=True))


def everywhere(text, *, times=1):
    """An incident with this text wherever a log, a host or a path may put one."""
    lines = (text,) * times
    long = "\n".join(lines)
    return replace(
        final(),
        summary=long,
        because=lines,
        advice=lines,
        root=IncidentRoot(file=long, line=None, text=long, offset=7),
        exception=IncidentException(type=long, message=long),
        frame=replace(final().frame, file=long, function=long),
        rank=text[:40],
        traceback=lines,
        source=IncidentSource(
            path=long,
            first_line=2420,
            lines=lines,
            guard=IncidentGuard(condition=long, names=lines, requires=lines),
            sha256="",
            matches_log=False,
        ),
        launch=IncidentLaunch(
            command=long,
            argv=lines,
            origin="recorded",
            corrected=long,
            edits=tuple(replace(final().launch.edits[0], flag=line, value=line) for line in lines),
        ),
        host=IncidentHost(events=tuple(HostEvent(kind="other", at=None, text=line) for line in lines)),
        evidence=tuple(Evidence(rung=line, command=line, outcome="answered", count=1, excerpt=line) for line in lines),
        runner_up=replace(final().runner_up, flip=long),
        look=long,
        target=replace(final().target, engine=text, engine_version=text),
    )


@pytest.mark.parametrize("small", [False, True])
@pytest.mark.parametrize("first", [False, True])
def test_nothing_that_a_log_says_is_obeyed(first, small):
    payload = slack.render(everywhere(HOSTILE), first=first, small=small, mention=MENTION)
    assert set(receiver.obeyed(payload)) == {MENTION}
    for text in receiver.texts(payload):
        assert "@here" not in text
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert text.count("```") % 2 == 0
    for block in payload.get("blocks", []):
        for found in (block.get("text"), *block.get("elements", ())):
            assert found is None or found["type"] == "plain_text" or found["verbatim"] is True
    assert (payload["unfurl_links"], payload["unfurl_media"]) == (False, False)


def test_entities_are_exactly_three_and_made_once():
    assert mrkdwn.prose("a && b < c > \"d\" 'e' &amp;", 100) == "a &amp;&amp; b &lt; c &gt; \"d\" 'e' &amp;amp;"


def test_a_code_block_in_a_log_line_does_not_end_the_block():
    shown = mrkdwn.block("before ``` after ````` end`", 200)
    assert shown.startswith("```\nbefore ")
    assert shown.count("```") == 2


def test_a_text_cut_short_says_so_and_keeps_whole_entities():
    for limit in range(12, 60):
        shown = mrkdwn.prose("&" * 50, limit)
        assert len(shown) <= limit
        assert shown.replace("&amp;", "") == "…"


def test_a_code_block_may_keep_the_end_of_a_text():
    assert mrkdwn.block("first\n" + "x" * 500 + "\nlast", 60, end=True).endswith("x\nlast\n```")
    assert mrkdwn.block("first\n" + "x" * 500 + "\nlast", 60).startswith("```\nfirst\nx")


def test_a_list_counts_what_it_has_no_room_for():
    assert mrkdwn.items(["one", "two"], 100) == "• one\n• two"
    shown = mrkdwn.items(["x" * 40] * 9, 150)
    assert shown.endswith("• and 7 more")
    assert mrkdwn.cost(shown) <= 150


# The limits


def test_a_message_that_is_too_long_gives_up_the_least_useful_first():
    """Context lines, older frames, host evidence; never cause, rank, deciding line, advice or the corrected launch."""
    long = replace(
        everywhere("W" * 300, times=20),
        cause=Cause.LAUNCH_ARGUMENT,
        rank=3,
        root=IncidentRoot(file="/data/server.log", line=43, text="AssertionError: the deciding line", offset=7),
        advice=("Add the number of steps.",),
        launch=replace(final().launch, command="python3 " + "w" * 3000, corrected=final().launch.corrected),
        look="ssh gpu-01 look",
    )
    payload = slack.render(long, first=True)
    text = said(payload)
    for words in ("launch_argument", "rank `3`", "the deciding line", "Add the number of steps.", "ssh gpu-01 look"):
        assert words in text
    assert "--speculative-num-steps 3" in text
    assert "left out or cut to fit here: source" in text
    assert accepted(payload)


def test_each_thing_given_up_makes_the_message_shorter_than_the_one_before():
    parts = {part.name: part for part in message.parts(everywhere("w" * 300, times=20), first=True, mention="")}
    for name in set(slack.SHRINKING):
        sizes = [mrkdwn.cost(form) for form in parts[name].forms]
        assert sizes == sorted(sizes, reverse=True)
        assert len(sizes) == slack.SHRINKING.count(name) + 1


def test_a_message_that_fits_leaves_nothing_out():
    assert "left out" not in said(slack.render(final(), first=True))


def within(payload):
    blocks = payload.get("blocks", [])
    assert payload["text"]
    assert len(json.dumps(payload, ensure_ascii=False)) <= slack.MESSAGE_LIMIT
    assert len(blocks) <= slack.BLOCKS_LIMIT
    for block in blocks:
        if block["type"] == "header":
            assert len(block["text"]["text"]) <= slack.HEADER_LIMIT
        if block["type"] == "section":
            assert len(block["text"]["text"]) <= slack.SECTION_LIMIT
    assert accepted(payload)


LOG_TEXT = st.text(st.sampled_from('ab &<>"\\`\n\r\t@*_~|!#$%é漢🔥\x1b\u202e\u200b\udcff'), min_size=1, max_size=80)


@settings(deadline=None, max_examples=60)
@given(LOG_TEXT, st.sampled_from([1, 3, 60, 400]), st.booleans(), st.booleans())
def test_no_log_makes_a_message_that_slack_refuses(text, times, first, small):
    for incident in (everywhere(text, times=times), resolved(everywhere(text, times=times))):
        payload = slack.render(incident, first=first, small=small, mention=MENTION)
        clean = json.loads(json.dumps(payload, ensure_ascii=False).encode("utf-8", "replace"))
        within(clean)
        assert set(receiver.obeyed(clean)) <= {MENTION}
        assert all(found.count("```") % 2 == 0 for found in receiver.texts(clean))


def test_a_text_of_many_megabytes_is_cut_without_delay():
    within(slack.render(everywhere("&" * 4_000_000), first=True))


def test_a_small_message_is_plain_text_short_enough_not_to_be_split():
    payload = slack.render(everywhere("w" * 5000, times=9), first=True, small=True)
    assert "blocks" not in payload
    assert len(payload["text"]) < 4000
    small = said(slack.render(replace(final(), rank=3), first=True, small=True))
    for words in ("launch_argument", "rank `3`", "server.log:43", "Add --speculative-num-steps", "-num-steps 3"):
        assert words in small


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0 s"),
        (0.4, "0 s"),
        (59, "59 s"),
        (60, "1 min"),
        (252, "4 min 12 s"),
        (7500, "2 h 5 min"),
        (435_600, "5 d 1 h"),
    ],
)
def test_a_duration_is_told_in_its_two_largest_units(seconds, text):
    assert message.lasted(timedelta(seconds=seconds)) == text


def test_a_withdrawn_alarm_names_no_cause_but_what_withdrew_it():
    text = said(slack.render(withdrawn(), first=False))
    assert "*Nothing is wrong.*" in text
    assert "a new run serves" in text
    assert "none" not in text


def test_times_are_told_in_utc():
    assert "from 2025-09-18 14:09:55 UTC to 2025-09-18 14:14:07 UTC: a new run serves" in said(
        slack.render(resolved(), first=False)
    )
    assert T0.hour == 14
