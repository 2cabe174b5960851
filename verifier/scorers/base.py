"""What a scorer is: it turns (premise, hypothesis) pairs into probabilities."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from statistics import fmean
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from verifier.errors import ConfigurationError, MissingScore, PairTooLong, VerificationError
from verifier.protocol import CONFIRMATION, Asks, Pair, PairError, Scores

SUM_TOLERANCE = 1e-5
AGGREGATIONS: dict[str, Callable[[Sequence[float]], float]] = {"min": min, "mean": fmean, "max": max}
"""How the supports of one pair become one, by members or by windows; the mean does not depend on their order."""
_PLAIN_PAIR = ("It rained.", "It rained.")
NOT_FINITE = PairError("unscored", "not_finite", "the model returned something other than finite numbers")


@runtime_checkable
class ThreeLabelScorer(Protocol):
    """``score`` returns an array of shape (n, 3), columns entailment, contradiction, neutral."""

    model: str
    revision: str

    def score(self, pairs: Sequence[tuple[str, str]]) -> Any:
        """Probabilities of (premise, hypothesis) pairs."""
        ...


@runtime_checkable
class NLIScorer(Protocol):
    """``score_pairs`` returns the support in [0, 1] of each premise for its hypothesis."""

    model: str
    revision: str

    def score_pairs(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Support of (premise, hypothesis) pairs."""
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

    Every value must be in [0, 1], and a row must sum to 1 within ``SUM_TOLERANCE``; so none may be NaN.
    """
    values = _numbers(raw, (n, 3))
    good = ((values >= 0) & (values <= 1)).all(axis=1) & (np.abs(values.sum(axis=1) - 1) <= SUM_TOLERANCE)
    if not good.all():
        row = int(np.flatnonzero(~good)[0])
        raise VerificationError(
            f"the scorer returned {values[row].tolist()} for pair {row}:"
            " three finite probabilities that sum to 1 expected"
        )
    return values


def checked_support(raw: Any, n: int) -> NDArray[np.float64]:
    """``raw`` as float64 of shape (n,); VerificationError unless every value is in [0, 1]."""
    values = _numbers(raw, (n,))
    good = (values >= 0) & (values <= 1)
    if not good.all():
        row = int(np.flatnonzero(~good)[0])
        raise VerificationError(f"the scorer returned {values[row]} for pair {row}: a probability expected")
    return values


def score_round(scorer: Any, pairs: Sequence[Pair]) -> Scores:
    """The scores of one round of a three-label plan: each distinct pair is asked once, every answer is checked.

    A pair whose scores are not finite is unscored, one that the scorer fails on is rejected. Raises VerificationError
    when the scorer fails on any pair or answers with
    anything else that is no probability.
    """
    return _round(scorer, pairs, _ask_labels)


def support_round(scorer: Any, pairs: Sequence[Pair]) -> Scores:
    """Like ``score_round`` for a plan that asks for support; a three-label scorer answers with its entailment."""
    return _round(scorer, pairs, _ask_support)


def ask_round(scorer: Any, pairs: Sequence[Pair], asks: Asks) -> Scores:
    """The scores of one round of a plan that asks for ``asks``, see ``verifier.protocol.Method``.

    For ``support+labels`` the scorer has two parts: ``labels`` scores a round of confirmations, ``cosine`` any other.
    """
    if asks == "support+labels":
        confirming = any(pair.kind == CONFIRMATION for pair in pairs)
        return score_round(scorer.labels, pairs) if confirming else support_round(scorer.cosine, pairs)
    return support_round(scorer, pairs) if asks == "support" else score_round(scorer, pairs)


def support_scores(scorer: Any, pairs: Sequence[tuple[str, str]]) -> Scores:
    """Like ``support_round`` for pairs of texts, all of which are asked; values of shape (n,)."""
    return _guarded(scorer, list(pairs), _ask_support)


def _round(scorer: Any, pairs: Sequence[Pair], ask: Callable[[Any, list[tuple[str, str]]], Scores]) -> Scores:
    first: dict[tuple[str, str], int] = {}
    position = np.array(
        [first.setdefault((pair.premise, pair.hypothesis), len(first)) for pair in pairs], dtype=np.int64
    )
    scores = _guarded(scorer, list(first), ask)
    return scores if len(first) == len(pairs) else _spread(scores, position)


def _guarded(scorer: Any, pairs: list[tuple[str, str]], ask: Callable[[Any, list[tuple[str, str]]], Scores]) -> Scores:
    try:
        return ask(scorer, pairs)
    except VerificationError:
        raise
    except Exception as error:
        return _isolated(scorer, pairs, ask, error)


def _isolated(
    scorer: Any, pairs: list[tuple[str, str]], ask: Callable[[Any, list[tuple[str, str]]], Scores], error: Exception
) -> Scores:
    """The scores of pairs that a scorer failed on together: halves are asked until the ones at fault are alone.

    Those are rejected. A scorer that fails on a plain pair too is broken, which is a VerificationError.
    """
    if len(pairs) > 1:
        middle = len(pairs) // 2
        return _joined([_guarded(scorer, half, ask) for half in (pairs[:middle], pairs[middle:])])
    try:
        plain = ask(scorer, [_PLAIN_PAIR])
    except Exception:
        name = getattr(scorer, "model", type(scorer).__name__)
        raise VerificationError(f"the scorer {name} failed: {error}") from error
    reason = PairError("rejected", "scorer_failed", f"the scorer fails on this pair and on no other: {error}")
    return replace(plain, values=np.full_like(plain.values, np.nan), errors={0: reason}, parts={})


def _joined(parts: Sequence[Scores]) -> Scores:
    """The scores of pairs that were asked in several calls."""
    starts = np.cumsum([0, *(len(part.values) for part in parts)]).tolist()
    moved = list(zip(starts, parts, strict=False))
    return Scores(
        np.concatenate([part.values for part in parts]),
        np.concatenate([part.windows for part in parts]),
        np.concatenate([part.window for part in parts]),
        np.concatenate([part.truncated for part in parts]),
        {start + index: error for start, part in moved for index, error in part.errors.items()},
        {start + index: found for start, part in moved for index, found in part.parts.items()},
    )


def _spread(scores: Scores, position: NDArray[np.int64]) -> Scores:
    """The scores of distinct pairs, given to every pair that asked for them."""
    sources = position.tolist()
    return Scores(
        scores.values[position],
        scores.windows[position],
        scores.window[position],
        scores.truncated[position],
        {index: scores.errors[source] for index, source in enumerate(sources) if source in scores.errors},
        {index: scores.parts[source] for index, source in enumerate(sources) if source in scores.parts},
    )


def _ask_labels(scorer: Any, pairs: list[tuple[str, str]]) -> Scores:
    detailed = isinstance(scorer, DetailedScorer)
    scores = scorer.score_detailed(pairs) if detailed else Scores.whole(_numbers(scorer.score(pairs), (len(pairs), 3)))
    return _checked(scores, checked_three_label)


def _ask_support(scorer: Any, pairs: list[tuple[str, str]]) -> Scores:
    if not hasattr(scorer, "score_pairs"):
        scores = _ask_labels(scorer, pairs)
        return replace(scores, values=scores.values[:, 0])
    detailed = isinstance(scorer, DetailedScorer)
    scores = (
        scorer.score_detailed(pairs) if detailed else Scores.whole(_numbers(scorer.score_pairs(pairs), (len(pairs),)))
    )
    return _checked(scores, checked_support)


def _checked(scores: Scores, check: Callable[[Any, int], NDArray[np.float64]]) -> Scores:
    """The same scores with pairs that have no finite ones unscored."""
    finite = np.isfinite(scores.values if scores.values.ndim == 1 else scores.values.sum(axis=1))
    errors = {int(index): NOT_FINITE for index in np.flatnonzero(~finite)} | dict(scores.errors)
    scored = np.ones(len(finite), np.bool_)
    scored[list(errors)] = False
    check(scores.values[scored], int(scored.sum()))
    return replace(scores, errors=errors) if errors else scores


def _numbers(raw: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """``raw`` as float64 of this shape; VerificationError where it is not of numbers or of another shape."""
    try:
        values = np.asarray(raw, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise VerificationError(f"the scorer returned something other than numbers: {error}") from error
    if values.size == 0 and shape[0] == 0:
        return values.reshape(shape)
    if values.shape != shape:
        raise VerificationError(f"the scorer returned shape {values.shape} for {shape[0]} pairs, expected {shape}")
    return values


def check_form(factory: partial[Any], asks: str, choice: str) -> None:
    """Raise ConfigurationError where a scorer does not give what is asked for, see ``verifier.protocol.Method``.

    A three-label scorer gives support as well; for ``support+labels`` each of the two parts is checked. ``choice``
    is what asks, as on the command line: ``method=groups``.
    """
    scorer = factory.func.__name__
    parts = {"cosine": "support", "labels": "labels"}
    has_parts = parts.keys() <= factory.keywords.keys()
    if asks == "support+labels" and not has_parts:
        raise ConfigurationError(
            f"the scorer {scorer} is one and {choice} asks two, for cosines and for three labels:"
            " use scorer=fusion_nli, and for another of three labels scorer@scorer.labels=cross_encoder"
        )
    if asks == "support+labels":
        for part, form in parts.items():
            check_form(factory.keywords[part], form, choice)
    elif has_parts:
        raise ConfigurationError(
            f"the scorer {scorer} is two, for cosines and for three labels, and {choice} asks one: use another scorer"
        )
    elif asks == "labels" and not hasattr(factory.func, "score"):
        raise ConfigurationError(
            f"the scorer {scorer} gives one support score and {choice} asks for three labels:"
            " use a scorer such as cross_encoder or offline, or method=grounding in jobs.verify"
        )


def raise_first(errors: Mapping[int, PairError]) -> None:
    """Raise the error of the first pair that has one: PairTooLong, MissingScore or another VerificationError."""
    for index, error in sorted(errors.items()):
        raise error_kind(error)(f"pair {index} has no score: {error.message}")


def error_kind(error: PairError) -> type[VerificationError]:
    """What is raised where a pair without a score is not put up with."""
    kinds = {"pair_too_long": PairTooLong, "missing_score": MissingScore}
    return kinds.get(error.code, VerificationError)


def identify(factory: partial[Any]) -> dict[str, str]:
    """What the scorer that ``factory`` builds would be: model, resolved revision and digests of its files.

    Cheap, and raises ConfigurationError where the scorer could not be built; no weights are loaded.
    """
    identity: dict[str, str] = factory.func.identify(*factory.args, **factory.keywords)  # type: ignore[attr-defined]
    return identity
