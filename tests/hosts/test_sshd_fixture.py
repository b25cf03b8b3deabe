"""The tests' own sshd does what other tests rely on."""

from __future__ import annotations

from watchd.hosts.ssh import SshHost


async def test_a_host_connects_as_the_unprivileged_user(sshd):
    host = SshHost(sshd.address())
    await host.connect()
    done = await host._open().connection.run("id -un; echo $HOME; dmesg", check=True)
    assert done.stdout.split("\n")[:2] == [sshd.user, str(sshd.home)]
    assert "Linux version 6.1.0" in done.stdout
    await host.close()
