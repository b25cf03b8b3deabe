from __future__ import annotations

import pytest

from tests.settings.conftest import Write
from watchd import settings

TARGET = '[[targets]]\nname = "t"\nhost = "h"\nlog = "/l"\n'


@pytest.mark.parametrize(
    ("text", "line", "key"),
    [
        ('[store]\nurl = "postgresql://db/watchd"', 2, "store.url"),
        ('[store]\non_store_loss = "standby"', 2, "store.on_store_loss"),
        ('[store]\nblack_box = "512MiB"', 2, "store.black_box"),
        ("\n[web]", 2, "web"),
        ('[web]\nlisten = "0.0.0.0:80"', 1, "web"),
        ('[web]\nlisten = ""\nexternal_url = "https://w.example"', 3, "web.external_url"),
        ("[control]", 1, "control"),
        ('[heartbeat]\nurl = { env = "X" }', 1, "heartbeat"),
        ('[[discovery]]\ntype = "script"\ncommand = ["/d"]', 1, "discovery[0]"),
        ('[defaults]\nfollow = "push"', 2, "defaults.follow"),
        ('[defaults]\nflapping = "4 in 10m"', 2, "defaults.flapping"),
        ('[defaults]\nremind_every = "4h"', 2, "defaults.remind_every"),
        (TARGET + 'follow = "tail"', 5, "targets[0].follow"),
        (TARGET.replace("/l", "/l*.log"), 4, "targets[0].log"),
        (TARGET.replace("/l", "/l[0-9]"), 4, "targets[0].log"),
        (TARGET.replace("/l", "journal:vllm@0.service"), 4, "targets[0].log"),
        (TARGET.replace("/l", "container:vllm"), 4, "targets[0].log"),
        (TARGET.replace('"/l"', '["/a", "/b"]'), 4, "targets[0].log"),
        ('[sinks.p]\ntype = "pagerduty"\nrouting_key = { env = "X" }', 2, "sinks.p.type"),
        ('[sinks.a]\ntype = "alertmanager"\nurls = ["http://a:9093"]', 2, "sinks.a.type"),
        ('[sinks.e]\ntype = "email"\nserver = "s:25"\nfrom = "a@b"\nto = ["c@d"]', 2, "sinks.e.type"),
        ('[sinks.t]\ntype = "teams"\nurl = { env = "X" }', 2, "sinks.t.type"),
        ('[sinks.d]\ntype = "discord"\nurl = { env = "X" }', 2, "sinks.d.type"),
        ('[sinks.s]\ntype = "slack"\nchannel = "C1"\ntoken = { env = "X" }', 4, "sinks.s.token"),
    ],
)
def test_what_is_not_built_is_valid_and_named_by_line_and_key(write: Write, text: str, line: int, key: str) -> None:
    (found,) = settings.not_built(settings.load(write(text)))
    assert (found.line, found.key, found.reason) == (line, key, "not in this version")


def test_a_file_that_asks_only_for_what_is_there_can_be_run(write: Write) -> None:
    text = """
    [store]
    url = "sqlite:////srv/w.db"
    retention = "30d"
    on_store_loss = "continue"
    [web]
    listen = ""
    [defaults]
    follow = "sftp"
    rungs = ["broad", "context", "traceback", "source", "launch", "machine", "stack"]
    remind_every = ""
    flapping = ""
    signatures = "/etc/watchd/signatures.d"
    [hosts.h]
    address = "127.0.0.1"
    via = "b"
    [[targets]]
    name = "t"
    host = "h"
    log = ["/one.log"]
    health = "http://127.0.0.1:1/"
    [sinks.a]
    type = "terminal"
    [sinks.b]
    type = "slack"
    url = { env = "X" }
    """
    assert settings.not_built(settings.load(write(text))) == ()
