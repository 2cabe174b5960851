"""The words-and-negation heuristic of receipts as a scorer: no model, three labels that are 0 or 1."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from verifier.factuality.corroboration import Corroboration, corroborate

_ORDER = (Corroboration.SUPPORTED, Corroboration.CONTRADICTED, Corroboration.UNVERIFIED)


class WordsScorer:
    """What ``corroborate`` says of a premise and a hypothesis, as entailment, contradiction or neutral of 1.

    A heuristic and no model of language: it knows shared words and negators.
    """

    model = "words-and-negation-heuristic"
    revision = "1"
    dtype = "float64"

    @classmethod
    def identify(cls) -> dict[str, str]:
        """Its name and version."""
        return {"model": cls.model, "revision": cls.revision}

    def score(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        """Shape (n, 3): entailment, contradiction, neutral of each (premise, hypothesis)."""
        found = [_ORDER.index(corroborate(premise, hypothesis)) for premise, hypothesis in pairs]
        return np.eye(len(_ORDER))[found] if found else np.zeros((0, len(_ORDER)))
