"""What settings lack is scored, no pair more, and the sweep then decides as fresh runs do."""

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest

from tests.search.cases import generate, triple
from tests.sweep.corpora import case_claim
from tests.sweep.test_groups import decision_of
from tests.sweep.test_support_methods import NAMES, claims_of, labelled, run, support
from verifier.fusion.confirmed import FusionNli
from verifier.grounding.method import Grounding
from verifier.grounding.policy import GroundingPolicy
from verifier.protocol import CONFIRMATION, Outcome, Pair, PairError, Scores, run_plan
from verifier.records import Claim, VerificationPolicy
from verifier.results import result_row, results_table, scan_pairs
from verifier.search.groups import EvidenceGroups
from verifier.sweep.job import lacking_settings
from verifier.sweep.missing import ask_missing
from verifier.sweep.runs import Runs, RunTable
from verifier.sweep.scores import PAIR_COLUMNS
from verifier.sweep.settings import Setting

Key = tuple[bool, str, str]


class Labels:
    """Answers that depend on the pair alone; remembers what it was asked, and fails at one premise."""

    model, revision, dtype = "m", "r", "float64"

    def __init__(self, fails_at: str | None = None) -> None:
        self.fails_at = fails_at
        self.asked: list[tuple[str, str]] = []

    def score(self, pairs: Sequence[tuple[str, str]]) -> Any:
        return self.score_detailed(pairs).values

    def score_detailed(self, pairs: Sequence[tuple[str, str]]) -> Scores:
        self.asked += pairs
        whole = Scores.whole(np.array([triple(*pair) for pair in pairs]).reshape(-1, 3))
        failed = [index for index, pair in enumerate(pairs) if pair[0] == self.fails_at]
        errors = dict.fromkeys(failed, PairError("unscored", "down", "it fell"))
        whole.values[list(errors)] = np.nan
        return Scores(whole.values, whole.windows, whole.window, whole.truncated, errors)


