"""What the tools of a GPU host print becomes events, mounts and GPUs; nothing they print can raise or stall."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchd.model import MachineEventKind as Kind
from watchd.parse import machine

STAMP = "[Tue Jul 15 06:33:32 2025] "
AT = datetime(2025, 7, 15, 6, 33, 32, tzinfo=UTC)

TELLING = [
    # what the kernel prints, then: kind, pid, process, gpu, code
    ("Out of memory: Killed process 239 (VLLM::Worker_TP) total-vm:244841728kB, anon-rss:104004008kB, UID:0",
     Kind.OOM_KILL, 239, "VLLM::Worker_TP", None, None),
    ("Memory cgroup out of memory: Killed process 388102 (pt_data_worker) total-vm:43711906kB, UID:0",
     Kind.OOM_KILL, 388102, "pt_data_worker", None, None),
    ("Out of memory: Kill process 2210 (python) score 912 or sacrifice child",
     Kind.OOM_KILL, 2210, "python", None, None),
    ("oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=a.scope,mems_allowed=0-1,oom_memcg=/a.scope,task_memcg=/a.scope,task=python3,pid=77,uid=0",
     Kind.OOM_KILL, 77, "python3", None, None),
    ("systemd-oomd[812]: Killed /system.slice/serve.service due to memory pressure for /system.slice being 81.20%",
     Kind.OOM_KILL, None, "/system.slice/serve.service", None, None),
    ("NVRM: Xid (PCI:0000:C7:00): 94, pid=771204, name=python3, Contained: SM (0x1). RST: No, D-RST: No",
     Kind.XID, 771204, "python3", "0000:c7:00", 94),
    ("NVRM: Xid (PCI:0000:81:00): 95, pid='<unknown>', name=<unknown>, Uncontained: FBHUB. RST: Yes",
     Kind.XID, None, None, "0000:81:00", 95),
    ("NVRM: Xid (0000:03:00): 31, Ch 00000008, engmask 00000101",
     Kind.XID, None, None, "0000:03:00", 31),
    ("NVRM: Xid (PCI:0000:01:00 GPU-I:05 GPU-CI:01): 43, pid=9, name=python3, Ch 00000010",
     Kind.XID, 9, "python3", "0000:01:00", 43),
    ("nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 34 LTSSM Fault Up",
     Kind.GPU_FAULT, None, None, "0000:c1:00", None),
    ("nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error",
     Kind.OTHER, None, None, "0000:c1:00", None),
    ("NVRM: GPU 0000:c1:00.0: GPU has fallen off the bus.",
     Kind.GPU_FAULT, None, None, "0000:c1:00", 79),
    ("amdgpu 0000:c1:00.0: amdgpu: [gfxhub] page fault (src_id:0 ring:24 vmid:8 pasid:32770, for process python3 pid 1234 thread python3 pid 1240)",
     Kind.GPU_FAULT, 1234, "python3", "0000:c1:00", None),
    ("amdgpu 0000:c1:00.0: amdgpu: ring comp_1.0.0 timeout, signaled seq=4410, emitted seq=4412",
     Kind.GPU_FAULT, None, None, "0000:c1:00", None),
    ("amdgpu 0000:c1:00.0: amdgpu: 3 uncorrectable hardware errors detected in total in umc block",
     Kind.GPU_FAULT, None, None, "0000:c1:00", None),
    ("[drm:amdgpu_job_timedout [amdgpu]] *ERROR* Process information: process serve pid 88 thread serve pid 90",
     Kind.GPU_FAULT, 88, "serve", None, None),
    ("av:hevc:df3[12619]: segfault at 7f0f2c000ff8 ip 00007f10f5bb71c2 sp 00007f0f8b7fd8a0 error 4 in libavcodec.so",
     Kind.SEGFAULT, 12619, "av:hevc:df3", None, None),
    ("traps: python3[4410] general protection fault ip:7f81b0a1e2f7 sp:7f81aa1fe0a0 error:0 in libtorch_cpu.so",
     Kind.SEGFAULT, 4410, "python3", None, None),
    ("traps: python3[4410] trap invalid opcode ip:7f81b0a1e2f7 sp:7f81aa1fe0a0 error:0",
     Kind.SEGFAULT, 4410, "python3", None, None),
    ("INFO: task kworker/u256:4:90122 blocked for more than 120 seconds.",
     Kind.HUNG_TASK, 90122, "kworker/u256:4", None, None),
    ("watchdog: BUG: soft lockup - CPU#5 stuck for 22s! [python3:1234]",
     Kind.HUNG_TASK, 1234, "python3", None, None),
    ("EXT4-fs (sda1): Remounting filesystem read-only",
     Kind.FILE_SYSTEM, None, None, None, None),
    ("EXT4-fs error (device sda1): ext4_find_entry:1455: inode #2",
     Kind.FILE_SYSTEM, None, None, None, None),
    ('XFS (dm-0): metadata I/O error in "xfs_imap_to_bp+0x5c" at daddr 0x40',
     Kind.FILE_SYSTEM, None, None, None, None),
    ("BTRFS error (device sda1: state A): Transaction aborted",
     Kind.FILE_SYSTEM, None, None, None, None),
    ("blk_update_request: I/O error, dev nvme1n1, sector 8123344",
     Kind.FILE_SYSTEM, None, None, None, None),
    ("Buffer I/O error on dev dm-3, logical block 1",
     Kind.FILE_SYSTEM, None, None, None, None),
    ("nvme nvme1: I/O 3 QID 5 timeout, aborting",
     Kind.FILE_SYSTEM, None, None, None, None),
    ("nfs: server nas not responding, still trying",
     Kind.FILE_SYSTEM, None, None, None, None),
    ("VFS: file-max limit 1024 reached",
     Kind.OTHER, None, None, None, None),
    ("cgroup: fork rejected by pids controller in /system.slice/serve.service",
     Kind.OTHER, None, None, None, None),
    ("pcieport 0000:c0:01.1: AER: Uncorrectable (Fatal) error message received",
     Kind.OTHER, None, None, None, None),
]  # fmt: skip

SILENT = [
    "docker0: port 3(veth91c02aa) entered blocking state",
    "EXT4-fs (dm-3): mounted filesystem with ordered data mode. Quota mode: none.",
    "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build",
    "perf: interrupt took too long (3121 > 3100), lowering kernel.perf_event_max_sample_rate to 64000",
    "pcieport 0000:c0:01.1: AER: Corrected error message received from 0000:c1:00.0",
    "EDAC MC1: 1 CE memory read error on CPU_SrcID#0_MC#1_Chan#0_DIMM#0 (channel:0 slot:0)",
    "amdgpu 0000:c1:00.0: amdgpu: no uncorrectable hardware errors detected in umc block",
    "amdgpu 0000:c1:00.0: amdgpu: 0 uncorrectable hardware errors detected in umc block",
    "amdgpu 0000:c1:00.0: amdgpu: 1048560 uncorrectable hardware errors detected in umc block",
    "amdgpu 0000:c1:00.0: amdgpu: GPU reset(2) succeeded!",
    "oom_reaper: reaped process 239 (VLLM::Worker_TP), now anon-rss:0kB, file-rss:0kB, shmem-rss:36400kB",
    "VLLM::Worker_TP invoked oom-killer: gfp_mask=0x140cca(GFP_HIGHUSER_MOVABLE|__GFP_COMP), order=0",
    " oom_kill_process+0xf6/0x280",
]


@pytest.mark.parametrize(("line", "kind", "pid", "process", "gpu", "code"), TELLING)
def test_a_telling_line_says_what_happened_to_whom(line, kind, pid, process, gpu, code):
    (event,) = machine.events(f"quiet\n{STAMP}{line}\n")
    assert (event.kind, event.pid, event.process, event.gpu, event.code) == (kind, pid, process, gpu, code)
    assert event.number == 2
    assert event.at == AT
    assert event.text == STAMP + line


@pytest.mark.parametrize("line", SILENT)
def test_an_ordinary_line_says_nothing(line):
    assert machine.events(STAMP + line) == ()


def test_the_times_of_the_host_are_read_in_its_own_zone():
    (event,) = machine.events(
        f"{STAMP}EXT4-fs (sda1): Remounting filesystem read-only", zone=timezone(timedelta(hours=2))
    )
    assert event.at == AT - timedelta(hours=2)


@pytest.mark.parametrize(
    ("prefix", "at"),
    [
        ("2025-07-15T06:33:32,123456+00:00 ", AT),
        ("2025-07-15T06:33:32+0200 gpu-01 kernel: ", AT - timedelta(hours=2)),
        ("Jul 15 06:33:32 gpu-01 kernel: ", None),
        ("[ 1234.567890] ", None),
        ("[Tue Jul 45 06:33:32 2025] ", None),
        ("", None),
    ],
)
def test_other_forms_of_the_log_are_read_too_and_a_time_without_a_year_is_no_time(prefix, at):
    (event,) = machine.events(prefix + "Out of memory: Killed process 239 (python3) total-vm:1kB")
    assert (event.pid, event.at) == (239, at)


def test_an_oom_kill_that_the_kernel_announces_first_is_one_event_at_the_line_of_the_kill():
    text = (
        f"{STAMP}oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),task_memcg=/a,task=python3,pid=239,uid=0\n"
        f"{STAMP}Out of memory: Killed process 239 (python3) total-vm:244841728kB\n"
        f"{STAMP}oom_reaper: reaped process 239 (python3), now anon-rss:0kB\n"
    )
    assert [event.number for event in machine.events(text)] == [2]


def test_a_lost_gpu_with_its_xid_is_one_event_at_the_xid():
    text = (
        f"{STAMP}NVRM: GPU 0000:c1:00.0: GPU has fallen off the bus.\n"
        f"{STAMP}NVRM: Xid (PCI:0000:c1:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n"
    )
    assert [(event.number, event.kind, event.code) for event in machine.events(text)] == [(2, Kind.XID, 79)]


def test_a_lost_gpu_told_over_three_lines_is_named_by_the_first_of_them():
    text = (
        f"{STAMP}NVRM: The NVIDIA GPU 0000:3B:00.0\n"
        f"{STAMP}NVRM: (PCI ID: 10de:2331) installed in this system has\n"
        f"{STAMP}NVRM: fallen off the bus and is not responding to commands.\n"
    )
    (event,) = machine.events(text)
    assert (event.number, event.gpu, event.code) == (3, "0000:3b:00", 79)


def test_a_flood_of_one_xid_hides_no_other_event():
    kill = f"{STAMP}Out of memory: Killed process 239 (python3) total-vm:1kB\n"
    flood = f"{STAMP}NVRM: Xid (PCI:0000:c7:00): 45, pid=7, name=python3, Ch 00000008\n" * 20_000
    events = machine.events(kill + flood)
    assert events[0].pid == 239
    assert len(events) < 1000
    assert events[-1].number == 20_001


def test_line_numbers_stay_true_where_only_the_end_of_a_huge_log_is_read():
    text = "x" * 99 + "\n"
    (event,) = machine.events(text * 50_000 + "Out of memory: Killed process 239 (python3) total-vm:1kB\n")
    assert event.number == 50_001


DF = """\
Filesystem     1024-blocks      Used Available Capacity Mounted on
overlay          959786032 402110188 557675844      42% /
tmpfs               528082    528082         0     100% /dev/shm
proc                     0         0         0       - /proc
nas:/models    41943040000 30112204800 11830835200      72% /mnt/my models

