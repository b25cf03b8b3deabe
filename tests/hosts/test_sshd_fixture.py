"""The tests' own sshd does what other tests rely on."""

from __future__ import annotations

import asyncio

import pytest

from tests.support import sshd_install
from tests.support.sshd import wait_until
from watchd.hosts.ssh import SshHost
from watchd.model import KernelLog


async def test_a_host_connects_as_the_unprivileged_user(sshd):
    host = SshHost(sshd.address())
    await host.connect()
    done = await host._open().connection.run("id -un; echo $HOME; echo $PATH; dmesg", check=True)
    assert done.stdout.split("\n")[:2] == [sshd.user, str(sshd.home)]
    assert str(sshd.bin) in done.stdout
    assert "Linux version 6.1.0" in done.stdout
    await host.close()


async def test_two_servers_know_their_own_sessions(make_sshd):
    first, second = make_sshd(), make_sshd()
    host = SshHost(first.address())
    await host.connect()
    process = await host._open().connection.create_process("exec sleep 3595")
    assert await asyncio.to_thread(wait_until, lambda: first.left_over() == ("sleep 3595",))
    assert second.left_over() == ()
    second.kill_connections()
    assert host.connected
    process.close()
    first.stop()
    assert first.left_over() == ()
    assert not first.folder.exists()
    await host.close()


async def test_a_stopped_server_lets_nobody_in_and_a_restarted_one_does(make_sshd):
    server = make_sshd()
    server.restart()
    host = SshHost(server.address())
    await host.connect()
    (reply,) = await host.ask((KernelLog(),), limit_s=20)
    assert reply.data
    await host.close()


def test_without_an_sshd_the_tests_say_what_to_install(monkeypatch):
    monkeypatch.setattr(sshd_install.os, "getuid", lambda: 1000)
    with pytest.raises(RuntimeError, match="apt-get install openssh-server"):
        sshd_install.find_sshd(())


@pytest.mark.long
def test_as_root_on_debian_an_sshd_is_unpacked_into_a_folder():
    """Fetches a package."""
    found = sshd_install.find_sshd(())
    assert found.path.is_file()
    assert "cache" in str(found.path)
