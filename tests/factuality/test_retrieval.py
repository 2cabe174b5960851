import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from verifier.factuality import retrieval
from verifier.factuality.retrieval import Found, Shard, merge, search_shard

PASSAGES, DIMENSION, QUERIES = 200_000, 16, 60


def unit(rows: int, dimension: int, seed: int) -> NDArray[np.float32]:
    vectors = np.random.default_rng(seed).standard_normal((rows, dimension))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def brute_force(vectors: NDArray[Any], queries: NDArray[Any], k: int, seen: NDArray[Any] | None = None) -> Any:
    """Corpus indices by a full sort of exact cosines, ties to the lower index."""
    found = []
    for query in queries:
        cosines = np.einsum("ij,j->i", vectors.astype(np.float64), query.astype(np.float64))
        order = np.argsort(-cosines, kind="stable")
        found.append((order if seen is None else order[seen[order]])[:k])
    return np.stack(found)


def sharded(vectors: NDArray[np.float32], rows: int, scopes: Any = None) -> list[Shard]:
    starts = range(0, len(vectors), rows)
    return [Shard(s, vectors[s : s + rows], None if scopes is None else scopes[s : s + rows]) for s in starts]


def search(shards: list[Shard], queries: NDArray[np.float32], k: int, scope: str | None = None) -> Found:
    return merge([search_shard(shard, queries, k, scope) for shard in shards], k)


@pytest.fixture(scope="module")
def corpus() -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    vectors = unit(PASSAGES, DIMENSION, seed=1)
    vectors[150_000:150_050] = vectors[7]  # equal passages, far apart and many
    queries = unit(QUERIES, DIMENSION, seed=2)
    queries[3] = vectors[7]
    return vectors, queries


def test_top_k_of_200_000_passages_equals_brute_force(corpus: tuple[Any, Any]) -> None:
    vectors, queries = corpus
    found = search(sharded(vectors, 65_536), queries, 10)
    expected = brute_force(vectors, queries, 10)
    assert (found.index == expected).all()
    assert found.index[3].tolist() == [7, *range(150_000, 150_009)]
    cosines = np.einsum("qkd,qd->qk", vectors[expected].astype(np.float64), queries.astype(np.float64))
    np.testing.assert_allclose(found.cosine, cosines, atol=1e-12)
    assert (found.rank == found.cosine).all()


@pytest.mark.parametrize("rows", [200_000, 70_001, 9_973])
def test_shards_and_blocks_do_not_change_a_bit(
    corpus: tuple[Any, Any], rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors, queries = corpus
    expected = search(sharded(vectors, 65_536), queries[:40], 4)
    monkeypatch.setattr(retrieval, "BLOCK_CELLS", 7 * rows)
    found = search(sharded(vectors, rows), queries[:40], 4)
    assert (found.index == expected.index).all()
    assert (found.cosine == expected.cosine).all()


def test_scope_filters_before_ranking(corpus: tuple[Any, Any]) -> None:
    vectors, queries = corpus
    scopes = np.array(["", "blue", "red"])[np.random.default_rng(3).choice(3, PASSAGES, p=[0.9, 0.0999, 0.0001])]
    shards = sharded(vectors, 65_536, scopes)
    for scope in ("blue", "red"):
        found = search(shards, queries[:30], 10, scope)
        assert (found.index == brute_force(vectors, queries[:30], 10, scopes == scope)).all()
    assert (search(shards, queries[:2], 10, "nobody").index == -1).all()
    assert (search(sharded(vectors, 65_536), queries[:2], 10, "blue").index == -1).all()


def test_fewer_passages_than_k_leave_empty_places() -> None:
    vectors = unit(3, 4, seed=4)
    found = search(sharded(vectors, 2), vectors[:2], 5)
    assert found.index.shape == (2, 5)
    assert (found.index[:, 3:] == -1).all()
    assert np.isnan(found.cosine[:, 3:]).all()
    assert (found.index[:, :3] == brute_force(vectors, vectors[:2], 3)).all()
    assert search(sharded(vectors, 2), vectors[:0], 5).index.shape == (0, 5)


def test_passages_that_are_all_equal_come_in_corpus_order() -> None:
    vectors = np.repeat(unit(1, 8, seed=5), 30_000, axis=0)
    found = search(sharded(vectors, 8_000), unit(3, 8, seed=6), 4)
    assert (found.index == np.arange(4)).all()


def test_near_ties_are_ranked_by_their_exact_cosines() -> None:
    # Differences far below single precision of a sum: a float32 product alone gets their order wrong.
    chance = np.random.default_rng(8)
    vectors = np.repeat(unit(1, 384, seed=9), 5_000, axis=0)
    vectors += (chance.integers(-1, 2, vectors.shape) * np.spacing(vectors)).astype(np.float32)
    queries = unit(5, 384, seed=10)
    expected = brute_force(vectors, queries, 4)
    alone = np.argsort(-(queries @ vectors.T), axis=1, kind="stable")[:, :4]
    assert (alone != expected).any()
    assert (search(sharded(vectors, 999), queries, 4).index == expected).all()


def peak_bytes(work: Callable[[], object]) -> int:
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def test_memory_is_bounded_whatever_the_number_of_queries(corpus: tuple[Any, Any]) -> None:
    vectors, _ = corpus
    shard = Shard(0, vectors[:65_536])
    few, many = (unit(n, DIMENSION, seed=7) for n in (130, 1_300))  # one block and ten
    search_shard(shard, few, 4)
    peaks = [peak_bytes(lambda queries=queries: search_shard(shard, queries, 4)) for queries in (few, many)]
    assert peaks[1] < 1.2 * peaks[0]
    assert peaks[1] < 16 * retrieval.BLOCK_CELLS
    assert 2 * peaks[1] < 1_300 * 65_536 * 4  # all scores at once would not fit in it


def calls(work: Callable[[], object]) -> int:
    count = 0

    def counting(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counting)
    work()
    sys.setprofile(None)
    return count


def test_no_python_code_runs_per_passage_or_query() -> None:
    queries = unit(64, DIMENSION, seed=11)
    small, large = (Shard(0, unit(n, DIMENSION, seed=12)) for n in (500, 50_000))
    search_shard(small, queries, 4)
    assert calls(lambda: search_shard(small, queries, 4)) == calls(lambda: search_shard(large, queries, 4))
    assert calls(lambda: search_shard(small, queries, 4)) == calls(lambda: search_shard(small, queries[:2], 4))
