"""Beside the published package, on fresh cases: every field and digest of the record is the same."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from tests.search.cases import VOCABULARY, PseudoRandomScorer, generate, triple
from verifier import Claim, Evidence, VerificationPolicy, verify_claims

prme = pytest.importorskip("prme", reason="the optional extra 'peers' is not installed")

CASES = generate(2_000, seed=20261130)


def published_answer(case: dict[str, Any]) -> dict[str, Any]:
    verifier = prme.ClaimVerifier(prme.ClaimVerificationConfig(**case["config"]))
    verifier._ensure_model = lambda: None
    verifier._predict_sync = lambda pairs: [triple(*pair) for pair in pairs]
    evidence = [prme.ClaimEvidence(**item) for item in case["evidence"]]
    answer = verifier.verify(case["claim"], evidence, requires_complete_set=case["requires_complete_set"])
    return asyncio.run(answer).model_dump(mode="json")


def our_answer(case: dict[str, Any]) -> dict[str, Any]:
    policy = VerificationPolicy(**case["config"])
    claim = Claim("c", case["claim"], [Evidence(**item) for item in case["evidence"]], case["requires_complete_set"])
    record = verify_claims([claim], PseudoRandomScorer(policy.model, policy.revision), policy)[0].to_dict()
    return {**record, "resolved_revision": None}  # the peer's model is never loaded, so it resolves none


def test_two_thousand_fresh_cases_agree() -> None:
    different = [case for case in CASES if our_answer(case) != published_answer(case)]
    assert different == []


def test_the_cases_use_the_whole_vocabulary_and_reach_every_decision() -> None:
    texts = "\n".join(text for case in CASES for text in (case["claim"], *(e["text"] for e in case["evidence"])))
    assert [word for word in VOCABULARY if word not in texts] == []
    answers = [our_answer(case) for case in CASES]
    assert set(Counter(answer["status"] for answer in answers)) == {
        *("supported", "refuted", "contested", "insufficient", "incomplete"),
    }
    bases = {answer["supporting_basis"] for answer in answers} | {answer["refuting_basis"] for answer in answers}
    assert len(bases) == 5  # four bases and none
