"""Published figures from recorded scores: the WiCE paper's claim-level table, and the MiniCheck-Flan-T5 trial."""

import json
from typing import Any

import numpy as np
import pytest

from tests.shared import SHARED, needs_shared, read_lines
from verifier.calibration.rules import RULES, choose, parse_constraints
from verifier.calibration.selection import Bools, Floats, decided_figures, passes

PUBLISHED = {  # F1 and accuracy in percent, and the threshold: found on dev, or as read
    "t5-3b-anli": (61.8, 74.0, 0.34),
    "t5-3b-anli-wice": (77.8, 88.0, 0.54),
    "gpt-4-0613": (61.0, 77.0, 0.5),
    "gpt-3.5-turbo-0613": (39.3, 32.0, 0.0),
}


def scored(model: str, split: str) -> tuple[Floats, Bools]:
    scores: dict[str, float] = json.loads((SHARED / f"wice/{model}.{split}.scores.json").read_text("utf-8"))
    labels = {row["meta"]["id"]: row["label"] for row in read_lines(f"wice/{split}.jsonl")}
    return np.array(list(scores.values())), np.array([labels[claim] == "supported" for claim in scores])


@needs_shared
@pytest.mark.parametrize("model", PUBLISHED)
def test_the_claim_level_table_of_the_paper(model: str) -> None:
    f1, accuracy, threshold = PUBLISHED[model]
    if model.startswith("t5"):
        point = choose(*scored(model, "dev"), RULES["max_f1_on_grid"]).point
        assert point is not None and point.threshold == threshold
    scores, positive = scored(model, "test")
    found = decided_figures(passes(scores, threshold), positive)
    assert (round(100 * found["f1"], 1), round(100 * found["accuracy"], 1)) == (f1, accuracy)


@needs_shared
def test_no_threshold_on_the_minicheck_trial_meets_both_bounds() -> None:
    rows: list[dict[str, Any]] = read_lines("wice/minicheck-flan-t5-large.test.scores.jsonl")
    scores = np.array([max(row["probs"]) for row in rows])
    positive = np.array([row["label"] == "supported" for row in rows])
    found = decided_figures(passes(scores, 0.5), positive)
    published = json.loads((SHARED / "wice/minicheck-flan-t5-large.published.json").read_text("utf-8"))
    metrics = published["summary"]["metrics"]
    for name in ("precision", "recall", "f1", "accuracy", "balanced_accuracy", "false_support_rate"):
        assert found[name] == pytest.approx(metrics[name], abs=1e-12)
    bounds = parse_constraints({"precision": ">=0.90", "recall": ">=0.60"})
    choice = choose(scores, positive, RULES["max_recall"], bounds)
    assert choice.point is None
    assert choice.why.startswith("no threshold on these scores meets precision >= 0.90 with recall >= 0.60; the best")
    assert choose(scores, positive, RULES["max_recall"], bounds[:1]).point is not None
    assert choose(scores, positive, RULES["max_recall"], bounds[1:]).point is not None
