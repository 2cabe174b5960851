"""BM25 weights of a whole corpus, as matrices: the weighting is that of the bm25s library."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import bm25s  # type: ignore[import-untyped]
from scipy.sparse import csr_array  # type: ignore[import-untyped]
from sklearn.feature_extraction.text import CountVectorizer

# It sets its logger to DEBUG when imported, which would show in every job's output.
logging.getLogger("bm25s").setLevel(logging.WARNING)

_WORD = r"(?u)\b\w+\b"  # words of one letter and numbers count too


class WordCounter:
    """Counts in texts the words of a corpus; ``vocabulary`` is word to row of ``Bm25.postings``."""

    def __init__(self, vocabulary: Mapping[str, int]) -> None:
        self._size = len(vocabulary)
        self._vectorizer = CountVectorizer(vocabulary=vocabulary, token_pattern=_WORD) if vocabulary else None

    def counts(self, queries: Sequence[str]) -> Any:
        """How often each query has each word of the corpus, a float32 CSR array of shape (queries, words)."""
        if self._vectorizer is None:
            return csr_array((len(queries), self._size), dtype="float32")
        return csr_array(self._vectorizer.transform(queries), dtype="float32")


class Bm25:
    """A BM25 index: Lucene's variant with k1 = 1.5 and b = 0.75, words in lower case, no stop words, no stemming.

    Document frequencies and the average length are those of the whole corpus, so that shards are columns of
    ``postings`` and their scores compare.

    Attributes:
        postings: float32 weights, a CSR array of shape (words, passages).
        words: what counts the words of queries.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        tokens = bm25s.tokenize(list(texts), token_pattern=_WORD, stopwords=None, show_progress=False)
        self.postings = csr_array((0, len(texts)), dtype="float32")
        self.words = WordCounter(tokens.vocab)
        if tokens.vocab:
            index = bm25s.BM25()
            index.index(tokens, create_empty_token=False, show_progress=False)
            scores = index.scores
            # One column a word there, as compressed columns: the rows of the transpose.
            parts = (scores["data"], scores["indices"], scores["indptr"])
            self.postings = csr_array(parts, shape=(len(tokens.vocab), len(texts)))
