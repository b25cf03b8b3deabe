"""The host of the demo, asked by OpenSSH's own client and by watchd's."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import stat
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncssh
import pytest

from watchd.demo.host import LOOPBACK, USER, DemoHost, _ReadOnly

SSH = shutil.which("ssh") or "/usr/bin/ssh"


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[DemoHost]:
    async with DemoHost(tmp_path) as found:
        yield found


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    status: int
    out: bytes
    err: bytes


async def ssh(
    host: DemoHost, *words: str, given: bytes | None = b"", user: str = USER, identity: Path | None = None
) -> Ran:
    """OpenSSH's client with nothing of this user's own configuration."""
    if not Path(SSH).exists():
        pytest.fail("no ssh here: apt-get install -y openssh-client")
    options = {
        "IdentityFile": identity or host.identity,
        "IdentitiesOnly": "yes",
        "UserKnownHostsFile": host.known_hosts,
        "GlobalKnownHostsFile": "/dev/null",
        "StrictHostKeyChecking": "yes",
        "BatchMode": "yes",
        "Port": host.port,
    }
    flags = [part for key, value in options.items() for part in ("-o", f"{key}={value}")]
    ran = await asyncio.create_subprocess_exec(
        *(SSH, "-F", "none", *flags, f"{user}@{LOOPBACK}", *words),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(30):
        out, err = await ran.communicate(given)
    assert ran.returncode is not None
    return Ran(status=ran.returncode, out=out, err=err)


def connected(host: DemoHost, **options: object) -> Any:
    return asyncssh.connect(
        LOOPBACK,
        host.port,
        username=USER,
        client_keys=[str(host.identity)],
        known_hosts=str(host.known_hosts),
        config=None,
        agent_path=None,
        **options,
    )


async def until(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.02)


def alive(pid: int) -> bool:
    """Whether the process runs; one that has ended and waits to be reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def test_openssh_gets_the_whole_output_of_a_command(host: DemoHost) -> None:
    ran = await ssh(host, "seq 1 300000; echo end >&2")
    assert ran.status == 0
    assert ran.out == b"".join(b"%d\n" % n for n in range(1, 300_001))
    assert b"end" in ran.err


async def test_no_output_is_lost_at_the_end_of_many_commands(host: DemoHost) -> None:
    """A server that says the exit status before its output has left loses the output."""
    async with connected(host) as connection:
        for n in range(25):
            ran = await connection.run(f"echo {n}; echo no >&2; exit {n}")
            assert (ran.stdout, ran.stderr, ran.exit_status) == (f"{n}\n", "no\n", n)


@pytest.mark.parametrize("status", [0, 1, 127, 255])
async def test_the_exit_status_comes_back(host: DemoHost, status: int) -> None:
    assert (await ssh(host, f"exit {status}")).status == status


async def test_a_command_that_a_signal_ended_is_told_so(host: DemoHost) -> None:
    async with connected(host) as connection:
        ran = await connection.run("kill -9 $$")
        assert ran.exit_signal is not None
        assert ran.exit_signal[0] == "KILL"


async def test_what_is_sent_reaches_the_command_and_so_does_its_end(host: DemoHost) -> None:
    assert (await ssh(host, "wc -c; cat", given=b"x" * 200_000)).out.split() == [b"200000"]
    assert (await ssh(host, "cat", given=b"hello\n")).out == b"hello\n"


async def test_commands_run_in_a_home_and_an_environment_of_their_own(
    host: DemoHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "not for the host")
    ran = await ssh(host, "pwd; echo $HOME; env")
    home, variable, *rest = ran.out.decode().splitlines()
    assert home == variable == str(host.home)
    assert not [line for line in rest if "SECRET_TOKEN" in line]


async def test_nothing_that_a_command_started_outlives_its_channel(host: DemoHost, tmp_path: Path) -> None:
    async with connected(host) as connection:
        process = await connection.create_process("sleep 300 & echo $!; echo $$; wait")
        pids = [int(await process.stdout.readline()) for _ in range(2)]
        assert all(map(alive, pids))
        process.channel.close()
        await until(lambda: not any(map(alive, pids)))


async def test_nothing_outlives_a_command_that_left_children_behind(host: DemoHost) -> None:
    ran = await ssh(host, "sleep 300 >/dev/null 2>&1 </dev/null & echo $!")
    await until(lambda: not alive(int(ran.out)))


async def test_nothing_outlives_a_connection_that_broke(host: DemoHost) -> None:
    async with connected(host) as connection:
        process = await connection.create_process("echo $$; sleep 300")
        pid = int(await process.stdout.readline())
        connection.abort()
    await until(lambda: not alive(pid))


async def test_nothing_outlives_the_host(tmp_path: Path) -> None:
    async with DemoHost(tmp_path) as host:
        connection = await connected(host)
        process = await connection.create_process("echo $$; sleep 300")
        pid, port = int(await process.stdout.readline()), host.port
    assert not alive(pid)
    connection.abort()
    with pytest.raises(ConnectionRefusedError), socket.create_connection((LOOPBACK, port), timeout=5):
        pass


