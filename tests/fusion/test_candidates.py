"""Candidates of many plans: the same however the plans are cut into blocks, and equal spans tie."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifier.fusion.candidates import Side, candidate_pairs, nearest


def sides(sizes: list[tuple[int, int]], texts: int, rng: Any) -> tuple[Any, Side, Side]:
    vectors = rng.normal(size=(texts, 8))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    made = [
        Side(rng.integers(texts, size=sum(counts)), np.concatenate([[0], np.cumsum(counts)]))
        for counts in ([claims for claims, _ in sizes], [spans for _, spans in sizes])
    ]
    return vectors, made[0], made[1]


@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(1, 12)), min_size=1, max_size=6),
    st.sampled_from([1, 3, 50]),
    st.integers(1, 5),
    st.integers(0, 2**32 - 1),
    st.sampled_from([1, 20, 10**6]),
)
def test_the_first_of_the_largest_cosines_and_the_cited_spans(
    sizes: list[tuple[int, int]], texts: int, limit: int, seed: int, cells: int
) -> None:
    rng = np.random.default_rng(seed)
    vectors, claims, spans = sides(sizes, texts, rng)
    cosine = np.clip((vectors.astype(np.float64) @ vectors.astype(np.float64).T).round(12), -1, 1)
    cited, expected = [], []
    for plan in range(len(sizes)):
        of_plan = np.arange(*spans.bounds[plan : plan + 2])
        for claim in range(*claims.bounds[plan : plan + 2]):
            near = cosine[claims.vectors[claim], spans.vectors[of_plan]]
            top = of_plan[np.argsort(-near, kind="stable")[:limit]].tolist()
            asked = of_plan[rng.random(len(of_plan)) < 0.2].tolist()
            cited += [(claim, span) for span in asked]
            expected += [(claim, span, span in asked) for span in sorted({*top, *asked})]
    pairs = np.array(cited, np.int64).reshape(-1, 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("verifier.fusion.candidates._CELLS", cells)
        found = candidate_pairs(vectors, claims, spans, (pairs[:, 0], pairs[:, 1]), limit)
    assert list(zip(found.claims.tolist(), found.spans.tolist(), found.cited.tolist(), strict=True)) == expected
    exact = cosine[claims.vectors[found.claims], spans.vectors[found.spans]]
    np.testing.assert_allclose(found.cosine, exact, atol=2e-12, rtol=0)


@given(st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.0]), min_size=1, max_size=9), st.integers(1, 10))
def test_the_first_ones_count_on_ties(row: list[float], limit: int) -> None:
    first = sorted(range(len(row)), key=lambda place: (-row[place], place))[:limit]
    assert np.flatnonzero(nearest(np.array([row]), limit)[0]).tolist() == sorted(first)
