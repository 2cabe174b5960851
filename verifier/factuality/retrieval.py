"""Exact retrieval: the best passages of a shard by embeddings or BM25, and the merge of what shards found.

Everything is a matrix product over a block of queries, so memory is bounded by the shard and a fixed block, and
no Python code runs per query and passage. The cosines of the passages that may be among the best are computed
again in double precision, so that no result depends on how a corpus was cut into shards or queries into blocks.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Cells = tuple[NDArray[np.int64], NDArray[np.int64]]  # rows and columns

BLOCK_CELLS = 1 << 23  # scores held at once, float32: 32 MiB, and a few times as much to select from them
_PAIR_CELLS = 1 << 20  # numbers of the vectors that are multiplied again at once, float64: 8 MiB


@dataclass(frozen=True)
class Shard:
    """A run of the corpus.

    Attributes:
        start: corpus index of the first passage.
        vectors: float32 of shape (passages, dimension), of unit length.
        scopes: who may see each passage, an object array of shape (passages,) of texts, None where a passage has no
            scope; None where none has one.
        postings: BM25 weights, a scipy CSR array of shape (words, passages); None without BM25.
    """

    start: int
    vectors: NDArray[np.float32]
    scopes: NDArray[np.object_] | None = None
    postings: Any = None


@dataclass(frozen=True)
class Found:
    """The best passages of n queries, best first, each array of shape (n, k).

    Attributes:
        index: int64 corpus indices, -1 where a query found fewer than k.
        cosine: float64 in [-1, 1]; NaN where there is none.
        rank: float64, what passages are ranked by: the cosine or the BM25 score; NaN where there is none.
    """

    index: NDArray[np.int64]
    cosine: NDArray[np.float64]
    rank: NDArray[np.float64]


def search_shard(
    shard: Shard, queries: NDArray[np.float32], k: int, scope: str | None = None, words: Any = None
) -> Found:
    """The k best passages of a shard for each query; ties go to the lower corpus index.

    Args:
        shard: where to look.
        queries: float32 of shape (n, dimension), of unit length.
        k: passages a query, at least 1.
        scope: only passages of exactly this scope are ranked; None ranks all.
        words: how often each query has each word, a scipy CSR array of shape (n, words): ranks by BM25, and a
            passage that shares no word with a query is not found. None ranks by cosine.
    """
    rows = _visible(shard, scope)
    vectors = shard.vectors[rows]
    postings = shard.postings if words is None or scope is None else shard.postings[:, rows]
    places = np.arange(shard.start, shard.start + len(shard.vectors))[rows]
    parts = []
    for block in _blocks(len(queries), len(vectors)):
        asked = queries[block]
        if words is None:
            query, passage = _may_be_best(asked @ vectors.T, k, vectors.shape[1])
            cosine = rank = _cosines(asked, vectors, query, passage)
        else:
            scores = (words[block] @ postings).toarray()
            query, passage = _best_matches(scores, k)
            cosine, rank = _cosines(asked, vectors, query, passage), scores[query, passage].astype(np.float64)
        parts.append(_best(query, places[passage], cosine, rank, len(asked), k))
    return _stacked(parts, k)


def merge(parts: Sequence[Found], k: int) -> Found:
    """The k best of what several shards found for the same queries; there must be at least one shard."""
    queries = len(parts[0].index)
    index, cosine, rank = (
        np.concatenate([getattr(part, name) for part in parts], axis=1) for name in ("index", "cosine", "rank")
    )
    query, column = np.nonzero(index >= 0)
    return _best(query, index[query, column], cosine[query, column], rank[query, column], queries, k)


def _visible(shard: Shard, scope: str | None) -> Any:
    """What selects the passages that a scope sees: an array of rows, or a slice where it sees all."""
    if scope is None:
        return slice(None)
    if shard.scopes is None:
        return np.zeros(0, np.int64)
    return np.flatnonzero(shard.scopes == np.array([scope], dtype=object))  # numpy's own strings lose NUL at their end


def _blocks(queries: int, passages: int) -> Iterator[slice]:
    size = max(1, BLOCK_CELLS // max(passages, 1))
    for start in range(0, queries, size):
        yield slice(start, start + size)


def _floors(scores: NDArray[np.float32], k: int) -> NDArray[np.float32]:
    """The k-th largest score of each row, shape (rows, 1); minus infinity where there are no more than k."""
    passages = scores.shape[1]
    if passages <= k:
        return np.full((len(scores), 1), -np.inf, np.float32)
    return np.partition(scores, passages - k, axis=1)[:, passages - k, None]


def _may_be_best(scores: NDArray[np.float32], k: int, dimension: int) -> Cells:
    """Rows and columns of the single precision cosines whose exact values may be among the k best of their row."""
    # Rounding moves each inner product of unit vectors by at most dimension * eps / 2, so the k-th largest too.
    slack = dimension * np.finfo(np.float32).eps
    return _cells(scores >= _floors(scores, k) - slack)


def _best_matches(scores: NDArray[np.float32], k: int) -> Cells:
    """Rows and columns of the BM25 scores among the k best of their row, ties included, zeros left out."""
    return _cells((scores >= _floors(scores, k)) & (scores > 0))


def _cells(chosen: NDArray[np.bool_]) -> Cells:
    rows, columns = np.nonzero(chosen)
    return rows, columns


def _cosines(
    queries: NDArray[np.float32], vectors: NDArray[np.float32], query: NDArray[np.int64], passage: NDArray[np.int64]
) -> NDArray[np.float64]:
    """The cosine of each (query, passage) in double precision, the same bits whatever stands beside it."""
    cosines = np.empty(len(query))
    step = max(1, _PAIR_CELLS // max(vectors.shape[1], 1))
    for start in range(0, len(query), step):
        part = slice(start, start + step)
        left, right = queries[query[part]].astype(np.float64), vectors[passage[part]].astype(np.float64)
        cosines[part] = np.einsum("ij,ij->i", left, right)
    return np.clip(cosines, -1, 1)


def _best(
    query: NDArray[np.int64],
    index: NDArray[np.int64],
    cosine: NDArray[np.float64],
    rank: NDArray[np.float64],
    queries: int,
    k: int,
) -> Found:
    """The k best of candidates in any order: by rank, then by corpus index."""
    order = np.lexsort((index, -rank, query))
    query = query[order]
    position = np.arange(len(query)) - np.searchsorted(query, query)
    order, query, position = (values[position < k] for values in (order, query, position))
    found = _nothing(queries, k)
    found.index[query, position] = index[order]
    found.cosine[query, position] = cosine[order]
    found.rank[query, position] = rank[order]
    return found


def _nothing(queries: int, k: int) -> Found:
    shape = (queries, k)
    return Found(np.full(shape, -1, np.int64), np.full(shape, np.nan), np.full(shape, np.nan))


def _stacked(parts: Sequence[Found], k: int) -> Found:
    """What blocks of queries found, one below the other."""
    parts = [*parts, _nothing(0, k)]
    return Found(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("index", "cosine", "rank")))
