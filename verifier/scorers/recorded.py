"""Recorded scores, replayed: the same decisions again without the model."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from verifier.digests import sha256_text
from verifier.errors import MissingScore
from verifier.records import DEFAULT_MODEL, DEFAULT_REVISION

Row = tuple[str, str, float, float, float]


def _digest_pair(premise: str, hypothesis: str) -> tuple[str, str]:
    return sha256_text(premise), sha256_text(hypothesis)


class RecordedScorer:
    """A three-label scorer that looks its answers up.

    ``rows`` are (premise, hypothesis, entailment, contradiction, neutral), the texts exactly as the model
    would be asked. A pair that was not recorded raises MissingScore with the digests of its texts.
    """

    dtype = "recorded"

    def __init__(self, rows: Iterable[Row], model: str = DEFAULT_MODEL, revision: str = DEFAULT_REVISION) -> None:
        self.model = model
        self.revision = revision
        self._values = {_digest_pair(premise, hypothesis): triple for premise, hypothesis, *triple in rows}

    def score(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        """The recorded probabilities, shape (n, 3)."""
        return np.array([self._lookup(*pair) for pair in pairs], dtype=np.float64).reshape(len(pairs), 3)

    def _lookup(self, premise: str, hypothesis: str) -> list[float]:
        key = _digest_pair(premise, hypothesis)
        found = self._values.get(key)
        if found is None:
            raise MissingScore(f"no score was recorded for premise sha256 {key[0]}, hypothesis sha256 {key[1]}")
        return found
