from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest

from tests.settings.conftest import Write
from watchd import settings
from watchd.errors import SettingsError
from watchd.model import RUNGS, HealthCheck, Severity, Target
from watchd.settings.types import Flapping, TargetRules

TARGET = '[[targets]]\nname = "t"\nhost = "h"\nlog = "/l"\n'


def test_an_empty_file_means_every_default(write: Write) -> None:
    path = write("")
    found = settings.load(path)
    assert dataclasses.replace(found, warnings=()) == settings.Settings(path=path)
    assert found.unbuilt == ()


def test_a_target_takes_what_it_does_not_say_from_the_defaults(write: Write) -> None:
    text = """
    [defaults]
    rungs = ["traceback", "broad"]
    climb_budget = "5s"
    source_roots = ["/opt"]
    reopen_within = "1m"
    [defaults.health]
    interval = "2s"
    fail = 5
    ca = "/ca.pem"
    [[targets]]
    name = "a"
    host = "h"
    log = "/a.log"
    health = "http://127.0.0.1:1/health"
    [[targets]]
    name = "b"
    host = "h"
    log = "/b.log"
    climb_budget = "30s"
    reopen_within = "10m"
    flapping = ""
    [targets.health]
    url = "https://b.example/health"
    interval = "10s"
    via = "jump"
    """
    found = settings.load(write(text))
    a, b = found.targets
    assert a == Target(
        name="a",
        host="h",
        log="/a.log",
        rungs=("broad", "traceback"),
        climb_budget_s=5,
        source_roots=("/opt",),
        health=HealthCheck(url="http://127.0.0.1:1/health", interval_s=2, fail=5, ca="/ca.pem"),
    )
    assert b.climb_budget_s == 30
    assert b.health == HealthCheck(url="https://b.example/health", interval_s=10, fail=5, ca="/ca.pem", via="jump")
    assert (found.rules["a"].reopen_within_s, found.rules["b"].reopen_within_s, found.reopen_within_s) == (60, 600, 60)
    assert (found.rules["a"].flapping, found.rules["b"].flapping) == (Flapping(changes=4, within_s=600), None)


def test_what_a_target_says_is_passed_on(write: Write) -> None:
    text = TARGET + 'engine = "vllm"\nprocess = "vllm (serve|bench)$"\nlabels = { team = "a b" }\n'
    (target,) = settings.load(write(text)).targets
    assert target.engine == "vllm"
    assert target.process == "vllm (serve|bench)$"
    assert target.labels == {"team": "a b"}
    assert target.health is None
    assert target.rungs == RUNGS


def test_a_target_that_stands_in_no_file_gets_the_defaults(write: Write) -> None:
    found = settings.load(write('[defaults]\nclimb_budget = "3s"\n[defaults.health]\ninterval = "1s"\n'))
    target = found.target(name="h:/l", host="h", log="/l", health_url="http://127.0.0.1:1/")
    assert target.climb_budget_s == 3
    assert target.health == HealthCheck(url="http://127.0.0.1:1/", interval_s=1)
    assert settings.Settings().target(name="x", host=None, log="/l") == Target(name="x", host=None, log="/l")


def test_hosts_say_only_what_they_say(write: Write) -> None:
    text = '[hosts."10.0.0.7"]\nuser = "w"\nidentity = { credential = "key" }\nport = 2222\n[hosts.plain]\n'
    hosts = settings.load(write(text)).hosts
    assert (hosts["10.0.0.7"].user, hosts["10.0.0.7"].port, hosts["10.0.0.7"].address) == ("w", 2222, None)
    identity = hosts["10.0.0.7"].identity
    assert identity
    assert identity.path({"CREDENTIALS_DIRECTORY": "/run/c"}) == Path("/run/c/key")
    assert hosts["plain"] == settings.HostSettings(name="plain")


def test_sinks_hold_what_their_type_needs(write: Write) -> None:
    text = """
    [sinks.hook]
    type = "webhook"
    url = "http://127.0.0.1:1/hook"
    secret = { env = "HOOK" }
    severity = "warning"
    targets = ["t*"]
    labels = { team = "a" }
    [sinks.chat]
    type = "slack"
    url = { env = "SLACK" }
    mention = "<!here>"
    [sinks.archive]
    type = "file"
    path = "/var/log/i.jsonl"
    [sinks.screen]
    type = "terminal"
    """
    hook, chat, archive, screen = settings.load(write(TARGET + text)).sinks
    assert (hook.name, hook.type, hook.severity) == ("hook", "webhook", Severity.WARNING)
    assert (hook.targets, hook.labels) == (("t*",), {"team": "a"})
    assert hook.url
    assert hook.url.reveal() == "http://127.0.0.1:1/hook"
    assert chat.url
    assert chat.url.reveal({"SLACK": "https://hooks.slack.example/x"}) == "https://hooks.slack.example/x"
    assert chat.mention == "<!here>"
    assert archive.path == Path("/var/log/i.jsonl")
    assert screen.severity is Severity.ERROR


