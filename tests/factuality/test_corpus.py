import math
import random
import re
from collections import Counter

import numpy as np
import pytest

from tests.factuality.cases import generate
from verifier.embedders import TransformerEmbedder
from verifier.errors import ConfigurationError
from verifier.factuality.bm25 import Bm25
from verifier.factuality.corpus import Corpus, Passage

TEXTS = [
    "The drug cures cancer in mice.",
    "Paris is the capital of France.",
    "The museum opened in 1995.",
    "Whales are mammals that live in the sea.",
    "The drug does not cure cancer in dogs.",
]


class CharacterEmbedder:
    """Unit vectors of letter counts: real cosines, without a model."""

    def embed(self, texts: list[str]) -> np.ndarray:
        counts = np.array([[text.count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts])
        vectors = counts.reshape(len(texts), 26).astype(np.float64)
        return (vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1)).astype(np.float32)


def passages(texts: list[str], scopes: list[str | None] | None = None) -> list[Passage]:
    scopes = scopes or [None] * len(texts)
    return [Passage(f"p{i}", text, scope=scope) for i, (text, scope) in enumerate(zip(texts, scopes, strict=True))]


def plain_bm25(texts: list[str], query: str) -> list[float]:
    """Lucene's BM25 from its formula: ln(1 + (N - df + 0.5) / (df + 0.5)) · tf / (tf + k1 (1 - b + b · l / l_avg))."""
    documents = [re.findall(r"\w+", text.lower()) for text in texts]
    average = sum(map(len, documents)) / len(documents)
    scores = [0.0] * len(texts)
    for word in re.findall(r"\w+", query.lower()):
        frequency = sum(word in document for document in documents)
        idf = math.log(1 + (len(texts) - frequency + 0.5) / (frequency + 0.5))
        for i, document in enumerate(documents):
            count = Counter(document)[word]
            scores[i] += idf * count / (count + 1.5 * (0.25 + 0.75 * len(document) / average))
    return scores


def test_the_real_embedder_finds_the_passage_that_says_it() -> None:
    corpus = Corpus(passages(TEXTS), TransformerEmbedder(device="cpu"))
    hits = corpus.search("What is France's capital city?", 2)
    assert hits[0].item.id == "p1"
    assert hits[0].score > 0.6 > hits[1].score


def test_bm25_ranks_by_words_and_carries_the_cosine() -> None:
    embedder = CharacterEmbedder()
    query = "the drug and cancer, cancer in 1995"
    hits = Corpus(passages(TEXTS), embedder, "bm25").search(query, 5)
    scores = plain_bm25(TEXTS, query)
    assert [hit.item.id for hit in hits] == [f"p{i}" for i in np.argsort(np.negative(scores), kind="stable")]
    vectors = embedder.embed([query, *[hit.item.text for hit in hits]]).astype(np.float64)
    np.testing.assert_allclose([hit.score for hit in hits], vectors[1:] @ vectors[0], atol=1e-12)


def test_bm25_weights_are_those_of_the_formula() -> None:
    texts = [evidence for evidence, _ in generate(200, seed=1)]
    queries = [claim for _, claim in generate(50, seed=2)]
    index = Bm25(texts)
    scores = (index.words.counts(queries) @ index.postings).toarray()
    np.testing.assert_allclose(scores, [plain_bm25(texts, query) for query in queries], atol=1e-4)


@pytest.mark.parametrize("ranking", ["embeddings", "bm25"])
def test_shards_do_not_change_what_is_found(ranking: str) -> None:
    texts = [evidence for evidence, _ in generate(300, seed=3)]
    scopes = random.Random(4).choices([None, "team"], k=len(texts))
    queries = [claim for _, claim in generate(40, seed=5)]
    asked = [None, "team"] * 20
    whole = Corpus(passages(texts, scopes), CharacterEmbedder(), ranking).search_many(queries, 4, asked)
    parts = Corpus(passages(texts, scopes), CharacterEmbedder(), ranking, shard_rows=37)
    assert parts.search_many(queries, 4, asked) == whole
    assert [parts.search(query, 4, scope=scope) for query, scope in zip(queries, asked, strict=True)] == whole
    assert sum(map(len, whole)) > 100


@pytest.mark.parametrize("ranking", ["embeddings", "bm25"])
def test_only_passages_of_the_scope_are_found(ranking: str) -> None:
    corpus = Corpus(passages(["same words"] * 4, ["red", "blue", None, "red"]), CharacterEmbedder(), ranking)
    found = {
        scope: [hit.item.id for hit in corpus.search("same words", 9, scope=scope)] for scope in ("red", "x", None)
    }
    assert found == {"red": ["p0", "p3"], "x": [], None: ["p0", "p1", "p2", "p3"]}


def test_a_passage_without_a_shared_word_is_no_bm25_candidate() -> None:
    corpus = Corpus(passages(TEXTS), CharacterEmbedder(), "bm25")
    assert [hit.item.id for hit in corpus.search("whales", 4)] == ["p3"]
    assert corpus.search("unknown zebra", 4) == []


@pytest.mark.parametrize("ranking", ["embeddings", "bm25"])
@pytest.mark.parametrize("texts", [[], ["", "!!"]])
def test_a_corpus_without_words(ranking: str, texts: list[str]) -> None:
    corpus = Corpus(passages(texts), CharacterEmbedder(), ranking)
    hits = corpus.search("a query", 4)
    assert [hit.score for hit in hits] == ([0.0] * len(texts) if ranking == "embeddings" else [])
    assert corpus.search_many([], 4, []) == []


def test_what_cannot_be_searched_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="repeats the passage id 'a'"):
        Corpus([Passage("a", "x"), Passage("a", "y")], CharacterEmbedder())
    with pytest.raises(ConfigurationError, match="k is 0"):
        Corpus(passages(TEXTS), CharacterEmbedder()).search("q", 0)


def test_scopes_are_compared_character_for_character() -> None:
    scoped = [Passage("p0", TEXTS[0], scope="a"), Passage("p1", TEXTS[1]), Passage("p2", TEXTS[2], scope="a\0")]
    corpus = Corpus(scoped, CharacterEmbedder())
    found = {
        scope: [hit.item.id for hit in corpus.search("x", 5, scope=scope)] for scope in ("a", "a\0", "\0", "", "b")
    }
    assert found == {"a": ["p0"], "a\0": ["p2"], "\0": [], "": [], "b": []}


def test_a_corpus_of_no_shard_or_an_unknown_ranking_is_refused() -> None:
    for settings in ({"shard_rows": 0}, {"ranking": "luck"}):
        with pytest.raises(ConfigurationError, match="shard_rows"):
            Corpus([], CharacterEmbedder(), **settings)
