"""The settings of a sweep, their figures, and the best one among them."""

import doctest
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from tests.search.cases import generate
from tests.sweep.corpora import FilledScorer, case_claim, labels_of, recorded_of, run_of
from verifier import Claim, VerificationPolicy
from verifier.calibration.rules import parse_constraints
from verifier.errors import ConfigurationError
from verifier.fusion.policy import FusionPolicy
from verifier.grounding.policy import GroundingPolicy
from verifier.metrics import STATUSES, measure
from verifier.sweep import settings as module
from verifier.sweep.best import check_select, ranked_settings
from verifier.sweep.decisions import OUTCOMES
from verifier.sweep.figures import FIGURES, Labels, Ranking, setting_row, settings_frame
from verifier.sweep.groups import GroupTable
from verifier.sweep.settings import grid_axes, settings

BASE = VerificationPolicy().model_dump()
SUPPORT = {"model": "m", "revision": "r"}


def test_the_example_holds() -> None:
    assert doctest.testmod(module).attempted == 1
    assert doctest.testmod(module).failed == 0


def test_a_grid_varies_its_last_field_fastest_and_listed_policies_follow_once() -> None:
    grid = {"entailment_threshold": "0.5:1.0:0.025", "max_group_size": [1, 2]}
    found = settings(VerificationPolicy, BASE, grid, [{"max_evidence": 9}, {"max_group_size": 2}, {}], choices=False)
    assert len(found) == 42 + 1, "the last two listed stand in the grid"
    assert [one.changed for one in found[:3]] == [
        {"entailment_threshold": 0.5, "max_group_size": 1},
        {"entailment_threshold": 0.5, "max_group_size": 2},
        {"entailment_threshold": 0.525, "max_group_size": 1},
    ]
    assert found[3].policy == VerificationPolicy(entailment_threshold=0.525)
    assert found[-1].policy == VerificationPolicy(max_evidence=9)
    thresholds = grid_axes(grid)["entailment_threshold"]
    assert thresholds == [float(f"{0.5 + 0.025 * step:.3f}") for step in range(21)], "as a person writes them"
    assert grid_axes({"max_group_size": "1:3:1"}) == {"max_group_size": [1, 2, 3]}


def test_aggregation_is_swept_beside_the_policy_of_support() -> None:
    grid = {"aggregation": ["min", None], "threshold": [0.5]}
    found = settings(GroundingPolicy, SUPPORT, grid, [], choices=True)
    assert [one.choices for one in found] == [{"aggregation": "min"}, {"aggregation": None}]
    with pytest.raises(ConfigurationError, match=r"aggregation is no field of sweep\.grid"):
        settings(VerificationPolicy, BASE, grid, [], choices=False)


