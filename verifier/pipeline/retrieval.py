"""Retrieval on Ray: a corpus is embedded once into an index on disk, whose shards are searched by an actor each."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import ray
from numpy.typing import NDArray

from verifier.answers.fused import CutsTexts
from verifier.answers.schemas import INDEX_SCHEMA, passage_from_row
from verifier.errors import ConfigurationError
from verifier.factuality.bm25 import Bm25, WordCounter
from verifier.factuality.corpus import Hit, Passage, Ranking, search_corpus
from verifier.factuality.retrieval import Found, Shard, merge, search_shard
from verifier.pipeline.cluster import ActorPool
from verifier.pipeline.identity import differences
from verifier.pipeline.leftovers import drop_leftovers, written_rows
from verifier.pipeline.meter import Meter
from verifier.pipeline.storage import open_filesystem, read_text, write_text
from verifier.pipeline.verify import run_rows

INDEX_FILE = "index.json"
_SHARDS_A_CPU = 8  # actors that mostly wait; more of them cost a machine its memory


class EmbedActor:
    """Embeds tables of PASSAGE_SCHEMA rows into tables of INDEX_SCHEMA."""

    def __init__(self, embedder: Callable[[], Any], meter: Meter) -> None:
        self._embedder = embedder()
        self._meter = meter

    def __call__(self, table: pa.Table) -> pa.Table:
        """One row with its vector a row of ``table``, in order."""
        texts = table["text"].to_pylist()
        vectors = np.asarray(self._embedder.embed(texts), np.float32)
        lists = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), vectors.shape[1])
        cut = pa.array(self._embedder.cuts(texts))
        self._meter.add({"rows": len(texts), "batch_seconds": 0.0})
        columns = [table[name] for name in table.column_names]
        return pa.table([*columns, lists.cast(INDEX_SCHEMA.field("vector").type), cut], schema=INDEX_SCHEMA)


def build_index(
    folder: str,
    rows: int,
    embedder: Callable[[], Any],
    identity: Mapping[str, str],
    pool: ActorPool,
    max_rows_lost: int,
    meter: Meter,
) -> None:
    """Embed what is left of ``folder/work`` into ``folder/results``; an index of another embedder is refused."""
    filesystem, root = open_filesystem(folder)
    index = _read_index(folder) or {"embedder": dict(identity), "finished": False}
    if found := differences({"embedder": index["embedder"]}, {"embedder": identity}):
        raise ConfigurationError(f"{folder} holds vectors of another embedder: {'; '.join(found)}: use another folder")
    if index["finished"]:
        _check_whole(folder, rows)
        return
    filesystem.create_dir(f"{root}/results")
    write_text(filesystem, f"{root}/{INDEX_FILE}", json.dumps(index, indent=2))
    if rows:
        run_rows(folder, EmbedActor, (embedder, meter), pool, max_rows_lost)
        drop_leftovers(folder, rows)
        _check_whole(folder, rows)
    write_text(filesystem, f"{root}/{INDEX_FILE}", json.dumps({**index, "finished": True}, indent=2))


def _read_index(folder: str) -> dict[str, Any] | None:
    filesystem, root = open_filesystem(folder)
    try:
        text = read_text(filesystem, f"{root}/{INDEX_FILE}")
        if text is None:
            return None
        index = json.loads(text)
        return {"embedder": dict(index["embedder"]), "finished": bool(index["finished"])}
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigurationError(f"{folder}/{INDEX_FILE} is damaged: use another folder as retrieval.index") from error


def _check_whole(folder: str, rows: int) -> None:
    """Raise ConfigurationError where an index does not hold every passage."""
    written = written_rows(folder)
    if written != rows:
        raise ConfigurationError(
            f"{folder}/results has vectors of {written} of {rows} passages: delete {folder} to embed the corpus again"
        )


def check_shards(rows: int, shard_rows: int) -> None:
    """Raise ConfigurationError where a corpus would have more shards than the cluster should hold."""
    there: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
    most = max(1, int(there.get("CPU", 1))) * _SHARDS_A_CPU
    if -(-rows // shard_rows) > most:
        raise ConfigurationError(
            f"retrieval.shard_rows is {shard_rows}, which makes {-(-rows // shard_rows)} shards of {rows} passages, and"
            f" this cluster takes {most}: at least {-(-rows // most)} passages a shard expected"
        )


@ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)
class _Shard:
    """Passages ``start`` to ``start + len(row_ids)`` of the corpus; started again where it dies."""

    def __init__(self, folder: str, start: int, first: int, last: int, postings: Any) -> None:
        rows = _read(folder, None, (pc.field("row_id") >= first) & (pc.field("row_id") <= last)).sort_by("row_id")
        self._start = start
        self._rows = rows.drop_columns(["vector"])
        vectors = rows["vector"].combine_chunks()
        scopes = np.array(rows["scope"].to_pylist(), dtype=object)
        self._shard = Shard(start, np.asarray(vectors.flatten()).reshape(len(rows), -1), scopes, postings)

    def search(self, vectors: NDArray[np.float32], k: int, scope: str | None, words: Any) -> Found:
        return search_shard(self._shard, vectors, k, scope, words)

    def passages(self, indices: Sequence[int]) -> list[Passage]:
        rows = self._rows.take([index - self._start for index in indices])
        return [passage_from_row(row) for row in rows.to_pylist()]


class ShardedCorpus:
    """A corpus whose shards live in actors; searched like ``Corpus``, it finds the same. Travels to other actors.

    Attributes:
        passages: how many there are.
    """

    def __init__(self, folder: str, ranking: Ranking, shard_rows: int) -> None:
        row_ids = np.sort(_read(folder, ["row_id"])["row_id"].to_numpy())
        self.passages = len(row_ids)
        self._starts = np.arange(0, len(row_ids), shard_rows)
        bounds = [(int(start), row_ids[start : start + shard_rows]) for start in self._starts]
        self._words: Any = None
        postings: list[Any] = [None] * len(bounds)
        if ranking == "bm25":
            starts = self._starts.tolist()
            refs: Any = _bm25.options(num_returns=len(starts) + 1).remote(folder, starts, shard_rows)
            self._words, *postings = refs if starts else [refs]
        self._shards: list[Any] = [
            _Shard.options(scheduling_strategy="SPREAD").remote(folder, start, int(ids[0]), int(ids[-1]), own)  # type: ignore[attr-defined]
            for (start, ids), own in zip(bounds, postings, strict=True)
        ]

    def words(self) -> WordCounter | None:
        """What counts the words of queries, None where passages are ranked by cosine."""
        counter: WordCounter | None = None if self._words is None else ray.get(self._words)
        return counter

    def find(self, vectors: NDArray[np.float32], k: int, scope: str | None, words: Any) -> Found:
        """The k best of all shards, searched at the same time."""
        asked = ray.put(vectors)
        return merge(ray.get([shard.search.remote(asked, k, scope, words) for shard in self._shards]), k)

    def fetch(self, indices: Sequence[int]) -> dict[int, Passage]:
        """Passages by corpus index."""
        owners = np.searchsorted(self._starts, indices, side="right") - 1
        asked = {int(owner): [int(i) for i in np.asarray(indices)[owners == owner]] for owner in np.unique(owners)}
        found = ray.get([self._shards[owner].passages.remote(own) for owner, own in asked.items()])
        return {
            index: passage
            for own, passages in zip(asked.values(), found, strict=True)
            for index, passage in zip(own, passages, strict=True)
        }


class CorpusSearcher:
    """Searches a ``ShardedCorpus`` with an embedder of its own process."""

    def __init__(self, corpus: ShardedCorpus, embedder: CutsTexts) -> None:
        self._corpus = corpus
        self._embedder = embedder
        self._words = corpus.words()

    def search_many(self, queries: Sequence[str], k: int, scopes: Sequence[str | None]) -> list[list[Hit]]:
        """See ``Corpus.search_many``."""
        if not self._corpus.passages:
            return [[] for _ in queries]
        corpus = self._corpus
        return search_corpus(queries, k, scopes, self._embedder, self._words, corpus.find, corpus.fetch)

    def cuts(self, queries: Sequence[str]) -> list[bool]:
        """Whether the embedder reads only the beginning of each query."""
        return self._embedder.cuts(queries)


@ray.remote(num_cpus=1)
def _bm25(folder: str, starts: Sequence[int], shard_rows: int) -> Iterator[Any]:
    """What counts words, then each shard's postings."""
    index = Bm25(_read(folder, ["row_id", "text"]).sort_by("row_id")["text"].to_pylist())
    yield index.words
    for start in starts:
        yield index.postings[:, start : start + shard_rows]


def _read(folder: str, columns: list[str] | None, rows: Any = None) -> pa.Table:
    filesystem, root = open_filesystem(folder)
    files = pads.dataset(f"{root}/results", INDEX_SCHEMA, format="parquet", filesystem=filesystem)
    return files.to_table(columns=columns, filter=rows)
