"""How support scores become decisions."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from verifier.digests import sha256_json
from verifier.grounding.lattice import POLICIES
from verifier.records import Text

Lattice = Literal[
    "ordered_group",
    "order_robust_group",
    "max_single",
    "max_subset",
    "order_robust_max_subset",
    "single_group_consensus",
]
assert set(Lattice.__args__) == set(POLICIES)  # type: ignore[attr-defined]


class GroundingPolicy(BaseModel):
    """A claim is supported when its support passes ``threshold``; every field is part of the configuration digest.

    Attributes:
        model, revision: the scorer's.
        threshold: in [0, 1].
        comparison: what support does to the threshold to pass it.
        premise: what the scorer reads: ``joined`` (all evidence, one passage a line), ``each`` (every passage alone;
            the best one counts), ``groups`` (passages alone, then combinations of the best candidates, up to the
            first size that passes), or ``lattice`` (single segments and the joined set in both orders, combined as
            ``lattice`` says; see ``verifier.grounding.strategies``).
        joint: what stands between passages under ``joined``: ``newline``, or ``space`` as published for cited answers.
        max_group_size, group_candidate_limit: for ``groups``, as in VerificationPolicy.
        lattice: one of ``verifier.grounding.lattice.POLICIES``.
        atomic: a claim with subclaims is supported when all of them are, and counts with its weakest one.
        max_evidence: evidence items a claim may have.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    model: Text
    revision: Text
    threshold: float = Field(0.5, ge=0, le=1)
    comparison: Literal[">=", ">"] = ">="
    premise: Literal["joined", "each", "groups", "lattice"] = "joined"
    joint: Literal["newline", "space"] = "newline"
    max_group_size: int = Field(2, ge=1, le=3)
    group_candidate_limit: int = Field(8, ge=2, le=16)
    lattice: Lattice = "order_robust_group"
    atomic: bool = False
    max_evidence: int = Field(64, ge=1, le=256)

    def passes(self, support: float) -> bool:
        """Whether this much support makes a claim supported."""
        return support > self.threshold if self.comparison == ">" else support >= self.threshold

    def digest(self) -> str:
        """The configuration sha256 of a record."""
        return sha256_json(self.model_dump(mode="json"))
