"""Published records of schema 1: read back whole, with digests that can be worked out again."""

from collections.abc import Mapping, Sequence
from typing import Any

from verifier.assays.cases import CaseResult, Score
from verifier.digests import sha256_json, sha256_text
from verifier.errors import ConfigurationError
from verifier.records import Claim, GroupScore, Status, Verification, claim_digest, evidence_digest
from verifier.search.premises import premise


def schema1_record(claim: Claim, line: Mapping[str, Any], configuration: Mapping[str, Any]) -> Verification:
    """The schema-1 record of a recorded case.

    Args:
        claim: the registered case.
        line: its line of the recorded scores: status, groups, limitations, supporting and refuting group, digests.
        configuration: model, revision and the registered policy, as they were, which is what its digest covers.
    """
    ids = {item.reference: str(item.memory_id) for item in claim.evidence}
    groups = tuple(
        GroupScore(tuple(names), tuple(ids[name] for name in names), *values) for names, values in line["groups"]
    )
    return Verification(
        schema_version=1,
        claim=claim.claim,
        status=Status(line["status"]),
        model=configuration["model"],
        requested_revision=configuration["revision"],
        resolved_revision=configuration["revision"] if groups else None,
        model_called=bool(groups),
        configuration_sha256=sha256_json(dict(configuration)),
        claim_sha256=claim_digest(claim),
        evidence_sha256=evidence_digest(claim.evidence),
        evaluation_id=line["evaluation_id"],
        result_sha256=line["result_sha256"],
        supporting_group=tuple(line["supporting_group"]),
        refuting_group=tuple(line["refuting_group"]),
        group_scores=groups,
        limitations=tuple(line["limitations"]),
    )


def schema1_cases(
    claims: Sequence[Claim], lines: Mapping[str, Mapping[str, Any]], configuration: Mapping[str, Any]
) -> list[CaseResult]:
    """The recorded cases as they were decided then, with digests worked out anew from the record."""
    try:
        return [_case(claim, schema1_record(claim, lines[claim.claim_id], configuration)) for claim in claims]
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigurationError(f"the recorded scores are no schema-1 record of these cases: {error}") from error


def _case(claim: Claim, record: Verification) -> CaseResult:
    texts = {item.reference: item.text for item in claim.evidence}
    hypothesis = sha256_text(claim.claim)
    return CaseResult(
        case_id=claim.claim_id,
        label=claim.label,
        category=claim.category,
        status=record.status,
        model_called=record.model_called,
        evaluation_id=record.computed_evaluation_id(),
        result_sha256=record.computed_result_sha256(),
        scores=tuple(
            Score(
                kind="single" if len(group.references) == 1 else "group",
                references=group.references,
                premise_sha256=sha256_text(premise([texts[name] for name in group.references])),
                hypothesis_sha256=hypothesis,
                values={name: getattr(group, name) for name in ("entailment", "contradiction", "neutral")},
            )
            for group in record.group_scores
        ),
    )
