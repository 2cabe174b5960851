"""The published lattice diagnostic, every figure of its table from its recorded scores."""

import numpy as np
import pytest

from tests.shared import needs_shared, read_lines
from verifier.calibration.selection import operating_points, select
from verifier.grounding.lattice import POLICIES

ROWS = read_lines("lattice/scores.jsonl")

# policy: precision, recall, balanced accuracy, false support at the best balanced accuracy;
# best precision at recall >= 0.60 and its recall; best recall at precision >= 0.90 (percent)
PUBLISHED = {
    "ordered_group": (79.23, 68.67, 75.90, 16.88, 81.51, 64.67, 8.00),
    "order_robust_group": (78.95, 70.00, 76.25, 17.50, 82.88, 61.33, 25.33),
    "max_single": (53.18, 78.00, 56.81, 64.38, 53.18, 78.00, 1.33),
    "max_subset": (75.00, 66.00, 72.69, 20.62, 76.03, 61.33, 1.33),
    "order_robust_max_subset": (70.29, 64.67, 69.52, 25.62, 71.21, 62.67, 1.33),
    "single_group_consensus": (61.80, 73.33, 65.42, 42.50, 61.80, 73.33, 4.00),
}


@needs_shared
@pytest.mark.parametrize("policy", POLICIES)
def test_the_published_table(policy: str) -> None:
    single = np.array([max(row["single"]) for row in ROWS])
    ordered = np.array([row["joined_ordered"] for row in ROWS])
    reversed_ = np.array([row["joined_reversed"] for row in ROWS])
    positive = np.array([row["label"] == 1 for row in ROWS])
    points = operating_points(POLICIES[policy](single, ordered, reversed_), positive)
    balanced = select(points, ["balanced_accuracy", "precision", "recall"])
    precise = select(points, ["precision", "recall"], {"recall": 0.60})
    complete = select(points, ["recall", "precision"], {"precision": 0.90})
    assert balanced and precise and complete
    figures = (
        *(balanced.precision, balanced.recall, balanced.balanced_accuracy, balanced.false_support_rate),
        *(precise.precision, precise.recall, complete.recall),
    )
    # the published figures are rounded to two places; 20.625 is printed as 20.62
    assert figures == pytest.approx([value / 100 for value in PUBLISHED[policy]], abs=5.01e-5)


def test_no_threshold_within_the_bounds_is_none() -> None:
    points = operating_points(np.array([0.2, 0.8]), np.array([False, False]))
    assert select(points, ["recall"], {"precision": 0.5}) is None
    assert points["recall"].tolist() == [0.0] * 4
