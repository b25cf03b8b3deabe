"""Wrong files, and what is said about each: `line: key: reason`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.settings.conftest import Write
from watchd import settings
from watchd.errors import SettingsError

TARGET = '[[targets]]\nname = "t"\nhost = "h"\nlog = "/l"\n'
HEALTH = TARGET + '[targets.health]\nurl = "http://127.0.0.1:1/"\n'
SINK = "[sinks.s]\ntype = "

WRONG: tuple[tuple[str, str], ...] = (
    # unknown keys
    ("[stroe]", "1: stroe: unknown key; did you mean `store`?"),
    ("x = 1", "1: x: unknown key; known here: store, control, web, heartbeat, defaults, hosts, targets, sinks, disc"),
    ("[store]\n\nretentoin = 1", "3: store.retentoin: unknown key; did you mean `retention`?"),
    ("[store]\non-store-loss = 1", "2: store.on-store-loss: unknown key; did you mean `on_store_loss`?"),
    (TARGET + "heath = 1", "5: targets[0].heath: unknown key; did you mean `health`?"),
    (TARGET + 'url = "http://a/"', "5: targets[0].url: unknown key; it belongs in `health`"),
    (TARGET + 'interval = "1s"', "5: targets[0].interval: unknown key; it belongs in `health`"),
    ("[defaults]\nexpect = [200]", "2: defaults.expect: unknown key; it belongs in `health`"),
    ('[defaults.health]\nurl = "http://a/"', "2: defaults.health.url: unknown key"),
    (HEALTH + "every = '1s'", "7: targets[0].health.every: unknown key"),
    ("[hosts.a]\nhostname = 1", "2: hosts.a.hostname: unknown key"),
    ('[hosts."a.b"]\nprot = 1', '2: hosts."a.b".prot: unknown key; did you mean `port`?'),
    (
        SINK + '"file"\npath = "/a"\nurl = "b"',
        "4: sinks.s.url: unknown key; known here: severity, targets, labels, type",
    ),
    (SINK + '"file"\npaht = "/a"', "3: sinks.s.paht: unknown key; did you mean `path`?"),
    (SINK + '"email"\nsender = "a@b"', "3: sinks.s.sender: unknown key"),
    ('"\\u001b[31m" = 1', '1: "\\u001b[31m": unknown key'),
    # what is missing
    ("\n[[targets]]", "2: targets[0].name: is required, but missing"),
    ("\n[[targets]]", "2: targets[0].host: is required, but missing"),
    ("\n[[targets]]", "2: targets[0].log: is required, but missing"),
    (TARGET + "[targets.health]", "5: targets[0].health.url: is required, but missing"),
    (TARGET + "health = { fail = 2 }", "5: targets[0].health.url: is required, but missing"),
    ("[heartbeat]", "1: heartbeat.url: is required, but missing"),
    ("[sinks.s]", "1: sinks.s.type: is required, but missing: one of slack, webhook, pagerduty"),
    (SINK + '"webhook"', "1: sinks.s.url: is required, but missing"),
    (SINK + '"pagerduty"', "1: sinks.s.routing_key: is required, but missing"),
    (SINK + '"alertmanager"', "1: sinks.s.urls: is required, but missing"),
    (SINK + '"email"', "1: sinks.s.from: is required, but missing"),
    (SINK + '"file"', "1: sinks.s.path: is required, but missing"),
    (SINK + '"slack"', "1: sinks.s: needs `url` (incoming webhook), or `token` and `channel` (bot)"),
    (SINK + '"slack"\ntoken = { env = "X" }', "1: sinks.s.channel: is required beside `token`, but missing"),
    (SINK + '"slack"\nchannel = "C1"', "1: sinks.s.token: is required beside `channel`, but missing"),
    (
        SINK + '"slack"\nchannel = "C1"\nurl = { env = "X" }',
        "3: sinks.s.channel: is for the bot, `url` for the webhook",
    ),
    ('[[discovery]]\ntype = "script"', "1: discovery[0].command: is required for a script, but missing"),
    # types
    ("store = 1", "1: store: must be a table, not a whole number"),
    ("[targets]\nname = 'x'", "1: targets: must be an array of tables, each under [[targets]], not a table"),
    ("targets = [1]", "1: targets[0]: must be a table, not a whole number"),
    ("[[sinks.s]]", "1: sinks.s: must be a table, not an array"),
    ("hosts = 'a'", "1: hosts: must be a table, not a string"),
    ("[hosts]\na = 'b'", "2: hosts.a: must be a table, not a string"),
    ("[hosts.a]\nport = '22'", "2: hosts.a.port: must be a whole number, not a string"),
    ("[hosts.a]\nport = 22.0", "2: hosts.a.port: must be a whole number, not a number with a point"),
    ("[hosts.a]\nport = true", "2: hosts.a.port: must be a whole number, not a boolean"),
    ("[hosts.a]\nlabels = { a = 1 }", "2: hosts.a.labels.a: must be a string, not a whole number"),
    ("[hosts.a]\nuser = 2024-01-01", "2: hosts.a.user: must be a string, not a date"),
    ("[defaults]\nhealth = 'http://a/'", "2: defaults.health: must be a table, not a string"),
    ("[defaults]\nrungs = 'broad'", "2: defaults.rungs: must be an array, not a string"),
    (TARGET + "health = 3", "5: targets[0].health: must be a table, not a whole number"),
    (SINK + "5", "2: sinks.s.type: must be one of slack"),
    (SINK + '"file"\npath = 1', "3: sinks.s.path: must be a string, not a whole number"),
    # durations and sizes
    ('[store]\nretention = "90"', "2: store.retention: must be a string with one number and one unit"),
    (
        HEALTH + 'interval = "10"',
        '7: targets[0].health.interval: must be a string with one number and one unit (ms, s, m, h, d), e.g. "10s"',
    ),
    (
        HEALTH + "interval = 10",
        '7: targets[0].health.interval: must be a string with one number and one unit (ms, s, m, h, d), e.g. "10s"',
    ),
    (HEALTH + 'timeout = "0s"', "7: targets[0].health.timeout: must be longer than nothing"),
    ('[store]\nblack_box = "1GB"', "2: store.black_box: must be a string with a whole number and a unit"),
    ('[defaults]\nflapping = "often"', "2: defaults.flapping: must be a number of changes and a duration"),
    ('[defaults]\nremind_every = "x"', "2: defaults.remind_every: must be a string with one number"),
    # values
    (
        '[defaults]\nrungs = ["broad", "tracback"]',
        "2: defaults.rungs[1]: must be one of broad, context, traceback, source, launch, machine, stack; did you mean `traceback`?",
    ),
    ("[defaults]\nrungs = []", "2: defaults.rungs: must not be empty"),
    ('[defaults]\nfollow = "sfpt"', "2: defaults.follow: must be one of auto, sftp, push, tail; did you mean `sftp`?"),
    (HEALTH + "fail = 0", "7: targets[0].health.fail: must be at least 1"),
    (HEALTH + "expect = [\n 200,\n 20 ]", "9: targets[0].health.expect[1]: must be at least 100"),
    (HEALTH + "expect = []", "7: targets[0].health.expect: must not be empty"),
    (HEALTH + 'via = "bastion"', "7: targets[0].health.via: must be one of host, jump"),
    ("[hosts.a]\nport = 70000", "2: hosts.a.port: must be at most 65535"),
    (
        SINK + '"slakc"',
        "2: sinks.s.type: must be one of slack, webhook, pagerduty, alertmanager, email, teams, discord, file, terminal; did you mean `slack`?",
    ),
    (
        SINK + '"terminal"\nseverity = "eror"',
        "3: sinks.s.severity: must be one of info, warning, error, critical; did you mean `error`?",
    ),
    (SINK + '"terminal"\ntargets = [""]', "3: sinks.s.targets[0]: must not be empty"),
    (SINK + '"email"\nserver = "smtp"\nfrom = "a@b"\nto = ["c@d"]', "3: sinks.s.server: must be HOST:PORT"),
    (SINK + '"email"\nserver = "s:25"\nfrom = "a"\nto = []', "4: sinks.s.from: must be an e-mail address"),
    (SINK + '"email"\nserver = "s:25"\nfrom = "a"\nto = []', "5: sinks.s.to: must not be empty"),
    (
        SINK + '"alertmanager"\nurls = ["am:9093"]',
        "3: sinks.s.urls[0]: must be a URL that begins with http:// or https://",
    ),
    ('[web]\nlisten = "9464"', "2: web.listen: must be HOST:PORT"),
    ('[web]\nlisten = "a:0"', "2: web.listen: must be HOST:PORT"),
    ('[store]\nurl = "mysql://a/b"', '2: store.url: must be "sqlite:////absolute/path" or "postgresql://…"'),
    ('[store]\nurl = "sqlite:///w.db"', "2: store.url: must hold an absolute path behind three slashes"),
    (TARGET + "engine = 'SGLang'", "5: targets[0].engine: must be the name of an engine, in small letters"),
    (TARGET + "process = 'a('", "5: targets[0].process: is not a regular expression: missing )"),
    (TARGET + "health = 'localhost:1'", "5: targets[0].health: must be a URL that begins with http:// or https://"),
    (
        TARGET + "health = 'http://$HOST/'",
        "5: targets[0].health: must be a URL that begins with http:// or https://; `$` and `~` are",
    ),
    (TARGET.replace("/l", "l"), "4: targets[0].log: must be an absolute path or glob, journal:UNIT or container:NAME"),
    (
        TARGET.replace("/l", "~/l"),
        "4: targets[0].log: must be an absolute path or glob, journal:UNIT or container:NAME; `$` and `~` are never",
    ),
    (TARGET.replace('"/l"', '["/a", "journal:-x"]'), "4: targets[0].log: must be an absolute path or glob"),
    (TARGET.replace('"/l"', "[]"), "4: targets[0].log: must name at least one log"),
    (TARGET.replace('"/l"', '"/a\\nb"'), "4: targets[0].log: must not hold control characters"),
    (
        '[hosts.a]\nknown_hosts = "$HOME/k"',
        "2: hosts.a.known_hosts: must be an absolute path; `$` and `~` are never expanded",
    ),
    ('[hosts.a]\nuser = "-oProxyCommand=x"', "2: hosts.a.user: must hold no white space and must not begin with `-`"),
    ('[hosts.a]\naddress = "-oProxyCommand=x"', "2: hosts.a.address: must be letters, digits"),
    ('[hosts."-a"]', "1: hosts.-a: a host's name must be letters, digits"),
    ('[hosts."a b"]', '1: hosts."a b": a host\'s name must be letters, digits'),
    (
        TARGET.replace('"h"', '"-h"'),
        "3: targets[0].host: must be letters, digits and `.`, `_`, `:`, `-`, and must not begin with `-`",
    ),
    (TARGET.replace('"h"', '"a;b"'), "3: targets[0].host: must be letters, digits"),
    (TARGET.replace('"t"', '"-t"'), "2: targets[0].name: must not begin with `-`"),
    # secrets
    (
        SINK + '"slack"\nurl = { fiel = "/a" }',
        '3: sinks.s.url: must be { credential = "NAME" }, { file = "PATH" } or { env = "NAME" }',
    ),
    (SINK + '"slack"\nurl = { file = "/a", env = "B" }', '3: sinks.s.url: must be { credential = "NAME" }'),
    (SINK + '"slack"\nurl = 5', '3: sinks.s.url: must be { credential = "NAME" }'),
    (SINK + '"slack"\nurl = { file = "a" }', "3: sinks.s.url: `file` must be an absolute path"),
    (SINK + '"slack"\nurl = { env = "A B" }', "3: sinks.s.url: `env` must be a name"),
    (SINK + '"slack"\nurl = { env = 1 }', "3: sinks.s.url: `env` must be a string"),
    (SINK + '"slack"\nurl = { credential = "../a" }', "3: sinks.s.url: `credential` must be a name"),
    (SINK + '"slack"\nurl = "hooks.slack.example/s3cr3t"', "3: sinks.s.url: must be a URL that begins with https://"),
    (SINK + '"webhook"\nurl = { file = "a" }', "3: sinks.s.url: `file` must be an absolute path"),
    ('[hosts.a]\nidentity = "/k"', '2: hosts.a.identity: must be { file = "PATH" } or { credential = "NAME" }'),
    (
        '[hosts.a]\nidentity = { env = "K" }',
        '2: hosts.a.identity: must be { file = "PATH" } or { credential = "NAME" }',
    ),
    (HEALTH + 'headers = { "a b" = "x" }', '7: targets[0].health.headers."a b": is not the name of a header'),
    (HEALTH + 'headers = { A = "x\\ny" }', "7: targets[0].health.headers.A: must be one line of printable ASCII"),
    # several keys together
    (TARGET + TARGET, "6: targets[1].name: must be unique: targets[0] has this name, too (line 2)"),
    ('[hosts.a]\nvia = "b"\n[hosts.b]\nvia = "a"', "2: hosts.a.via: leads back to where it began: a → b → a"),
    ('[hosts.a]\nvia = "a"', "2: hosts.a.via: leads back to where it began: a → a"),
    # no TOML
    ("[store\n", "1: syntax: Expected ']' at the end of a table declaration (column 7)"),
    ("[store]\nurl = \n", "2: syntax: Invalid value (column 7)"),
    ("a = 1\na = 2", "2: syntax: Cannot overwrite a value"),
    ('[a]\nb = "x', "2: syntax: Unterminated string at the end of the file"),
    ("\ufeff[store]", "0: file: begins with a byte order mark"),
    ("a = " + "[" * 5000, "nested too deeply"),
    ("a = " + "9" * 5000, "0: file: holds a value that cannot be read"),
)


def said_about(path: Path) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        settings.load(path)
    assert caught.value.exit_status == 78
    assert all(line.startswith(f"{path}:") for line in str(caught.value).splitlines())
    return [f"{m.line}: {m.key}: {m.reason}" for m in caught.value.mistakes]


@pytest.mark.parametrize(("text", "said"), WRONG, ids=[said[:60] for _, said in WRONG])
def test_a_mistake_is_named_by_line_key_and_reason(write: Write, text: str, said: str) -> None:
    found = said_about(write(text))
    assert any(said in mistake for mistake in found), found


@pytest.mark.parametrize(("text", "said"), WRONG, ids=[said[:60] for _, said in WRONG])
def test_no_mistake_is_reported_twice_or_shows_a_secret(write: Write, text: str, said: str) -> None:
    found = said_about(write(text))
    assert len(found) == len(set(found))
    assert "s3cr3t" not in "".join(found)
    assert all(mistake.isprintable() for mistake in found)


def test_every_mistake_is_told_at_once_in_line_order(write: Write) -> None:
    text = """\
