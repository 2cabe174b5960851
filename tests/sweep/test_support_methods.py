"""Swept decisions of ``grounding``, ``fusion`` and ``fusion+nli`` beside fresh ones from the same scores."""

import random
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.run_fixture import write_run
from tests.search.cases import generate, triple
from tests.sweep.corpora import case_claim, first_missing
from tests.sweep.test_groups import decision_of
from verifier.fusion.confirmed import FusionNli, FusionNliPolicy
from verifier.fusion.method import Fusion
from verifier.fusion.policy import FusionPolicy
from verifier.grounding.method import Grounding
from verifier.grounding.policy import GroundingPolicy
from verifier.protocol import CONFIRMATION, Outcome, Pair, PairError, Part, Scores, run_plan
from verifier.records import Claim, Evidence
from verifier.results import result_row
from verifier.scorers.base import ask_round
from verifier.scorers.fusion_nli import CosineAndLabels
from verifier.scorers.recorded import RecordedFileScorer
from verifier.scorers.recorded_support_files import RecordedSupportFileScorer
from verifier.sweep.decisions import CODE, UNSCORED
from verifier.sweep.fusion import FusionTable
from verifier.sweep.grounding import GroundingTable
from verifier.sweep.scores import recorded_labels, run_pairs

NAMES = {"model": "m", "revision": "r"}
MEMBERS = ("one", "two")


def claims_of(count: int, seed: int) -> list[Claim]:
    """Cases with every cue, some with subclaims and passages that say nearly what the claim says."""
    rng = random.Random(seed)
    claims = []
    for number, case in enumerate(generate(count, seed)):
        claim = case_claim(case, str(number))
        near = [f"{claim.claim} {rng.choice(['indeed', '7 times', 'in May'])}", claim.claim][: rng.randint(0, 2)]
        evidence = [*claim.evidence, *(Evidence(f"n{place}", text) for place, text in enumerate(near))]
        parts = tuple(rng.choices(claim.claim.split(), k=rng.randint(0, 3)))
        claims.append(Claim(str(number), claim.claim, evidence, claim.requires_complete_set, subclaims=parts))
    return claims


def parts_of(premise: str, hypothesis: str) -> tuple[Part, ...]:
    """What two members say of a pair, each in two windows."""
    draws = triple(premise, hypothesis), triple(hypothesis, premise)
    return tuple(
        Part(name, window, 2, round(draw[window], 2))
        for name, draw in zip(MEMBERS, draws, strict=True)
        for window in (0, 1)
    )


def support(pairs: Sequence[Pair]) -> Scores:
    """The least of two members, each the most of two windows."""
    parts = [parts_of(pair.premise, pair.hypothesis) for pair in pairs]
    values = [min(max(a.support, b.support), max(c.support, d.support)) for a, b, c, d in parts]
    whole = Scores.whole(np.array(values))
    return Scores(whole.values, whole.windows, whole.window, whole.truncated, {}, dict(enumerate(parts)))


def labelled(pairs: Sequence[Pair]) -> Scores:
    if pairs[0].kind != CONFIRMATION:
        return support(pairs)
    return Scores.whole(np.array([triple(pair.premise, pair.hypothesis) for pair in pairs]))


def run(folder: Path, method: Any, claims: Sequence[Claim], score: Callable[[Sequence[Pair]], Scores]) -> Path:
    outcomes = run_plan(method.plan(claims), score)
    row: Callable[[int, Claim, Outcome], Any] = lambda number, claim, outcome: result_row(  # noqa: E731
        {"row_id": number, "claim_id": claim.claim_id},
        outcome,
        method=method.name,
        dtype="float64",
        seconds=0.0,
        **NAMES,
    )
    rows = [row(number, *both) for number, both in enumerate(zip(claims, outcomes, strict=True))]
    return write_run(folder, rows)


def check(claims: Sequence[Claim], decisions: Any, fresh: Sequence[Outcome], missing: dict[int, int]) -> set[str]:
    """Every decision is the fresh one; where pairs lack it is none and their number is right."""
    assert {row: count for row, count in enumerate(decisions.missing.tolist()) if count} == missing
    seen = set()
    for index, outcome in enumerate(fresh):
        if index in missing:
            assert decisions.outcome[index] == UNSCORED
            continue
        assert outcome.verification is not None
        assert decisions.decision(index) == decision_of(outcome.verification), (claims[index], outcome)
        assert decisions.score[index] == (outcome.support or 0.0)
        seen.add(outcome.verification.status.value)
    return seen


def test_grounding_over_every_premise_and_aggregation(tmp_path: Path) -> None:
    claims = claims_of(70, seed=2)
    rng = random.Random(1)
    runs = []
    for premise in ("joined", "each", "groups", "lattice"):
        for atomic in (True, False):
            asking = GroundingPolicy(
                **NAMES, premise=premise, atomic=atomic, threshold=1, comparison=">", max_group_size=3
            )
            runs.append(run(tmp_path / f"{premise}{atomic}", Grounding(asking, "r"), claims, support))
    table = GroundingTable(claims, run_pairs([str(folder) for folder in runs]))
    seen, lacking, answers = set(), 0, dict[str, Callable[[Pair], float | None]]()
    for _ in range(40):
        policy = GroundingPolicy(
            **NAMES,
            threshold=rng.choice([0.0, 0.1, 0.25, 0.5, 1.0]),
            comparison=rng.choice([">", ">="]),
            premise=rng.choice(["joined", "each", "groups", "lattice"]),
            joint=rng.choice(["newline", "newline", "space"]),
            max_group_size=rng.choice([1, 2, 3]),
            group_candidate_limit=rng.choice([2, 3, 16]),
            lattice=rng.choice(["order_robust_group", "max_single", "single_group_consensus"]),
            atomic=rng.choice([True, False]),
        )
        choices = rng.choice([{}, {"aggregation": "max"}, {"window_aggregation": "mean"}, {"member": "two"}])
        key = str(choices)
        if key not in answers:
            answers[key] = _answers([RecordedSupportFileScorer(str(folder), **choices) for folder in runs])
        seen |= _compare(table, claims, policy, choices, answers[key])
        lacking += int((table.decide(policy, choices).missing > 0).sum())
    assert seen == {"supported", "insufficient", "incomplete"}
    assert lacking > 20, "premises joined by a space were asked in no run"


