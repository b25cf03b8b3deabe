"""Slurm: what `srun` and `slurmstepd` add to a job's log."""

from __future__ import annotations

import re

from watchd.engines.base import Engine, patterns

ENGINE = Engine(
    name="slurm",
    marks=patterns(
        r"^slurmstepd: error: ",
        r"^srun: (?:error|job|Job|Terminating)",
        r"^#SBATCH ",
        r"submitit (?:INFO|WARNING)",
        r"^\+ srun ",
    ),
    opening=patterns(r"^\+ srun ", r"^srun: job \d+ (?:queued|step)"),
    fatal=patterns(
        r"Detected \d+ oom.kill event", r"^srun: error: .{0,80}(?:Out Of Memory|Segmentation fault|Aborted)"
    ),
    stopping=patterns(
        r"CANCELLED AT \S+ DUE TO (?:TIME LIMIT|PREEMPTION)",
        r"\*\*\* (?:JOB|STEP) \S+ ON \S+ CANCELLED AT",
        r"this job is (?:preempted|timed.?out)",
    ),
    cleanup=patterns(
        r"^srun: (?:Terminating|Force Terminated|Job step aborted)",
        r"^srun: error: .{0,80}: (?:Exited with exit code|Terminated|Killed)",
    ),
    process=re.compile(r"\bslurmstepd\b|\bsrun\b"),
    knobs={"host_memory": "--mem", "time_limit": "--time"},
)
