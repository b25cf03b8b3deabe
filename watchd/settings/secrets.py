"""Secrets: where they lie is known when the file is read, what they are only when they are used."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from watchd.errors import Mistake, SettingsError

LARGEST = 64 << 10
"""Bytes: a file that holds more is no secret."""

# gpu-01.internal    10.0.0.7    fe80::1
_HOST = re.compile(r"[A-Za-z0-9._:-]+")

Source = Literal["credential", "file", "env", "literal"]
Form = Literal["text", "line", "url"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """A value that is never shown: not by `repr` or `str`, not in an error.

    config  the configuration file that speaks of it
    line    1-based line there
    key     its key there
    source  systemd credential, file, environment variable, or the file itself
    name    name of the credential or variable, or path of the file
    form    what the value must look like; `line` is printable ASCII
    """

    config: str
    line: int
    key: str
    source: Source
    name: str = ""
    form: Form = "text"
    literal: str = field(default="", repr=False)

    def __str__(self) -> str:
        return f"[secret {self.key}]"

    def reveal(self, environment: Mapping[str, str] | None = None) -> str:
        """The value, without white space around it. Raises SettingsError, which names the key and not the value."""
        text = self._read(os.environ if environment is None else environment).strip()
        wrong = unfit(text, self.form)
        if wrong:
            raise self._error(f"the secret {wrong}")
        return text

    def path(self, environment: Mapping[str, str] | None = None) -> Path:
        """The file in which it lies, for programs that read it themselves. Raises SettingsError where there is none."""
        if self.source == "file":
            return Path(self.name)
        if self.source == "credential":
            found = (os.environ if environment is None else environment).get("CREDENTIALS_DIRECTORY", "")
            if found:
                return Path(found) / self.name
            raise self._error(
                "no credentials here ($CREDENTIALS_DIRECTORY is not set): systemd passes them to its units"
            )
        raise self._error("the secret does not lie in a file")

    def _read(self, environment: Mapping[str, str]) -> str:
        if self.source == "literal":
            return self.literal
        if self.source == "env":
            if self.name not in environment:
                raise self._error(f"the environment variable {self.name} is not set")
            return environment[self.name]
        path = self.path(environment)
        try:
            # Asked before opening, since opening a fifo blocks.
            if not stat.S_ISREG(path.stat().st_mode):
                raise self._error(f"{path} is not a regular file")
            with path.open("rb") as file:
                content = file.read(LARGEST + 1)
        except (OSError, ValueError) as error:
            raise self._error(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error
        if len(content) > LARGEST:
            raise self._error(f"{path} is too large for a secret")
        try:
            return content.decode()
        except UnicodeDecodeError:
            raise self._error(f"{path} is not UTF-8 text") from None

    def _error(self, reason: str) -> SettingsError:
        return SettingsError(self.config, (Mistake(line=self.line, key=self.key, reason=reason),))


def unfit(text: str, form: Form) -> str:
    """Why this text cannot be a secret of this form, without showing it; empty where it can."""
    if not text:
        return "is empty"
    if form == "line" and not (text.isascii() and text.isprintable()):
        return "must be one line of printable ASCII characters"
    if form == "url" and not is_http_url(text):
        return "must be a URL that begins with https:// or http://"
    return ""


def is_http_url(text: str) -> bool:
    """Whether this is an absolute `http` or `https` URL with a host, a possible port, and nothing unprintable."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return False
    plain = text.isascii() and text.isprintable() and " " not in text and len(text) <= 2048
    return plain and parts.scheme in ("http", "https") and bool(_HOST.fullmatch(parts.hostname or "")) and port != 0


def has_password(url: str) -> bool:
    """Whether the URL holds a password (`https://user:password@host`)."""
    try:
        return bool(urlsplit(url).password)
    except ValueError:
        return False