def _answers(scorers: Sequence[RecordedSupportFileScorer]) -> Callable[[Pair], float | None]:
    """What the first of the scorers that knows a pair says of it, each pair looked up once."""
    known: dict[tuple[str, str], float | None] = {}

    def answer(pair: Pair) -> float | None:
        key = (pair.premise, pair.hypothesis)
        if key not in known:
            every = (scorer.score_detailed([key]) for scorer in scorers)
            known[key] = next((float(scores.values[0]) for scores in every if not scores.errors), None)
        return known[key]

    return answer


def _compare(
    table: GroundingTable,
    claims: Sequence[Claim],
    policy: GroundingPolicy,
    choices: Any,
    known: Callable[[Pair], float | None],
) -> set[str]:
    def fresh(pairs: Sequence[Pair]) -> Scores:
        values = [known(pair) for pair in pairs]
        errors = {k: PairError("unscored", "missing_score", "") for k, value in enumerate(values) if value is None}
        whole = Scores.whole(np.array([np.nan if value is None else value for value in values], np.float64))
        return Scores(whole.values, whole.windows, whole.window, whole.truncated, errors)

    missing = first_missing(Grounding(policy, "r").plan(claims), known, 1)
    return check(claims, table.decide(policy, choices), run_plan(Grounding(policy, "r").plan(claims), fresh), missing)


@pytest.mark.parametrize("method", [Fusion, FusionNli])
def test_fusion_over_formulas_and_confirmations(tmp_path: Path, method: Any) -> None:
    claims = claims_of(120, seed=6)
    rng = random.Random(2)
    asking = method.policy_type(**NAMES, partial=0.2, supported=0.3)
    folder = run(tmp_path / "run", method(asking, "r"), claims, labelled)
    pairs = run_pairs([str(folder)])
    labels = recorded_labels(pairs)
    table = FusionTable(claims, pairs, labels)
    seen, lacking = set(), 0
    for _ in range(30):
        fields = {
            "beta": rng.choice([0.0, 0.3, 0.65, 1.0]),
            "candidates_m": rng.choice([1, 2, 8]),
            "supported": rng.choice([0.3, 0.6, 0.75]),
            "partial": rng.choice([0.0, 0.2, 0.3]),
            "cap": rng.choice([0.0, 0.2, 1.0]),
        }
        if method is FusionNli:
            fields |= {
                "entailment_threshold": rng.choice([0.5, 0.8]),
                "contradiction_threshold": rng.choice([0.5, 0.8]),
            }
        policy = method.policy_type(**NAMES, **fields)
        scorer = CosineAndLabels(RecordedSupportFileScorer(str(folder)), _labels(pairs, tmp_path))
        scorer = scorer if method is FusionNli else scorer.cosine
        plan = partial(method(policy, "r").plan, claims)
        fresh = run_plan(plan(), lambda pairs, scorer=scorer: ask_round(scorer, pairs, method.asks))
        missing = {row: 1 for row, outcome in enumerate(fresh) if outcome.error is not None}
        seen |= check(claims, table.decide(policy), fresh, missing)
        lacking += len(missing)
    assert seen >= {"supported", "insufficient", "incomplete"}
    assert (lacking > 0) == (method is FusionNli)
    assert ("refuted" in seen) == (method is FusionNli)


def _labels(pairs: pl.DataFrame, folder: Path) -> RecordedFileScorer:
    path = folder / "labels.parquet"
    columns = pairs.select("premise_sha256", "hypothesis_sha256", "entailment", "contradiction")
    columns.with_columns(neutral=1 - pl.col("entailment") - pl.col("contradiction")).write_parquet(path)
    return RecordedFileScorer(str(path))


def test_a_passage_without_a_cosine_leaves_its_claim_unscored(tmp_path: Path) -> None:
    claims = [Claim("a", "It opened.", [Evidence("x", "It opened."), Evidence("y", "New."), Evidence("z", "New.")])]
    policy = FusionPolicy(**NAMES)
    folder = run(tmp_path / "run", Fusion(policy, "r"), [Claim("a", "It opened.", claims[0].evidence[:1])], support)
    decisions = FusionTable(claims, run_pairs([str(folder)]), {}).decide(policy)
    assert (decisions.outcome.tolist(), decisions.missing.tolist()) == ([UNSCORED], [1])
    none = FusionTable([], run_pairs([str(folder)]), {}).decide(policy)
    assert len(none.outcome) == 0
    empty = FusionTable([Claim("e", "It closed.")], run_pairs([str(folder)]), {}).decide(FusionNliPolicy(**NAMES))
    assert empty.outcome.tolist() == [CODE["insufficient"]]


def test_a_run_without_pairs_answers_nothing(tmp_path: Path) -> None:
    claims = [Claim("a", "It opened.", [Evidence("x", "It opened.")])]
    pairs = run_pairs([str(run(tmp_path / "run", Fusion(FusionPolicy(**NAMES), "r"), [], support))])
    assert len(pairs) == 0
    assert GroundingTable(claims, pairs).decide(GroundingPolicy(**NAMES)).missing.tolist() == [1]
