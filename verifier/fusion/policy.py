"""How the method ``fusion`` decides."""

from pydantic import Field

from verifier.digests import sha256_json
from verifier.fusion.config import Formula
from verifier.records import Text


class FusionPolicy(Formula):
    """The formula and what it is asked of; every field is part of the configuration digest.

    Attributes:
        model, revision: the scorer's.
        max_evidence: evidence items a claim may have.
    """

    model: Text
    revision: Text
    max_evidence: int = Field(64, ge=1, le=256)

    def digest(self) -> str:
        """The configuration sha256 of a record."""
        return sha256_json(self.model_dump(mode="json"))
