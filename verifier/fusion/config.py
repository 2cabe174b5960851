"""What the fusion matcher can be told, with the defaults of SPEC.md."""

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from verifier.fusion.lexical import DEFAULT_BETA, GATED_SCORE_CAP
from verifier.fusion.verdicts import PARTIAL_FROM, SUPPORTED_FROM, Verdict, band


class Formula(BaseModel):
    """How cosine and words become a score, and a score a band.

    Attributes:
        beta: weight of the cosine in [0, 1]; the words have the rest.
        candidates_m: spans with the largest cosines that a claim is matched with, beside those that it cites.
        supported, partial: scores in [0, 1] from which these bands begin; ``partial`` is not above ``supported``.
        cap: the most a pair can score, in [0, 1], where a number of the claim is missing in the span.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    beta: float = Field(DEFAULT_BETA, ge=0, le=1)
    candidates_m: int = Field(8, ge=1)
    supported: float = Field(SUPPORTED_FROM, ge=0, le=1)
    partial: float = Field(PARTIAL_FROM, ge=0, le=1)
    cap: float = Field(GATED_SCORE_CAP, ge=0, le=1)

    @model_validator(mode="after")
    def _bands_in_order(self) -> Self:
        if self.partial > self.supported:
            raise ValueError(f"partial is {self.partial}, above supported, which is {self.supported}")
        return self

    def band(self, score: float) -> Verdict:
        """The band of a score under these thresholds."""
        return band(score, self.supported, self.partial)


class FusionConfig(Formula):
    """A formula, and what becomes of unsupported claims: ``flag`` leaves the draft, ``redact`` cuts them out."""

    policy: Literal["flag", "redact"] = "flag"
