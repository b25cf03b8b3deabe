from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.settings.conftest import Write
from watchd import settings
from watchd.errors import SettingsError
from watchd.settings.secrets import LARGEST, Form, Secret, Source, is_http_url


def a_secret(source: Source, name: str = "", *, form: Form = "text", literal: str = "") -> Secret:
    return Secret(
        config="/etc/w.toml", line=7, key="sinks.ops.url", source=source, name=name, form=form, literal=literal
    )


def test_a_secret_is_never_shown() -> None:
    secret = a_secret("literal", literal="hunter2")
    assert "hunter2" not in f"{secret} {secret!r} {[secret]}"
    assert secret.reveal() == "hunter2"


def test_a_file_is_read_when_the_secret_is_used_and_white_space_around_it_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "token"
    secret = a_secret("file", str(path))
    path.write_text(" s3cr3t\n\n")
    assert secret.reveal() == "s3cr3t"
    assert secret.path() == path


def test_a_credential_lies_where_systemd_says(tmp_path: Path) -> None:
    (tmp_path / "slack").write_text("s3cr3t\n")
    secret = a_secret("credential", "slack")
    assert secret.reveal({"CREDENTIALS_DIRECTORY": str(tmp_path)}) == "s3cr3t"
    assert secret.path({"CREDENTIALS_DIRECTORY": str(tmp_path)}) == tmp_path / "slack"


def test_an_environment_variable_is_asked_for() -> None:
    assert a_secret("env", "TOKEN").reveal({"TOKEN": "s3cr3t"}) == "s3cr3t"


@pytest.mark.parametrize(
    ("source", "name", "reason"),
    [
        ("env", "TOKEN", "the environment variable TOKEN is not set"),
        ("credential", "slack", r"\$CREDENTIALS_DIRECTORY is not set"),
        ("file", "/nonexistent/token", "/nonexistent/token cannot be read: No such file or directory"),
        ("file", "/", "/ is not a regular file"),
        ("file", "/a\0b", "cannot be read: .*embedded null"),
        ("literal", "", "the secret is empty"),
    ],
)
def test_a_secret_that_is_not_there_is_missed_by_line_and_key(source: Source, name: str, reason: str) -> None:
    with pytest.raises(SettingsError, match=rf"^/etc/w.toml:7: sinks.ops.url: .*{reason}"):
        a_secret(source, name).reveal({})


def test_a_fifo_is_refused_before_it_can_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(SettingsError, match="not a regular file"):
        a_secret("file", str(tmp_path / "fifo")).reveal()


@pytest.mark.parametrize(
    ("content", "form", "reason"),
    [
        (b"\n \n", "text", "is empty"),
        (b"\xff\xfe", "text", "not UTF-8"),
        (b"a" * (LARGEST + 1), "text", "too large"),
        (b"two\nlines", "line", "one line"),
        (b"\x1b[31mred", "line", "printable"),
        ("schlüssel".encode(), "line", "ASCII"),
        (b"hooks.example/x", "url", "must be a URL"),
        (b"ftp://hooks.example/x", "url", "must be a URL"),
        (b"https://hooks.example/x y", "url", "must be a URL"),
    ],
)
def test_a_file_with_something_else_in_it_is_refused_without_showing_it(
    tmp_path: Path, content: bytes, form: Form, reason: str
) -> None:
    path = tmp_path / "secret"
    path.write_bytes(content)
    with pytest.raises(SettingsError, match=reason) as caught:
        a_secret("file", str(path), form=form).reveal()
    assert "hooks.example" not in str(caught.value)


def test_a_secret_that_does_not_lie_in_a_file_has_no_path() -> None:
    with pytest.raises(SettingsError, match="does not lie in a file"):
        a_secret("env", "KEY").path({"KEY": "x"})


@pytest.mark.parametrize("url", ["http://a", "https://[::1]:8080/x?y#z", "https://user:pw@a.example/"])
def test_http_urls_are_known(url: str) -> None:
    assert is_http_url(url)


@pytest.mark.parametrize(
    "url", ["", "a.example", "https://", "https://a:99999/", "https://a:0/", "http://[::1", "http://ä", "http://a\n"]
)
def test_other_texts_are_no_http_urls(url: str) -> None:
    assert not is_http_url(url)


TWO_SECRETS = """
[[targets]]
name = "t"
host = "h"
log = "/l"
health = { url = "http://127.0.0.1:1/h", headers = { Authorization = { env = "A" }, X-Api-Key = { env = "B" }, Accept = "text/plain" } }
[sinks.s]
type = "slack"
url = { env = "C" }
"""


def test_headers_are_put_into_the_target_when_it_is_used(write: Write) -> None:
    found = settings.load(write(TWO_SECRETS))
    (target,) = found.targets
    assert target.health
    assert target.health.headers == ()
    revealed = settings.reveal_target(found, target, {"A": "Bearer x", "B": "y"})
    assert revealed.health
    assert revealed.health.headers == (("Authorization", "Bearer x"), ("X-Api-Key", "y"), ("Accept", "text/plain"))
    assert "Bearer" not in repr(revealed)


def test_every_secret_that_is_missing_is_named_at_once(write: Write) -> None:
    found = settings.load(write(TWO_SECRETS))
    missing = settings.check_secrets(found, {"B": "y"})
    assert [(m.line, m.key) for m in missing] == [(6, "targets[0].health.headers.Authorization"), (9, "sinks.s.url")]
    with pytest.raises(SettingsError, match=r"headers\.Authorization.*\n.*headers\.X-Api-Key"):
        settings.reveal_target(found, found.targets[0], {})
    assert settings.check_secrets(found, {"A": "x", "B": "y", "C": "https://hooks.example/x"}) == ()
