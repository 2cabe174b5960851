"""The recorded answers of the published verifier come out exactly, digests included."""

import json
from typing import Any

import pytest

from tests.shared import SHARED, needs_shared, read_lines
from verifier import Claim, Evidence, VerificationPolicy, verify_claims
from verifier.digests import sha256_json, sha256_text
from verifier.records import GroupScore, Status, Verification, evidence_digest, read_verification
from verifier.scorers import RecordedScorer
from verifier.scorers.recorded import RecordedFileScorer

VECTORS = read_lines("claim-verifier/vectors.jsonl")
GUARDS = read_lines("claim-verifier/guards44/scores.jsonl")
MINIMAL = read_lines("claim-verifier/minimal20/scores.jsonl")


def claim_of(case: dict[str, Any]) -> Claim:
    evidence = [Evidence(**item) for item in case["evidence"]]
    return Claim(case["id"], case["claim"], evidence, case.get("requires_complete_set", False))


def registered(name: str) -> dict[str, Any]:
    protocol: dict[str, Any] = json.loads((SHARED / f"claim-verifier/{name}/registration.json").read_text("utf-8"))
    return protocol["protocol"]


@needs_shared
def test_all_four_hundred_vectors() -> None:
    assert len(VECTORS) == 400
    for vector in VECTORS:
        rows = [
            (score["premise"], vector["claim"].strip(), score["entailment"], score["contradiction"], score["neutral"])
            for score in vector["scores"]
        ]
        policy = VerificationPolicy(**vector["config"])
        (record,) = verify_claims([claim_of(vector)], RecordedScorer(rows), policy)
        assert record.to_dict() == vector["expected"], vector["id"]
        assert read_verification(vector["expected"]) == record


@needs_shared
@pytest.mark.parametrize("batch", [1, 3, 44])
def test_the_published_guard_assay(batch: int) -> None:
    folder = SHARED / "claim-verifier" / "guards44"
    scorer = RecordedFileScorer(str(folder / "scores.jsonl"), registration=str(folder / "registration.json"))
    protocol = registered("guards44")
    policy = VerificationPolicy(**protocol["config"])
    claims = [claim_of(case) for case in protocol["cases"]]
    answers = [
        answer
        for start in range(0, 44, batch)
        for answer in verify_claims(claims[start : start + batch], scorer, policy)
    ]
    ours = [(answer.status, answer.evaluation_id, answer.result_sha256) for answer in answers]
    assert ours == [(line["status"], line["evaluation_id"], line["result_sha256"]) for line in GUARDS]
    expected = [case["expected_status"] for case in protocol["cases"]]
    assert sum(answer.status == status for answer, status in zip(answers, expected, strict=True)) == 43


@needs_shared
def test_digests_of_an_older_schema_recompute() -> None:
    protocol = registered("minimal20")
    defaults = VerificationPolicy()
    configuration = {"model": defaults.model, "revision": defaults.revision, **protocol["config"]}
    for case, line in zip(protocol["cases"], MINIMAL, strict=True):
        claim = claim_of(case)
        ids = {item.reference: str(item.memory_id) for item in claim.evidence}
        groups = tuple(
            GroupScore(tuple(names), tuple(ids[name] for name in names), *triple) for names, triple in line["groups"]
        )
        record = Verification(
            schema_version=1,
            claim=claim.claim,
            status=Status(line["status"]),
            model=defaults.model,
            requested_revision=defaults.revision,
            resolved_revision=defaults.revision,
            model_called=bool(groups),
            configuration_sha256=sha256_json(configuration),
            claim_sha256=sha256_text(claim.claim),
            evidence_sha256=evidence_digest(claim.evidence),
            evaluation_id=line["evaluation_id"],
            result_sha256=line["result_sha256"],
            supporting_group=tuple(line["supporting_group"]),
            refuting_group=tuple(line["refuting_group"]),
            group_scores=groups,
            limitations=tuple(line["limitations"]),
        )
        assert record.computed_evaluation_id() == line["evaluation_id"], line["id"]
        assert record.computed_result_sha256() == line["result_sha256"], line["id"]
        assert read_verification(record.to_dict()) == record
        assert "localized_assessments" not in record.to_dict()
