"""Drafts laid out as arrays: their claims and spans one after the other, each draft's plan with a number."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from verifier.fusion.features import Indices, TextFeatures
from verifier.fusion.records import Draft, DraftClaim, PlanSpan
from verifier.fusion.scoring import Bools, Floats, Texts, cosines, top_candidates


class Pairs(NamedTuple):
    """Candidate pairs by claim and then by span, as positions in the batch; all of shape (pairs,)."""

    claims: Indices
    spans: Indices
    cosine: Floats
    cited: Bools


@dataclass(frozen=True)
class Batch:
    """Several drafts; the plan of draft number k is plan number k.

    Attributes:
        claims, spans: of all drafts, in order.
        marked: of each draft, marker to the positions in the plan of the spans that have it.
        features: of all their texts.
        claim_texts, span_texts: rows of ``features``, and plans.
        claim_bounds, span_bounds: where those of each draft begin and, last, where all end; shape (drafts + 1,).
        is_truth: whether each span is of the truth class.
    """

    claims: Sequence[DraftClaim]
    spans: Sequence[PlanSpan]
    marked: Sequence[dict[str, list[int]]]
    features: TextFeatures
    claim_texts: Texts
    span_texts: Texts
    claim_bounds: Indices
    span_bounds: Indices
    is_truth: Bools

    @classmethod
    def of(cls, drafts: Sequence[Draft]) -> "Batch":
        """Read every distinct text of the drafts once."""
        claims = [claim for draft in drafts for claim in draft.claims]
        spans = [span for draft in drafts for span in draft.spans]
        features = TextFeatures.of([claim.text for claim in claims] + [span.text for span in spans])
        claim_counts, span_counts = [len(draft.claims) for draft in drafts], [len(draft.spans) for draft in drafts]
        numbers = np.arange(len(drafts))
        return cls(
            claims,
            spans,
            [marked_spans(draft.spans) for draft in drafts],
            features,
            Texts(features.rows([claim.text for claim in claims]), np.repeat(numbers, claim_counts)),
            Texts(features.rows([span.text for span in spans]), np.repeat(numbers, span_counts)),
            np.concatenate([[0], np.cumsum(claim_counts)]),
            np.concatenate([[0], np.cumsum(span_counts)]),
            np.array([span.span_class == "truth" for span in spans], np.bool_),
        )

    def rows_to_embed(self) -> Indices:
        """The rows of ``features`` whose cosines are needed: of claims and of truth-class spans."""
        return np.union1d(self.claim_texts.rows, self.span_texts.rows[self.is_truth])

    def candidates(self, vectors: NDArray[Any], place: Indices, limit: int) -> Pairs:
        """The candidate pairs of all drafts; the vector of a row of ``features`` is ``vectors[place[row]]``."""
        drafts = range(len(self.claim_bounds) - 1)
        return Pairs(
            *(
                np.concatenate(part)
                for part in zip(*(self._of_draft(number, vectors, place, limit) for number in drafts), strict=True)
            )
        )

    def _of_draft(self, number: int, vectors: NDArray[Any], place: Indices, limit: int) -> Pairs:
        first_claim, end_claim = self.claim_bounds[number : number + 2].tolist()
        first_span, end_span = self.span_bounds[number : number + 2].tolist()
        truth = first_span + np.flatnonzero(self.is_truth[first_span:end_span])
        # One column a distinct text, so that equal spans tie exactly.
        distinct, column = np.unique(self.span_texts.rows[truth], return_inverse=True)
        own = self.claim_texts.rows[first_claim:end_claim]
        near = cosines(vectors[place[own]], vectors[place[distinct]])[:, column]
        cited = np.zeros((end_claim - first_claim, end_span - first_span), np.bool_)
        for row, claim in enumerate(self.claims[first_claim:end_claim]):
            for marker in claim.cited_markers:
                cited[row, self.marked[number].get(bare(marker), [])] = True
        cited = cited[:, truth - first_span]
        rows, columns = top_candidates(near, cited, limit)
        return Pairs(rows + first_claim, truth[columns], near[rows, columns], cited[rows, columns])


def marked_spans(spans: Sequence[PlanSpan]) -> dict[str, list[int]]:
    """Marker to the positions of the spans that have it."""
    marked: dict[str, list[int]] = {}
    for position, span in enumerate(spans):
        for marker in span.markers or (f"S{position + 1}",):
            marked.setdefault(bare(marker), []).append(position)
    return marked


def bare(marker: str) -> str:
    """A marker without white space and brackets around it: ``[S1]`` is ``S1``."""
    return marker.strip().removeprefix("[").removesuffix("]").strip()