Filesystem        Inodes   IUsed     IFree IUse% Mounted on
overlay         61054976  905312  60149664    2% /
tmpfs          132020530       1 132020529    1% /dev/shm
nas:/models            0       0         0     - /mnt/my models
"""


def test_df_tells_blocks_and_inodes_of_each_mount():
    assert [(use.mount, use.used_percent, use.inodes_percent) for use in machine.mounts(DF)] == [
        ("/", 42, 2),
        ("/dev/shm", 100, 1),
        ("/mnt/my models", 72, None),
    ]


def test_df_without_the_table_of_inodes_tells_blocks_alone():
    assert [use.inodes_percent for use in machine.mounts(DF.partition("\n\n")[0])] == [None, None, None]


SMI = """\
Sat Mar 22 16:12:02 2025
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 550.144.03             Driver Version: 550.144.03     CUDA Version: 12.4     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA RTX A6000               On  |   00000000:41:00.0 Off |                  Off |
| N/A   61C    P0            120W /  300W |  46211MiB /   49140MiB |     31%      Default |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+
|   7  NVIDIA H200                   Off  |   00000000:DF:00.0 Off |                    0 |
| N/A   61C    P0             N/A /  N/A  |  12449... / 143771MiB  |    N/A       Default |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+

+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|  GPU   GI   CI        PID   Type   Process name                              GPU Memory |
|        ID   ID                                                               Usage      |
|=========================================================================================|
|    0   N/A  N/A     66120      C   /usr/local/bin/runner                        8120MiB |
|    7   N/A  N/A     90122      C   python3 train_lora.py                       12449... |
|    9   N/A  N/A         1      G   of no GPU above                                 1MiB |
+-----------------------------------------------------------------------------------------+
"""


def test_the_gpu_table_tells_use_and_processes_and_a_cut_number_is_no_number():
    first, second = machine.gpus(SMI)
    assert (first.index, first.name, first.bus) == (0, "NVIDIA RTX A6000", "0000:41:00")
    assert (first.memory_used_mib, first.memory_total_mib, first.utilisation_percent) == (46211, 49140, 31)
    assert first.power_w == 120.0
    assert first.processes == ((66120, "/usr/local/bin/runner", 8120),)
    assert (second.index, second.memory_used_mib, second.memory_total_mib) == (7, None, 143771)
    assert (second.power_w, second.utilisation_percent) == (None, None)
    assert second.processes == ((90122, "python3 train_lora.py", None),)


def test_the_older_layout_without_instances_is_read_too():
    text = """\
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
|   0  Tesla V100-SXM2...  Off  | 00000000:00:1E.0 Off |                    0 |
| N/A   35C    P0    38W / 300W |   1024MiB / 16160MiB |      3%      Default |
|  GPU       PID   Type   Process name                             Usage      |
|    0     12345      C   python3                                     1011MiB |
"""
    (gpu,) = machine.gpus(text)
    assert (gpu.name, gpu.memory_used_mib, gpu.utilisation_percent) == ("Tesla V100-SXM2...", 1024, 3)
    assert gpu.processes == ((12345, "python3", 1011),)


@pytest.mark.parametrize("text", ["", "Unable to determine the device handle for GPU6: 0000:C1:00.0: Unknown Error\n"])
def test_where_no_table_is_printed_no_gpu_is_made_up(text):
    assert machine.gpus(text) == ()


def test_a_boot_id_is_an_id_or_nothing():
    assert machine.boot_id("0d0e4c8a-3c3e-4a57-9c4c-8b1f5a6b9d11\n") == "0d0e4c8a-3c3e-4a57-9c4c-8b1f5a6b9d11"
    assert machine.boot_id("cat: /proc/sys/kernel/random/boot_id: Permission denied\n") is None


@given(st.text(alphabet=st.sampled_from("|/ \n:.[]()0123456789%MiBWNVRMXidPCIOutof memory:Killed process\x00\udcff")))
def test_nothing_that_is_printed_raises(text):
    machine.events(text)
    machine.mounts(text)
    machine.gpus(text)
    machine.boot_id(text)


@pytest.mark.parametrize(
    "unit",
    ["1 ", "|   0  N ", "Out of memory: ", "oom-kill:constraint=a,task=", "[" * 3, "NVRM: Xid (PCI:", "| N/A / N/A | "],
)
def test_a_megabyte_of_half_a_line_is_read_at_once(unit):
    text = unit * (1024 * 1024 // len(unit))
    lines = "\n".join(text[at : at + 1000] for at in range(0, len(text), 1000))
    began = time.process_time()
    for read in (machine.events, machine.mounts, machine.gpus):
        read(text)
        read(lines)
    assert time.process_time() - began < 10
