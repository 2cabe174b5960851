"""Receipts: which claims of an answer the evidence supports, contradicts, or says nothing about."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypedDict

from verifier.factuality.corpus import Item
from verifier.factuality.corroboration import Corroboration

PLACES = 4


class Entry(TypedDict):
    """A piece of evidence that was cited: its id, its kind, and its cosine with the claim, rounded to 4 places."""

    id: str
    kind: str
    score: float


@dataclass(frozen=True)
class ClaimVerdict:
    """What the evidence says about one claim.

    Attributes:
        claim: its text.
        supported: whether some piece of evidence supports it.
        score: the best cosine that was retrieved for it, whether or not it counted; 0 when nothing was.
        citations: the evidence that supports it.
        contradicted: whether some piece of evidence contradicts it; with conflicting evidence it is both.
        contradictions: the evidence that contradicts it.
    """

    claim: str
    supported: bool
    score: float
    citations: list[Entry] = field(default_factory=list)
    contradicted: bool = False
    contradictions: list[Entry] = field(default_factory=list)


@dataclass(frozen=True)
class FactualityReceipt:
    """An answer and the verdicts on its claims.

    >>> receipt = FactualityReceipt("…", [ClaimVerdict("a b", True, 0.9), ClaimVerdict("c d", False, 0.1)])
    >>> receipt.grounded_fraction, receipt.is_grounded(), receipt.is_grounded(0.5)
    (0.5, False, True)
    >>> nothing_said = FactualityReceipt("", [])
    >>> nothing_said.grounded_fraction, nothing_said.is_grounded(0.0)
    (None, False)
    """

    answer: str
    verdicts: list[ClaimVerdict] = field(default_factory=list)

    @property
    def grounded_fraction(self) -> float | None:
        """The fraction of claims that are supported, in [0, 1] to 4 places; None (unknown) without claims."""
        if not self.verdicts:
            return None
        return round(sum(verdict.supported for verdict in self.verdicts) / len(self.verdicts), PLACES)

    def unsupported(self) -> list[ClaimVerdict]:
        """The claims that no evidence supports."""
        return [verdict for verdict in self.verdicts if not verdict.supported]

    def contradicted(self) -> list[ClaimVerdict]:
        """The claims that some evidence contradicts."""
        return [verdict for verdict in self.verdicts if verdict.contradicted]

    def is_grounded(self, threshold: float = 1.0) -> bool:
        """Whether ``grounded_fraction``, as rounded, reaches the threshold; never for an answer without claims."""
        fraction = self.grounded_fraction
        return fraction is not None and fraction >= threshold

    def as_dict(self) -> dict[str, Any]:
        """The receipt as JSON values, scores to 4 places."""
        return {
            "grounded_fraction": self.grounded_fraction,
            "n_claims": len(self.verdicts),
            "n_unsupported": len(self.unsupported()),
            "n_contradicted": len(self.contradicted()),
            "claims": [_plain(verdict) for verdict in self.verdicts],
        }


def claim_verdict(claim: str, score: float, judged: Iterable[tuple[Item, float, Corroboration]]) -> ClaimVerdict:
    """The verdict on a claim whose best retrieval score is ``score``, from its evidence as it was judged."""
    entries: dict[Corroboration, list[Entry]] = {kind: [] for kind in Corroboration}
    for item, cosine, corroboration in judged:
        entries[corroboration].append({"id": item.id, "kind": item.kind, "score": round(cosine, PLACES)})
    citations, contradictions = entries[Corroboration.SUPPORTED], entries[Corroboration.CONTRADICTED]
    return ClaimVerdict(claim, bool(citations), score, citations, bool(contradictions), contradictions)


def _plain(verdict: ClaimVerdict) -> dict[str, Any]:
    return {
        "claim": verdict.claim,
        "supported": verdict.supported,
        "contradicted": verdict.contradicted,
        "score": round(verdict.score, PLACES),
        "citations": [dict(entry) for entry in verdict.citations],
        "contradictions": [dict(entry) for entry in verdict.contradictions],
    }
