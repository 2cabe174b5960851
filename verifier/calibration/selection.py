"""Threshold selection: the counts at every candidate threshold, and the best one under constraints."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class OperatingPoint:
    """One threshold (supported strictly above it) and its binary figures, a division by zero being 0."""

    threshold: float
    precision: float
    recall: float
    balanced_accuracy: float
    false_support_rate: float


def operating_points(scores: Floats, positive: NDArray[np.bool_]) -> dict[str, Floats]:
    """The figures of ``OperatingPoint`` at each candidate threshold, ascending: 0, 1 and every distinct score.

    Costs one sort of the scores. ``scores`` and ``positive`` have shape (n,).
    """
    thresholds = np.unique(np.concatenate([scores, [0.0, 1.0]]))
    ranked = np.sort(scores[positive]), np.sort(scores[~positive])
    true_positives, false_positives = (len(part) - np.searchsorted(part, thresholds, side="right") for part in ranked)
    positives, negatives = (len(part) for part in ranked)
    recall = _ratio(true_positives, np.full(len(thresholds), positives))
    false_support = _ratio(false_positives, np.full(len(thresholds), negatives))
    specificity = _ratio(negatives - false_positives, np.full(len(thresholds), negatives))
    return {
        "threshold": thresholds,
        "precision": _ratio(true_positives, true_positives + false_positives),
        "recall": recall,
        "balanced_accuracy": (recall + specificity) / 2,
        "false_support_rate": false_support,
    }


def select(
    points: Mapping[str, Floats], best: Sequence[str], at_least: Mapping[str, float] | None = None
) -> OperatingPoint | None:
    """The point that is best by ``best[0]``, then ``best[1]`` … (larger wins), then by the lowest threshold.

    ``at_least`` bounds figures from below; None where no threshold keeps within the bounds.
    """
    allowed = np.ones(len(points["threshold"]), dtype=bool)
    for name, bound in (at_least or {}).items():
        allowed &= points[name] >= bound
    if not allowed.any():
        return None
    keys = [points["threshold"], *(-points[name] for name in reversed(best))]
    order = np.lexsort([key[allowed] for key in keys])
    index = np.flatnonzero(allowed)[order[0]]
    return OperatingPoint(**{name: float(values[index]) for name, values in points.items()})


def _ratio(counts: NDArray[np.int64], of: NDArray[np.int64]) -> Floats:
    return np.divide(counts, of, out=np.zeros(len(counts)), where=of > 0)
