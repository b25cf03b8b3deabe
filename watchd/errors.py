"""Every failure that a room may raise.

    WatchdError                        retryable
    ├── SettingsError                  no    exit 78   the configuration is wrong: every mistake, with its line
    │   └── SignaturesError            no    exit 78   the user's own signatures are wrong: the same
    ├── HostError                            exit 4
    │   ├── HostUnreachableError       yes             no route, refused port, unknown name, timed out
    │   ├── HostLostError              yes             the connection broke while something was asked
    │   └── HostRefusedError           no              user, key or policy was refused
    │       ├── HostKeyUnknownError    no              nobody has said yet that this is the right machine
    │       └── HostKeyChangedError    no              the machine shows another key than the one that is known
    ├── LogUnreadableError             yes   exit 5    missing, not permitted, or no regular file
    ├── BundleError                    no    exit 1    a folder that is not a bundle
    ├── HttpError                      yes             a request that got no answer
    │   ├── HttpRefusedError           yes             nobody listens, or the name is unknown
    │   ├── HttpTimeoutError           yes             no answer in time
    │   └── HttpLostError              yes             the connection ended before the answer did
    └── StoreError                     no    exit 1    losing incidents in silence would be worse than stopping

Foreign exceptions become one of these in the one file that imports the foreign library, chained with `from` and
without URLs or secrets in the text. There is no parse error: log text is hostile input, and a parser that raises
would turn somebody's crash into ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar


class WatchdError(Exception):
    """Something that watchd expects to go wrong; its text is fit to be shown to a person."""

    retryable: ClassVar[bool] = False
    exit_status: ClassVar[int] = 1


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Mistake:
    """One mistake in a configuration file: `line` counts from 1 and is 0 where the file as a whole is meant."""

    line: int
    key: str
    reason: str


class SettingsError(WatchdError):
    """The configuration cannot be used; `mistakes` lists everything that is wrong with it, in line order, `files` by file."""

    exit_status = 78

    def __init__(self, path: str, mistakes: tuple[Mistake, ...]) -> None:
        self.path = path
        self.mistakes = tuple(sorted(mistakes))
        self.files: Mapping[str, tuple[Mistake, ...]] = {path: self.mistakes}
        super().__init__("\n".join(f"{path}:{m.line}: {m.key}: {m.reason}" for m in self.mistakes))


class SignaturesError(SettingsError):
    """The user's own signatures cannot be used; `files` maps each broken file to its mistakes, in line order."""

    def __init__(self, files: Mapping[str, tuple[Mistake, ...]]) -> None:
        self.files = {path: tuple(sorted(mistakes)) for path, mistakes in files.items()}
        self.path = next(iter(self.files), "")
        self.mistakes = tuple(mistake for mistakes in self.files.values() for mistake in mistakes)
        WatchdError.__init__(
            self,
            "\n".join(f"{path}:{m.line}: {m.key}: {m.reason}" for path, found in self.files.items() for m in found),
        )


class HostError(WatchdError):
    """A host could not be asked; `host` is its name in the configuration."""

    exit_status = 4

    def __init__(self, host: str, reason: str) -> None:
        self.host = host
        self.reason = reason
        super().__init__(f"{host}: {reason}")


class HostUnreachableError(HostError):
    """No connection came about: no route, refused port, unknown name, or no answer in time."""

    retryable = True


class HostLostError(HostError):
    """The connection broke, or stopped answering, while something was asked over it."""

    retryable = True


class HostRefusedError(HostError):
    """The host answered and said no: to the user, to the key, or to what was asked."""


class HostKeyUnknownError(HostRefusedError):
    """The host's key stands in no known_hosts file; `fingerprint` is what it showed, as `SHA256:…`."""

    def __init__(self, host: str, reason: str, fingerprint: str) -> None:
        super().__init__(host, reason)
        self.fingerprint = fingerprint


class HostKeyChangedError(HostKeyUnknownError):
    """The host shows another key than the one in known_hosts: somebody must look before watchd goes on."""


class LogUnreadableError(WatchdError):
    """The log is missing, may not be read, or is no regular file."""

    retryable = True
    exit_status = 5

    def __init__(self, host: str, path: str, reason: str) -> None:
        self.host = host
        self.path = path
        self.reason = reason
        super().__init__(f"{host}: {path}: {reason}")


class BundleError(WatchdError):
    """What was given as a bundle is none."""


class HttpError(WatchdError):
    """A request got no answer. The text names no URL: those may hold secrets."""

    retryable = True


class HttpRefusedError(HttpError):
    """Nobody listens there, or the name is unknown."""


class HttpTimeoutError(HttpError):
    """No answer within the time allowed."""


class HttpLostError(HttpError):
    """The connection ended, or something that is not HTTP came back."""


class StoreError(WatchdError):
    """The store could not be read or written; the daemon ends so that its supervisor starts it again."""
