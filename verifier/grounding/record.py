"""The record of a decision that rests on support, and perhaps on three labels that confirm it."""

from collections.abc import Iterable
from typing import Protocol

from verifier.records import (
    Basis,
    Claim,
    GroupScore,
    Limitation,
    Status,
    Verification,
    claim_digest,
    evidence_digest,
    sealed,
)


class RequestedModel(Protocol):
    """What a policy says of the scorer that it asks."""

    @property
    def model(self) -> str:
        """Its name."""
        ...

    @property
    def revision(self) -> str:
        """Its requested revision."""
        ...


def support_record(
    claim: Claim,
    policy: RequestedModel,
    configuration_sha256: str,
    resolved_revision: str | None,
    supported: bool,
    group: Iterable[str],
    refuted: bool = False,
    group_scores: tuple[GroupScore, ...] = (),
) -> Verification:
    """The sealed record of a claim that the group supports, or refutes, or for which nothing is established.

    A claim about a complete set is incomplete. ``resolved_revision`` is None where no model was asked. There are
    group scores only where three labels were asked, because one number is not three probabilities: support stands
    beside the record.
    """
    deciding = tuple(group)
    decided = Status.SUPPORTED if supported else Status.REFUTED if refuted else Status.INSUFFICIENT
    verification = Verification(
        claim=claim.claim,
        status=Status.INCOMPLETE if claim.requires_complete_set else decided,
        model=policy.model,
        requested_revision=policy.revision,
        resolved_revision=resolved_revision,
        model_called=resolved_revision is not None,
        configuration_sha256=configuration_sha256,
        claim_sha256=claim_digest(claim),
        evidence_sha256=evidence_digest(claim.evidence),
        supporting_group=deciding if supported else (),
        refuting_group=deciding if refuted else (),
        supporting_basis=Basis.MODEL_ENTAILMENT if supported else None,
        refuting_basis=Basis.MODEL_CONTRADICTION if refuted else None,
        group_scores=group_scores,
        limitations=(Limitation.COMPLETE_SET,) if claim.requires_complete_set else (),
    )
    return sealed(verification)
