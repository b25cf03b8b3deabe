"""The server that dies: a small package in a `site-packages` folder, written as source, with a check among its arguments.

The check is the kind that brought watchd about: three numbers shape the drafting of tokens, and they come together or
not at all; where one is missing, a bare assertion ends the start. How it is written can be chosen, and so can the
names, since what watchd says of it must follow from the source and not from knowing this program.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from string import Template

GOODBYE = "every request was answered, goodbye"
"""What the server says last when it is stopped in order."""


class Check(StrEnum):
    """How the check is written."""

    ASSERT = "assert"
    """an assert over several lines, inside an `if`"""
    TUPLE = "tuple"
    """the same through a name for two of the numbers"""
    RAISE = "raise"
    """a condition, and an exception with a message"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What the program is called and how its check is written.

    package, module      Python names; `package` must be no module that this Python has already
    check                how the check is written
    steps, topk, tokens  the three flags; without the first, the other two are refused
    start_s              seconds that a start takes before the arguments are read, as imports take them elsewhere
    """

    package: str = "draftserve"
    module: str = "arguments"
    check: Check = Check.ASSERT
    steps: str = "--speculative-num-steps"
    topk: str = "--speculative-eagle-topk"
    tokens: str = "--speculative-num-draft-tokens"
    start_s: float = 2.5

    @property
    def attributes(self) -> tuple[str, str, str]:
        """The names that the three flags have in the source, in the order of the flags."""
        return _attribute(self.steps), _attribute(self.topk), _attribute(self.tokens)

    @property
    def exception(self) -> str:
        """The type of the exception with which it dies."""
        return "ValueError" if self.check is Check.RAISE else "AssertionError"

    def words(self, port: int, *, steps: bool) -> tuple[str, ...]:
        """The launch arguments, behind `python`; without `steps` the start fails."""
        given = (self.steps, "3") if steps else ()
        return (
            *("-m", f"{self.package}.launch", "--model-path", "/srv/models/atlas-8b-instruct"),
            *("--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", "/srv/models/atlas-8b-eagle3"),
            *(*given, self.topk, "1", self.tokens, "16", "--port", str(port)),
        )

    def write(self, folder: Path) -> None:
        """Write the package below `folder`, which has to be on the path of the Python that runs it."""
        steps, topk, tokens = self.attributes
        names = {
            "package": self.package,
            "module": self.module,
            "goodbye": GOODBYE,
            "start_s": f"{self.start_s:g}",
            "steps": steps,
            "topk": topk,
            "tokens": tokens,
            "steps_flag": self.steps,
            "topk_flag": self.topk,
            "tokens_flag": self.tokens,
        }
        home = folder / self.package
        home.mkdir(parents=True)
        (home / "__init__.py").write_text(Template(_INIT).substitute(names), encoding="utf-8")
        (home / "launch.py").write_text(Template(_LAUNCH).substitute(names), encoding="utf-8")
        check = Template(_CHECKS[self.check]).substitute(names)
        text = Template(_ARGUMENTS).substitute(names, check=check.strip("\n"))
        (home / f"{self.module}.py").write_text(text, encoding="utf-8")


def _attribute(flag: str) -> str:
    return flag.lstrip("-").replace("-", "_")


_INIT = '''\
"""A server that drafts tokens and has them checked. It serves its health and nothing else."""

__version__ = "0.3.1"
'''

_LAUNCH = '''\
"""Start the server: `python -m $package.launch --model-path … --port …`."""

import logging
import os
import signal
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from $package import __version__, $module

log = logging.getLogger("$package")


class Answer(BaseHTTPRequestHandler):
    def do_GET(self):
        found = self.path == "/health"
        self.send_response(200 if found else 404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *words):
        pass


def main(words):
    logging.basicConfig(level=logging.INFO, format="[%(asctime)s] %(message)s", datefmt="%Y-%m-%d %H:%M:%S")
    threading.Thread(target=end_with_parent, daemon=True).start()
    log.info("$package %s, pid %d", __version__, os.getpid())
    for part in range(1, 6):
        # An engine of full size imports its libraries here.
        time.sleep($start_s / 5)
        log.info("Loading libraries %d/5", part)
    settings = $module.read(words)
    log.info("settings: %s", settings)
    serve(settings.port)
    log.info("$goodbye")


def serve(port):
    server = ThreadingHTTPServer(("127.0.0.1", port), Answer)
    told = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: told.set())
    threading.Thread(target=server.serve_forever, daemon=True).start()
    log.info("ready to serve on http://127.0.0.1:%d", port)
    while not told.wait(0.05):
        pass
    log.info("received SIGTERM, shutting down")
    server.shutdown()
    server.server_close()


def end_with_parent():
    # Whoever started this holds the other end of stdin; when that one is gone, so is this.
    while os.read(0, 1):
        pass
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
'''

_ARGUMENTS = '''\
"""The launch arguments of $package, and whether they go together."""

import argparse
import dataclasses
from typing import Optional


@dataclasses.dataclass
class Settings:
    model_path: str
    port: int
    speculative_algorithm: Optional[str] = None
    speculative_draft_model_path: Optional[str] = None
    $steps: Optional[int] = None
    $topk: Optional[int] = None
    $tokens: Optional[int] = None

    def __post_init__(self):
        self.check_port()
        if self.speculative_algorithm is not None:
            self.check_drafting()

    def check_port(self):
        if not 0 < self.port < 65536:
            raise ValueError("a port is a number from 1 to 65535")

    def check_drafting(self):
        if self.speculative_draft_model_path is None:
            raise ValueError("drafting needs --speculative-draft-model-path")
$check
        if self.$topk == 1 and self.$tokens != self.$steps + 1:
            # One candidate a step makes a chain: it has one token more than it has steps.
            self.$tokens = self.$steps + 1


def read(words):
    parser = argparse.ArgumentParser(prog="$package")
    parser.add_argument("--model-path", required=True)
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--speculative-algorithm")
    parser.add_argument("--speculative-draft-model-path")
    parser.add_argument("$steps_flag", type=int)
    parser.add_argument("$topk_flag", type=int)
    parser.add_argument("$tokens_flag", type=int)
    return Settings(**vars(parser.parse_args(words)))
'''

_CHECKS = {
    Check.ASSERT: """
        # Depth, breadth and size of the tree of drafts: all three, or the defaults of all three.
        if self.$steps is None:
            assert (
                self.$tokens is None
                and self.$topk is None
            )
""",
    Check.TUPLE: """
        tree = (self.$topk, self.$tokens)
        if self.$steps is None:
            assert tree == (None, None)
""",
    Check.RAISE: """
        if self.$steps is None and (self.$topk is not None or self.$tokens is not None):
            raise ValueError("the tree of drafts is not fully described")
""",
}
