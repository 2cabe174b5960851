"""Words and numbers of many texts as sparse matrices: each distinct text is read once."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse  # type: ignore[import-untyped]

from verifier.fusion.lexical import numeric_atoms, token_of, word_pieces

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class TextFeatures:
    """Features of distinct texts.

    Attributes:
        position: text to its row.
        tokens: CSR float64 of shape (texts, vocabulary), how often a text has a token; tokens in sorted order.
        atoms: CSR float64 of shape (texts, distinct numbers), not zero where a text has a numeric atom.
    """

    position: dict[str, int]
    tokens: Any
    atoms: Any

    @classmethod
    def of(cls, texts: Sequence[str]) -> "TextFeatures":
        """The features of the distinct texts among ``texts``."""
        position = {text: row for row, text in enumerate(dict.fromkeys(texts))}
        pieces = [word_pieces(text) for text in position]
        tokens = {piece: token_of(piece) for piece in set(chain.from_iterable(pieces))}
        # Sorted, so that the last bits of a sum over tokens do not depend on which texts are read together.
        vocabulary = sorted(set(tokens.values()) - {""})
        column_of_token = {token: column for column, token in enumerate(vocabulary)}
        columns = {piece: column_of_token[token] for piece, token in tokens.items() if token}
        rows = [[columns[piece] for piece in of_text if piece in columns] for of_text in pieces]
        counts = _matrix(rows, len(vocabulary))
        return cls(position, counts, (counts @ _atoms_of(vocabulary)).tocsr())

    def rows(self, texts: Sequence[str]) -> Indices:
        """The row of each text, int64 of shape (n,)."""
        return np.fromiter((self.position[text] for text in texts), np.int64, len(texts))


def _atoms_of(vocabulary: Sequence[str]) -> Any:
    """CSR of shape (vocabulary, distinct numbers): the numeric atoms of each token."""
    columns: dict[str, int] = {}
    rows = [[columns.setdefault(atom, len(columns)) for atom in numeric_atoms([token])] for token in vocabulary]
    return _matrix(rows, len(columns))


def _matrix(rows: Sequence[Sequence[int]], width: int) -> Any:
    """CSR float64 of shape (rows, width): how often each row names a column."""
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    indices = np.fromiter(chain.from_iterable(rows), np.int64, int(lengths.sum()))
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    matrix = sparse.csr_matrix((np.ones(len(indices)), indices, indptr), shape=(len(rows), width))
    matrix.sum_duplicates()
    return matrix
