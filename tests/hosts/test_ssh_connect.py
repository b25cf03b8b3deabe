"""A connection comes about, or an error says in words why not and what to do."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import replace
from pathlib import Path

import asyncssh
import pytest

from watchd.errors import (
    HostKeyChangedError,
    HostKeyUnknownError,
    HostLostError,
    HostRefusedError,
    HostUnreachableError,
)
from watchd.hosts.ssh import SshAddress, SshHost, is_host_name
from watchd.model import BootId, Outcome


async def failure(address, kind):
    host = SshHost(address)
    with pytest.raises(kind) as raised:
        await host.connect()
    assert not host.connected
    assert raised.value.host == address.name
    await host.close()
    return str(raised.value)


async def test_connecting_twice_and_at_once_makes_one_handshake(make_sshd):
    sshd = make_sshd()
    host = SshHost(sshd.address())
    assert not host.connected
    await asyncio.gather(*(host.connect() for _ in range(10)))
    await host.connect()
    assert host.connected
    assert sshd.server_log().count("Accepted publickey") == 1
    await host.close()
    await host.close()
    assert not host.connected
    await host.connect()
    assert host.connected
    await host.close()


async def test_without_a_connection_operations_say_so(sshd):
    host = SshHost(sshd.address())
    for operation in (host.open_log("/x"), host.stat("/x"), host.siblings("/x"), host.tunnel()("127.0.0.1", 1)):
        with pytest.raises(HostLostError, match="not connected"):
            await operation
    (reply,) = await host.ask((BootId(),), limit_s=1)
    assert (reply.outcome, reply.detail) == (Outcome.LOST, "not connected")


async def test_an_unknown_key_is_shown_and_never_accepted(make_sshd):
    sshd = make_sshd()
    Path(sshd.known_hosts).write_text("")
    for _ in range(2):
        host = SshHost(sshd.address())
        with pytest.raises(HostKeyUnknownError) as raised:
            await host.connect()
        assert not isinstance(raised.value, HostKeyChangedError)
        assert raised.value.fingerprint == sshd.fingerprint
        assert sshd.fingerprint in str(raised.value)
        line = f"[127.0.0.1]:{sshd.port} {' '.join(sshd.host_key.split()[:2])}"
        assert f"echo '{line}' >> " in str(raised.value), "the very key that was shown, not whatever comes next time"
    assert Path(sshd.known_hosts).read_text() == ""


async def test_a_known_hosts_file_that_is_not_there_knows_no_key(make_sshd):
    sshd = make_sshd()
    missing = replace(sshd.address(), known_hosts=str(sshd.folder / "none"))
    assert sshd.fingerprint in await failure(missing, HostKeyUnknownError)


async def test_a_changed_key_is_told_apart_from_an_unknown_one(make_sshd):
    sshd = make_sshd()
    sshd.change_host_key()
    sshd.restart()
    said = await failure(sshd.address(), HostKeyChangedError)
    assert sshd.fingerprint in said
    assert "ssh-keygen" in said
    sshd.trust()
    host = SshHost(sshd.address())
    await host.connect()
    await host.close()


async def test_a_revoked_key_is_refused(make_sshd):
    sshd = make_sshd()
    known = Path(sshd.known_hosts)
    known.write_text(f"{known.read_text()}@revoked {known.read_text()}")
    assert "revoked" in await failure(sshd.address(), HostRefusedError)


async def test_a_key_of_another_kind_than_the_known_one_is_a_changed_key(make_sshd):
    sshd = make_sshd()
    other = asyncssh.generate_private_key("ecdsa-sha2-nistp256").export_public_key().decode()
    Path(sshd.known_hosts).write_text(f"[127.0.0.1]:{sshd.port} {other}")
    assert sshd.fingerprint in await failure(sshd.address(), HostKeyChangedError)


async def test_of_several_host_keys_the_known_one_is_asked_for(make_sshd):
    sshd = make_sshd()
    second = asyncssh.generate_private_key("ecdsa-sha2-nistp256")
    path = sshd.folder / "host_ecdsa"
    second.write_private_key(str(path))
    path.chmod(0o600)
    sshd.options["HostKey"] = f"{sshd.folder}/host_ed25519\nHostKey {path}"
    sshd.restart()
    for line in (sshd.host_key, second.export_public_key().decode()):
        Path(sshd.known_hosts).write_text(f"[127.0.0.1]:{sshd.port} {line}\n")
        host = SshHost(sshd.address())
        await host.connect()
        await host.close()


async def test_a_refused_key_names_the_user_and_what_was_offered(make_sshd, tmp_path):
    sshd = make_sshd()
    stranger = asyncssh.generate_private_key("ssh-ed25519")
    stranger.write_private_key(str(tmp_path / "id"))
    said = await failure(replace(sshd.address(), identity=str(tmp_path / "id")), HostRefusedError)
    assert sshd.user in said
    assert str(tmp_path / "id") in said
    assert stranger.get_fingerprint() in said
    said = await failure(replace(sshd.address(), user="nobody-here"), HostRefusedError)
    assert "nobody-here" in said


async def test_too_many_keys_are_a_refusal_and_no_lost_connection(make_sshd, tmp_path):
    sshd = make_sshd(MaxAuthTries=1)
    asyncssh.generate_private_key("ssh-ed25519").write_private_key(str(tmp_path / "id"))
    said = await failure(replace(sshd.address(), identity=str(tmp_path / "id")), HostRefusedError)
    assert str(tmp_path / "id") in said


async def test_an_identity_that_cannot_be_used_is_named(sshd, tmp_path):
    said = await failure(replace(sshd.address(), identity=str(tmp_path / "none")), HostRefusedError)
    assert str(tmp_path / "none") in said
    (tmp_path / "junk").write_text("no key\n")
    await failure(replace(sshd.address(), identity=str(tmp_path / "junk")), HostRefusedError)
    locked = asyncssh.generate_private_key("ssh-ed25519")
    locked.write_private_key(str(tmp_path / "locked"), format_name="pkcs8-pem", passphrase="x")
    await failure(replace(sshd.address(), identity=str(tmp_path / "locked")), HostRefusedError)


async def test_a_refused_port_an_unknown_name_and_a_silent_host_have_words_of_their_own(sshd):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        assert "no SSH server listens" in await failure(replace(sshd.address(), port=port), HostUnreachableError)
    said = await failure(replace(sshd.address(), address="no-such-host.invalid"), HostUnreachableError)
    assert "name" in said
    assert "no-such-host.invalid" in said
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = replace(sshd.address(), port=silent.getsockname()[1], connect_timeout_s=0.3)
        assert "no answer" in await failure(address, HostUnreachableError)
    assert HostUnreachableError.retryable


async def test_a_host_that_hangs_up_before_its_banner_is_told_as_one_that_has_too_many_logins(sshd):
    async def hang_up(_, writer):
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    said = await failure(replace(sshd.address(), port=port), HostUnreachableError)
    assert "MaxStartups" in said
    assert "PerSourcePenalties" in said
    server.close()
    await server.wait_closed()


async def test_what_is_no_ssh_server_is_not_taken_for_one(sshd):
    async def greet(_, writer):
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 100)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    address = replace(sshd.address(), port=server.sockets[0].getsockname()[1])
    host = SshHost(address)
    with pytest.raises((HostUnreachableError, HostRefusedError)):
        await host.connect()
    server.close()
    await server.wait_closed()


async def test_a_jump_host_is_passed_through_and_both_keys_are_checked(make_sshd):
    bastion, target = make_sshd(), make_sshd()
    jump = SshHost(bastion.address(name="bastion"))
    host = SshHost(target.address(via=jump))
    await host.connect()
    assert jump.connected
    (reply,) = await host.ask((BootId(),), limit_s=20)
    assert reply.outcome is Outcome.ANSWERED
    await host.close()
    assert jump.connected
    await jump.close()
    Path(target.known_hosts).write_text("")
    assert target.fingerprint in await failure(target.address(via=jump), HostKeyUnknownError)
    await jump.close()
    Path(bastion.known_hosts).write_text("")
    with pytest.raises(HostKeyUnknownError, match="bastion"):
        await SshHost(target.address(via=SshHost(bastion.address(name="bastion")))).connect()


async def test_a_target_behind_a_jump_host_that_does_not_answer_is_unreachable(make_sshd):
    bastion = make_sshd()
    jump = SshHost(bastion.address(name="bastion"))
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = replace(bastion.address(via=jump), port=unused.getsockname()[1])
        assert "jump host cannot reach" in await failure(address, HostUnreachableError)
    await jump.close()


@pytest.fixture
def ssh_config(make_sshd, tmp_path, monkeypatch):
    """A person's own ~/.ssh/config with two hosts in it, the second behind the first."""
    bastion, target = make_sshd(), make_sshd()
    folder = tmp_path / ".ssh"
    folder.mkdir(mode=0o700)
    (folder / "known_hosts").write_text(Path(bastion.known_hosts).read_text() + Path(target.known_hosts).read_text())
    (folder / "config").write_text(
        "".join(
            f"Host {name}\n  HostName 127.0.0.1\n  Port {server.port}\n  User {server.user}\n  IdentityFile {server.key}\n"
            f"  IdentitiesOnly yes\n  ForwardAgent yes\n  RemoteCommand touch {tmp_path}/canary\n  RequestTTY force\n"
            for name, server in (("bastion", bastion), ("gpu-01", target))
        )
        + "  ProxyJump bastion\n"
    )
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    return bastion, target, folder


