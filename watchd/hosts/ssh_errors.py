"""What asyncssh and the operating system raise, in our words. Every public exception of asyncssh has its place here."""

from __future__ import annotations

import socket

import asyncssh

from watchd.errors import HostError, HostLostError, HostRefusedError, HostUnreachableError

# SFTP status codes that speak of a path or a file and not of the connection.
FILE_ERRORS: tuple[type[Exception], ...] = (asyncssh.SFTPError,)
FILE_LOST: tuple[type[Exception], ...] = (asyncssh.SFTPNoConnection, asyncssh.SFTPConnectionLost)
MISSING: tuple[type[Exception], ...] = (
    asyncssh.SFTPNoSuchFile,
    asyncssh.SFTPNoSuchPath,
    asyncssh.SFTPNotADirectory,
    asyncssh.SFTPDeletePending,
)
DENIED: tuple[type[Exception], ...] = (asyncssh.SFTPPermissionDenied, asyncssh.SFTPWriteProtect)

_REFUSED: tuple[type[Exception], ...] = (
    asyncssh.PermissionDenied,
    asyncssh.PasswordChangeRequired,
    asyncssh.HostKeyNotVerifiable,
    asyncssh.IllegalUserName,
    asyncssh.ServiceNotAvailable,
    asyncssh.KeyExchangeFailed,
    asyncssh.ProtocolNotSupported,
    asyncssh.ChannelListenError,
    asyncssh.ChannelOpenError,
    asyncssh.SFTPError,
    # The user's own files: ssh_config, known_hosts, a private key. All of them are ValueErrors.
    asyncssh.ConfigParseError,
    asyncssh.KeyImportError,
    asyncssh.KeyExportError,
    asyncssh.KeyGenerationError,
    asyncssh.KeyEncryptionError,
    ValueError,
)
_LOST: tuple[type[Exception], ...] = (
    *FILE_LOST,
    asyncssh.ConnectionLost,
    asyncssh.CompressionError,
    asyncssh.MACError,
    asyncssh.ProtocolError,
    asyncssh.DisconnectError,
    asyncssh.ProcessError,
    asyncssh.TimeoutError,
    # What a server sees on its stdin; a client meets none of them, and would have lost its place if it did.
    asyncssh.BreakReceived,
    asyncssh.SignalReceived,
    asyncssh.TerminalSizeChanged,
    asyncssh.Error,
    TimeoutError,
    OSError,
)
FOREIGN: tuple[type[Exception], ...] = (*_REFUSED, *_LOST)
"""What an operation of asyncssh may raise besides CancelledError and programming errors."""

# RFC 4254, section 5.1. Both of these cover more than one failure: the text tells which.
PROHIBITED = 1
CONNECT_FAILED = 2

_CLOSED = ("SSH connection closed", "Connection lost", "Connection closed")


def translated(host: str, error: BaseException) -> HostError:
    """The same failure as one of ours, for something asked over a connection that was there."""
    if isinstance(error, HostError):
        return error
    text = words(error)
    if isinstance(error, asyncssh.ChannelOpenError):
        return channel_refused(host, error)
    if isinstance(error, FILE_LOST):
        return HostLostError(host, f"the connection broke: {text}")
    if isinstance(error, _REFUSED) and not isinstance(error, OSError):
        return HostRefusedError(host, text)
    if isinstance(error, TimeoutError):
        return HostLostError(host, "no answer in time")
    return HostLostError(host, f"the connection broke: {text}")


def closed(error: asyncssh.ChannelOpenError) -> bool:
    """Whether no channel came about because the connection itself is gone."""
    return error.reason.startswith(_CLOSED)


def channel_refused(host: str, error: asyncssh.ChannelOpenError) -> HostError:
    """Why no further session came about: the connection is gone, or the host's MaxSessions is used up."""
    if closed(error):
        return HostLostError(host, "the connection broke: " + error.reason)
    return HostRefusedError(
        host, f"it opens no further session ({error.reason}): MaxSessions is used up, or sessions are switched off"
    )


def unreachable(host: str, where: str, error: BaseException, limit_s: float, *, greeted: bool) -> HostError:
    """Why no connection to `where` came about; `greeted`: the host had sent its SSH banner."""
    if isinstance(error, TimeoutError):
        return HostUnreachableError(host, f"no answer from {where} within {limit_s:g} s")
    if isinstance(error, socket.gaierror):
        return HostUnreachableError(host, f"the name of {where} is unknown ({error.strerror})")
    if isinstance(error, ConnectionRefusedError):
        return HostUnreachableError(host, f"connection refused: no SSH server listens on {where}")
    if isinstance(error, asyncssh.ChannelOpenError):
        return HostUnreachableError(host, f"the jump host cannot reach {where}: {error.reason}")
    if isinstance(error, (asyncssh.ConnectionLost, ConnectionResetError, BrokenPipeError)) and not greeted:
        return HostUnreachableError(
            host,
            f"{where} dropped the connection before its banner: too many logins at once (MaxStartups),"
            " or a penalty for earlier failed ones (PerSourcePenalties); wait before trying again",
        )
    if isinstance(error, _REFUSED) and not isinstance(error, OSError):
        return HostRefusedError(host, f"{where}: {words(error)}")
    return HostUnreachableError(host, f"no connection to {where}: {words(error)}")


def words(error: BaseException) -> str:
    """The error's own text on one line, at most 300 characters: parts of it come from the host."""
    if isinstance(error, TimeoutError) and not str(error):
        return "no answer in time"
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    text = "".join(c if c.isprintable() else " " for c in text or type(error).__name__)
    return text[:300]
