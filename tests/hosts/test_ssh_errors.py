"""Every exception that asyncssh can raise becomes one of ours, and none by chance."""

from __future__ import annotations

import inspect
import socket

import asyncssh
import pytest

from watchd.errors import HostError, HostLostError, HostRefusedError, HostUnreachableError, WatchdError
from watchd.hosts import ssh_errors

CATCH_ALL = {asyncssh.Error, asyncssh.DisconnectError, ValueError, OSError, TimeoutError, Exception}
PUBLIC = sorted(
    (
        kind
        for _, kind in inspect.getmembers(asyncssh, inspect.isclass)
        if issubclass(kind, BaseException) and kind not in CATCH_ALL
    ),
    key=lambda kind: kind.__name__,
)


def an(kind):
    """One of this kind, however it is built."""
    error = kind.__new__(kind)
    Exception.__init__(error, "the reason")
    error.reason, error.code = "the reason", 2
    return error


def test_asyncssh_has_exceptions():
    assert len(PUBLIC) > 40


@pytest.mark.parametrize("kind", PUBLIC)
def test_every_public_exception_has_its_own_place(kind):
    assert any(issubclass(kind, known) for known in ssh_errors.FOREIGN if known not in CATCH_ALL), (
        f"asyncssh.{kind.__name__} is new: give it a place in ssh_errors"
    )


@pytest.mark.parametrize("kind", PUBLIC)
def test_every_public_exception_is_translated(kind):
    during = ssh_errors.translated("gpu", an(kind))
    assert type(during) in (HostLostError, HostRefusedError)
    before = ssh_errors.unreachable("gpu", "gpu:22", an(kind), 10, greeted=True)
    assert type(before) in (HostUnreachableError, HostRefusedError)
    assert "gpu" in str(before)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (asyncssh.ConnectionLost("gone"), HostLostError),
        (asyncssh.SFTPConnectionLost("gone"), HostLostError),
        (asyncssh.SFTPNoConnection("gone"), HostLostError),
        (asyncssh.ChannelOpenError(2, "SSH connection closed"), HostLostError),
        (asyncssh.ChannelOpenError(2, "open failed"), HostRefusedError),
        (asyncssh.PermissionDenied("no"), HostRefusedError),
        (asyncssh.KeyImportError("no"), HostRefusedError),
        (ConnectionResetError(104, "reset"), HostLostError),
        (TimeoutError(), HostLostError),
        (BrokenPipeError(), HostLostError),
    ],
)
def test_lost_and_refused_are_told_apart(error, kind):
    assert type(ssh_errors.translated("gpu", error)) is kind


def test_our_own_errors_pass_unchanged():
    ours = HostError("gpu", "x")
    assert ssh_errors.translated("gpu", ours) is ours
    assert isinstance(ours, WatchdError)


def test_what_a_host_says_is_fit_to_be_shown():
    said = ssh_errors.words(asyncssh.PermissionDenied("\x1b[2J\nno\x07" + "x" * 1000))
    assert said.isprintable()
    assert len(said) == 300
    assert ssh_errors.words(ValueError()) == "ValueError"
    unknown = ssh_errors.unreachable(
        "gpu", "gpu:22", socket.gaierror(-2, "Name or service not known"), 10, greeted=False
    )
    assert "Name or service not known" in str(unknown)
