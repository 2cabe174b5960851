"""The method ``grounding``: what is asked, and what the support decides."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from verifier.grounding.lattice import POLICIES
from verifier.grounding.method import Grounding
from verifier.grounding.policy import GroundingPolicy
from verifier.protocol import Outcome, Pair, PairError, Part, Scores, run_plan
from verifier.records import Claim, Evidence, Status

Support = Callable[[str, str], float]


def policy(**fields: Any) -> GroundingPolicy:
    return GroundingPolicy(model="m", revision="r", **fields)


def claim(*texts: str, **fields: Any) -> Claim:
    evidence = tuple(Evidence(reference=f"p{number}", text=text) for number, text in enumerate(texts, 1))
    return Claim(**{"claim_id": "c", "claim": "the claim", "evidence": evidence, **fields})


def decide(claims: Sequence[Claim], rules: GroundingPolicy, support: Support) -> tuple[list[Outcome], list[list[Pair]]]:
    rounds: list[list[Pair]] = []

    def score(pairs: Sequence[Pair]) -> Scores:
        rounds.append(list(pairs))
        return Scores.whole(np.array([support(pair.premise, pair.hypothesis) for pair in pairs]))

    return run_plan(Grounding(rules, "resolved").plan(claims), score), rounds


def test_joined_reads_all_evidence_at_once() -> None:
    (outcome,), rounds = decide([claim("one", "two")], policy(), lambda premise, _: 0.75)
    assert [(pair.kind, pair.references, pair.premise) for pair in rounds[0]] == [("joined", ("p1", "p2"), "one\ntwo")]
    record = outcome.verification
    assert record is not None and (record.status, outcome.support) == (Status.SUPPORTED, 0.75)
    assert record.supporting_group == tuple(str(item.memory_id) for item in claim("one", "two").evidence)
    assert record.result_sha256 == record.computed_result_sha256() and record.resolved_revision == "resolved"
    assert outcome.pairs[0].values == {"support": 0.75}


@pytest.mark.parametrize(("comparison", "status"), [(">=", Status.SUPPORTED), (">", Status.INSUFFICIENT)])
def test_the_threshold_itself(comparison: str, status: Status) -> None:
    (outcome,), _ = decide([claim("one")], policy(threshold=0.25, comparison=comparison), lambda *_: 0.25)
    assert outcome.verification is not None and outcome.verification.status == status


def test_each_passage_alone_and_the_best_one_counts() -> None:
    support = {"one": 0.2, "two": 0.9, "three": 0.9}
    asked = claim("one", "two", "three")
    (outcome,), rounds = decide([asked], policy(premise="each"), lambda premise, _: support[premise])
    assert [pair.premise for pair in rounds[0]] == ["one", "two", "three"]
    assert outcome.verification is not None and outcome.support == 0.9
    assert outcome.verification.supporting_group == (str(asked.evidence[1].memory_id),), "the first on ties"


def test_groups_grow_until_one_passes() -> None:
    def support(premise: str, hypothesis: str) -> float:
        return {"a": 0.1, "b": 0.3, "c": 0.2}.get(premise, 0.8 if "[E1] b\n[E2] c" in premise else 0.0)

    asked = claim("a", "b", "c")
    rules = policy(premise="groups", group_candidate_limit=2)
    outcomes, rounds = decide([asked, claim("b", claim_id="d")], rules, support)
    assert outcomes[0].support == 0.8 and outcomes[0].verification is not None
    assert outcomes[0].verification.supporting_group == tuple(str(item.memory_id) for item in asked.evidence[1:])
    assert [pair.premise for pair in rounds[1]] == ["[E1] b\n[E2] c"], "only the two best, in the caller's order"
    assert outcomes[1].support == 0.3 and len(rounds) == 2, "one passage makes no group of two"


def test_a_claim_of_subclaims_is_as_good_as_its_weakest() -> None:
    support = {"x": 0.9, "y": 0.4, "the claim": 0.99}
    asked = claim("one", subclaims=("x", "y"))
    (whole,), _ = decide([asked], policy(), lambda _, hypothesis: support[hypothesis])
    assert whole.support == 0.99
    (atomic, plain), rounds = decide(
        [asked, claim("one", claim_id="d")], policy(atomic=True), lambda _, hypothesis: support[hypothesis]
    )
    assert [pair.hypothesis for pair in rounds[0]] == ["x", "y", "the claim"]
    assert atomic.support == 0.4 and atomic.verification is not None
    assert atomic.verification.status == Status.INSUFFICIENT and plain.support == 0.99


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_the_lattice_combines_segments_and_both_orders(name: str) -> None:
    support = {"Alpha is here.": 0.3, "Beta is there.": 0.6, "Alpha is here.\nBeta is there.": 0.5}
    asked = claim("Alpha is here. Beta is there.")
    rules = policy(premise="lattice", lattice=name)
    (outcome,), rounds = decide([asked], rules, lambda premise, _: support.get(premise, 0.2))
    assert [pair.kind for pair in rounds[0]] == ["segment", "segment", "joined", "reversed"]
    expected = POLICIES[name](np.array(0.6), np.array(0.5), np.array(0.2))
    assert outcome.support == float(expected)


def test_the_lattice_keeps_the_best_two_chunks_in_the_order_of_the_document() -> None:
    sentence = "The {} word stands here " + "and there " * 260 + "at last."
    names = ["first", "second", "third"]
    asked = claim(" ".join(sentence.format(name) for name in names))
    (_,), rounds = decide([asked], policy(premise="lattice"), lambda premise, _: 0.1 if "second" in premise else 0.5)
    assert [pair.kind for pair in rounds[0]] == ["chunk"] * 3
    assert [pair.premise.split()[1] for pair in rounds[1]][:2] == ["first", "third"]


def test_no_evidence_and_complete_sets_ask_no_model() -> None:
    outcomes, rounds = decide([claim(), claim("one", requires_complete_set=True)], policy(), lambda *_: 1.0)
    assert rounds == []
    records = [outcome.verification for outcome in outcomes]
    assert [record and record.status for record in records] == [Status.INSUFFICIENT, Status.INCOMPLETE]
    assert all(record and not record.model_called and record.resolved_revision is None for record in records)


def test_an_unscored_pair_never_supports_and_a_rejected_one_has_no_record() -> None:
    failures = {1: PairError("unscored", "timeout", "t"), 2: PairError("rejected", "pair_too_long", "l")}

    def score(pairs: Sequence[Pair]) -> Scores:
        return replace(Scores.whole(np.array([0.9, np.nan, np.nan])), errors=failures)

    claims = [claim("one", claim_id=name) for name in "abc"]
    good, unscored, rejected = run_plan(Grounding(policy(), "r").plan(claims), score)
    assert good.verification is not None and good.verification.status == Status.SUPPORTED
    assert unscored.verification is not None and unscored.verification.status == Status.INSUFFICIENT
    assert (unscored.error, unscored.support) == (failures[1], None)
    assert (rejected.verification, rejected.error) == (None, failures[2])


def test_windows_and_members_stand_behind_the_pair() -> None:
    parts = (Part("a", 0, 2, 0.3), Part("a", 1, 2, 0.7), Part("b", 0, 1, 0.9))

    def score(pairs: Sequence[Pair]) -> Scores:
        whole = Scores.whole(np.array([0.7]))
        return replace(whole, parts={0: parts}, windows=np.array([2], np.int32), window=np.array([1], np.int32))

    (outcome,) = run_plan(Grounding(policy(), "r").plan([claim("one")]), score)
    rows = [(pair.kind, pair.member, pair.window, pair.windows, pair.values["support"]) for pair in outcome.pairs]
    assert rows == [("joined", None, 1, 2, 0.7), *(("window", p.member, p.window, p.windows, p.support) for p in parts)]
    assert len({pair.premise_sha256 for pair in outcome.pairs}) == 1


@pytest.mark.parametrize(
    "wrong", [{"threshold": 1.5}, {"threshold": float("nan")}, {"comparison": "<"}, {"premise": "all"}, {"beta": 1}]
)
def test_wrong_fields_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        policy(**wrong)
