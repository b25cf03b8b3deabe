"""The incident as JSON to an address of the user's: CloudEvents 1.0 in binary mode, so that the body is the plain incident.

A receiver tells a repeat from an update by `Idempotency-Key`: delivery is at least once.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from urllib.parse import quote

from watchd.errors import HttpError
from watchd.http import HttpClient
from watchd.model import Incident, Status, wire
from watchd.sinks import answers
from watchd.sinks.base import Answer

TIMEOUT_S = 10.0

_PRINTABLE = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"%')
"""What a CloudEvents header holds as it is: cloudevents/spec, http-protocol-binding.md, 3.1.3.2."""

Headers = tuple[tuple[str, str], ...]


class Webhook:
    """Posts every revision; the receiver keeps the newest."""

    edits = True

    def __init__(
        self, name: str, url: str, client: HttpClient, *, now: Callable[[], datetime], secret: str = ""
    ) -> None:
        self.name = name
        self._url = url
        self._client = client
        self._now = now
        self._secret = secret.encode()

    async def send(self, incident: Incident, *, first: bool, small: bool) -> Answer:
        """Post this revision."""
        headers, body = render(incident, first=first, small=small)
        if self._secret:
            headers += sign(body, self._secret, self._now())
        try:
            reply = await self._client.request("POST", self._url, headers=headers, body=body, timeout_s=TIMEOUT_S)
        except HttpError as error:
            return answers.unanswered(error)
        return answers.read(reply, self._now())


def render(incident: Incident, *, first: bool, small: bool = False) -> tuple[Headers, bytes]:
    """Headers and body; `small` leaves out excerpts, source and most of the traceback."""
    shown = _short(incident) if small else incident
    identity = f"{incident.id}/{incident.revision}"
    headers = (
        ("Content-Type", "application/json; charset=utf-8"),
        ("Idempotency-Key", identity),
        ("ce-specversion", "1.0"),
        ("ce-id", identity),
        ("ce-source", "/watchd"),
        ("ce-type", f"watchd.incident.{_kind(incident, first)}"),
        ("ce-subject", quote(incident.target.name if incident.target else incident.scope.value, safe=_PRINTABLE)),
        ("ce-time", incident.updated_at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")),
    )
    return headers, wire.to_json(shown).encode("utf-8", "replace")


def sign(body: bytes, secret: bytes, at: datetime) -> Headers:
    """Headers that prove who sent this and when: HMAC-SHA256 over the time stamp, a full stop, and the body."""
    stamp = str(int(at.timestamp()))
    digest = hmac.new(secret, stamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    return (("Watchd-Timestamp", stamp), ("Watchd-Signature", f"sha256={digest}"))


def _kind(incident: Incident, first: bool) -> str:
    if incident.status is Status.RESOLVED:
        return "resolved"
    return "firing" if first else "updated"


def _short(incident: Incident) -> Incident:
    source = incident.source
    return replace(
        incident,
        traceback=tuple(line[:500] for line in incident.traceback[-20:]),
        evidence=tuple(replace(step, excerpt="") for step in incident.evidence),
        source=None if source is None else replace(source, lines=()),
        timeline=incident.timeline[-10:],
        health=replace(incident.health, samples=()),
    )
