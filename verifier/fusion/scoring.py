"""Scores of many (claim, span) pairs at once; ``verifier.fusion.lexical`` has the same formulas for one pair.

Claims and spans of several plans are scored together. A plan has a number; a claim is matched with spans of its own
plan alone, and the IDF is that of the plan.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse  # type: ignore[import-untyped]

from verifier.errors import VerificationError
from verifier.fusion.config import Formula
from verifier.fusion.features import Indices, TextFeatures

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# The last bits of a matrix product depend on its shape, those of a power on the library; neither may decide anything.
DECIMALS = 12
_CHUNK = 1 << 15  # pairs whose rows of the sparse matrices are held at a time


@dataclass(frozen=True)
class Texts:
    """Claims, or spans, of several plans: the row of each one's text and the number of its plan, shape (n,).

    They are ordered by plan.
    """

    rows: Indices
    plans: Indices


@dataclass(frozen=True)
class Matched:
    """Scored pairs, by claim and then by span, all of shape (pairs,).

    Attributes:
        claims, spans: positions among the claims and the spans.
        cosine, lexical, gate_tripped, score: see ``verifier.fusion.records.Candidate``.
    """

    claims: Indices
    spans: Indices
    cosine: Floats
    lexical: Floats
    gate_tripped: Bools
    score: Floats

    def bounds(self, claims: int) -> Indices:
        """Where the pairs of each claim begin; the last is where they end: shape (claims + 1,)."""
        return np.searchsorted(self.claims, np.arange(claims + 1))

    def best(self, claims: int) -> Indices:
        """The pair with each claim's largest score, the first span on ties; -1 without pairs: shape (claims,)."""
        bounds = self.bounds(claims)
        some = np.flatnonzero(bounds[1:] > bounds[:-1])
        found = np.full(claims, -1)
        if len(some):
            largest = np.repeat(np.maximum.reduceat(self.score, bounds[some]), np.diff(bounds)[some])
            equal = np.flatnonzero(self.score == largest)
            found[some] = equal[np.searchsorted(equal, bounds[some])]
        return found


def score_pairs(
    features: TextFeatures,
    claims: Texts,
    spans: Texts,
    pair_claims: Indices,
    pair_spans: Indices,
    cosine: Floats,
    formula: Formula,
) -> Matched:
    """Score pairs of positions, ordered by claim and span; ``spans`` are all those of the plans, asked for or not."""
    return PlanUnits.of(features, claims, spans).scored(pair_claims, pair_spans, cosine, formula)


