"""Fixtures that more than one room needs; what is longer lives in support/."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.support.sshd import Sshd


@pytest.fixture(scope="session")
def sshd() -> Iterator[Sshd]:
    """One sshd for the whole session: for tests that neither break nor configure it."""
    with Sshd() as server:
        yield server


@pytest.fixture
def make_sshd() -> Iterator[Callable[..., Sshd]]:
    """Start an sshd of the test's own: `make_sshd(MaxSessions=1)`, `make_sshd(rc="echo hello")`."""
    started: list[Sshd] = []

    def make(*, rc: str | None = None, **options: str | int | None) -> Sshd:
        started.append(Sshd(rc=rc, **options))
        return started[-1].start()

    yield make
    for server in started:
        server.stop()
