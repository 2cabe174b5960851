"""Words and numbers of many texts as sparse matrices: each distinct text is read once."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import regex
from numpy.typing import NDArray
from scipy import sparse  # type: ignore[import-untyped]

from verifier.fusion.lexical import atoms_of, tokenize

Indices = NDArray[np.int64]

_JOINED = regex.compile(r"[\p{WB=Extend}\p{WB=Format}\p{WB=ZWJ}]")
_MARKS = ".,;:!?()\"'"  # never a part of the word that they begin or end


@dataclass(frozen=True)
class TextFeatures:
    """Features of distinct texts.

    Attributes:
        position: text to its row.
        units: CSR float64 of shape (texts, tokens + distinct numbers): how often a text has each token, in sorted
            order, then 1 for each of its numeric atoms.
        tokens: how many of the columns are tokens.
    """

    position: dict[str, int]
    units: Any
    tokens: int

    @classmethod
    def of(cls, texts: Sequence[str], asked: Sequence[str] | None = None) -> "TextFeatures":
        """The features of the distinct texts among ``texts``; with ``asked``, only tokens that one of those has."""
        position = {text: row for row, text in enumerate(dict.fromkeys(texts))}
        # Cut at spaces, which no word reaches across, so that a word that comes up again is read once.
        chunks, places = _counted([text.split(" ") for text in position])
        if any(not chunk.isascii() and _JOINED.match(chunk) for chunk in places):
            chunks, places = _counted([[text] for text in position])
        tokens, columns = _counted([tokens_of(chunk) for chunk in places])
        atoms, _ = _counted([atoms_of(token) for token in columns])
        kept = list(columns)
        if asked is not None:
            rows = [position[text] for text in dict.fromkeys(asked)]
            kept = [kept[column] for column in np.unique((chunks[rows] @ tokens).indices).tolist()]
        # Sorted, so that the last bits of a sum over tokens do not depend on which texts are read together.
        order = np.array([columns[token] for token in sorted(kept)], np.int64)
        numbers = chunks @ (tokens @ atoms)
        numbers.data[:] = 1
        units = sparse.hstack([chunks @ tokens[:, order], numbers], "csr")
        units.sort_indices()
        return cls(position, units, len(order))

    def rows(self, texts: Sequence[str]) -> Indices:
        """The row of each text, int64 of shape (n,)."""
        return np.fromiter((self.position[text] for text in texts), np.int64, len(texts))


def tokens_of(chunk: str) -> list[str]:
    """``tokenize(chunk)``, faster for a plain word between marks."""
    word = chunk.strip(_MARKS)
    return [word.lower()] if word.isascii() and word.isalnum() else tokenize(chunk)


def _counted(rows: Sequence[Sequence[str]]) -> tuple[Any, dict[str, int]]:
    """How often each row has a name, CSR float64 of shape (rows, names), and the column of each name."""
    column: defaultdict[str, int] = defaultdict()
    column.default_factory = column.__len__
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    indices = np.fromiter(map(column.__getitem__, chain.from_iterable(rows)), np.int64, int(lengths.sum()))
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    matrix = sparse.csr_matrix((np.ones(len(indices)), indices, indptr), shape=(len(rows), len(column)))
    matrix.sum_duplicates()
    return matrix, column
