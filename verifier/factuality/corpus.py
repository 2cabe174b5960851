"""A corpus in memory: passages, their vectors in shards, and a search for many queries at once."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from verifier.errors import ConfigurationError
from verifier.factuality.bm25 import Bm25, WordCounter
from verifier.factuality.retrieval import Found, Shard, merge, search_shard

Ranking = Literal["embeddings", "bm25"]


class Item(Protocol):
    """What a citation needs of a piece of evidence."""

    @property
    def id(self) -> str:
        """What a citation names."""

    @property
    def kind(self) -> str:
        """What sort of source it is, for instance ``text``."""

    @property
    def text(self) -> str:
        """What it says."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage of a corpus; ``scope`` is the team or access scope that it belongs to, None: no scope."""

    id: str
    text: str
    kind: str = "text"
    scope: str | None = None


class Hit(NamedTuple):
    """A retrieved passage and its cosine with the query, in [-1, 1]."""

    item: Item
    score: float


class Embedder(Protocol):
    """Turns n texts into unit vectors, float32 of shape (n, dimension)."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of ``texts``."""
        ...


class Corpus:
    """Passages that can be searched; their order decides ties.

    Args:
        passages: all of them; a repeated id is a ConfigurationError.
        embedder: of passages and queries alike, for instance a ``TransformerEmbedder``.
        ranking: what passages are ranked by: ``embeddings`` (the cosine) or ``bm25`` (a passage that shares no
            word with a query is not found). Either way a hit's score is its cosine.
        shard_rows: passages a shard; what is found does not depend on it.
    """

    def __init__(
        self,
        passages: Sequence[Passage],
        embedder: Embedder,
        ranking: Ranking = "embeddings",
        shard_rows: int = 65_536,
    ) -> None:
        _check_ids(passages)
        if shard_rows < 1 or ranking not in get_args(Ranking):
            raise ConfigurationError(f"shard_rows is {shard_rows} and ranking {ranking!r}: 1 or more, and a known one")
        self.passages = passages
        self._embedder = embedder
        texts = [passage.text for passage in passages]
        bm25 = Bm25(texts) if ranking == "bm25" else None
        self._words = None if bm25 is None else bm25.words
        scopes = np.array([passage.scope for passage in passages], dtype=object)
        self.shards: list[Shard] = []
        for start in range(0, len(texts), shard_rows):
            part = slice(start, start + shard_rows)
            postings = None if bm25 is None else bm25.postings[:, part]
            self.shards.append(Shard(start, embedder.embed(texts[part]), scopes[part], postings))

    def search(self, query: str, k: int, *, scope: str | None = None) -> list[Hit]:
        """The k best passages for a query, best first, ties by their order; ``scope`` filters before ranking."""
        return self.search_many([query], k, [scope])[0]

    def search_many(self, queries: Sequence[str], k: int, scopes: Sequence[str | None]) -> list[list[Hit]]:
        """Like ``search`` for many queries, each in the scope of the same position."""
        if not self.shards:
            check_k(k)
            return [[] for _ in queries]
        return search_corpus(queries, k, scopes, self._embedder, self._words, self._find, self._fetch)

    def _find(self, vectors: NDArray[np.float32], k: int, scope: str | None, words: Any) -> Found:
        return merge([search_shard(shard, vectors, k, scope, words) for shard in self.shards], k)

    def _fetch(self, indices: Sequence[int]) -> dict[int, Passage]:
        return {index: self.passages[index] for index in indices}


def search_corpus(
    queries: Sequence[str],
    k: int,
    scopes: Sequence[str | None],
    embedder: Embedder,
    words: WordCounter | None,
    find: Callable[[NDArray[np.float32], int, str | None, Any], Found],
    fetch: Callable[[Sequence[int]], Mapping[int, Passage]],
) -> list[list[Hit]]:
    """The k best passages of a sharded corpus for each query, in the scope of the same position.

    Args:
        queries, k, scopes: what is asked.
        embedder: of the queries; the corpus was embedded by the same.
        words: for BM25, None ranks by cosine.
        find: like ``search_shard`` over all shards, merged.
        fetch: passages by corpus index.

    Raises ConfigurationError for a ``k`` below 1.
    """
    check_k(k)
    hits: list[list[Hit]] = [[] for _ in queries]
    if not queries:
        return hits
    vectors = embedder.embed(queries)
    counts = None if words is None else words.counts(queries)
    for scope, rows in _by_scope(scopes):
        found = find(vectors[rows], k, scope, None if counts is None else counts[rows])
        passages = fetch(np.unique(found.index[found.index >= 0]).tolist())
        for row, indices, cosines in zip(rows, found.index.tolist(), found.cosine.tolist(), strict=True):
            hits[row] = [Hit(passages[i], cosine) for i, cosine in zip(indices, cosines, strict=True) if i >= 0]
    return hits


def check_k(k: int) -> None:
    """Raise ConfigurationError for a ``k`` below 1."""
    if k < 1:
        raise ConfigurationError(f"k is {k}: at least one passage a claim must be retrieved")


def _by_scope(scopes: Sequence[str | None]) -> Iterator[tuple[str | None, list[int]]]:
    rows: dict[str | None, list[int]] = {}
    for row, scope in enumerate(scopes):
        rows.setdefault(scope, []).append(row)
    yield from rows.items()


def _check_ids(passages: Sequence[Passage]) -> None:
    seen: set[str] = set()
    for passage in passages:
        if passage.id in seen:
            raise ConfigurationError(f"the corpus repeats the passage id {passage.id!r}: give each passage its own")
        seen.add(passage.id)
