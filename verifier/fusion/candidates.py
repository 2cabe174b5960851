"""Which spans a claim is matched with: those that it cites and those with the largest cosines, for many plans at once.

The cosines of several plans are laid side by side in one padded block: with a few dozen spans a plan, a call of numpy
costs more than its work.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from verifier.fusion.features import Indices
from verifier.fusion.scoring import DECIMALS, Bools, Floats

_CELLS = 1 << 14  # cosines of a block, unless one plan alone has more

Rows = slice | Indices


class Pairs(NamedTuple):
    """Candidate pairs by claim and then by span, as positions; all of shape (pairs,)."""

    claims: Indices
    spans: Indices
    cosine: Floats
    cited: Bools


class Side(NamedTuple):
    """Claims, or spans, of several plans: the number of each one's vector, and where those of each plan begin and end.

    Shapes (n,) and (plans + 1,). Equal texts have one vector; no plan is empty.
    """

    vectors: Indices
    bounds: Indices

    def rows(self) -> list[Rows]:
        """What selects the vectors of each plan: a slice where they lie one after the other, which copies nothing."""
        breaks = np.concatenate([[0], np.cumsum(np.diff(self.vectors) != 1)])
        in_line = breaks[self.bounds[:-1]] == breaks[self.bounds[1:] - 1]
        firsts = self.vectors[self.bounds[:-1]]
        return [
            slice(first, first + end - start) if line else self.vectors[start:end]
            for line, first, (start, end) in zip(
                in_line.tolist(), firsts.tolist(), pairwise(self.bounds.tolist()), strict=True
            )
        ]

    def places(self) -> tuple[Indices, Indices]:
        """The plan of each, and its place in the plan, both of shape (n,)."""
        plans = np.repeat(np.arange(len(self.bounds) - 1), np.diff(self.bounds))
        return plans, np.arange(len(self.vectors)) - self.bounds[plans]


def candidate_pairs(
    vectors: NDArray[Any], claims: Side, spans: Side, cited: tuple[Indices, Indices], limit: int
) -> Pairs:
    """Each claim with the spans of its plan that it cites and with those that have the ``limit`` largest cosines.

    Args:
        vectors: unit vectors, shape (n, dimension).
        claims, spans: of all plans.
        cited: claims and the spans that they cite, each pair once, by claim and then by span.
        limit: the first spans count on ties.
    """
    own, others, twins = claims.rows(), spans.rows(), _twins(spans)
    (plans, claim_places), (_, span_places) = claims.places(), spans.places()
    asked = np.stack([plans[cited[0]], claim_places[cited[0]], span_places[cited[1]]])
    found: list[tuple[Indices, Indices, Floats]] = []
    for start, end in _blocks(np.diff(claims.bounds).tolist(), np.diff(spans.bounds).tolist()):
        near = cosines(vectors, own[start:end], others[start:end], twins[start:end])
        chosen = nearest(near, limit)
        chosen &= _cells(claims, start, end)[:, :, np.newaxis] & _cells(spans, start, end)[:, np.newaxis]
        plan, row, column = asked[:, slice(*np.searchsorted(asked[0], (start, end)))]
        chosen[plan - start, row, column] = True
        cells = np.flatnonzero(chosen)
        row, column = np.divmod(cells, near.shape[2])
        plan, row = np.divmod(row, near.shape[1])
        found.append((row + claims.bounds[start + plan], column + spans.bounds[start + plan], near.ravel()[cells]))
    of_claims, of_spans, cosine = map(np.concatenate, zip(*found, strict=True))
    count = len(spans.vectors)
    is_cited = np.zeros(len(cosine), np.bool_)
    is_cited[np.searchsorted(of_claims * count + of_spans, cited[0] * count + cited[1])] = True
    return Pairs(of_claims, of_spans, cosine, is_cited)


def _blocks(claims: Sequence[int], spans: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Ranges of plans with up to ``_CELLS`` cosines, padding included, or of one plan with more."""
    start = rows = columns = 0
    for end, size in enumerate(zip(claims, spans, strict=True)):
        rows, columns = max(rows, size[0]), max(columns, size[1])
        if start < end and (end + 1 - start) * rows * columns > _CELLS:
            yield start, end
            start, (rows, columns) = end, size
    yield start, len(claims)


def _cells(side: Side, start: int, end: int) -> Bools:
    """Which cells of a block are no padding, of shape (plans, claims or spans)."""
    sizes = np.diff(side.bounds[start : end + 1])
    cells: Bools = np.arange(sizes.max()) < sizes[:, np.newaxis]
    return cells


def _twins(spans: Side) -> list[Rows]:
    """For each plan, the place of the first span with the same text; a slice of all where texts differ."""
    plans, places = spans.places()
    keys = plans * (spans.vectors.max() + 1) + spans.vectors
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    twins: list[Rows] = [slice(None)] * (len(spans.bounds) - 1)
    if len(first) < len(keys):
        place = places[first[inverse]]
        for plan in np.unique(plans[place != places]).tolist():
            twins[plan] = place[slice(*spans.bounds[plan : plan + 2])]
    return twins


def nearest(cosine: Floats, limit: int) -> Bools:
    """Whether each cosine is one of the ``limit`` largest of its row (the last axis), the first ones on ties."""
    if cosine.shape[-1] <= limit:
        return np.ones(cosine.shape, np.bool_)
    chosen: Bools = cosine >= np.partition(cosine, -limit, axis=-1)[..., -limit, np.newaxis]
    if np.count_nonzero(chosen) * cosine.shape[-1] > limit * cosine.size:
        chosen[:] = False
        np.put_along_axis(chosen, np.argsort(-cosine, axis=-1, kind="stable")[..., :limit], True, axis=-1)
    return chosen


def cosines(vectors: NDArray[Any], claims: Sequence[Rows], spans: Sequence[Rows], twins: Sequence[Rows]) -> Floats:
    """The cosines of claims and spans, rounded to 12 places and padded with -1, shape (plans, claims, spans).

    Args:
        vectors: unit vectors, shape (n, dimension).
        claims, spans: what selects those of each plan.
        twins: what puts the first of equal spans in the place of each.
    """
    # The last bits of a product depend on the column; equal spans have to tie.
    products = [
        (vectors[own].astype(np.float64) @ vectors[others].astype(np.float64).T)[:, first]
        for own, others, first in zip(claims, spans, twins, strict=True)
    ]
    rows, columns = np.max([product.shape for product in products], axis=0)
    found = np.full((len(products), rows, columns), -1.0)
    for near, product in zip(found, products, strict=True):
        near[: len(product), : product.shape[1]] = product
    found.round(DECIMALS, out=found).clip(-1, 1, out=found)
    return found