async def test_a_name_of_the_users_ssh_config_is_enough(ssh_config, tmp_path):
    bastion, target, _ = ssh_config
    host = SshHost(SshAddress(name="gpu-01"))
    await host.connect()
    (reply,) = await host.ask((BootId(),), limit_s=20)
    assert reply.outcome is Outcome.ANSWERED
    assert "Accepted publickey" in bastion.server_log()
    assert "Accepted publickey" in target.server_log()
    assert not (tmp_path / "canary").exists()
    await host.close()


async def test_no_setting_of_ssh_config_makes_host_keys_optional(ssh_config):
    _, target, folder = ssh_config
    config = folder / "config"
    config.write_text("Host *\n  StrictHostKeyChecking no\n  UserKnownHostsFile none\n" + config.read_text())
    assert "bastion" in str(await failure_of(SshAddress(name="gpu-01")))
    config.write_text(config.read_text().replace("UserKnownHostsFile none", "UserKnownHostsFile /dev/null"))
    assert isinstance(await failure_of(SshAddress(name="gpu-01")), HostKeyUnknownError)
    assert "Accepted" not in target.server_log()


async def failure_of(address):
    host = SshHost(address)
    with pytest.raises(HostKeyUnknownError) as raised:
        await host.connect()
    await host.close()
    return raised.value


