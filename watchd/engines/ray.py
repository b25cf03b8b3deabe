"""Ray: Serve replicas, Train workers, the raylet."""

from __future__ import annotations

import re

from watchd.engines.base import Engine, patterns

ENGINE = Engine(
    name="ray",
    marks=patterns(
        r"\((?:ServeReplica|ServeController|ProxyActor|RayTrainWorker|TrainController|raylet|train_fn)\b",
        r"\bray/(?:_private|serve|train|data)/",
        r"ray\.exceptions\.",
        r"ray::\w+",
    ),
    banner=patterns(r"Started a local Ray instance", r"Connecting to existing Ray cluster"),
    loading=patterns(r"Deploying new version of Deployment", r"Adding \d+ replica"),
    ready=patterns(r"Deployed app '", r"Application '.{1,80}' is ready"),
    work=patterns(r"-- (?:POST|GET|CALL) /?(?!-/healthz|-/routes)\S{1,200} (?:200|OK) [\d.]+ms"),
    request=patterns(r"-- (?:POST|GET|CALL) \S{1,200} (?:500|ERROR) [\d.]+ms"),
    fatal=patterns(r"The actor died unexpectedly before finishing this task", r"Training failed after"),
    stopping=patterns(r"[Gg]raceful(?:ly)? shut(?:ting)? ?down", r"Shutting down (?:Ray|cluster)"),
    version=patterns(r"\bray[ =]{1,3}v?(\d+\.\d+\.\d+)"),
    process=re.compile(r"\bserve run\b|ray::|\braylet\b"),
    knobs={"requests": "max_ongoing_requests"},
)
