"""Three-label scorers free of cost: their answers depend on the pair alone."""

import hashlib
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from verifier.records import DEFAULT_MODEL, DEFAULT_REVISION

Kind = Literal["undecided", "sharp"]

_UNDECIDED = (0.0, 0.0, 1.0)
_DRAWS = np.dtype("<u8")
_SHARPNESS = 6  # power that draws the probabilities apart: about half of the pairs reach a threshold of 0.8


def free_triple(kind: Kind, premise: str, hypothesis: str) -> tuple[float, float, float]:
    """``undecided`` is all neutral, so that every group size is searched; ``sharp`` is drawn from a hash."""
    if kind == "undecided":
        return _UNDECIDED
    draws = np.frombuffer(_digest(premise, hypothesis), _DRAWS)
    entailment, contradiction, neutral = _probabilities(draws[np.newaxis])[0].tolist()
    return entailment, contradiction, neutral


def _digest(premise: str, hypothesis: str) -> bytes:
    return hashlib.blake2b(f"{premise}\0{hypothesis}".encode(), digest_size=24).digest()


def _probabilities(draws: NDArray[np.uint64]) -> NDArray[np.float64]:
    weights = ((draws.astype(np.float64) + 1) / 2**64) ** _SHARPNESS
    shares: NDArray[np.float64] = weights / weights.sum(axis=1, keepdims=True)
    return shares


class FreeScorer:
    """Draws the probabilities of a pair from a hash of it.

    Args:
        kind: ``undecided`` or ``sharp``, see ``free_triple``.
        model, revision: the names that stand in the records.
    """

    dtype = "float64"

    def __init__(self, kind: Kind = "sharp", model: str = DEFAULT_MODEL, revision: str = DEFAULT_REVISION) -> None:
        self.kind, self.model, self.revision = kind, model, revision

    @classmethod
    def identify(
        cls, kind: Kind = "sharp", model: str = DEFAULT_MODEL, revision: str = DEFAULT_REVISION
    ) -> dict[str, str]:
        """Model and revision, as given."""
        return {"model": model, "revision": revision}

    def score(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        """Probabilities, shape (n, 3)."""
        if self.kind == "undecided":
            return np.tile(_UNDECIDED, (len(pairs), 1))
        draws = np.frombuffer(b"".join(_digest(*pair) for pair in pairs), _DRAWS)
        return _probabilities(draws.reshape(-1, 3))


class MemoScorer:
    """The answers of a ``FreeScorer``, each worked out when a pair is first asked and looked up after that."""

    def __init__(self, kind: Kind, model: str, revision: str) -> None:
        self.kind, self.model, self.revision = kind, model, revision
        self.known: dict[tuple[str, str], tuple[float, float, float]] = {}

    def triples(self, pairs: Sequence[tuple[str, str]]) -> list[tuple[float, float, float]]:
        """One triple a pair."""
        known = self.known
        for pair in pairs:
            if pair not in known:
                known[pair] = free_triple(self.kind, *pair)
        return [known[pair] for pair in pairs]

    def score(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        """Probabilities, shape (n, 3)."""
        return np.array(self.triples(pairs), dtype=np.float64).reshape(-1, 3)
