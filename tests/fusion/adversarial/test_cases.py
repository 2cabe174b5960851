"""The adversarial set as it was frozen: rebuilding it changes no byte, and it holds what its builder promises."""

import json
import re
from collections import Counter, defaultdict
from typing import Any

import pytest

from tests.fusion.adversarial.build import CASES, EXPECTED, text

FROZEN = CASES.read_text("utf-8")


@pytest.fixture(scope="module")
def cases() -> list[dict[str, Any]]:
    return [json.loads(line) for line in FROZEN.splitlines()]


def test_rebuilding_gives_the_file() -> None:
    assert text() == FROZEN


def test_classes_and_counts(cases: list[dict[str, Any]]) -> None:
    assert Counter(case["class"] for case in cases) == dict.fromkeys(EXPECTED, 312)
    assert all(case["expected"] == EXPECTED[case["class"]] for case in cases)
    assert len({case["id"] for case in cases}) == len({case["claim"] for case in cases}) == len(cases)
    for name in EXPECTED:
        domains = Counter(case["domain"] for case in cases if case["class"] == name)
        assert len(domains) == 13 and set(domains.values()) == {24}
        templates = {tuple(case["id"].split("/")[1:3]) for case in cases if case["class"] == name}
        assert len(templates) == 52


def test_plans(cases: list[dict[str, Any]]) -> None:
    for case in cases:
        assert set(case) == {"id", "class", "domain", "spans", "claim", "expected"}
        texts = [span["text"] for span in case["spans"]]
        assert 4 <= len(texts) == len(set(texts)) <= 8 and all(span["truth_class"] for span in case["spans"])
        assert [span["span_id"] for span in case["spans"]] == [f"S{place}" for place in range(1, len(texts) + 1)]
        assert all(8 <= len(sentence.split()) <= 30 for sentence in [case["claim"], *texts])
        assert case["claim"] not in texts and "{" not in case["claim"]


def test_the_four_claims_of_an_instance_share_their_plan(cases: list[dict[str, Any]]) -> None:
    plans = defaultdict(list)
    for case in cases:
        plans["/".join(case["id"].split("/")[1:4])].append(case["spans"])
    assert len(plans) == 312 and all(len(four) == 4 and four.count(four[0]) == 4 for four in plans.values())


def test_a_number_swap_differs_from_its_evidence_in_one_number(cases: list[dict[str, Any]]) -> None:
    kinds = Counter()
    for case in (case for case in cases if case["class"] == "number_swap"):
        differences = [_differences(case["claim"], span["text"]) for span in case["spans"]]
        kinds[case["id"].split("/")[-1]] += 1
        assert any(changed == ["word"] for changed in differences), case
    assert len(kinds) == 15 and min(kinds.values()) >= 4


def _differences(claim: str, span: str) -> list[str]:
    """Which tokens differ where both have as many; dates and times are cut at their marks."""
    ours, theirs = (re.findall(r"[\w,.]*\w", sentence) for sentence in (claim, span))
    if len(ours) != len(theirs):
        return ["length"]
    changed = [pair for pair in zip(ours, theirs, strict=True) if pair[0] != pair[1]]
    # 7:10 a.m. becomes 1:10 p.m.: the half of the day goes with the hour.
    changed = [pair for pair in changed if set(pair) != {"a.m", "p.m"}]
    return ["word" for _ in changed]