async def test_sftp_reads_a_file_that_grows_through_one_handle(host: DemoHost, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(b"one\n")
    async with connected(host) as connection, connection.start_sftp_client() as sftp, sftp.open(str(log), "rb") as held:
        assert await held.read(100, 0) == b"one\n"
        with log.open("ab") as more:
            more.write(b"two\n")
        assert await held.read(100, 4) == b"two\n"
        assert (await held.stat()).size == 8
        log.rename(tmp_path / "server.log.1")
        assert await held.read(100, 0) == b"one\ntwo\n"


async def test_sftp_writes_nothing(host: DemoHost, tmp_path: Path) -> None:
    """Every way that SFTP has to change something, through a client that tries them."""
    file = tmp_path / "file"
    file.write_bytes(b"as it was")
    folder = tmp_path / "folder"
    folder.mkdir()
    before = (file.stat().st_mtime_ns, stat.S_IMODE(file.stat().st_mode), sorted(tmp_path.iterdir()))
    path, other = str(file), str(tmp_path / "other")
    async with connected(host) as connection, connection.start_sftp_client() as sftp:
        tries = {
            "write": lambda: sftp.open(path, "wb"),
            "append": lambda: sftp.open(path, "ab"),
            "both": lambda: sftp.open(path, "r+b"),
            "create": lambda: sftp.open(other, "xb"),
            "remove": lambda: sftp.remove(path),
            "rename": lambda: sftp.rename(path, other),
            "posix_rename": lambda: sftp.posix_rename(path, other),
            "mkdir": lambda: sftp.mkdir(other),
            "rmdir": lambda: sftp.rmdir(str(folder)),
            "chmod": lambda: sftp.chmod(path, 0o777),
            "truncate": lambda: sftp.truncate(path, 0),
            "utime": lambda: sftp.utime(path, (0, 0)),
            "symlink": lambda: sftp.symlink(path, other),
            "link": lambda: sftp.link(path, other),
        }
        for name, attempt in tries.items():
            with pytest.raises(asyncssh.SFTPPermissionDenied):
                await attempt()
            assert file.read_bytes() == b"as it was", name
    after = (file.stat().st_mtime_ns, stat.S_IMODE(file.stat().st_mode), sorted(tmp_path.iterdir()))
    assert after == before


def test_every_method_of_an_sftp_server_was_judged() -> None:
    """A later asyncssh may bring another way to write; this fails then."""
    reading = {
        "close",
        "read",
        "lstat",
        "stat",
        "fstat",
        "scandir",
        "realpath",
        "readlink",
        "statvfs",
        "fstatvfs",
        "exit",
    }
    presenting = {"channel", "connection", "env", "logger", "convert_attrs", "format_user", "format_group"}
    presenting |= {"format_longname", "map_path", "reverse_map_path", "supports_copy_data"}
    every = {name for name in dir(asyncssh.SFTPServer) if not name.startswith("_")}
    refused = {name for name in every if name in vars(_ReadOnly)}
    assert every - refused - reading - presenting == set()
    assert not refused & reading


async def test_a_fifo_is_refused_and_holds_up_nobody(host: DemoHost, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    async with connected(host) as connection, connection.start_sftp_client() as sftp:
        with pytest.raises(asyncssh.SFTPPermissionDenied, match="no regular file"):
            await sftp.open(str(tmp_path / "fifo"), "rb")
        with pytest.raises(asyncssh.SFTPNoSuchFile):
            await sftp.open(str(tmp_path / "nothing"), "rb")


async def test_a_connection_to_the_loopback_is_passed_on(host: DemoHost) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.readline()).upper())
        writer.close()

    server = await asyncio.start_server(answer, LOOPBACK, 0)
    port = server.sockets[0].getsockname()[1]
    async with server, connected(host) as connection:
        reader, writer = await connection.open_connection(LOOPBACK, port)
        writer.write(b"hello\n")
        assert await reader.read() == b"HELLO\n"


@pytest.mark.parametrize("place", ["192.0.2.1", "example.org", "0.0.0.0", "169.254.169.254", "::ffff:8.8.8.8", ""])
async def test_a_connection_to_anywhere_else_is_refused(host: DemoHost, place: str) -> None:
    async with connected(host) as connection:
        with pytest.raises(asyncssh.ChannelOpenError) as refused:
            await connection.open_connection(place, 80)
        assert refused.value.code == asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED


async def test_a_port_on_which_nobody_listens_is_refused_in_words(host: DemoHost) -> None:
    with socket.socket() as free:
        free.bind((LOOPBACK, 0))
        async with connected(host) as connection:
            with pytest.raises(asyncssh.ChannelOpenError, match="Connection refused"):
                await connection.open_connection(LOOPBACK, free.getsockname()[1])


async def test_no_port_is_forwarded_the_other_way(host: DemoHost) -> None:
    async with connected(host) as connection:
        with pytest.raises(asyncssh.ChannelListenError):
            await connection.forward_remote_port(LOOPBACK, 0, LOOPBACK, 9)


async def test_only_the_key_that_was_made_for_it_is_let_in(host: DemoHost, tmp_path: Path) -> None:
    stranger = tmp_path / "stranger"
    stranger.touch(mode=0o600)
    asyncssh.generate_private_key("ssh-ed25519").write_private_key(str(stranger))
    assert (await ssh(host, "true", identity=stranger)).status == 255
    assert (await ssh(host, "true", user="root")).status == 255
    assert (await ssh(host, "true")).status == 0


async def test_another_host_key_than_the_known_one_is_refused(host: DemoHost, tmp_path: Path) -> None:
    other = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode()
    host.known_hosts.write_text(f"[{LOOPBACK}]:{host.port} {other}")
    assert b"HOST IDENTIFICATION HAS CHANGED" in (await ssh(host, "true")).err


async def test_there_is_no_shell_and_no_other_subsystem(host: DemoHost) -> None:
    ran = await ssh(host, given=b"echo pwned\n")
    assert ran.status == 1
    assert ran.out == b""
    async with connected(host) as connection:
        process = await connection.create_process(subsystem="netconf")
        assert (await process.wait()).exit_status == 1


async def test_its_keys_are_for_its_user_alone(host: DemoHost) -> None:
    assert stat.S_IMODE(host.identity.stat().st_mode) == 0o600
    assert host.identity.read_text().startswith("-----BEGIN OPENSSH PRIVATE KEY-----")
