"""The host around the server: its kernel log, its disks, its GPUs, and which boot this is."""

from __future__ import annotations

from watchd.ladder.base import Asking
from watchd.model import BootId, Case, Disk, Gpus, KernelLog, Machine, Outcome, Reply
from watchd.parse import machine


def read(case: Case) -> Asking:  # noqa: ARG001  the shape of a Rung
    """What the host's own tools say; what it refuses to say is left out."""
    replies = yield (KernelLog(), Disk(), Gpus(), BootId())
    kernel, disk, gpus, boot = (_text(reply) for reply in replies)
    if not any((kernel, disk, gpus, boot)):
        return ()
    return (
        Machine(
            events=machine.events(kernel),
            mounts=machine.mounts(disk),
            gpus=machine.gpus(gpus),
            boot_id=machine.boot_id(boot),
        ),
    )


def show(case: Case, reply: Reply) -> tuple[str, int | None]:
    """The telling lines of the kernel log, and how many they are; everything else as it is."""
    found = case.get(Machine)
    if not isinstance(reply.question, KernelLog) or reply.outcome is not Outcome.ANSWERED or found is None:
        return _text(reply), None
    return "\n".join(event.text for event in found.events), len(found.events)


def _text(reply: Reply) -> str:
    return reply.data.decode("utf-8", "replace") if reply.outcome is Outcome.ANSWERED else ""
