"""Scores of many (claim, span) pairs at once; ``verifier.fusion.lexical`` has the same formulas for one pair.

Claims and spans of several plans are scored together. A plan has a number; a claim is matched with spans of its own
plan alone, and the IDF is that of the plan.
"""

from dataclasses import dataclass
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
    """Claims, or spans, of several plans: the row of each one's text and the number of its plan, shape (n,)."""

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
        order = np.lexsort((self.spans, -self.score, self.claims))
        bounds = self.bounds(claims)
        found = np.full(claims, -1)
        some = bounds[1:] > bounds[:-1]
        found[some] = order[bounds[:-1][some]]
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
    lexical = coverage(features, claims, spans, pair_claims, pair_spans)
    tripped = gates(features, claims, spans, pair_claims, pair_spans)
    return Matched(pair_claims, pair_spans, cosine, lexical, tripped, fused(cosine, lexical, tripped, formula))


def coverage(features: TextFeatures, claims: Texts, spans: Texts, pair_claims: Indices, pair_spans: Indices) -> Floats:
    """``lexical_coverage`` of each pair under the ``PlanIdf`` of its plan, in [0, 1], shape (pairs,).

    Only tokens of claims count, so spans are reduced to them: columns are (plan, token) units that a claim has.
    """
    size = features.tokens.shape[1]
    wanted, keys = _keyed(features.tokens, claims, size)
    units, columns = np.unique(keys, return_inverse=True)
    held, keys = _keyed(features.tokens, spans, size)
    found = np.searchsorted(units, keys)
    known = found < len(units)
    known[known] = units[found[known]] == keys[known]
    counts_wanted = sparse.csr_matrix((wanted.data, columns, wanted.indptr), shape=(len(claims.rows), len(units)))
    owners = np.repeat(np.arange(len(spans.rows)), np.diff(held.indptr))[known]
    counts_held = sparse.csr_matrix((held.data[known], (owners, found[known])), shape=(len(spans.rows), len(units)))
    frequency = np.bincount(found[known], minlength=len(units))
    in_plan = np.bincount(spans.plans, minlength=int(claims.plans.max(initial=0)) + 1)
    idf = np.log(1 + in_plan[units // max(size, 1)] / np.maximum(frequency, 1))
    whole = (counts_wanted @ idf)[pair_claims]
    shared = _by_chunk(
        lambda one, two: counts_wanted[one].minimum(counts_held[two]) @ idf, pair_claims, pair_spans, np.float64
    )
    covered: Floats = np.divide(shared, whole, out=np.zeros(len(whole)), where=whole > 0)
    return covered


def gates(features: TextFeatures, claims: Texts, spans: Texts, pair_claims: Indices, pair_spans: Indices) -> Bools:
    """``numeric_gate_trips`` of each pair, shape (pairs,)."""
    wanted = np.diff(features.atoms.indptr)[claims.rows[pair_claims]]
    tripped = np.zeros(len(pair_claims), np.bool_)
    asked = np.flatnonzero(wanted)
    shared = _by_chunk(
        lambda one, two: np.diff(features.atoms[one].multiply(features.atoms[two]).tocsr().indptr),
        claims.rows[pair_claims[asked]],
        spans.rows[pair_spans[asked]],
        np.int64,
    )
    tripped[asked] = shared < wanted[asked]
    return tripped


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


def top_candidates(cosine: Floats, cited: Bools, limit: int) -> tuple[Indices, Indices]:
    """The (claim, span) positions to match, by claim and then by span.

    Args:
        cosine: shape (claims, spans).
        cited: the same shape; a cited span is a candidate whatever its cosine.
        limit: spans with the largest cosines that are candidates as well, the first of the plan on ties.
    """
    chosen = cited.copy()
    top = np.argsort(-cosine, axis=1, kind="stable")[:, :limit]
    np.put_along_axis(chosen, top, True, axis=1)
    rows, columns = np.nonzero(chosen)
    return rows, columns


def cosines(claims: NDArray[Any], spans: NDArray[Any]) -> Floats:
    """The cosines of unit vectors, as one product of shape (claims, spans), rounded to 12 places."""
    product: Floats = claims.astype(np.float64) @ spans.astype(np.float64).T
    return np.clip(product.round(DECIMALS), -1, 1)


def _keyed(tokens: Any, texts: Texts, size: int) -> tuple[Any, Indices]:
    """The token counts of texts, and for every count the number of its token within its plan."""
    counts = tokens[texts.rows]
    return counts, np.repeat(texts.plans, np.diff(counts.indptr)) * size + counts.indices


def _by_chunk(of_pairs: Any, one: Indices, two: Indices, dtype: Any) -> NDArray[Any]:
    result = np.empty(len(one), dtype)
    for start in range(0, len(one), _CHUNK):
        part = slice(start, start + _CHUNK)
        result[part] = of_pairs(one[part], two[part])
    return result
