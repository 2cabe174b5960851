"""Cross-fitting: whole documents, nothing of a document in what judges it, and estimates without bias."""

from pathlib import Path

import numpy as np
import pytest

from tests.calibration.bias import estimation_errors, write_picture
from tests.calibration.synthetic import draw
from verifier.calibration.calibrators import Kind
from verifier.calibration.crossfit import MANY, cross_fit, grouped_folds, out_of_fold
from verifier.calibration.rules import RULES, parse_constraints
from verifier.errors import ConfigurationError

RULE = RULES["max_balanced_accuracy"]


def test_cross_fitted_estimates_are_unbiased_where_in_sample_ones_are_not(tmp_path: Path) -> None:
    errors = estimation_errors(300, seed=4)
    bias = {name: values.mean() for name, values in errors.items()}
    noise = {name: values.std() / np.sqrt(len(values)) for name, values in errors.items()}
    assert abs(bias["cross-fitted"]) < 3 * noise["cross-fitted"]
    assert noise["cross-fitted"] < 0.006, "else the test above says little"
    assert bias["in sample"] > 0.03 > 5 * noise["in sample"]
    write_picture(errors, tmp_path / "bias.png")
    assert (tmp_path / "bias.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("documents", "claims"), [(120, 600), (MANY + 500, 6000), (600, 600)])
def test_a_document_is_in_one_fold_and_folds_are_alike(documents: int, claims: int) -> None:
    random = np.random.default_rng(0)
    groups = random.permutation(np.arange(claims) % documents)
    positive = random.random(claims) < 0.3
    fold = grouped_folds(positive, groups, 5, seed=1)
    assert len(set(zip(groups.tolist(), fold.tolist(), strict=True))) == documents
    assert np.bincount(fold, minlength=5) == pytest.approx(np.full(5, claims / 5), rel=0.05)
    shares = [positive[fold == number].mean() for number in range(5)]
    assert max(shares) - min(shares) < 0.1
    assert (fold == grouped_folds(positive, groups, 5, seed=1)).all()
    assert (fold != grouped_folds(positive, groups, 5, seed=2)).any()


@pytest.mark.parametrize("kind", ["none", "isotonic", "logistic", "stack"])
def test_the_labels_of_a_fold_do_not_reach_what_judges_it(kind: Kind) -> None:
    random = np.random.default_rng(6)
    scores, positive = draw(random, 240, 0.1, 0.8)
    inputs = np.column_stack([scores, random.random((240, 5))])
    groups = np.arange(240) // 2
    crossed = cross_fit(kind, inputs, positive, groups, RULE)
    again = cross_fit(kind, inputs, positive, groups, RULE)
    assert (crossed.supported == again.supported).all() and crossed.thresholds == again.thresholds
    # Two claims of one fold with different labels change places: every other fold's size and balance stays, so the
    # folds are the same, and only the fold's own labels have changed.
    test = crossed.fold == 0
    yes, no = (next(i for i in np.flatnonzero(test) if positive[i] == label) for label in (True, False))
    changed = inputs.copy()
    changed[[yes, no]] = changed[[no, yes]]
    other = cross_fit(kind, changed, positive, groups, RULE)
    assert other.thresholds[0] == crossed.thresholds[0]
    others = np.setdiff1d(np.flatnonzero(test), [yes, no])
    assert (other.scores[others] == crossed.scores[others]).all()
    assert other.scores[yes] == crossed.scores[no]
    if kind != "none":
        assert (other.scores[~test] != crossed.scores[~test]).any(), "the other folds do learn from it"


def test_a_calibrator_that_memorizes_gains_nothing_out_of_fold() -> None:
    """Documents whose claims are copies: only grouped folds keep an isotonic map from having seen the answers."""
    random = np.random.default_rng(9)
    scores = np.repeat(random.random(150), 4)
    positive = np.repeat(random.random(150) < 0.5, 4)  # labels that scores say nothing of
    groups = np.repeat(np.arange(150), 4)
    grouped = out_of_fold("isotonic", scores[:, None], positive, grouped_folds(positive, groups, 5, 0))
    loose = out_of_fold("isotonic", scores[:, None], positive, grouped_folds(positive, np.arange(600), 5, 0))
    brier = [float(np.mean((found - positive) ** 2)) for found in (grouped, loose)]
    assert brier[0] > 0.25 > brier[1]


def test_a_fold_without_a_threshold_supports_nothing_and_says_why() -> None:
    scores, positive = draw(np.random.default_rng(2), 200, 0.4, 0.1)
    crossed = cross_fit(
        "none",
        scores[:, None],
        positive,
        np.arange(200),
        RULE,
        parse_constraints({"precision": ">=0.95", "recall": ">=0.5"}),
    )
    assert crossed.thresholds == [None] * 5 and not crossed.supported.any()
    assert len(crossed.whys) == 5 and all("precision >= 0.95 with recall >= 0.50" in why for why in crossed.whys)


def test_too_few_documents_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="3 groups have a positive claim, too few for folds=5"):
        grouped_folds(np.arange(20) < 6, np.arange(20) // 2, 5, 0)
