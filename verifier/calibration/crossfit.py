"""Cross-fitting by document: thresholds and calibrators are chosen on some documents and judged on the others."""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from verifier.calibration.calibrators import Kind, apply, fit
from verifier.calibration.rules import Constraint, Rule, choose
from verifier.calibration.selection import Bools, Comparison, Floats, passes
from verifier.errors import ConfigurationError

MANY = 2000
"""Groups above which it is enough to spread those with a positive claim evenly: weighing each takes a millisecond."""


@dataclass(frozen=True)
class CrossFit:
    """What ``cross_fit`` found; row i was judged by what was chosen without any claim of its group.

    Attributes:
        fold: the fold of each row, shape (n,).
        scores: the probability of each row by its fold's calibrator, shape (n,).
        supported: whether it passes its fold's threshold, shape (n,).
        thresholds: a threshold for each fold, None where none met the constraints; that fold then supports nothing.
        whys: the sentence for each fold without one.
    """

    fold: NDArray[np.int64]
    scores: Floats
    supported: Bools
    thresholds: list[float | None]
    whys: list[str]


def grouped_folds(positive: Bools, groups: NDArray[np.int64], folds: int, seed: int) -> NDArray[np.int64]:
    """The fold of each row, from 0: whole groups in one fold, labels spread evenly, the same for the same seed.

    ConfigurationError where there are too few groups with either label for every fold to have one of each.
    """
    for label, name in ((True, "positive"), (False, "negative")):
        enough = len(np.unique(groups[positive == label]))
        if enough < folds:
            raise ConfigurationError(
                f"{enough} groups have a {name} claim, too few for folds={folds}: give more data or fewer folds"
            )
    names, codes, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    with warnings.catch_warnings(action="ignore"):  # of a class with fewer rows than folds: refused above
        if len(names) > MANY or sizes.max() == 1:
            held = np.bincount(codes, positive) > 0
            splits = StratifiedKFold(folds, shuffle=True, random_state=seed).split(names, held)
            return _numbered(splits, len(names))[codes]
        splits = StratifiedGroupKFold(folds, shuffle=True, random_state=seed).split(positive, positive, codes)
        return _numbered(splits, len(positive))


def _numbered(splits: Iterable[tuple[Any, NDArray[np.int64]]], n: int) -> NDArray[np.int64]:
    """Which test part each of n things is in."""
    fold = np.zeros(n, dtype=np.int64)
    for number, (_, test) in enumerate(splits):
        fold[test] = number
    return fold


def out_of_fold(kind: Kind, inputs: Floats, positive: Bools, fold: NDArray[np.int64]) -> Floats:
    """The probability of each row by the calibrator of the other folds, shape (n,); inputs as in ``fit``."""
    if kind == "none":
        return inputs[:, 0]
    scores = np.empty(len(positive))
    for number in np.unique(fold):
        test = fold == number
        scores[test] = apply(_fitted(kind, inputs[~test], positive[~test]), inputs[test])
    return scores


@threadpool_limits.wrap(limits=1)  # type: ignore[untyped-decorator]  # threads cost more than these small fits
def cross_fit(
    kind: Kind,
    inputs: Floats,
    positive: Bools,
    groups: NDArray[np.int64],
    rule: Rule,
    constraints: Sequence[Constraint] = (),
    comparison: Comparison = ">",
    folds: int = 5,
    seed: int = 0,
) -> CrossFit:
    """Judge every row by a calibrator and a threshold that know no claim of its group.

    For each outer fold the threshold is chosen on inner out-of-fold probabilities of the other folds, so that it never
    sees a calibrator's fit to its own rows; the calibrator is then fitted on all of the other folds. Without a
    calibrator the threshold is chosen on their scores. ``inputs`` as in ``verifier.calibration.calibrators.fit``.
    """
    fold = grouped_folds(positive, groups, folds, seed)
    scores, supported = np.empty(len(positive)), np.zeros(len(positive), np.bool_)
    thresholds: list[float | None] = []
    whys: list[str] = []
    for number in range(folds):
        test = fold == number
        train, labels = inputs[~test], positive[~test]
        inner = train[:, 0]
        if kind != "none":
            inner = out_of_fold(kind, train, labels, _inner_folds(labels, groups[~test], folds, seed))
        choice = choose(inner, labels, rule, constraints, comparison)
        threshold = choice.point.threshold if choice.point else None
        scores[test] = apply(_fitted(kind, train, labels), inputs[test])
        supported[test] = passes(scores[test], threshold, comparison)
        thresholds.append(threshold)
        whys += [choice.why] if choice.why else []
    return CrossFit(fold, scores, supported, thresholds, whys)


def _inner_folds(positive: Bools, groups: NDArray[np.int64], folds: int, seed: int) -> NDArray[np.int64]:
    """Folds of what an outer fold leaves over, fewer where its groups no longer suffice; at least 2."""
    fewest = min(len(np.unique(groups[positive == label])) for label in (True, False))
    return grouped_folds(positive, groups, max(2, min(folds, fewest)), seed + 1)


def _fitted(kind: Kind, inputs: Floats, positive: Bools) -> dict[str, object]:
    if positive.all() or not positive.any():
        raise ConfigurationError("a fold has claims of one label only: give more data or fewer folds")
    return dict(fit(kind, inputs, positive))
