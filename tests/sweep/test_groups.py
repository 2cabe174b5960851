"""Swept decisions of the method ``groups`` beside fresh ones from the same scores."""

from collections import Counter

import pytest

from tests.search.cases import generate
from tests.shared import needs_shared
from tests.sweep.corpora import (
    ALL,
    FilledScorer,
    Recorded,
    case_claim,
    first_missing,
    labels_of,
    random_policies,
    recorded_of,
    run_of,
    shared_claims,
)
from verifier import Claim, Evidence, VerificationPolicy, verify_claims
from verifier.records import Verification
from verifier.scorers import RecordedScorer
from verifier.search.groups import EvidenceGroups
from verifier.sweep.decisions import Decision
from verifier.sweep.groups import GroupTable


def decision_of(record: Verification) -> Decision:
    return Decision(
        record.status.value,
        record.supporting_group,
        record.refuting_group,
        record.supporting_basis and record.supporting_basis.value,
        record.refuting_basis and record.refuting_basis.value,
        tuple(limitation.value for limitation in record.limitations),
    )


def compare(claims: list[Claim], recorded: Recorded, policies: list[VerificationPolicy]) -> Counter[str]:
    """Every swept decision is that of ``verify_claims``; counts of the statuses."""
    table = GroupTable(claims, labels_of(recorded), policies)
    scorer = RecordedScorer((*pair, *values) for pair, values in recorded.items())
    seen = Counter[str]()
    for policy in policies:
        decisions = table.decide(policy)
        assert not decisions.missing.any()
        for index, record in enumerate(verify_claims(claims, scorer, policy)):
            assert decisions.decision(index) == decision_of(record), (policy, record)
            seen[f"{record.status} {record.supporting_basis} {record.refuting_basis} {record.limitations}"] += 1
    return seen


@needs_shared
def test_two_hundred_random_policies_over_guards_and_vectors() -> None:
    claims, recorded = shared_claims()
    assert len(claims) == 344
    scored = recorded_of(run_of(claims, FilledScorer(recorded), ALL))
    seen = compare(claims, scored, random_policies(200, seed=5))
    assert len({kind.split()[0] for kind in seen}) == 5
    assert len(seen) > 20


def test_random_policies_over_cases_with_every_cue() -> None:
    claims = [case_claim(case, str(number)) for number, case in enumerate(generate(150, seed=3))]
    seen = compare(claims, recorded_of(run_of(claims, FilledScorer(), ALL)), random_policies(30, seed=4))
    assert len(seen) > 20


def test_a_run_that_was_not_exhaustive_counts_what_lacks_and_decides_the_rest() -> None:
    claims = [case_claim(case, str(number)) for number, case in enumerate(generate(200, seed=8))]
    own = VerificationPolicy(max_group_size=2, group_candidate_limit=2)
    recorded = recorded_of(run_of(claims, FilledScorer(), None, own))
    policies = [own, *random_policies(20, seed=9)]
    table = GroupTable(claims, labels_of(recorded), policies)
    lacking = 0
    for policy in policies:
        decisions = table.decide(policy)
        missing = first_missing(
            EvidenceGroups(policy, "r").plan(claims), lambda pair: recorded.get((pair.premise, pair.hypothesis)), 3
        )
        assert {row: count for row, count in enumerate(decisions.missing.tolist()) if count} == missing
        known = [index for index in range(len(claims)) if index not in missing]
        records = verify_claims(
            [claims[index] for index in known], RecordedScorer((*p, *v) for p, v in recorded.items()), policy
        )
        assert [decisions.decision(index) for index in known] == [decision_of(record) for record in records]
        assert {decisions.decision(index) for index in missing} <= {Decision("unscored")}
        lacking += len(missing)
    assert table.decide(own).missing.sum() == 0
    assert lacking > 50


def test_equal_passages_are_one_missing_pair_and_ties_go_to_the_smaller_ids() -> None:
    ids = ["00000000-0000-4000-8000-00000000000" + end for end in "31"]
    evidence = [Evidence("a", "It opened.", ids[0]), Evidence("b", "It opened.", ids[1])]
    claim = Claim("c", "The valve opened.", evidence)
    assert GroupTable([claim], {}, [VerificationPolicy()]).decide(VerificationPolicy()).missing.tolist() == [1]
    labels = labels_of({("It opened.", claim.claim): (0.9, 0.05, 0.05)})
    decision = GroupTable([claim], labels, [VerificationPolicy()]).decide(VerificationPolicy()).decision(0)
    assert decision.supporting_group == (ids[1],)


def test_a_claim_with_more_evidence_than_a_policy_allows_is_rejected_there() -> None:
    claim = Claim("c", "It opened.", [Evidence(name, name) for name in "abc"])
    policy = VerificationPolicy(max_evidence=2)
    decisions = GroupTable([claim], {}, [policy]).decide(policy)
    assert (decisions.decision(0), decisions.missing.tolist()) == (Decision("rejected"), [0])


def test_a_policy_beyond_the_table_is_refused() -> None:
    table = GroupTable([], {}, [VerificationPolicy(max_group_size=2)])
    assert len(table.decide(VerificationPolicy()).outcome) == 0
    with pytest.raises(ValueError, match="not enough"):
        table.decide(VerificationPolicy(max_group_size=3))
