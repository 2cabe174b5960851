"""The guarantee: it holds as often as it says where the truth is known, and it says where it does not hold."""

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from tests.calibration.synthetic import draw, true_precision
from verifier.calibration.guarantee import GRID, guaranteed_threshold, one_of_each, starting_counts
from verifier.calibration.selection import Comparison, operating_points

REPETITIONS = 500


@pytest.mark.parametrize(
    ("low", "slope", "target", "attained"),
    [(0.0, 1.0, 0.90, 0.1), (0.5, 0.5, 0.90, 0.5), (0.85, 0.1, 0.90, 0.1), (0.7, 0.2, 0.90, 0.0)],
    ids=["steep", "usual", "at the target", "never attainable"],
)
def test_it_holds_in_at_least_95_percent_of_repetitions(
    low: float, slope: float, target: float, attained: float
) -> None:
    random = np.random.default_rng(11)
    found = [guaranteed_threshold(*draw(random, 1000, low, slope), target, 0.95) for _ in range(REPETITIONS)]
    thresholds = [one.threshold for one in found if one.threshold is not None]
    broken = sum(true_precision(threshold, low, slope) < target for threshold in thresholds)
    assert broken <= 0.05 * REPETITIONS
    assert len(thresholds) >= attained * REPETITIONS, "a guarantee that is hardly ever given is worth nothing"


def test_a_random_order_of_scores_does_not_break_it() -> None:
    """Scores that say nothing, precision at the target everywhere: no direction is right by construction."""
    random = np.random.default_rng(5)
    target = 0.8
    given = sum(
        guaranteed_threshold(*draw(random, 600, target - 1e-9, 0.0), target, 0.9).threshold is not None
        for _ in range(REPETITIONS)
    )
    assert 0 < given <= 0.1 * REPETITIONS


def test_claims_of_one_document_break_it_and_one_of_each_mends_it() -> None:
    random = np.random.default_rng(3)
    target, copies, broken = 0.8, 10, {"claim": 0, "document": 0}
    for _ in range(200):
        scores, positive = draw(random, 150, target - 0.02, 0.0)
        scores, positive = np.repeat(scores, copies), np.repeat(positive, copies)
        kept = one_of_each(np.repeat(np.arange(150), copies), seed=1)
        assert len(kept) == 150
        broken["claim"] += guaranteed_threshold(scores, positive, target).threshold is not None
        broken["document"] += guaranteed_threshold(scores[kept], positive[kept], target).threshold is not None
    assert broken["document"] <= 0.05 * 200 < broken["claim"]


@pytest.mark.parametrize("comparison", [">", ">="])
def test_every_threshold_down_to_the_one_found_passes_the_exact_test(comparison: Comparison) -> None:
    scores, positive = draw(np.random.default_rng(8), 800, 0.5, 0.5)
    found = guaranteed_threshold(scores, positive, 0.85, 0.95, comparison)
    assert found.threshold is not None and found.starts == (38, 80, 200)
    points = operating_points(scores, positive, GRID, comparison)
    last = int(np.flatnonzero(found.threshold == GRID)[0])
    supported = points["true_positives"] + points["false_positives"]
    values = np.array(
        [
            binomtest(int(points["true_positives"][i]), int(supported[i]), 0.85, alternative="greater").pvalue
            for i in np.flatnonzero(supported >= 38)
            if i <= last + 1
        ]
    )
    begin = next(index for index, count in enumerate(supported[supported >= 38]) if count >= 200)
    assert max(values[begin:-1]) <= 0.05 / 3 < values[-1]
    assert (found.supported, found.correct) == (supported[last], points["true_positives"][last])


def test_where_the_sequences_start() -> None:
    level = 0.05 / 3
    fewest = starting_counts(0.90, 0.95, 100)[0]
    assert binom.sf(fewest - 2, fewest, 0.9) <= level < binom.sf(fewest - 3, fewest - 1, 0.9)
    assert starting_counts(0.90, 0.95, 100) == (58,)
    assert starting_counts(0.90, 0.95, 400) == (58, 100)
    assert starting_counts(0.90, 0.95, 5000) == (58, 500, 1250)


def test_an_unlucky_handful_at_the_top_is_no_end() -> None:
    scores = np.linspace(0.99, 0.01, 1000)
    positive = np.ones(1000, np.bool_)
    positive[:12] = False  # the best scored claims are all wrong: the first sequence ends at once
    found = guaranteed_threshold(scores, positive, 0.9)
    assert found.threshold == 0.0 and found.correct == 988


def test_perfect_scores_are_guaranteed_as_soon_as_there_are_enough_of_them() -> None:
    for n, attained in ((57, False), (58, True)):
        found = guaranteed_threshold(np.full(n, 0.7), np.ones(n, np.bool_), 0.9)
        assert (found.threshold is not None) is attained


def test_the_sentences() -> None:
    asked = "precision >= 0.90 with confidence 95%"
    good = guaranteed_threshold(np.full(80, 0.7), np.ones(80, np.bool_), 0.9)
    assert str(good) == f"{asked}: threshold 0.0000, 80 of 80 claims there are right"
    bad = guaranteed_threshold(np.full(80, 0.7), np.arange(80) < 60, 0.9)
    assert bad.threshold is None
    assert str(bad) == (
        f"{asked}: not attainable on these data, where testing starts 60 of 80 supported claims are right"
    )
    few = guaranteed_threshold(np.full(45, 0.7), np.ones(45, np.bool_), 0.9)
    assert str(few) == f"{asked}: not attainable on these data, no threshold has the 58 claims that a test needs"


def test_one_of_each_is_any_of_them() -> None:
    groups = np.array([2, 2, 0, 1, 1, 1])
    drawn = {tuple(one_of_each(groups, seed)) for seed in range(200)}
    assert len(drawn) == 6
    assert all(sorted(groups[list(kept)]) == [0, 1, 2] for kept in drawn)
