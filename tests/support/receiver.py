"""Real HTTP servers that receive what sinks send: one that takes anything, and one that is as strict as Slack.

Each answers by a script, one step for each request, and judges for itself once the script is over.
"""

from __future__ import annotations

import json
import re
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

PATH = "/services/T0000/B0000/s3cr3t-t0k3n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A request as it came; header names in lower case, `at` by the monotonic clock."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    at: float

    @property
    def json(self) -> Any:
        """The body, read as JSON."""
        return json.loads(self.body)


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """An answer to send."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


class Fault(Enum):
    """Something other than an answer."""

    RESET = "the connection is reset"
    CLOSE = "the connection is closed without a word"
    HANG = "nothing comes, until the receiver is closed"
    GARBAGE = "something that is not HTTP"
    CUT = "the connection is closed in the middle of the body"


Step = Response | Fault
Script = Callable[[int], Step | None]
"""From the number of a request, counted from 0, to what is done with it; None: judge it."""

RATE_LIMITED = Response(
    status=429,
    headers={"Retry-After": "30", "Content-Type": "application/json"},
    body=b'{"retry_after":30,"ok":false,"error":"rate_limited"}',
)


class Receiver:
    """Takes anything with 200. Use it in a `with` statement; `url` holds a secret that must appear nowhere else."""

    def __init__(self, *steps: Step, script: Script | None = None) -> None:
        self._script = script or _one_by_one(steps)
        self._received: list[Received] = []
        self._came = threading.Condition()
        self._over = threading.Event()
        self._port = 0
        self._server: _Server | None = None

    def __enter__(self) -> Receiver:
        self.open()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._port}{PATH}"

    @property
    def received(self) -> Sequence[Received]:
        """Everything that came so far."""
        with self._came:
            return tuple(self._received)

    def wait(self, count: int, *, limit_s: float = 30.0) -> Sequence[Received]:
        """Wait until so many requests have come."""
        with self._came:
            if not self._came.wait_for(lambda: len(self._received) >= count, limit_s):
                raise AssertionError(f"{len(self._received)} of {count} requests came within {limit_s} s")
            return tuple(self._received)

    def open(self) -> None:
        """Listen, on the same port as before if it was closed."""
        self._over.clear()
        self._server = _Server(self._port, self)
        self._port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), name="receiver")
        self._thread.start()

    def close(self) -> None:
        """Refuse connections from now on."""
        if self._server is not None:
            self._over.set()
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()
            self._server = None

    def judge(self, request: Received) -> Response:
        """What it thinks of a request."""
        return Response()

    def take(self, request: Received) -> Step:
        """Note a request; what to do with it."""
        with self._came:
            number = len(self._received)
            self._received.append(request)
            self._came.notify_all()
        return self._script(number) or self.judge(request)

    def hang(self) -> None:
        """Wait until it is closed."""
        self._over.wait()


class SlackReceiver(Receiver):
    """An incoming webhook of Slack: refuses what Slack refuses, with the same status and word.

    Limits as on docs.slack.dev (block kit reference) in late 2025, and the undocumented one of slackapi/bolt-js#2509.
    """

    def judge(self, request: Received) -> Response:
        """Slack's answer."""
        if request.path != PATH:
            return Response(status=404, body=b"no_service")
        word = complaint(request)
        return Response(status=400, body=word.encode()) if word else Response(body=b"ok")


def complaint(request: Received) -> str:
    """Slack's word for what is wrong with a request; empty if nothing is."""
    if request.method != "POST" or not request.headers.get("content-type", "").startswith("application/json"):
        return "invalid_payload"
    try:
        payload = json.loads(request.body.decode("utf-8"))
    except ValueError:
        return "invalid_payload"
    if not isinstance(payload, dict):
        return "invalid_payload"
    blocks = payload.get("blocks", [])
    if not blocks and not payload.get("text"):
        return "no_text"
    if not isinstance(blocks, list) or len(blocks) > 50 or not all(_valid(block) for block in blocks):
        return "invalid_blocks"
    return "msg_blocks_too_long" if len(json.dumps(blocks, ensure_ascii=False)) > 13_200 else ""


def texts(payload: Mapping[str, Any]) -> Iterator[str]:
    """Every text of a message that Slack reads as mrkdwn."""
    yield payload["text"]
    for block in payload.get("blocks", []):
        for found in (block.get("text"), *block.get("elements", ())):
            if found and found["type"] == "mrkdwn":
                yield found["text"]


# <!channel>   <@U012AB3CD>   <#C0123>   <https://example.com|text>
_OBEYED = re.compile(r"<[^<>\n]*>")


def obeyed(payload: Mapping[str, Any]) -> list[str]:
    """Everything in a message that Slack would not show but obey: mentions and links."""
    return [found for text in texts(payload) for found in _OBEYED.findall(text)]


def _valid(block: object) -> bool:
    if not isinstance(block, dict):
        return False
    match block.get("type"):
        case "header":
            return _text(block.get("text"), 150, kinds=("plain_text",))
        case "section":
            fields = block.get("fields", [])
            return _text(block.get("text"), 3000) and len(fields) <= 10 and all(_text(each, 2000) for each in fields)
        case "context":
            elements = block.get("elements", [])
            return 1 <= len(elements) <= 10 and all(_text(each, 3000) for each in elements)
        case kind:
            return kind == "divider"


def _text(found: object, limit: int, *, kinds: Sequence[str] = ("plain_text", "mrkdwn")) -> bool:
    if not isinstance(found, dict) or found.get("type") not in kinds:
        return False
    extra = {"plain_text": "emoji", "mrkdwn": "verbatim"}[found["type"]]
    text = found.get("text")
    return set(found) <= {"type", "text", extra} and isinstance(text, str) and 1 <= len(text) <= limit


def _one_by_one(steps: Sequence[Step]) -> Script:
    return lambda number: steps[number] if number < len(steps) else None


class _Server(ThreadingHTTPServer):
    def __init__(self, port: int, receiver: Receiver) -> None:
        self.receiver = receiver
        super().__init__(("127.0.0.1", port), _Exchange)


class _Exchange(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except ConnectionError:
            self.close_connection = True

    def answer(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Received(
            method=self.command, path=self.path, headers=headers, body=self.rfile.read(length), at=time.monotonic()
        )
        step = self.server.receiver.take(request)
        if isinstance(step, Response):
            self._send(step, len(step.body))
        else:
            self._break(step)

    do_GET = do_POST = do_PUT = answer  # noqa: N815 the names that http.server asks for

    def _send(self, response: Response, length: int) -> None:
        self.send_response(response.status)
        for name, value in response.headers.items():
            self.send_header(name, value)
        if response.status >= 200 and response.status not in (204, 304):
            self.send_header("Content-Length", str(length))
        # The next request comes on a new connection, so that closing the receiver is felt at once.
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(response.body)

    def _break(self, fault: Fault) -> None:
        self.close_connection = True
        match fault:
            case Fault.RESET:
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.connection.close()
            case Fault.HANG:
                self.server.receiver.hang()
            case Fault.GARBAGE:
                self.wfile.write(b"\x16\x03\x01 this is not HTTP\r\n\r\n")
            case Fault.CUT:
                self._send(Response(body=b"o"), 100)
            case Fault.CLOSE:
                pass

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing."""
