import warnings

import pytest

from verifier.metrics import STATUSES, measure, measure_cells


def test_published_counts_give_the_published_figure() -> None:
    # WiCE test, guarded verifier localized (SPEC): TP 34, FP 12, TN 236, FN 76.
    cells = {
        ("supported", "supported"): 34,
        ("supported", "insufficient"): 76,
        ("partially_supported", "supported"): 12,
        ("partially_supported", "refuted"): 230,
        ("not_supported", "insufficient"): 6,
    }
    metrics = measure_cells(cells)
    assert metrics is not None
    assert round(metrics.binary.balanced_accuracy, 4) == 0.6304
    assert metrics.binary.precision == pytest.approx(34 / 46)
    assert metrics.binary.recall == pytest.approx(34 / 110)
    assert metrics.binary.false_support_rate == pytest.approx(12 / 248)
    assert (metrics.binary.true_negatives, metrics.binary.false_negatives) == (236, 76)
    assert metrics.accuracy is None and metrics.per_status == {}  # these labels are no statuses
    assert list(metrics.confusion) == ["supported", "not_supported", "partially_supported"]


def test_status_metrics_count_decided_claims_only() -> None:
    labels = ["supported", "supported", "refuted", "insufficient", "refuted", None]
    statuses = ["supported", "refuted", "refuted", "supported", None, "supported"]
    metrics = measure(statuses, labels)
    assert metrics is not None
    assert (metrics.labelled, metrics.decided, metrics.coverage) == (5, 4, 0.8)
    assert metrics.accuracy == 0.5
    refuted = metrics.per_status["refuted"]
    assert (refuted.precision, refuted.recall, refuted.support, refuted.decided) == (0.5, 1.0, 1, 2)
    assert metrics.per_status["insufficient"].precision == 0.0
    assert "contested" not in metrics.per_status
    assert metrics.confusion["supported"] == dict.fromkeys(STATUSES, 0) | {"supported": 1, "refuted": 1}
    flat = metrics.flat()
    assert flat["precision/refuted"] == 0.5 and flat["binary/true_positives"] == 1 and flat["accuracy"] == 0.5


@pytest.mark.parametrize(
    ("labels", "statuses", "recall", "balanced"),
    [
        (["supported"], ["supported"], 1.0, 0.5),  # no negatives: their recall counts as 0
        (["refuted"], ["refuted"], 0.0, 0.5),
        (["refuted"], ["supported"], 0.0, 0.0),
        (["supported"], [None], 0.0, 0.0),  # nothing decided
    ],
)
def test_a_division_by_zero_is_zero_and_warns_nobody(
    labels: list[str], statuses: list[str | None], recall: float, balanced: float
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        metrics = measure(statuses, labels)
    assert metrics is not None
    assert (metrics.binary.recall, metrics.binary.balanced_accuracy) == (recall, balanced)


def test_no_labels_no_metrics() -> None:
    assert measure(["supported", None], [None, None]) is None
    assert measure([], []) is None