class Support:
    """Like ``Labels``, of support with two members and two windows."""

    model, revision, dtype = "m", "r", "float64"

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def score_pairs(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        return [float(value) for value in self.score_detailed(pairs).values]

    def score_detailed(self, pairs: Sequence[tuple[str, str]]) -> Scores:
        self.asked += pairs
        return support([Pair(0, "single", (), *pair) for pair in pairs])


class Both:
    model, revision, dtype = "m", "r", "float64"

    def __init__(self) -> None:
        self.cosine, self.labels = Support(), Labels()


def asked_of(scorer: Any) -> list[Key]:
    """What a scorer was asked, confirmations apart."""
    parts = ((False, scorer.cosine), (True, scorer.labels)) if isinstance(scorer, Both) else ((False, scorer),)
    return [(confirming, *pair) for confirming, part in parts for pair in part.asked]


def wanted(method: Any, settings: Sequence[Setting], claims: Sequence[Claim], score: Any) -> set[Key]:
    """Every pair that a fresh run under one of the settings asks."""
    keys: set[Key] = set()

    def seen(pairs: Sequence[Pair]) -> Scores:
        keys.update((pair.kind == CONFIRMATION, pair.premise, pair.hypothesis) for pair in pairs)
        return score(pairs)  # type: ignore[no-any-return]

    for setting in settings:
        run_plan(method(setting.policy, "r").plan(claims), seen)
    return keys


def table_of(method: Any, claims: Sequence[Claim], settings: Sequence[Setting], dirs: Sequence[Path]) -> RunTable:
    run, *further = (str(folder) for folder in dirs)
    return RunTable(Runs([run], method.name, {}, [], {}, [], []), claims, settings, further)


def filled(
    tmp_path: Path, method: Any, claims: Sequence[Claim], settings: Sequence[Setting], folder: Path, scorer: Any
) -> tuple[RunTable, list[Outcome]]:
    """The table before, completed by what the scorer is asked."""
    lacking = lacking_settings(table_of(method, claims, settings, [folder]), settings)
    by_claim = [lacking.filter(pl.col("claim") == row)["setting"].to_list() for row in range(len(claims))]
    known = scan_pairs(folder).select(PAIR_COLUMNS).collect().to_dicts()
    outcomes = ask_missing(scorer, method, settings, claims, by_claim, known)
    more = tmp_path / "more"
    (more / "results").mkdir(parents=True)
    rows = [
        result_row({"row_id": row, "claim_id": "c"}, outcome, method=method.name, dtype="float64", seconds=0.0, **NAMES)
        for row, outcome in enumerate(outcomes)
    ]
    pq.write_table(results_table(rows), more / "results" / "0.parquet")
    return table_of(method, claims, settings, [folder, more]), outcomes


def labels_score(pairs: Sequence[Pair]) -> Scores:
    return Scores.whole(np.array([triple(pair.premise, pair.hypothesis) for pair in pairs]))


def grid(policy_type: Any, fields: Sequence[dict[str, Any]], **names: Any) -> list[Setting]:
    return [Setting(changed, policy_type(**names, **changed), {}) for changed in fields]


def groups() -> tuple[Any, list[Claim], Any, list[Setting], Any, Callable[..., Scores]]:
    claims = [case_claim(case, str(number)) for number, case in enumerate(generate(60, seed=21))]
    rng = random.Random(3)
    fields = [
        {
            "entailment_threshold": rng.choice([0.5, 0.7, 0.9]),
            "contradiction_threshold": rng.choice([0.5, 0.9]),
            "max_group_size": rng.choice([1, 2, 3]),
            "group_candidate_limit": rng.choice([2, 4]),
        }
        for _ in range(12)
    ]
    own = VerificationPolicy(max_group_size=1)
    return EvidenceGroups, claims, own, grid(VerificationPolicy, fields), Labels(), labels_score


def grounding() -> tuple[Any, list[Claim], Any, list[Setting], Any, Callable[..., Scores]]:
    fields = [
        {"threshold": threshold, "premise": premise, "max_group_size": size}
        for threshold in (0.3, 0.6)
        for premise, size in (("joined", 1), ("each", 1), ("groups", 2), ("groups", 3))
    ]
    own = GroundingPolicy(**NAMES, premise="each")
    return Grounding, claims_of(40, seed=22), own, grid(GroundingPolicy, fields, **NAMES), Support(), support


def confirmed() -> tuple[Any, list[Claim], Any, list[Setting], Any, Callable[..., Scores]]:
    fields = [{"partial": partial, "supported": 0.4, "beta": beta} for partial in (0.1, 0.3) for beta in (0.0, 0.9)]
    own = FusionNli.policy_type(**NAMES, partial=0.4, supported=0.5)
    claims = claims_of(60, seed=23)
    return FusionNli, claims, own, grid(FusionNli.policy_type, fields, **NAMES), Both(), labelled


@pytest.mark.parametrize("case", [groups, grounding, confirmed])
def test_what_settings_lack_is_asked_once_and_nothing_else(tmp_path: Path, case: Any) -> None:
    method, claims, own, settings, scorer, score = case()
    folder = run(tmp_path / "run", method(own, "r"), claims, score)
    before = table_of(method, claims, settings, [folder])
    assert sum((before.decide(setting).missing > 0).sum() for setting in settings) > 20
    table, outcomes = filled(tmp_path, method, claims, settings, folder, scorer)
    for setting in settings:
        decisions = table.decide(setting)
        assert not decisions.missing.any()
        for index, outcome in enumerate(run_plan(method(setting.policy, "r").plan(claims), score)):
            assert outcome.verification is not None
            assert decisions.decision(index) == decision_of(outcome.verification)
    own_pairs = wanted(method, [Setting({}, own, {})], claims, score)
    asked = asked_of(scorer)
    assert set(asked) == wanted(method, settings, claims, score) - own_pairs
    assert sum(pair.kind != "window" for outcome in outcomes for pair in outcome.pairs) >= len(set(asked))


def test_a_pair_that_gets_no_score_is_told_and_stays_missing(tmp_path: Path) -> None:
    method, claims, own, settings, _, score = groups()
    folder = run(tmp_path / "run", method(own, "r"), claims, score)
    fails_at = sorted(wanted(method, settings, claims, score) - wanted(method, [Setting({}, own, {})], claims, score))[
        0
    ][1]
    table, outcomes = filled(tmp_path, method, claims, settings, folder, Labels(fails_at))
    failed = {row for row, outcome in enumerate(outcomes) if outcome.error is not None}
    assert failed and {outcomes[row].error.code for row in failed} == {"down"}  # type: ignore[union-attr]
    missing = {row for setting in settings for row in np.flatnonzero(table.decide(setting).missing).tolist()}
    assert missing == failed
