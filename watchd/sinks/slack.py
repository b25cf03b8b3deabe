"""Slack, by incoming webhook: it can post and nothing else, so each message says everything once."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any

from watchd.errors import HttpError
from watchd.http import HttpClient
from watchd.model import Incident
from watchd.sinks import answers, message
from watchd.sinks.base import Answer, Result
from watchd.sinks.message import Part
from watchd.sinks.mrkdwn import cost, prose

TIMEOUT_S = 10.0

MESSAGE_LIMIT = 10_000
"""Characters of JSON. Slack refuses somewhere from 11,300 on, and does not document where: slackapi/bolt-js#2509, #2867."""
BLOCKS_LIMIT = 12
SECTION_LIMIT = 2_800
"""Slack takes 3,000: docs.slack.dev, section block."""
HEADER_LIMIT = 150
"""docs.slack.dev, header block."""

SHRINKING = (
    "source",
    "traceback",
    "traceback",
    "host evidence",
    "reasons",
    "what was asked",
    "launch command",
)
"""What a message that is too long gives up, in this order; never cause, rank, deciding line, advice, corrected launch."""

# api.slack.com/changelog/2016-05-17-changes-to-errors-for-incoming-webhooks; prometheus/alertmanager#3727, #2176
WORDS: Mapping[str, Result] = MappingProxyType(
    {
        "invalid_blocks": Result.SHRINK,
        "invalid_blocks_format": Result.SHRINK,
        "invalid_payload": Result.SHRINK,
        "msg_blocks_too_long": Result.SHRINK,
        "msg_too_long": Result.SHRINK,
        "no_text": Result.SHRINK,
        "too_many_attachments": Result.SHRINK,
        "action_prohibited": Result.HOLD,
        "channel_is_archived": Result.HOLD,
        "channel_not_found": Result.HOLD,
        "invalid_auth": Result.HOLD,
        "invalid_token": Result.HOLD,
        "no_active_hooks": Result.HOLD,
        "no_service": Result.HOLD,
        "no_service_id": Result.HOLD,
        "no_team": Result.HOLD,
        "posting_to_general_channel_denied": Result.HOLD,
        "team_disabled": Result.HOLD,
        "user_not_found": Result.HOLD,
        "rate_limited": Result.RETRY,
        "ratelimited": Result.RETRY,
        "rollup_error": Result.RETRY,
    }
)

Payload = dict[str, Any]


class SlackWebhook:
    """Posts to one channel. It cannot edit: what was posted stays."""

    edits = False

    def __init__(
        self, name: str, url: str, client: HttpClient, *, now: Callable[[], datetime], mention: str = ""
    ) -> None:
        self.name = name
        self._url = url
        self._client = client
        self._now = now
        self._mention = mention

    async def send(self, incident: Incident, *, first: bool, small: bool) -> Answer:
        """Post one message about this incident."""
        payload = render(incident, first=first, small=small, mention=self._mention)
        body = json.dumps(payload, ensure_ascii=False).encode("utf-8", "replace")
        headers = (("Content-Type", "application/json; charset=utf-8"),)
        try:
            reply = await self._client.request("POST", self._url, headers=headers, body=body, timeout_s=TIMEOUT_S)
        except HttpError as error:
            return answers.unanswered(error)
        return answers.read(reply, self._now(), words=WORDS, success="ok")


def render(incident: Incident, *, first: bool, small: bool = False, mention: str = "") -> Payload:
    """The message as JSON; `mention` goes in front of firing ones as it is. `small` gives plain text alone."""
    quiet: Payload = {"unfurl_links": False, "unfurl_media": False}
    if small:
        return {"text": message.short(incident, first=first, mention=mention), **quiet}
    headline = prose(message.headline(incident, first=first), HEADER_LIMIT)
    text = f"{headline}: {message.sentence(incident)}"
    parts = message.parts(incident, first=first, mention=mention)
    last = {part.name: len(part.forms) - 1 for part in parts}
    chosen = dict.fromkeys(last, 0)
    blocks = _blocks(headline, parts, chosen)
    for name in SHRINKING:
        if _fits(text, blocks):
            break
        if name in chosen:
            chosen[name] = min(chosen[name] + 1, last[name])
            blocks = _blocks(headline, parts, chosen)
    return {"text": text, "blocks": blocks, **quiet}


def _fits(text: str, blocks: list[Payload]) -> bool:
    return cost(text) + len(json.dumps(blocks, ensure_ascii=False)) + 100 <= MESSAGE_LIMIT


def _blocks(headline: str, parts: tuple[Part, ...], chosen: Mapping[str, int]) -> list[Payload]:
    """The header, and each part in its chosen form; the last part says what was left out or cut."""
    blocks: list[Payload] = [{"type": "header", "text": {"type": "plain_text", "text": headline, "emoji": True}}]
    cut = [part.name for part in parts if chosen[part.name]]
    for part in parts:
        text = part.forms[chosen[part.name]]
        if part is parts[-1] and cut:
            text += f"\nleft out or cut to fit here: {', '.join(cut)}"
        if text:
            blocks.append(_section(text) if part.kind == "section" else _context(text))
    return blocks


def _section(text: str) -> Payload:
    return {"type": "section", "text": _mrkdwn(text)}


def _context(text: str) -> Payload:
    return {"type": "context", "elements": [_mrkdwn(text)]}


def _mrkdwn(text: str) -> Payload:
    # verbatim: nothing in plain text becomes a link or a mention (docs.slack.dev, text object).
    return {"type": "mrkdwn", "text": text, "verbatim": True}
