"""Incidents to be drawn: a guard that failed, a victim of the OOM killer, and one whose every text is hostile."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from watchd.model import (
    Cause,
    Confidence,
    Evidence,
    HostDisk,
    HostEvent,
    Incident,
    IncidentChecks,
    IncidentEdit,
    IncidentException,
    IncidentFrame,
    IncidentGuard,
    IncidentHealth,
    IncidentHost,
    IncidentLaunch,
    IncidentLog,
    IncidentRoot,
    IncidentRunnerUp,
    IncidentSample,
    IncidentSource,
    IncidentTarget,
    LogGap,
    Moment,
    Severity,
    Stage,
    Status,
    Verdict,
)

AT = datetime(2025, 9, 18, 14, 9, 58, tzinfo=UTC)
LOG = "/var/log/eagle3/server.log"
PATH = "/sgl-workspace/sglang/python/sglang/srt/server_args.py"
COMMAND = (
    "python3 -m sglang.launch_server --model-path /srv/models/atlas-8b-instruct --speculative-algorithm EAGLE3"
    " --speculative-draft-model-path /srv/models/atlas-8b-eagle3 --speculative-eagle-topk 1"
    ' --speculative-num-draft-tokens 16 --api-key "$API_KEY" --host 0.0.0.0 --port 30000'
)
BROAD = rf'LC_ALL=C grep -a -i "error\|Error\|exception\|Traceback\|failed\|CUDA\|assert" {LOG} | tail -20'
ASSERT = f'LC_ALL=C grep -a -B5 "Assert" {LOG}'


def later(seconds: float) -> datetime:
    return AT + timedelta(seconds=seconds)


CLIMBING = Incident(
    id="01995d21-0a5b-7c3e-8f00-3f2a9d4c1b77",
    key="0" * 64,
    target=IncidentTarget(
        name="eagle3", host="gpu-01", log=LOG, engine="sglang", engine_version="0.5.9", labels={"team": "inference"}
    ),
    opened_at=AT,
    updated_at=AT,
    verdict=Verdict.CRASH,
    summary="AssertionError ends the process",
    timeline=(Moment(at=AT, what="traceback at top level, and the process is gone"),),
)

FOUNDING = replace(
    CLIMBING,
    stage=Stage.FINAL,
    updated_at=later(1),
    revision=2,
    cause=Cause.LAUNCH_ARGUMENT,
    confidence=Confidence.CERTAIN,
    summary="--speculative-num-steps is missing: this server takes it together with --speculative-eagle-topk and"
    " --speculative-num-draft-tokens, or none of the three",
    because=(
        "The check at server_args.py:2423 was read on the host and fails for the recorded launch command.",
        "The process is gone and its health endpoint refuses connections.",
    ),
    advice=(
        "Add --speculative-num-steps to the launch command.",
        "Or drop --speculative-eagle-topk and --speculative-num-draft-tokens.",
    ),
    runner_up=IncidentRunnerUp(cause=Cause.ASSERTION, flip="if the launch command gave all three flags"),
    root=IncidentRoot(file=LOG, line=43, text="AssertionError", offset=8477),
    exception=IncidentException(type="AssertionError", message=""),
    frame=IncidentFrame(file=PATH, line=2423, function="_settle_speculation", code="assert chosen == (None, None)"),
    traceback=("Traceback (most recent call last):", "AssertionError"),
    source=IncidentSource(
        path=PATH,
        first_line=2409,
        lines=(
            "    def _settle_pages(self):",
            "        if self.page_size < 1:",
            '            raise ValueError("page size must be positive")',
            "",
            "    def _settle_speculation(self):",
            "        if self.speculative_algorithm is None:",
            "            return",
            "        if self.speculative_draft_model_path is None:",
            '            raise ValueError("a draft model is needed for speculative decoding of this kind, see the manual")',
            "        chosen = (",
            "            self.speculative_eagle_topk,",
            "            self.speculative_num_draft_tokens,",
            "        )",
            "        if self.speculative_num_steps is None:",
            "            assert chosen == (None, None)",
            "        self.speculative = chosen",
            "",
        ),
        guard=IncidentGuard(
            condition="chosen == (None, None)",
            names=("speculative_eagle_topk", "speculative_num_draft_tokens"),
            requires=("speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens"),
        ),
        sha256="1" * 64,
        matches_log=True,
    ),
    launch=IncidentLaunch(
        command=COMMAND,
        argv=tuple(COMMAND.split()),
        origin="recorded",
        corrected=COMMAND.replace(
            "--speculative-num-draft-tokens 16", "--speculative-num-draft-tokens 16 --speculative-num-steps 3"
        ),
        edits=(IncidentEdit(flag="--speculative-num-steps", action="add", value="3", basis="suggestion"),),
        checks=IncidentChecks(passed=4, evaluated=4),
    ),
    health=IncidentHealth(
        state="down",
        url="http://127.0.0.1:30000/health",
        via="host",
        samples=(
            IncidentSample(at=later(-20), result="up", http_status=200, latency_ms=3.1),
            IncidentSample(at=later(-10), result="down"),
            IncidentSample(at=AT, result="down"),
        ),
    ),
    timeline=(
        Moment(at=later(-14), what="the log was written anew: a relaunch"),
        Moment(at=AT, what="traceback at top level, and the process is gone"),
        Moment(at=later(1), what="the ladder was climbed in 412 ms"),
    ),
    evidence=(
        Evidence(rung="broad", command=BROAD, outcome="answered", count=2, elapsed_ms=31.0),
        Evidence(rung="context", command=ASSERT, outcome="answered", count=6, elapsed_ms=24.0),
        Evidence(rung="source", command=f"sed -n 2413,2433p {PATH}", outcome="answered", count=21, elapsed_ms=12.0),
        Evidence(rung="machine", command="dmesg -T", outcome="refused", detail="Operation not permitted", via="exec"),
        Evidence(rung="machine", command="df -P; echo; df -Pi", outcome="answered", elapsed_ms=9.0),
    ),
    look=f"ssh gpu-01 sed -n 2413,2433p {PATH}",
    redactions={"flag": 1},
)

RESOLVED = replace(FOUNDING, status=Status.RESOLVED, resolved_at=later(613), updated_at=later(613), revision=3)

KILLED = replace(
    CLIMBING,
    stage=Stage.FINAL,
    severity=Severity.ERROR,
    target=IncidentTarget(name="trainer", host=None, log="server.log", engine="torchrun"),
    cause=Cause.HOST_OUT_OF_MEMORY,
    confidence=Confidence.CERTAIN,
    summary="the kernel killed rank 1 (pid 52117) because the host had no memory left",
    because=("The kernel log names the pid that the launcher reports as exit code -9.",),
    advice=("Give the job more memory, or fewer data loader workers.",),
    root=IncidentRoot(
        file="host/dmesg.txt",
        line=4,
        text="[Thu Sep 18 14:09:57 2025] Out of memory: Killed process 52117 (python3) total-vm:1048576kB,"
        " anon-rss:912345kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:2048kB oom_score_adj:0",
        offset=301,
    ),
    exception=IncidentException(
        type="torch.distributed.DistBackendError", message="[3] is setting up NCCL communicator"
    ),
    rank=1,
    traceback=tuple(f"  frame {n}" for n in range(12)),
    host=IncidentHost(
        events=(HostEvent(kind="oom_kill", at=AT, text="Out of memory: Killed process 52117 (python3)", pid=52117),),
        disk=(HostDisk(mount="/", used_percent=41), HostDisk(mount="/data", used_percent=97)),
    ),
    timeline=tuple(Moment(at=later(n), what=f"moment {n}") for n in range(20)),
    evidence=tuple(
        Evidence(rung="machine", command=f"question {n}", outcome="answered", via="bundle") for n in range(20)
    ),
    log=IncidentLog(complete=False, gaps=(LogGap(start=100, end=None, reason="the log was rotated away"),)),
    occurrences=3,
)

NASTY = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202eesrever\u2066\u200bzero\r\n\x00next\ttab\u2028end\ud800 日本語" + "A" * 300
HOSTILE = replace(
    FOUNDING,
    target=IncidentTarget(name=NASTY, host=NASTY, log=NASTY, engine=NASTY, engine_version=NASTY),
    summary=NASTY,
    because=(NASTY,),
    advice=(NASTY,),
    runner_up=IncidentRunnerUp(cause=Cause.ASSERTION, flip=NASTY),
    root=IncidentRoot(file=NASTY, line=None, text=NASTY, offset=5),
    exception=IncidentException(type=NASTY, message=NASTY),
    frame=IncidentFrame(file=NASTY, line=7, function=NASTY, code=NASTY),
    rank=NASTY,
    source=IncidentSource(
        path=NASTY,
        first_line=1,
        lines=(NASTY,) * 9,
        guard=IncidentGuard(condition=NASTY, names=(NASTY,), requires=(NASTY,)),
        sha256=NASTY,
        matches_log=False,
    ),
    launch=IncidentLaunch(
        command=f"python3 '{NASTY}' --flag {NASTY}",
        argv=(NASTY,),
        origin="process",
        corrected=f"python3 {NASTY}",
        edits=(IncidentEdit(flag=NASTY, action="drop", value=NASTY, basis="proven"),),
    ),
    host=IncidentHost(
        events=(HostEvent(kind=NASTY, at=None, text=NASTY),), disk=(HostDisk(mount=NASTY, used_percent=99),)
    ),
    health=IncidentHealth(state=NASTY, url=NASTY),
    timeline=(Moment(at=AT, what=NASTY),),
    evidence=(Evidence(rung=NASTY, command=NASTY, outcome="refused", detail=NASTY),),
    look=NASTY,
    log=IncidentLog(complete=False, gaps=(LogGap(start=1, end=2, reason=NASTY),)),
    redactions={NASTY: 2},
)