@pytest.mark.parametrize(
    ("kind", "base", "grid", "said"),
    [
        (VerificationPolicy, BASE, {}, "nothing to sweep"),
        (VerificationPolicy, BASE, {"threshold": [0.5]}, "threshold is no field of sweep"),
        (VerificationPolicy, BASE, {"model": ["x"]}, "model is no field"),
        (VerificationPolicy, BASE, {"entailment_threshold": [0.4]}, "sweep.entailment_threshold is 0.4"),
        (VerificationPolicy, BASE, {"entailment_threshold": "0.5:1.0:0"}, "first:last:step"),
        (VerificationPolicy, BASE, {"entailment_threshold": "a:b:c"}, "first:last:step"),
        (VerificationPolicy, BASE, {"entailment_threshold": "1:0.5:0.1"}, "no values"),
        (VerificationPolicy, BASE, {"max_group_size": []}, "no values"),
        (VerificationPolicy, BASE, {"entailment_policy": "none"}, "entailment_policy"),
        (FusionPolicy, SUPPORT, {"supported": [0.3]}, "above supported"),
        (GroundingPolicy, SUPPORT, {"aggregation": ["sum"]}, "aggregation is 'sum'"),
    ],
)
def test_what_cannot_be_swept_is_told(kind: Any, base: Any, grid: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        settings(kind, base, grid, [], choices=kind is not VerificationPolicy)


def swept(labels: list[str | None]) -> tuple[pl.DataFrame, list[Any], list[Claim]]:
    cases = generate(120, seed=31)
    claims = [
        Claim(str(number), *(getattr(case_claim(case, "x"), name) for name in ("claim", "evidence")), label=label)
        for number, (case, label) in enumerate(zip(cases, labels, strict=True))
    ]
    grid = {"entailment_threshold": [0.5, 0.9], "max_group_size": [1, 3]}
    asked = settings(VerificationPolicy, BASE, grid, [], choices=False)
    recorded = recorded_of(run_of(claims, FilledScorer(), None, VerificationPolicy(max_group_size=1)))
    table = GroupTable(claims, labels_of(recorded), [one.policy for one in asked])
    decided = [table.decide(one.policy) for one in asked]
    known = Labels.of(claims)
    rows = [setting_row(number, *both, known) for number, both in enumerate(zip(asked, decided, strict=True))]
    return settings_frame(rows), decided, claims


def test_figures_are_those_of_the_metrics_module_and_of_scikit_learn() -> None:
    rng = np.random.default_rng(3)
    labels = [
        None if one == 3 else str(name)
        for one, name in zip(rng.integers(4, size=120), rng.choice(STATUSES, 120), strict=True)
    ]
    table, decided, claims = swept(labels)
    assert table["missing_pairs"].sum() > 0
    for row, decisions in zip(table.iter_rows(named=True), decided, strict=True):
        statuses = [OUTCOMES[code] for code in decisions.outcome.tolist()]
        metrics = measure([status if status in STATUSES else None for status in statuses], labels)
        assert metrics is not None
        for name in FIGURES:
            assert row[name] == pytest.approx(getattr(metrics.binary, name), abs=1e-15)
        for name in ("true_positives", "false_positives", "true_negatives", "false_negatives"):
            assert row[name] == getattr(metrics.binary, name)
        assert row["coverage"] == metrics.coverage
        assert {name: row[f"n_{name}"] for name in OUTCOMES} == {name: statuses.count(name) for name in OUTCOMES}
        counted = np.array([label is not None for label in labels]) & ~np.isnan(decisions.score)
        positive = np.array([label == "supported" for label in labels])[counted]
        assert row["auroc"] == pytest.approx(roc_auc_score(positive, decisions.score[counted]), abs=1e-12)
        assert row["average_precision"] == pytest.approx(
            average_precision_score(positive, decisions.score[counted]), abs=1e-12
        )
        assert row["claims"] == len(claims)


def test_without_labels_there_are_counts_and_no_figures() -> None:
    table, _, _ = swept([None] * 120)
    assert table.select(pl.col(*FIGURES, "auroc", "average_precision").null_count()).row(0) == (4,) * 8
    assert table["coverage"].to_list() == pytest.approx((1 - table["n_unscored"] / 120).to_list())
    assert "no claim with a label" in str(ranked_settings(table, "recall", []).why)


@pytest.mark.parametrize("positive", [[], [True, True], [False, False]])
def test_a_ranking_of_one_kind_has_no_area(positive: list[bool]) -> None:
    found = Ranking.of(np.linspace(0, 1, len(positive)), np.array(positive, np.bool_))
    assert found.auroc is None


TABLE = pl.DataFrame(
    {
        "setting": [0, 1, 2, 3, 4],
        "complete": [True, True, True, False, True],
        "precision": [0.9, 0.95, 0.9, 1.0, 0.5],
        "recall": [0.6, 0.6, 0.6, 1.0, 0.9],
        "false_support_rate": [0.1, 0.05, 0.1, 0.0, 0.4],
        "f1": [None, None, None, None, None],
    },
    schema_overrides={"f1": pl.Float64},
)


@pytest.mark.parametrize(
    ("figure", "constraints", "order"),
    [
        ("recall", {}, [4, 1, 0, 2]),
        ("recall", {"precision": ">=0.9", "recall": ">=0.6"}, [1, 0, 2]),
        ("precision", {}, [1, 0, 2, 4]),
        ("false_support_rate", {}, [1, 0, 2, 4]),
        ("precision", {"false_support_rate": "<=0.1"}, [1, 0, 2]),
    ],
)
def test_the_best_come_first(figure: str, constraints: dict[str, str | None], order: list[int]) -> None:
    assert list(ranked_settings(TABLE, figure, parse_constraints(constraints)).settings) == order


def test_why_there_is_no_best_is_told() -> None:
    one = ranked_settings(TABLE, "recall", parse_constraints({"precision": ">=0.99"})).why
    assert one == "no setting keeps precision >= 0.99; the largest precision is 0.9500"
    two = ranked_settings(TABLE, "recall", parse_constraints({"precision": ">=0.90", "recall": ">=0.80"})).why
    assert two is not None and "the largest precision is 0.5000" in two and "the largest recall is 0.6000" in two
    assert "no setting is complete" in str(ranked_settings(TABLE[3:4], "recall", []).why)
    assert "no claim with a label" in str(ranked_settings(TABLE, "f1", []).why)
    with pytest.raises(ConfigurationError, match=r"sweep\.select is 'claims'"):
        check_select("claims")
