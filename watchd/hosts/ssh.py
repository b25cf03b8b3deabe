"""A machine over SSH: one connection for everything that is read, asked and polled there.

`ssh_connect` opens it, `ssh_files` and `ssh_read` read over SFTP, `ssh_exec` runs the commands of `commands`,
`ssh_tunnel` connects to ports, `ssh_errors` puts what can go wrong into our words. These alone import asyncssh.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import secrets
from collections.abc import Callable, Sequence

import asyncssh

from watchd.errors import HostLostError
from watchd.hosts import commands, replies, ssh_connect, ssh_exec, ssh_read, ssh_tunnel
from watchd.hosts.base import FileStat, LogHandle
from watchd.hosts.ssh_address import SshAddress, is_host_name
from watchd.hosts.ssh_connect import Client
from watchd.hosts.ssh_files import Files
from watchd.model import ByteStream, Dialer, Outcome, Question, ReadLog, ReadSource, Reply

__all__ = ["SshAddress", "SshHost", "is_host_name"]

CLOSE_S = 1.0
COMMAND_SESSIONS = 3
FILE_SESSIONS = 2
"""At a time on one connection: of the usual ten, the rest belongs to whoever follows logs."""


class _Link:
    """What hangs on one connection: it ends with it, and a later connection has its own."""

    def __init__(self, name: str, user: str, connection: asyncssh.SSHClientConnection, client: Client) -> None:
        self.name, self.user, self.connection, self.client = name, user, connection, client
        self.logs = Files(name, user, connection)
        self.running = asyncio.Semaphore(COMMAND_SESSIONS)
        self.reading = asyncio.Semaphore(FILE_SESSIONS)
        self.refuses_exec = ""

    @property
    def alive(self) -> bool:
        return not self.client.lost


class SshHost:
    """One machine; the caller opens its connection with `connect`, and again when an operation says that it is lost.

    Without a connection every operation raises HostLostError, except `ask`, whose replies then are `lost`.
    """

    def __init__(self, address: SshAddress, *, nonce: Callable[[], str] = lambda: secrets.token_hex(16)) -> None:
        self._address = address
        self._nonce = nonce
        self._lock = asyncio.Lock()
        self._link: _Link | None = None
        self._hops: list[SshHost] = []

    @property
    def name(self) -> str:
        """Its name in the configuration."""
        return self._address.name

    @property
    def connected(self) -> bool:
        """Whether a connection is there; one that died without a word is noticed within ten seconds."""
        return self._link is not None and self._link.alive

    async def connect(self) -> None:
        """Open the connection, and the jump hosts' before it; with one open, do nothing.

        Callers at the same time share one handshake. Raises HostUnreachableError, HostRefusedError and its kinds.
        """
        async with self._lock:
            if self.connected:
                return
            await self._let_go()
            plan = await ssh_connect.plan(self._address)
            try:
                tunnel = await self._tunnel_through(plan)
                connection, client = await ssh_connect.open_connection(self._address, plan, tunnel)
            except BaseException:
                await self._let_go()
                raise
            self._link = _Link(self.name, plan.user, connection, client)

    async def _tunnel_through(self, plan: ssh_connect.Plan) -> asyncssh.SSHClientConnection | None:
        """The connection of the jump host before this one, or None."""
        before = self._address.via
        for hop in plan.jump:
            before = SshHost(hop if before is None else dataclasses.replace(hop, via=before))
            self._hops.append(before)
        if before is None:
            return None
        await before.connect()
        return before._open().connection

    def _open(self) -> _Link:
        if self._link is None or not self._link.alive:
            raise HostLostError(self.name, "not connected")
        return self._link

    async def ask(self, questions: tuple[Question, ...], *, limit_s: float) -> tuple[Reply, ...]:
        """One reply to each question, in order; all commands go into one session, files are read beside it."""
        link = self._link
        if link is None or not link.alive:
            lost = Outcome.LOST
            return tuple(replies.unanswered(q, _via(q), "not connected", lost) for q in questions)
        found: dict[int, Reply] = {}
        rest: list[tuple[int, Question]] = []
        for i, question in enumerate(questions):
            why_not = commands.refusal(question)
            if why_not is None:
                rest.append((i, question))
            else:
                found[i] = replies.unanswered(question, _via(question), why_not)
        to_run = [(i, q) for i, q in rest if commands.runs(q)]
        to_read = [(i, q) for i, q in rest if not commands.runs(q)]
        run, read = await asyncio.gather(
            self._run(link, [q for _, q in to_run], limit_s), self._read(link, [q for _, q in to_read], limit_s)
        )
        found.update(zip((i for i, _ in (*to_run, *to_read)), (*run, *read), strict=True))
        return tuple(found[i] for i in range(len(questions)))

    async def _run(self, link: _Link, questions: Sequence[Question], limit_s: float) -> list[Reply]:
        if not questions:
            return []
        loop = asyncio.get_running_loop()
        give_up = loop.time() + limit_s
        if not link.refuses_exec:
            try:
                async with asyncio.timeout_at(give_up):
                    await link.running.acquire()
            except TimeoutError:
                return [
                    replies.unanswered(q, "exec", "no session was free in time", Outcome.TIMED_OUT) for q in questions
                ]
            try:
                left = max(0.0, give_up - loop.time())
                return await ssh_exec.ask(self.name, link.connection, questions, self._nonce(), limit_s=left)
            except ssh_exec.ExecRefusedError as error:
                link.refuses_exec = str(error)
            finally:
                link.running.release()
        # The host runs nothing for this user: what files can tell is read, and the founding commands are done here.
        readable = [q for q in questions if ssh_read.reads(q)]
        read = iter(await self._read(link, readable, max(0.0, give_up - loop.time())))
        return [next(read) if ssh_read.reads(q) else ssh_exec.refused(q, link.refuses_exec) for q in questions]

    async def _read(self, link: _Link, questions: Sequence[Question], limit_s: float) -> list[Reply]:
        """Replies from files, read one after the other on a session of their own: what a log names may be a trap."""
        if not questions:
            return []
        found: list[Reply] = []
        try:
            async with asyncio.timeout(limit_s), link.reading:
                beside = Files(self.name, link.user, link.connection, beside=True)
                try:
                    for question in questions:
                        found += [await ssh_read.answer(beside, question)]
                finally:
                    beside.close()
        except TimeoutError:
            late = questions[len(found) :]
            why = f"not answered within {limit_s:.3g} s"
            found += [replies.unanswered(q, "sftp", why, Outcome.TIMED_OUT) for q in late]
        return found

    async def open_log(self, path: str) -> LogHandle:
        """Open a regular file; the handle ends with the connection. Raises LogUnreadableError, HostError."""
        return await self._open().logs.open_log(path)

    async def stat(self, path: str) -> FileStat | None:
        """The file that the path names now; None where there is none. Raises HostError, LogUnreadableError if denied."""
        return await self._open().logs.stat(path)

    async def siblings(self, path: str) -> tuple[str, ...]:
        """Paths beside it whose names begin with its own, newest first, at most 50. Raises HostError."""
        return await self._open().logs.siblings(path)

    def tunnel(self) -> Dialer:
        """Opens connections to ports as the host sees them, each over a channel of its own."""

        async def dial(host: str, port: int) -> ByteStream:
            link = self._open()
            return await ssh_tunnel.dial(self.name, link.connection, lambda: link.alive, host, port)

        return dial

    async def close(self) -> None:
        """Let go of the machine; never raises, never waits for it."""
        await self._let_go()

    async def _let_go(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            link.connection.abort()
            # After an abort nothing of the peer's is waited for; the bound is there in case that changes.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_S):
                    await link.connection.wait_closed()
        hops, self._hops = self._hops, []
        for hop in reversed(hops):
            await hop.close()


def _via(question: Question) -> replies.Via:
    return "sftp" if isinstance(question, (ReadLog, ReadSource)) else "exec"