@dataclass(frozen=True)
class PlanUnits:
    """What claims have and what spans have of it: a unit is a token or a number of a claim, in its plan.

    Attributes:
        wanted, held: CSR float64 of shapes (claims, units) and (spans, units): how often each has a token, 1 for a
            number. What no claim of the plan has is left out.
        spans_of_plan: how many spans the unit's plan has, shape (units,).
        is_number: whether the unit is a number, shape (units,).
    """

    wanted: Any
    held: Any
    spans_of_plan: Indices
    is_number: Bools

    @classmethod
    def of(cls, features: TextFeatures, claims: Texts, spans: Texts) -> "PlanUnits":
        """Number the units of several plans, those of a plan in the order of ``features``."""
        wanted, held = features.units[claims.rows], features.units[spans.rows]
        size = max(wanted.shape[1], 1)
        keys = np.repeat(claims.plans, np.diff(wanted.indptr)) * size + wanted.indices
        units, columns = np.unique(keys, return_inverse=True)
        found = _columns_of(held, spans.plans, wanted, claims.plans, columns)
        known = np.flatnonzero(found >= 0)
        ends = np.searchsorted(known, held.indptr)
        in_plan = np.bincount(spans.plans, minlength=int(claims.plans.max(initial=0)) + 1)
        return cls(
            sparse.csr_matrix((wanted.data, columns, wanted.indptr), shape=(len(claims.rows), len(units))),
            sparse.csr_matrix((held.data[known], found[known], ends), shape=(len(spans.rows), len(units))),
            in_plan[units // size],
            units % size >= features.tokens,
        )

    def scored(self, pair_claims: Indices, pair_spans: Indices, cosine: Floats, formula: Formula) -> Matched:
        """Score pairs of positions, ordered by claim and span."""
        lexical, tripped = self.evidence(pair_claims, pair_spans)
        return Matched(pair_claims, pair_spans, cosine, lexical, tripped, fused(cosine, lexical, tripped, formula))

    def evidence(self, pair_claims: Indices, pair_spans: Indices) -> tuple[Floats, Bools]:
        """``lexical_coverage`` of each pair under its ``PlanIdf``, and ``numeric_gate_trips``, both (pairs,)."""
        frequency = np.bincount(self.held.indices, minlength=len(self.is_number))
        idf = np.log(1 + self.spans_of_plan / np.maximum(frequency, 1))
        weights = np.stack([np.where(self.is_number, 0, idf), self.is_number], axis=1)
        whole = (self.wanted @ weights)[pair_claims]
        shared = np.empty(whole.shape)
        for start in range(0, len(shared), _CHUNK):
            part = slice(start, start + _CHUNK)
            shared[part] = self.wanted[pair_claims[part]].minimum(self.held[pair_spans[part]]) @ weights
        covered = np.divide(shared[:, 0], whole[:, 0], out=np.zeros(len(whole)), where=whole[:, 0] > 0)
        return covered, shared[:, 1] < whole[:, 1]


def coverage(features: TextFeatures, claims: Texts, spans: Texts, pair_claims: Indices, pair_spans: Indices) -> Floats:
    """``lexical_coverage`` of each pair under the ``PlanIdf`` of its plan, in [0, 1], shape (pairs,)."""
    return PlanUnits.of(features, claims, spans).evidence(pair_claims, pair_spans)[0]


def gates(features: TextFeatures, claims: Texts, spans: Texts, pair_claims: Indices, pair_spans: Indices) -> Bools:
    """``numeric_gate_trips`` of each pair, shape (pairs,)."""
    return PlanUnits.of(features, claims, spans).evidence(pair_claims, pair_spans)[1]


def fused(cosine: Floats, lexical: Floats, tripped: Bools, formula: Formula) -> Floats:
    """``pair_score`` of each pair, rounded to 12 places, shape (pairs,); NaN raises VerificationError."""
    if np.isnan(cosine).any() or np.isnan(lexical).any():
        raise VerificationError("a cosine or a coverage is not a number, so it cannot be fused")
    near, words = cosine.clip(0, 1), lexical.clip(0, 1)
    scores: Floats
    if formula.beta == 0:
        scores = words
    elif formula.beta == 1:
        scores = near
    else:
        scores = near**formula.beta * words ** (1 - formula.beta)
    capped: Floats = np.where(tripped, scores.clip(max=formula.cap), scores)
    return capped.round(DECIMALS)


def _columns_of(held: Any, held_plans: Indices, wanted: Any, wanted_plans: Indices, columns: Indices) -> Indices:
    """The column of each entry of the spans, -1 where no claim of the plan has it."""
    plans = np.arange(max(held_plans.max(initial=-1), wanted_plans.max(initial=-1)) + 2)
    own = wanted.indptr[np.searchsorted(wanted_plans, plans)].tolist()
    others = held.indptr[np.searchsorted(held_plans, plans)].tolist()
    column_of = np.full(held.shape[1], -1)
    found = np.empty(held.nnz, np.int64)
    for (first, end), (start, stop) in zip(pairwise(own), pairwise(others), strict=True):
        units = wanted.indices[first:end]
        column_of[units] = columns[first:end]
        found[start:stop] = column_of[held.indices[start:stop]]
        column_of[units] = -1
    return found
