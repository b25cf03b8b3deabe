"""What the host's tools say becomes one finding; what they refuse to say is left out."""

from __future__ import annotations

from tests.support.cases import a_case, asks, ends
from watchd.hosts import replies
from watchd.ladder import machine
from watchd.model import BootId, Disk, Gpus, KernelLog, Machine, Outcome, Question

KERNEL = b"[Tue Jul 15 06:33:32 2025] docker0: port 3 entered blocking state\n[Tue Jul 15 06:33:33 2025] Out of memory: Killed process 239 (python3) total-vm:1kB\n"
DF = b"Filesystem 1024-blocks Used Available Capacity Mounted on\noverlay 100 42 58 42% /\n"
BOOT = b"0d0e4c8a-3c3e-4a57-9c4c-8b1f5a6b9d11\n"


def refused(question: Question):
    return replies.unanswered(question, "exec", "permission denied", Outcome.REFUSED)


def test_everything_is_asked_at_once():
    assert asks(machine.read(a_case())) == (KernelLog(), Disk(), Gpus(), BootId())


def test_what_is_answered_is_kept_and_what_is_refused_is_left_out():
    rung = machine.read(a_case())
    kernel, disk, gpus, boot = asks(rung)
    told = (
        replies.small(kernel, "exec", KERNEL),
        replies.small(disk, "exec", DF),
        refused(gpus),
        replies.small(boot, "exec", BOOT),
    )
    (found,) = ends(rung, *told)
    assert isinstance(found, Machine)
    assert [(event.pid, event.number) for event in found.events] == [(239, 2)]
    assert [(use.mount, use.used_percent) for use in found.mounts] == [("/", 42)]
    assert found.gpus == ()
    assert found.boot_id == BOOT.decode().strip()
    case = a_case(found)
    assert machine.show(case, told[0]) == (KERNEL.decode().split("\n")[1], 1)
    assert machine.show(case, told[1]) == (DF.decode(), None)
    assert machine.show(case, told[2]) == ("", None)


def test_a_host_that_says_nothing_gives_nothing():
    rung = machine.read(a_case())
    assert ends(rung, *(refused(question) for question in asks(rung))) == ()
