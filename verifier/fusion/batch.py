"""Drafts laid out as arrays: their claims and spans one after the other, each draft's plan with a number."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verifier.fusion.candidates import Pairs, Side, candidate_pairs
from verifier.fusion.config import Formula
from verifier.fusion.features import Indices, TextFeatures
from verifier.fusion.records import Draft, DraftClaim, PlanSpan
from verifier.fusion.scoring import Bools, Matched, PlanUnits, Texts


@dataclass(frozen=True)
class Batch:
    """Several drafts; the plan of draft number k is plan number k.

    Attributes:
        claims, spans: of all drafts, in order.
        marked: of each draft, marker to the positions in the plan of the spans that have it.
        cited: claims and the truth-class spans that they cite, each pair once, by claim and then by span.
        features: of all their texts.
        units: the tokens and numbers of claims, in claims and in spans.
        claim_texts, span_texts: rows of ``features``, and plans.
        claim_bounds, span_bounds: where those of each draft begin and, last, where all end; shape (drafts + 1,).
        is_truth: whether each span is of the truth class.
    """

    claims: Sequence[DraftClaim]
    spans: Sequence[PlanSpan]
    marked: Sequence[dict[str, list[int]]]
    cited: tuple[Indices, Indices]
    features: TextFeatures
    units: PlanUnits
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
        asked = [claim.text for claim in claims]
        features = TextFeatures.of(asked + [span.text for span in spans], asked)
        claim_counts, span_counts = [len(draft.claims) for draft in drafts], [len(draft.spans) for draft in drafts]
        numbers = np.arange(len(drafts))
        claim_texts = Texts(features.rows(asked), np.repeat(numbers, claim_counts))
        span_texts = Texts(features.rows([span.text for span in spans]), np.repeat(numbers, span_counts))
        span_bounds = np.concatenate([[0], np.cumsum(span_counts)])
        marked = [marked_spans(draft.spans) for draft in drafts]
        return cls(
            claims,
            spans,
            marked,
            _cited(claims, claim_texts.plans.tolist(), spans, span_bounds.tolist(), marked),
            features,
            PlanUnits.of(features, claim_texts, span_texts),
            claim_texts,
            span_texts,
            np.concatenate([[0], np.cumsum(claim_counts)]),
            span_bounds,
            np.array([span.span_class == "truth" for span in spans], np.bool_),
        )

    def rows_to_embed(self) -> Indices:
        """The rows of ``features`` whose cosines are needed: of claims and of truth-class spans."""
        return np.union1d(self.claim_texts.rows, self.span_texts.rows[self.is_truth])

    def candidates(self, vectors: NDArray[Any], place: Indices, limit: int) -> Pairs:
        """The candidate pairs of all drafts; the vector of a row of ``features`` is ``vectors[place[row]]``."""
        truth = np.flatnonzero(self.is_truth)
        claims = Side(place[self.claim_texts.rows], self.claim_bounds)
        spans = Side(place[self.span_texts.rows[truth]], np.searchsorted(truth, self.span_bounds))
        cited = self.cited[0], np.searchsorted(truth, self.cited[1])
        pairs = candidate_pairs(vectors, claims, spans, cited, limit)
        return pairs._replace(spans=truth[pairs.spans])

    def scored(self, pairs: Pairs, formula: Formula) -> Matched:
        """The scores of candidate pairs."""
        return self.units.scored(pairs.claims, pairs.spans, pairs.cosine, formula)


def _cited(
    claims: Sequence[DraftClaim],
    plans: Sequence[int],
    spans: Sequence[PlanSpan],
    first_spans: Sequence[int],
    marked: Sequence[dict[str, list[int]]],
) -> tuple[Indices, Indices]:
    """Claims and the truth-class spans that they cite, each pair once, by claim and then by span."""
    pairs = {
        (number, first_spans[plan] + position)
        for number, (claim, plan) in enumerate(zip(claims, plans, strict=True))
        for marker in claim.cited_markers
        for position in marked[plan].get(bare(marker), ())
        if spans[first_spans[plan] + position].span_class == "truth"
    }
    ordered = np.array(sorted(pairs), np.int64).reshape(-1, 2)
    return ordered[:, 0], ordered[:, 1]


def marked_spans(spans: Sequence[PlanSpan]) -> dict[str, list[int]]:
    """Marker to the positions of the spans that have it."""
    marked: dict[str, list[int]] = {}
    for position, span in enumerate(spans):
        for marker in map(bare, span.markers) if span.markers else (f"S{position + 1}",):
            marked.setdefault(marker, []).append(position)
    return marked


def bare(marker: str) -> str:
    """A marker without white space and brackets around it: ``[S1]`` is ``S1``."""
    return marker.strip().removeprefix("[").removesuffix("]").strip()
