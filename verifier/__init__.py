"""Claim verification as a batch job: claims and evidence in, decisions with an audit trail out."""

from verifier.records import Claim, Evidence, Verification, VerificationPolicy
from verifier.search.verify import verify_claims

__all__ = ["Claim", "Evidence", "Verification", "VerificationPolicy", "verify_claims"]