async def test_what_the_configuration_says_goes_before_ssh_config(ssh_config, make_sshd):
    other = make_sshd()
    host = SshHost(replace(other.address(name="gpu-01"), config=None, via=None))
    with pytest.raises(HostUnreachableError):
        # ProxyJump of ssh_config still counts: the bastion may not be left out unasked.
        await SshHost(SshAddress(name="gpu-01", address="127.0.0.1", port=1)).connect()
    await host.connect()
    assert "Accepted publickey" in other.server_log()
    await host.close()


async def test_a_broken_ssh_config_is_named_with_its_line(ssh_config):
    _, _, folder = ssh_config
    (folder / "config").write_text("Host gpu-01\n  Port many\n")
    said = await failure(SshAddress(name="gpu-01"), HostRefusedError)
    assert "config line 2" in said


@pytest.mark.parametrize("name", ["-oProxyCommand=x", "a b", "a;b", "$(x)", "", "a\nb", "a/b", "ü", "x" * 300])
async def test_what_is_no_host_name_is_never_used_as_one(name):
    assert not is_host_name(name)
    with pytest.raises(HostRefusedError, match="no host name"):
        await SshHost(SshAddress(name="gpu", address=name, config="")).connect()
    with pytest.raises(HostRefusedError, match="no host name"):
        await SshHost(SshAddress(name=name, config="")).connect()


@pytest.mark.parametrize("name", ["gpu-01", "10.0.0.7", "fd00::7", "a_b.example.org", "x"])
def test_host_names_and_addresses_are_host_names(name):
    assert is_host_name(name)


async def test_the_fast_cipher_is_chosen(sshd):
    host = SshHost(sshd.address())
    await host.connect()
    assert host._open().connection.get_extra_info("send_cipher") == "aes128-gcm@openssh.com"
    await host.close()
