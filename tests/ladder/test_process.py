"""A target's process is told from others by what was configured, else by its port, else by its engine's name."""

from __future__ import annotations

from dataclasses import replace

from tests.support.cases import a_target
from watchd.ladder import process
from watchd.model import HealthCheck, Process


def a_process(pid: int, line: str, *, parent: int = 1, state: str = "S") -> Process:
    return Process(pid=pid, parent=parent, started=pid, argv=tuple(line.split()), state=state)


HEALTH = replace(a_target(), health=HealthCheck(url="http://127.0.0.1:30000/health"))


def found(seen: list[Process], target=None, engine: str = "") -> int | None:
    process_, _ = process.find(seen, target or a_target(), engine)
    return process_.pid if process_ else None


def test_the_configured_pattern_decides_and_the_newest_family_is_taken():
    seen = [a_process(5, "serve --tp 2"), a_process(6, "serve --tp 2", parent=5), a_process(9, "serve --tp 4")]
    assert found(seen, a_target(process="^serve")) == 9
    assert found(seen, a_target(process="train")) is None


def test_whoever_only_carries_the_command_is_not_the_server():
    seen = [a_process(5, "bash -c serve"), a_process(6, "serve", parent=5), a_process(7, "tail -F serve.log")]
    assert found(seen, a_target(process="serve")) == 6


def test_the_dead_do_not_count():
    assert found([a_process(5, "serve", state="Z")], a_target(process="serve")) is None


def test_the_port_of_the_health_check_names_the_process():
    seen = [a_process(5, "serve --port 30000"), a_process(6, "serve --port=30001"), a_process(7, "x --bind 0.0.0.0:80")]
    assert found(seen, HEALTH) == 5


def test_the_engines_name_decides_only_where_it_is_unique():
    one = a_process(5, "python3 -m sglang.launch_server --tp 2")
    assert found([one, a_process(6, "python3 -m sglang.launch_server --tp 2", parent=5)], engine="sglang") == 5
    assert found([one, a_process(8, "python3 -m sglang.launch_server --tp 4")], engine="sglang") is None


def test_where_nothing_tells_it_the_reason_is_said():
    assert process.find([], a_target(), "generic")[1] == "nothing tells its process from others: set `process`"
