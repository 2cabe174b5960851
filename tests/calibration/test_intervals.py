"""Exact intervals against scipy, the bootstrap against one that is written out, reliability, and flagged domains."""

import numpy as np
import pytest
from scipy.stats import binomtest

from tests.calibration.synthetic import draw
from verifier.calibration.domains import by_domain
from verifier.calibration.intervals import bootstrap, clopper_pearson, exact_intervals, percentiles
from verifier.calibration.reliability import reliability
from verifier.calibration.selection import decided_figures


@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_exact_intervals_are_those_of_scipy(confidence: float) -> None:
    hits, of = np.array([0, 1, 7, 30, 80]), np.array([5, 1, 20, 30, 104])
    lower, upper = clopper_pearson(hits, of, confidence)
    for index, (k, n) in enumerate(zip(hits, of, strict=True)):
        expected = binomtest(int(k), int(n)).proportion_ci(confidence, method="exact")
        assert (lower[index], upper[index]) == pytest.approx((expected.low, expected.high), abs=1e-9)
    assert [float(end) for end in clopper_pearson(np.array(0), np.array(0))] == [0, 1]


def test_the_intervals_of_a_table() -> None:
    counts = {"true_positives": 80, "false_positives": 24, "true_negatives": 224, "false_negatives": 30}
    found = exact_intervals(counts)
    for name, k, n in (("precision", 80, 104), ("recall", 80, 110), ("false_support_rate", 24, 248)):
        expected = binomtest(k, n).proportion_ci()
        assert found[name] == pytest.approx((expected.low, expected.high))


def test_the_bootstrap_resamples_whole_groups() -> None:
    """Beside a bootstrap that draws groups one by one, and beside one that would take claims for independent."""
    random = np.random.default_rng(7)
    groups = np.repeat(np.arange(40), 6)
    positive = np.repeat(random.random(40) < 0.5, 6)
    supported = np.where(np.repeat(random.random(40) < 0.8, 6), positive, ~positive)
    found = bootstrap(supported, positive, groups, 4000, seed=1)
    members = [np.flatnonzero(groups == group) for group in range(40)]
    written_out = []
    for _ in range(1500):
        rows = np.concatenate([members[group] for group in random.integers(0, 40, 40)])
        written_out.append(decided_figures(supported[rows], positive[rows])["accuracy"])
    assert found["accuracy"].mean() == pytest.approx(np.mean(written_out), abs=0.006)
    assert found["accuracy"].std() == pytest.approx(np.std(written_out), rel=0.08)
    loose = bootstrap(supported, positive, np.arange(240), 4000, seed=1)
    assert found["accuracy"].std() > 2 * loose["accuracy"].std()
    low, high = percentiles(found, 0.95)["accuracy"]
    assert np.mean((found["accuracy"] >= low) & (found["accuracy"] <= high)) == pytest.approx(
        0.95, abs=0.03
    )  # the figure has few values
    again = bootstrap(supported, positive, groups, 4000, seed=1)
    assert (again["precision"] == found["precision"]).all()


def test_reliability_of_true_probabilities_is_the_diagonal() -> None:
    scores, positive = draw(np.random.default_rng(2), 20_000, 0.0, 1.0)
    found = reliability(scores, positive)
    assert found.ece < 0.012 and found.brier == pytest.approx(1 / 6, abs=0.01)
    assert sum(found.counts) == 20_000 and found.shares == pytest.approx(found.scores, abs=0.04)
    overconfident = reliability(np.where(scores > 0.5, 1.0, 0.0), positive)
    assert overconfident.ece == pytest.approx(0.25, abs=0.01)
    assert overconfident.scores == [0.0, 1.0]


def test_expected_calibration_error_by_hand() -> None:
    scores, positive = np.array([0.1, 0.15, 0.9, 1.0]), np.array([False, True, True, True])
    found = reliability(scores, positive, bins=5)
    assert found.ece == pytest.approx(0.5 * abs(0.5 - 0.125) + 0.5 * abs(1 - 0.95))
    assert found.brier == pytest.approx((0.01 + 0.85**2 + 0.01 + 0) / 4)
    assert reliability(scores, np.ones(4, np.bool_)).auroc is None


def test_a_domain_far_below_the_pool_is_flagged() -> None:
    domains = ["news"] * 200 + ["meetings"] * 100 + ["tiny"] * 3 + [None]
    positive = np.array([True] * 150 + [False] * 50 + [True] * 40 + [False] * 60 + [True] * 3 + [True])
    supported = positive.copy()
    supported[200:210] = False  # ten of forty are missed
    supported[240:290] = True  # fifty of sixty are false
    supported[300] = False
    found = {one.name: one for one in by_domain(supported, positive, domains)}
    assert list(found) == ["meetings", "news", "tiny"]
    assert found["meetings"].flags == ["precision", "recall", "false_support_rate"]
    assert found["news"].flags == []
    assert found["tiny"].figures["recall"] == pytest.approx(2 / 3) and found["tiny"].flags == [], "three say little"