[stoer]
[store]
retention = 90
[defaults.health]
fail = 0
[hosts.-x]
port = "22"
via = "-y"
[[targets]]
name = "a"
host = "h"
[[targets]]
name = "a"
host = "h"
log = "relative"
health = { interval = "10" }
[sinks.ops]
type = "slakc"
[sinks.hook]
type = "webhook"
"""
    found = said_about(write(text))
    assert [mistake.partition(": ")[2].partition(": ")[0] for mistake in found] == [
        "stoer",
        "store.retention",
        "defaults.health.fail",
        "hosts.-x",
        "hosts.-x.port",
        "hosts.-x.via",
        "targets[0].log",
        "targets[1].name",
        "targets[1].log",
        "targets[1].health.interval",
        "targets[1].health.url",
        "sinks.ops.type",
        "sinks.hook.url",
    ]


def test_a_file_that_is_missing_is_told_by_its_name(tmp_path: Path) -> None:
    assert said_about(tmp_path / "no.toml") == ["0: file: there is no such file"]


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    assert said_about(tmp_path) == ["0: file: cannot be read: Is a directory"]


def test_a_path_that_no_file_can_have_is_told(tmp_path: Path) -> None:
    assert "cannot be read" in said_about(Path("/a\0b"))[0]


def test_a_file_that_may_not_be_read_is_told(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write("")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, os.strerror(13))

    monkeypatch.setattr(Path, "open", refuse)  # as root nothing is ever refused
    assert said_about(path) == ["0: file: cannot be read: Permission denied"]


def test_bytes_that_are_not_utf_8_are_told_with_their_line(tmp_path: Path) -> None:
    path = tmp_path / "watchd.toml"
    path.write_bytes(b"[store]\n# caf\xe9\n")
    assert said_about(path) == ["0: file: is not UTF-8 text: byte 0xe9 on line 2"]


def test_a_file_as_large_as_a_log_is_no_configuration(tmp_path: Path) -> None:
    path = tmp_path / "watchd.toml"
    path.write_bytes(b"#" * (5 << 20))
    assert said_about(path) == ["0: file: is larger than 4 MiB: that is no configuration file"]
