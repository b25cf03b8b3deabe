"""Whole cases, read from a log and what its host says, against the answers of a careful engineer.

The cases in `tests/cases` must come out right in every point. A larger collection is scored where it is there.
"""

from __future__ import annotations

import collections
import json
from pathlib import Path

import pytest

from tests.support.situations import MISSING, OWN, SHARED, answer, folders, read, scorer
from watchd.diagnosis import registry
from watchd.model import Confidence

LEAST = {"verdict": 0.97, "cause": 0.96, "root_line": 0.94, "exception": 0.96, "frame": 0.95, "rank": 0.95}


@pytest.mark.parametrize("folder", folders(OWN), ids=lambda folder: folder.name)
def test_a_case_is_answered_as_a_careful_engineer_would(folder: Path) -> None:
    expected = json.loads((folder / "case.json").read_text())["expected"]
    case = read(folder)
    told = answer(case, registry.judge(case))
    assert (told["verdict"], told["cause"]) == (expected["verdict"], expected["cause"])
    if expected.get("root_line"):
        assert told["root"] == {
            "file": expected.get("root_file", "server.log"),
            "line": expected["root_line"],
        }
    if expected.get("exception"):
        assert told["exception"]["type"].rpartition(".")[2] == expected["exception"]["type"].rpartition(".")[2]
        assert told["exception"]["message"].startswith(expected["exception"].get("message", "")[:120])
    if expected.get("frame"):
        assert told["frame"] == expected["frame"]
    if expected.get("rank") is not None:
        assert told["rank"] == expected["rank"]
    said = " ".join(told["advice"][:3])[:400].casefold()
    assert all(phrase.casefold() in said for phrase in expected["advice"])


def test_the_larger_collection_of_cases_is_answered_well_enough() -> None:
    if not (SHARED / "score.py").exists():
        pytest.skip(MISSING)
    score = scorer()
    hits: collections.Counter[str] = collections.Counter()
    asked: collections.Counter[str] = collections.Counter()
    for folder in folders(SHARED):
        expected = json.loads((folder / "case.json").read_text())["expected"]
        case = read(folder)
        found = registry.judge(case)
        points = score.compare(expected, answer(case, found))
        assert found.confidence is not Confidence.CERTAIN or (points["verdict"] and points["cause"]), folder.name
        for measure, point in points.items():
            asked[measure] += 1
            hits[measure] += point
    shares = {measure: hits[measure] / asked[measure] for measure in LEAST}
    assert all(shares[measure] >= least for measure, least in LEAST.items()), shares
