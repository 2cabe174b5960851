"""Claims with scripted scores for the tests of the sweep."""

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.search.cases import PseudoRandomScorer, triple
from tests.shared import SHARED, read_lines
from verifier.digests import sha256_text
from verifier.protocol import Outcome, Pair, PairError, Scores, run_plan
from verifier.records import Claim, Evidence, VerificationPolicy
from verifier.search.exhaustive import ExhaustiveGroups
from verifier.sweep.scores import Labels

Recorded = dict[tuple[str, str], tuple[float, float, float]]
ALL = {"exhaustive": True, "max_group_size": 3, "group_candidate_limit": 16}


def case_claim(case: dict[str, Any], name: str) -> Claim:
    evidence = [Evidence(**item) for item in case["evidence"]]
    return Claim(name, case["claim"], evidence, case.get("requires_complete_set", False))


def shared_claims() -> tuple[list[Claim], Recorded]:
    """guards44 and 300 of the vectors, with the scores that were recorded of them."""
    folder = SHARED / "claim-verifier" / "guards44"
    protocol = json.loads((folder / "registration.json").read_text("utf-8"))["protocol"]
    claims = [case_claim(case, f"g-{case['id']}") for case in protocol["cases"]]
    recorded: Recorded = {}
    for vector in read_lines("claim-verifier/vectors.jsonl")[:300]:
        claims.append(case_claim(vector, f"v-{vector['id']}"))
        for score in vector["scores"]:
            key = (score["premise"], claims[-1].claim)
            recorded.setdefault(key, (score["entailment"], score["contradiction"], score["neutral"]))
    return claims, recorded


class FilledScorer:
    """What was recorded, and for every other pair what a script says of its texts."""

    def __init__(self, recorded: Recorded | None = None) -> None:
        self.recorded = recorded or {}
        self.model, self.revision = VerificationPolicy().model, VerificationPolicy().revision

    def score(self, pairs: Sequence[tuple[str, str]]) -> Any:
        return np.array([self.recorded.get(pair) or triple(*pair) for pair in pairs]).reshape(len(pairs), 3)


def run_of(
    claims: Sequence[Claim], scorer: Any, search: dict[str, Any] | None = None, policy: VerificationPolicy | None = None
) -> list[Outcome]:
    method = ExhaustiveGroups(policy or VerificationPolicy(), scorer.revision, search)
    return run_plan(
        method.plan(claims), lambda pairs: Scores.whole(scorer.score([(p.premise, p.hypothesis) for p in pairs]))
    )


def recorded_of(outcomes: Sequence[Outcome]) -> Recorded:
    recorded: Recorded = {}
    for outcome in outcomes:
        for pair in outcome.pairs:
            values = (pair.values["entailment"], pair.values["contradiction"], pair.values["neutral"])
            recorded.setdefault((pair.premise, pair.hypothesis), values)
    return recorded


def labels_of(recorded: Recorded) -> Labels:
    return {(sha256_text(p), sha256_text(h)): values[:2] for (p, h), values in recorded.items()}


def random_policies(count: int, seed: int, **fixed: Any) -> list[VerificationPolicy]:
    rng = random.Random(seed)
    return [
        VerificationPolicy(
            **{
                "entailment_threshold": rng.choice([0.5, 0.65, 0.8, 0.95, 1.0, round(rng.uniform(0.5, 1), 3)]),
                "contradiction_threshold": rng.choice([0.5, 0.65, 0.8, 0.95, 1.0, round(rng.uniform(0.5, 1), 3)]),
                "max_group_size": rng.choice([1, 2, 3]),
                "group_candidate_limit": rng.choice([2, 3, 4, 8, 16]),
                "entailment_policy": rng.choice(["speech_act_guarded", "model_only"]),
                "refutation_policy": rng.choice(["explicit_corroboration", "model_only"]),
                **fixed,
            }
        )
        for _ in range(count)
    ]


def first_missing(plan: Any, known: Callable[[Pair], Any], columns: int) -> dict[int, int]:
    """Drive a plan on what is known: row to its distinct pairs without a score in the first round that has some."""
    found: dict[int, set[tuple[str, str]]] = {}

    def score(pairs: Sequence[Pair]) -> Scores:
        lacking: dict[int, set[tuple[str, str]]] = {}
        errors = {}
        values = np.full((len(pairs), columns) if columns > 1 else len(pairs), np.nan)
        for index, pair in enumerate(pairs):
            value = known(pair)
            if value is None:
                errors[index] = PairError("unscored", "missing_score", "none")
                lacking.setdefault(pair.row, set()).add((pair.premise, pair.hypothesis))
            else:
                values[index] = value
        for row, gaps in lacking.items():
            found.setdefault(row, gaps)
        whole = Scores.whole(values)
        return Scores(values, whole.windows, whole.window, whole.truncated, errors)

    run_plan(plan, score)
    return {row: len(gaps) for row, gaps in found.items()}


__all__ = ["PseudoRandomScorer"]
