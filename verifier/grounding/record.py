"""The record of a decision that rests on support alone."""

from collections.abc import Iterable
from typing import Protocol

from verifier.records import (
    Basis,
    Claim,
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
    supporting_group: Iterable[str],
) -> Verification:
    """The sealed record of a claim that is supported by the group, or for which nothing is established.

    A claim about a complete set is incomplete. ``resolved_revision`` is None where no model was asked. There are no
    group scores, because one number is not three probabilities: support stands beside the record.
    """
    decided = Status.SUPPORTED if supported else Status.INSUFFICIENT
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
        supporting_group=tuple(supporting_group) if supported else (),
        supporting_basis=Basis.MODEL_ENTAILMENT if supported else None,
        limitations=(Limitation.COMPLETE_SET,) if claim.requires_complete_set else (),
    )
    return sealed(verification)