def test_nothing_in_the_file_is_expanded(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/expanded")
    text = TARGET.replace('"/l"', '"/data/$HOME/${HOME}/l"')
    assert settings.load(write(text)).targets[0].log == "/data/$HOME/${HOME}/l"


def test_the_store_names_its_file(write: Write) -> None:
    store = settings.load(write('[store]\nurl = "sqlite:////srv/w.db"\nretention = "1d"\n')).store
    assert store.path == Path("/srv/w.db")
    assert store.retention_s == 86400


def test_the_password_of_a_store_is_not_shown(write: Write) -> None:
    found = settings.load(write('[store]\nurl = "postgresql://w:hunter2@db/w"\n'))
    assert found.store.path is None
    assert "hunter2" in found.store.url
    assert "hunter2" not in repr(found)


def test_engines_are_checked_where_they_are_known(write: Write) -> None:
    path = write(TARGET + 'engine = "sglnag"\n')
    assert settings.load(path).targets[0].engine == "sglnag"
    with pytest.raises(SettingsError, match=r":5: targets\[0\]\.engine: unknown engine; did you mean `sglang`\?"):
        settings.load(path, engines=("vllm", "sglang"))


LITERALS = TARGET + (
    'health = { url = "http://u:hunter2@127.0.0.1:1/", headers = { Authorization = "hunter2", Accept = "*/*" } }\n'
    '[sinks.s]\ntype = "slack"\nurl = "https://hooks.slack.example/hunter2"\n'
    '[sinks.w]\ntype = "webhook"\nurl = "https://ops.example/hook"\nsecret = "hunter2"\n'
)
LITERAL_KEYS = [
    (5, "targets[0].health.headers.Authorization"),
    (5, "targets[0].health.url"),
    (8, "sinks.s.url"),
    (12, "sinks.w.secret"),
]


def test_a_literal_secret_draws_a_warning_that_does_not_show_it(write: Write) -> None:
    found = settings.load(write(LITERALS, mode=0o640))
    assert [(w.line, w.key) for w in found.warnings] == LITERAL_KEYS
    assert all("in the clear; { credential" in w.reason for w in found.warnings)
    assert "hunter2" not in str(found.warnings)
    slack, webhook = found.sinks
    assert slack.url
    assert webhook.secret
    assert (slack.url.reveal(), webhook.secret.reveal()) == ("https://hooks.slack.example/hunter2", "hunter2")
    assert "slack.example" not in repr(found)


def test_a_literal_secret_is_refused_where_others_may_read_the_file(write: Write) -> None:
    with pytest.raises(SettingsError) as caught:
        settings.load(write(LITERALS, mode=0o604))
    assert [(m.line, m.key) for m in caught.value.mistakes] == LITERAL_KEYS
    assert all("others may read this file" in m.reason for m in caught.value.mistakes)
    assert "hunter2" not in str(caught.value)


def test_a_file_without_literal_secrets_may_be_read_by_all(write: Write) -> None:
    text = TARGET + '[sinks.w]\ntype = "webhook"\nurl = "https://ops.example/hook"\nsecret = { env = "X" }\n'
    assert settings.load(write(text, mode=0o644)).warnings == ()


def test_what_nobody_would_see_or_hear_draws_a_warning(write: Write) -> None:
    assert [w.key for w in settings.load(write("")).warnings] == ["targets"]
    assert [(w.key, w.reason) for w in settings.load(write(TARGET)).warnings] == [
        ("sinks", "no sink: incidents are kept in the store, and nobody is told")
    ]
    text = TARGET + '[sinks.s]\ntype = "terminal"\ntargets = ["t", "eagel*"]\n'
    (warning,) = settings.load(write(text)).warnings
    assert (warning.line, warning.key) == (7, "sinks.s.targets[1]")


def test_rules_of_the_contract_have_its_defaults() -> None:
    assert TargetRules() == TargetRules(
        follow="auto",
        rungs=RUNGS,
        climb_budget_s=30,
        source_roots=(),
        signatures="/etc/watchd/signatures.d",
        reopen_within_s=600,
        flapping=Flapping(changes=4, within_s=600),
        remind_every_s=None,
    )


def test_pydantic_is_loaded_only_with_a_configuration() -> None:
    script = "import sys, watchd.settings; sys.exit('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_a_host_that_is_nearly_one_of_the_file_draws_a_warning(write: Write) -> None:
    """A misspelt host would be looked for in ~/.ssh/config, and not found until the daemon runs."""
    path = write('[hosts.gpu-01]\n[[targets]]\nname = "a"\nhost = "gpu-1"\nlog = "/l"\n')
    said = [f"{warning.line}: {warning.key}: {warning.reason}" for warning in settings.load(path).warnings]
    assert any(text.startswith("4: targets[0].host: ") and "did you mean `gpu-01`" in text for text in said)
