"""What a scorer is: it turns (premise, hypothesis) pairs into probabilities."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from verifier.errors import VerificationError
from verifier.protocol import Pair, Scores

SUM_TOLERANCE = 1e-5


@runtime_checkable
class ThreeLabelScorer(Protocol):
    """``score`` returns an array of shape (n, 3), columns entailment, contradiction, neutral."""

    model: str
    revision: str

    def score(self, pairs: Sequence[tuple[str, str]]) -> Any:
        """Probabilities of (premise, hypothesis) pairs."""
        ...


@runtime_checkable
class DetailedScorer(Protocol):
    """A scorer that also says how each premise was windowed or cut, and which pairs have no score.

    ``dtype`` names the arithmetic the scores come from, for instance ``float32``.
    """

    model: str
    revision: str
    dtype: str

    def score_detailed(self, pairs: Sequence[tuple[str, str]]) -> Scores:
        """Scores of (premise, hypothesis) pairs."""
        ...


def checked_three_label(raw: Any, n: int) -> NDArray[np.float64]:
    """``raw`` as float64 of shape (n, 3); VerificationError unless each row is a probability distribution.

    Every value must be finite and in [0, 1], and a row must sum to 1 within ``SUM_TOLERANCE``.
    """
    try:
        values = np.asarray(raw, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise VerificationError(f"the scorer returned something other than numbers: {error}") from error
    if values.size == 0 and n == 0:
        return values.reshape(0, 3)
    if values.shape != (n, 3):
        raise VerificationError(f"the scorer returned shape {values.shape} for {n} pairs, expected ({n}, 3)")
    good = np.isfinite(values).all(axis=1) & (values >= 0).all(axis=1) & (values <= 1).all(axis=1)
    good &= np.abs(values.sum(axis=1) - 1) <= SUM_TOLERANCE
    if not good.all():
        row = int(np.flatnonzero(~good)[0])
        raise VerificationError(
            f"the scorer returned {values[row].tolist()} for pair {row}:"
            " three finite probabilities that sum to 1 expected"
        )
    return values


def score_round(scorer: Any, pairs: Sequence[Pair]) -> Scores:
    """Score one round of a three-label plan: each distinct pair is asked once, every answer is checked.

    Raises VerificationError when the scorer fails or answers with anything but probabilities.
    """
    first: dict[tuple[str, str], int] = {}
    position = np.array(
        [first.setdefault((pair.premise, pair.hypothesis), len(first)) for pair in pairs], dtype=np.int64
    )
    distinct = list(first)
    scores = _ask(scorer, distinct)
    wrong = scores.errors
    checked = checked_three_label(np.delete(scores.values, list(wrong), axis=0), len(distinct) - len(wrong))
    values = np.full((len(distinct), 3), np.nan)
    values[[index for index in range(len(distinct)) if index not in wrong]] = checked
    return Scores(
        values[position],
        scores.windows[position],
        scores.window[position],
        scores.truncated[position],
        {index: wrong[int(source)] for index, source in enumerate(position) if int(source) in wrong} if wrong else {},
    )


def _ask(scorer: Any, pairs: list[tuple[str, str]]) -> Scores:
    try:
        if isinstance(scorer, DetailedScorer):
            return scorer.score_detailed(pairs)
        return Scores.whole(checked_three_label(scorer.score(pairs), len(pairs)))
    except VerificationError:
        raise
    except Exception as error:
        raise VerificationError(f"the scorer {scorer.model} failed: {error}") from error


def identify(factory: partial[Any]) -> dict[str, str]:
    """What the scorer that ``factory`` builds would be: model, resolved revision and digests of its files.

    Cheap, and raises ConfigurationError where the scorer could not be built; no weights are loaded.
    """
    identity: dict[str, str] = factory.func.identify(*factory.args, **factory.keywords)  # type: ignore[attr-defined]
    return identity
