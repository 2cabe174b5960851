"""Operating points against scikit-learn, the named rules, constraints, and what is said where they cannot be met."""

import numpy as np
import pytest
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    confusion_matrix,
    f1_score,
    precision_score,
    recall_score,
)

from verifier.calibration.rules import RULES, choose, named_rule, parse_constraints
from verifier.calibration.selection import Comparison, candidates, decided_figures, operating_points, passes
from verifier.errors import ConfigurationError

RANDOM = np.random.default_rng(1)
SCORES = RANDOM.integers(0, 21, 120) / 20  # with ties, 0 and 1
POSITIVE = RANDOM.random(120) < 0.2 + 0.6 * SCORES


@pytest.mark.parametrize("comparison", [">", ">="])
def test_every_threshold_has_the_figures_of_scikit_learn(comparison: Comparison) -> None:
    points = operating_points(SCORES, POSITIVE, comparison=comparison)
    assert points["threshold"].tolist() == sorted({0.0, 1.0, *SCORES})
    for index, threshold in enumerate(points["threshold"]):
        given = threshold < SCORES if comparison == ">" else threshold <= SCORES
        tn, fp, fn, tp = confusion_matrix(POSITIVE, given, labels=[False, True]).ravel()
        expected = {
            "threshold": threshold,
            "true_positives": tp,
            "false_positives": fp,
            "true_negatives": tn,
            "false_negatives": fn,
            "precision": precision_score(POSITIVE, given, zero_division=0),
            "recall": recall_score(POSITIVE, given),
            "f1": f1_score(POSITIVE, given, zero_division=0),
            "accuracy": accuracy_score(POSITIVE, given),
            "balanced_accuracy": balanced_accuracy_score(POSITIVE, given),
            "false_support_rate": fp / (fp + tn),
        }
        assert {name: values[index] for name, values in points.items()} == pytest.approx(expected)
        decided = decided_figures(passes(SCORES, threshold, comparison), POSITIVE)
        assert decided | {"threshold": threshold} == pytest.approx(expected)


def test_there_is_nothing_to_divide_by() -> None:
    nothing = decided_figures(np.zeros(3, np.bool_), np.zeros(3, np.bool_))
    assert (nothing["precision"], nothing["recall"], nothing["f1"]) == (0, 0, 0)
    assert not passes(np.array([0.0, 1.0]), None).any()


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("written", [{}, {"precision": ">=0.6"}, {"recall": ">= .5", "false_support_rate": "<=0.4"}])
def test_a_rule_picks_what_a_search_over_all_thresholds_picks(rule: str, written: dict[str, str]) -> None:
    named = named_rule(rule)
    constraints = parse_constraints(written)
    best = None
    for threshold in candidates(SCORES) if named.grid is None else named.grid:
        figures = decided_figures(threshold < SCORES, POSITIVE)
        if all(one.holds(figures[one.figure]) for one in constraints):
            key = tuple(figures[name] for name in named.best)
            if best is None or key > best[0]:
                best = key, threshold
    chosen = choose(SCORES, POSITIVE, named, constraints)
    assert best is not None and chosen.point is not None and not chosen.why
    assert chosen.point.threshold == best[1]


def test_what_cannot_be_met_is_said_with_what_can() -> None:
    scores, positive = np.array([0.9, 0.8, 0.7, 0.6, 0.5]), np.array([True, False, True, True, False])

    def why(**written: str) -> str:
        choice = choose(scores, positive, RULES["max_recall"], parse_constraints(written))
        assert choice.point is None
        return choice.why

    assert why(precision=">=0.90", recall=">=0.60") == (
        "no threshold on these scores meets precision >= 0.90 with recall >= 0.60;"
        " the best precision at that recall is 0.7500"
    )
    assert why(false_support_rate="<=0.2", recall=">=0.9") == (
        "no threshold on these scores meets false-support rate <= 0.20 with recall >= 0.90;"
        " the lowest false support rate at that recall is 0.5000"
    )
    assert why(balanced_accuracy=">=0.95") == (
        "no threshold on these scores meets balanced accuracy >= 0.95; the best balanced accuracy is 0.7500"
    )
    assert why(recall=">=0.5", precision=">=0.8", accuracy=">=0.9") == (
        "no threshold on these scores meets recall >= 0.50 with precision >= 0.80 and accuracy >= 0.90,"
        " nor precision >= 0.80 and accuracy >= 0.90 without it"
    )


@pytest.mark.parametrize("text", ["0.9", ">0.9", ">=1.5", "=>0.9", ">=", "", ">=nan"])
def test_a_constraint_that_cannot_be_read_is_named(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"constraints\.precision is"):
        parse_constraints({"precision": text})


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"constraints\.acuracy is no figure"):
        parse_constraints({"acuracy": ">=0.5"})
    with pytest.raises(ConfigurationError, match="'best' is unknown: use max_recall"):
        named_rule("best")
    assert parse_constraints({"recall": None}) == []
