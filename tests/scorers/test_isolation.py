"""A pair that makes a scorer raise is found among the others and rejected; a scorer that is broken ends the run."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.search.cases import triple
from verifier.errors import VerificationError
from verifier.protocol import Pair, run_plan
from verifier.records import Claim, Evidence, VerificationPolicy
from verifier.scorers.base import score_round, support_round
from verifier.search.groups import EvidenceGroups


def pairs_of(count: int) -> list[Pair]:
    return [Pair(n, "single", ("r",), f"Passage {n}.", f"Claim {n}.") for n in range(count)]


class Touchy:
    """Raises where a call holds a premise that it cannot read; remembers how large its calls were."""

    model, revision = "touchy", "1"

    def __init__(self, unreadable: Sequence[str]) -> None:
        self.unreadable = set(unreadable)
        self.calls: list[int] = []

    def score(self, pairs: Sequence[tuple[str, str]]) -> Any:
        self.calls.append(len(pairs))
        if self.unreadable & {premise for premise, _ in pairs}:
            raise UnicodeError("no such character")
        return np.array([triple(*pair) for pair in pairs])


@pytest.mark.parametrize("bad", [[0], [7], [19], [3, 4], [0, 9, 19]])
def test_pairs_at_fault_are_rejected_and_all_others_scored(bad: list[int]) -> None:
    pairs = pairs_of(20)
    scorer = Touchy([pairs[index].premise for index in bad])
    scores = score_round(scorer, pairs)
    assert sorted(scores.errors) == bad
    assert {(error.outcome, error.code) for error in scores.errors.values()} == {("rejected", "scorer_failed")}
    assert "no such character" in scores.errors[bad[0]].message
    for index, pair in enumerate(pairs):
        expected = [np.nan] * 3 if index in bad else triple(pair.premise, pair.hypothesis)
        assert np.array_equal(scores.values[index], expected, equal_nan=True)
    assert len(scorer.calls) <= 1 + len(bad) * (2 * 5 + 1), "halves, and not one by one"


def test_support_parts_and_repeated_pairs_keep_their_places() -> None:
    pairs = [*pairs_of(6), *pairs_of(6)]
    scores = support_round(Touchy([pairs[2].premise]), pairs)
    assert sorted(scores.errors) == [2, 8] and np.isnan(scores.values[[2, 8]]).all()
    assert scores.values[5] == scores.values[11] == triple(pairs[5].premise, pairs[5].hypothesis)[0]
    assert len(scores.windows) == len(scores.truncated) == len(scores.window) == 12


def test_a_scorer_that_reads_nothing_ends_the_run() -> None:
    scorer = Touchy([pair.premise for pair in pairs_of(64)] + ["It rained."])
    with pytest.raises(VerificationError, match=re.escape("the scorer touchy failed: no such character")):
        score_round(scorer, pairs_of(64))
    assert len(scorer.calls) <= 8


def test_a_claim_at_fault_is_rejected_and_the_others_are_decided() -> None:
    claims = [Claim(f"c{n}", f"Claim {n}.", [Evidence("a", f"Passage {n}."), Evidence("b", "More.")]) for n in range(9)]
    method = EvidenceGroups(VerificationPolicy(), "r")
    outcomes = run_plan(method.plan(claims), lambda pairs: score_round(Touchy(["Passage 4."]), pairs))
    assert [outcome.error is not None for outcome in outcomes] == [n == 4 for n in range(9)]
    assert outcomes[4].error is not None and outcomes[4].error.outcome == "rejected"
