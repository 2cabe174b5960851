"""What an exhaustive run asks beyond its own policy, and that its records do not show it."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hydra import compose, initialize_config_module

from jobs.verify import plan_of
from tests.search.cases import PseudoRandomScorer, generate
from tests.sweep.corpora import ALL, case_claim, first_missing, random_policies, recorded_of, run_of
from verifier import Claim, Evidence, VerificationPolicy
from verifier.errors import ConfigurationError
from verifier.protocol import PairError, Scores, run_plan
from verifier.search.exhaustive import ExhaustiveGroups, SearchRange
from verifier.search.groups import EvidenceGroups

POLICY = VerificationPolicy()
WIDE = [case for case in generate(250, seed=22) if len(case["evidence"]) > 3]
CLAIMS = [case_claim(case, str(number)) for number, case in enumerate([*generate(60, seed=21), *WIDE])]


class Rounded(PseudoRandomScorer):
    """Probabilities of one decimal, so that some are exactly 1 and many are equal."""

    def score(self, pairs: list[tuple[str, str]]) -> Any:
        values = super().score(pairs)
        sharp = np.where(values >= 0.9, 1.0, np.round(values, 1))
        return np.where(values.max(axis=1, keepdims=True) >= 0.9, np.round(sharp), sharp)


def lacking(recorded: Any, policy: VerificationPolicy) -> dict[int, int]:
    known = lambda pair: recorded.get((pair.premise, pair.hypothesis))  # noqa: E731
    return first_missing(EvidenceGroups(policy, "r").plan(CLAIMS), known, 3)


def test_records_are_those_of_a_run_that_is_not_exhaustive() -> None:
    scorer = PseudoRandomScorer(POLICY.model, POLICY.revision)
    for policy in (POLICY, *random_policies(2, seed=1)):
        plain = run_of(CLAIMS, scorer, None, policy)
        further = run_of(CLAIMS, scorer, ALL, policy)
        assert [one.verification for one in further] == [one.verification for one in plain]
        assert [one.pairs[: len(two.pairs)] for one, two in zip(further, plain, strict=True)] == [
            one.pairs for one in plain
        ]
        assert sum(len(one.pairs) for one in further) > sum(len(one.pairs) for one in plain)
        assert run_of(CLAIMS, scorer, {**ALL, "exhaustive": False}, policy) == plain


def test_no_further_pair_was_asked_before() -> None:
    scorer = PseudoRandomScorer(POLICY.model, POLICY.revision)
    for plain, outcome in zip(run_of(CLAIMS, scorer), run_of(CLAIMS, scorer, ALL), strict=True):
        further = [pair.premise for pair in outcome.pairs[len(plain.pairs) :]]
        assert len(set(further)) == len(further)
        assert not set(further) & {pair.premise for pair in plain.pairs}


@pytest.mark.parametrize("scorer", [PseudoRandomScorer, Rounded])
def test_any_policy_of_the_range_finds_all_its_pairs(scorer: Any) -> None:
    recorded = recorded_of(run_of(CLAIMS, scorer(POLICY.model, POLICY.revision), ALL))
    strictest = {"entailment_threshold": 1, "contradiction_threshold": 1, "max_group_size": 3}
    narrow = [VerificationPolicy(**strictest, group_candidate_limit=limit) for limit in range(2, 7)]
    for policy in (*narrow, *random_policies(15, seed=11)):
        assert lacking(recorded, policy) == {}


def test_a_smaller_range_asks_less_and_only_policies_within_it_are_answered() -> None:
    scorer = PseudoRandomScorer(POLICY.model, POLICY.revision)
    small = {"exhaustive": True, "max_group_size": 2, "group_candidate_limit": 3}
    own = VerificationPolicy(max_group_size=1)
    some, every = (recorded_of(run_of(CLAIMS, scorer, search, own)) for search in (small, ALL))
    assert some.keys() < every.keys()
    rng = random.Random(3)
    for policy in random_policies(20, seed=12):
        within = policy.model_copy(
            update={"max_group_size": rng.choice([1, 2]), "group_candidate_limit": rng.choice([2, 3])}
        )
        assert lacking(some, within) == {}
    beyond = VerificationPolicy(entailment_threshold=1, contradiction_threshold=1, max_group_size=3)
    assert lacking(some, beyond)


def test_a_claim_that_every_policy_decides_at_once_costs_nothing_more() -> None:
    sure = Claim("c", "The valve opened.", [Evidence("a", "The valve opened."), Evidence("b", "It was May.")])

    class Sure(PseudoRandomScorer):
        def score(self, pairs: list[tuple[str, str]]) -> Any:
            return np.array([(1.0, 0.0, 0.0)] * len(pairs))

    (outcome,) = run_of([sure], Sure(POLICY.model, POLICY.revision), ALL)
    assert len(outcome.pairs) == 2


def test_a_further_pair_without_a_score_costs_the_claim_nothing() -> None:
    scorer = PseudoRandomScorer(POLICY.model, POLICY.revision)
    plain = run_of(CLAIMS, scorer)
    asked = [0]

    def score(pairs: Any) -> Scores:
        asked[0] += 1
        values = scorer.score([(pair.premise, pair.hypothesis) for pair in pairs])
        whole = Scores.whole(values)
        own = asked[0] <= 4  # singles, their rechecks, pairs of passages, their rechecks
        errors = {} if own else {k: PairError("unscored", "failure", "") for k in range(0, len(pairs), 2)}
        return Scores(values, whole.windows, whole.window, whole.truncated, errors)

    outcomes = run_plan(ExhaustiveGroups(POLICY, scorer.revision, ALL).plan(CLAIMS), score)
    assert [(one.verification, one.error) for one in outcomes] == [(one.verification, None) for one in plain]
    assert asked[0] > 4


def test_a_range_out_of_bounds_is_refused() -> None:
    for fields in ({"max_group_size": 4}, {"group_candidate_limit": 1}):
        with pytest.raises(ConfigurationError, match=next(iter(fields))):
            SearchRange(**fields)
    with pytest.raises(ConfigurationError, match="candidates is no field of search"):
        ExhaustiveGroups(POLICY, "r", {"candidates": 3})


def plan(tmp_path: Path, *overrides: str) -> Any:
    with initialize_config_module("conf", version_base=None):
        return plan_of(compose("verify", [f"output.dir={tmp_path / 'run'}", "scorer=words", *overrides]))


def test_the_configuration_reaches_the_method(tmp_path: Path) -> None:
    made = plan(tmp_path, "search.exhaustive=true", "search.group_candidate_limit=4")
    method = made.method(made.policy, "r")
    assert method.range == SearchRange(True, 3, 4)
    assert made.method_name == "groups"
    usual = plan(tmp_path)
    assert not usual.method(usual.policy, "r").range.exhaustive
    with pytest.raises(ConfigurationError, match=r"search\.max_group_size is 9"):
        plan(tmp_path, "search.max_group_size=9")
    assert plan(tmp_path, "method=grounding").method_name == "grounding"


def test_larger_groups_are_those_of_the_candidates_before_one_that_always_decides() -> None:
    names = "abcd"
    claim = Claim("c", "The valve opened.", [Evidence(name, f"Text {name}.") for name in names])

    class Scripted(PseudoRandomScorer):
        def score(self, pairs: list[tuple[str, str]]) -> Any:
            rows = []
            for premise, _ in pairs:
                held = "".join(name for name in names if f"Text {name}." in premise)
                alone = 0.4 - 0.1 * names.index(held) if len(held) == 1 else 0.1  # ranked in order
                rows.append((1.0, 0.0, 0.0) if held == "ad" else (alone, 0.0, 1 - alone))
            return np.array(rows)

    (outcome,) = run_of([claim], Scripted(POLICY.model, POLICY.revision), ALL)
    assert [pair.references for pair in outcome.pairs if len(pair.references) == 3] == [("a", "b", "c")]
