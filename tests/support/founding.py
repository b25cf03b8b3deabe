"""The founding crash as an incident, in each state of its life; a test changes only what it is about."""

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
    IncidentRoot,
    IncidentRunnerUp,
    IncidentSample,
    IncidentSource,
    IncidentTarget,
    Moment,
    Severity,
    Stage,
    Status,
    Verdict,
)

T0 = datetime(2025, 9, 18, 14, 9, 55, tzinfo=UTC)
LOG = "/data/eagle3/logs/server.log"
ARGS = "/sgl-workspace/sglang/python/sglang/srt/server_args.py"

LAUNCH = (
    "python3 -m sglang.launch_server --model-path /srv/models/atlas-8b-instruct --speculative-algorithm EAGLE3"
    " --speculative-draft-model-path /srv/models/atlas-8b-eagle3 --speculative-eagle-topk 1"
    " --speculative-num-draft-tokens 16 --mem-fraction-static 0.8 --host 0.0.0.0 --port 30000"
)

TRACEBACK = (
    "Traceback (most recent call last):",
    '  File "<frozen runpy>", line 198, in _run_module_as_main',
    '  File "/sgl-workspace/sglang/python/sglang/launch_server.py", line 18, in <module>',
    "    server_args = prepare_server_args(sys.argv[1:])",
    f'  File "{ARGS}", line 3618, in prepare_server_args',
    "    return ServerArgs.from_cli_args(raw)",
    f'  File "{ARGS}", line 704, in __post_init__',
    "    self._settle_speculation()",
    f'  File "{ARGS}", line 2423, in _settle_speculation',
    "    assert chosen == (None, None)",
    "AssertionError",
)

SOURCE = (
    "        if self.speculative_num_steps is None:",
    "            chosen = (self.speculative_eagle_topk, self.speculative_num_draft_tokens)",
    "            # The three are given together, or none of them.",
    "            assert chosen == (None, None)",
    "            self._choose_speculation()",
)


def target(name: str = "eagle3", **labels: str) -> IncidentTarget:
    """A target as incidents name it."""
    return IncidentTarget(name=name, host="gpu-01", log=LOG, engine="sglang", engine_version="0.5.9", labels=labels)


def climbing(number: int = 1, *, name: str = "eagle3") -> Incident:
    """What is told at once: it crashed, nobody knows why. `number` tells incidents apart."""
    return Incident(
        id=f"01995d2c-1b8e-7c30-8d2f-{number:012d}",
        key=f"{number:064x}",
        target=target(name),
        opened_at=T0,
        updated_at=T0,
        verdict=Verdict.CRASH,
        summary="a traceback at top level, and the health check is refused",
        timeline=(Moment(at=T0, what="a traceback at top level, and the health check is refused"),),
    )


def final(before: Incident | None = None, *, after_s: float = 1.2) -> Incident:
    """What is told when the ladder has been climbed."""
    before = before or climbing()
    at = before.opened_at + timedelta(seconds=after_s)
    return replace(
        before,
        stage=Stage.FINAL,
        updated_at=at,
        revision=before.revision + 1,
        fingerprint="0f3c9a52d0c14b8fa3a1f1b2c3d4e5f6",
        cause=Cause.LAUNCH_ARGUMENT,
        confidence=Confidence.CERTAIN,
        summary="--speculative-num-steps is missing: it, topk and draft tokens are given together or not at all",
        because=(
            "The guard at server_args.py:2423 fails for the recorded launch command.",
            "The launch gives --speculative-eagle-topk and --speculative-num-draft-tokens, but no number of steps.",
        ),
        advice=(
            "Add --speculative-num-steps to the launch command.",
            "Or drop --speculative-eagle-topk and --speculative-num-draft-tokens.",
        ),
        runner_up=IncidentRunnerUp(cause=Cause.ASSERTION, flip="a launch command with all three flags"),
        root=IncidentRoot(file=LOG, line=43, text="AssertionError", offset=8_512),
        exception=IncidentException(type="AssertionError", message=""),
        frame=IncidentFrame(file=ARGS, line=2423, function="_settle_speculation", code="assert chosen == (None, None)"),
        traceback=TRACEBACK,
        source=_source(),
        launch=_launch(),
        host=IncidentHost(
            events=(HostEvent(kind="other", at=None, text="[Thu Sep 18 14:00:01 2025] nvidia-nvlink: link up"),),
            disk=(HostDisk(mount="/data", used_percent=93), HostDisk(mount="/", used_percent=41)),
        ),
        health=IncidentHealth(
            state="down",
            url="http://127.0.0.1:30000/health",
            via="host",
            samples=(IncidentSample(at=T0, result="down", latency_ms=0.4),),
        ),
        evidence=_evidence(),
        look=f"ssh gpu-01 'sed -n 23,48p {LOG}'",
        timeline=(*before.timeline, Moment(at=at, what="ladder climbed")),
    )


def resolved(before: Incident | None = None, *, after_s: float = 252.0) -> Incident:
    """What is told when the server is back."""
    before = before or final()
    at = before.opened_at + timedelta(seconds=after_s)
    return replace(
        before,
        status=Status.RESOLVED,
        stage=Stage.FINAL,
        resolved_at=at,
        updated_at=at,
        revision=before.revision + 1,
        timeline=(*before.timeline, Moment(at=at, what="a new run serves")),
    )


def withdrawn(before: Incident | None = None, *, after_s: float = 3.0) -> Incident:
    """What is told when the alarm was none."""
    return replace(resolved(before, after_s=after_s), verdict=Verdict.OK, cause=Cause.NONE, severity=Severity.INFO)


def _source() -> IncidentSource:
    requires = ("speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens")
    guard = IncidentGuard(condition="chosen == (None, None)", names=("chosen",), requires=requires)
    return IncidentSource(path=ARGS, first_line=2420, lines=SOURCE, guard=guard, sha256="5a" * 32, matches_log=True)


def _launch() -> IncidentLaunch:
    return IncidentLaunch(
        command=LAUNCH,
        argv=tuple(LAUNCH.split()),
        origin="recorded",
        corrected=f"{LAUNCH} --speculative-num-steps 3",
        edits=(IncidentEdit(flag="--speculative-num-steps", action="add", value="3", basis="suggestion"),),
        checks=IncidentChecks(passed=4, evaluated=4),
    )


def _evidence() -> tuple[Evidence, ...]:
    broad = f'LC_ALL=C grep -a -i "error\\|Error\\|exception\\|Traceback\\|failed\\|CUDA\\|assert" {LOG} | tail -20'
    excerpt = "Traceback (most recent call last):\n    assert chosen == (None, None)\nAssertionError\n"
    return (
        Evidence(rung="broad", command=broad, outcome="answered", count=14, excerpt=excerpt, elapsed_ms=38.5),
        Evidence(rung="context", command=f'LC_ALL=C grep -a -B5 "Assert" {LOG}', outcome="answered", count=6),
        Evidence(rung="source", command=f"cat {ARGS}", outcome="answered", via="sftp", elapsed_ms=12.0),
        Evidence(rung="machine", command="dmesg -T", outcome="refused", detail="Operation not permitted"),
    )
