"""The cascade: what the cheap scorer keeps, what the expensive one is asked."""

from collections.abc import Sequence
from functools import partial

import pytest

from verifier.errors import ConfigurationError, VerificationError
from verifier.protocol import Part
from verifier.scorers.cascade import CascadeScorer
from verifier.scorers.recorded_support import RecordedSupportScorer

PREMISE = "One is here. Two is there. Three is away. Four is back."


class Table:
    def __init__(self, model: str, support: dict[str, float]) -> None:
        self.model, self.revision, self.support = model, "r", support
        self.asked: list[str] = []

    @classmethod
    def identify(cls, model: str, support: dict[str, float]) -> dict[str, str]:
        return {"model": model, "revision": "r"}

    def score_pairs(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        self.asked += [premise for premise, _ in pairs]
        return [self.support.get(premise, 0.0) for premise, _ in pairs]


CHEAP = {"One is here.": 0.1, "Two is there.": 0.7, "Three is away.": 0.7, "Four is back.": 0.9}


def test_the_best_segments_are_read_in_the_order_of_the_premise() -> None:
    cheap, decisive = Table("cheap", CHEAP), Table("decisive", {"Two is there.\nFour is back.": 0.8, "Short.": 0.3})
    scorer = CascadeScorer(cheap, decisive, keep=2)
    scores = scorer.score_detailed([(PREMISE, "x"), ("Short.", "x")])
    assert scores.values.tolist() == [0.8, 0.3]
    assert decisive.asked == ["Two is there.\nFour is back.", "Short."]
    assert cheap.asked == list(CHEAP), "a premise of few segments is not ranked"
    ranked = tuple(Part("cheap", number, 4, value) for number, value in enumerate(CHEAP.values()))
    assert scores.parts == {0: (*ranked, Part(None, 0, 1, 0.8))}
    assert scorer.score_pairs([("Short.", "x")]) == [0.3]


def test_a_segment_without_a_score_leaves_the_pair_without_one() -> None:
    cheap = Table("cheap", {**CHEAP, "One is here.": float("nan")})
    scorer = CascadeScorer(cheap, Table("decisive", {}), keep=2)
    assert list(scorer.score_detailed([("Short.", "x"), (PREMISE, "x")]).errors) == [1]
    with pytest.raises(VerificationError, match="pair 0"):
        scorer.score_pairs([(PREMISE, "x")])


def test_identity_needs_no_model() -> None:
    factories = partial(Table, "cheap", CHEAP), partial(Table, "decisive", {})
    built = CascadeScorer(*factories, keep=2)
    assert CascadeScorer.identify(*factories, keep=2) == {"model": built.model, "revision": built.revision}
    assert built.model == "cascade(cheap, decisive, keep 2)"
    with pytest.raises(ConfigurationError, match="at least 1"):
        CascadeScorer.identify(*factories, keep=0)


def test_a_replay_leaves_the_ranking_out_of_the_support() -> None:
    rows = [("p", "h", 0.9, None, 0, 1), ("p", "h", 0.1, "cheap", 0, 2), ("p", "h", 0.2, "cheap", 1, 2)]
    assert RecordedSupportScorer(rows, window_aggregation="max").score_pairs([("p", "h")]) == [0.9]
