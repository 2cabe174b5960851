"""Threshold selection: the counts at every candidate threshold, and the best one under constraints."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Comparison = Literal[">", ">="]
"""What a score does to the threshold to be supported."""


@dataclass(frozen=True)
class OperatingPoint:
    """One threshold and its binary counts and figures, a division by zero being 0."""

    threshold: float
    true_positives: int
    false_positives: int
    true_negatives: int
    false_negatives: int
    precision: float
    recall: float
    f1: float
    accuracy: float
    balanced_accuracy: float
    false_support_rate: float


def candidates(scores: Floats) -> Floats:
    """The thresholds that can differ on these scores, ascending: 0, 1 and every distinct score."""
    return np.unique(np.concatenate([scores, [0.0, 1.0]]))


def operating_points(
    scores: Floats, positive: Bools, thresholds: Floats | None = None, comparison: Comparison = ">"
) -> dict[str, NDArray[Any]]:
    """The fields of ``OperatingPoint``, each of shape (thresholds,), at each threshold.

    Costs one sort of the scores. ``scores`` and ``positive`` have shape (n,); ``thresholds`` None are the
    ``candidates``.
    """
    at = candidates(scores) if thresholds is None else thresholds
    side: Literal["left", "right"] = "right" if comparison == ">" else "left"
    ranked = np.sort(scores[positive]), np.sort(scores[~positive])
    true_positives, false_positives = (len(part) - np.searchsorted(part, at, side=side) for part in ranked)
    positives, negatives = (np.full(len(at), len(part)) for part in ranked)
    return {"threshold": at} | figures(true_positives, false_positives, positives, negatives)


def figures(
    true_positives: NDArray[Any], false_positives: NDArray[Any], positives: NDArray[Any], negatives: NDArray[Any]
) -> dict[str, NDArray[Any]]:
    """The counts and figures of ``OperatingPoint`` from four arrays of counts of one shape."""
    true_negatives, false_negatives = negatives - false_positives, positives - true_positives
    recall, specificity = _ratio(true_positives, positives), _ratio(true_negatives, negatives)
    return {
        "true_positives": true_positives,
        "false_positives": false_positives,
        "true_negatives": true_negatives,
        "false_negatives": false_negatives,
        "precision": _ratio(true_positives, true_positives + false_positives),
        "recall": recall,
        "f1": _ratio(2 * true_positives, positives + true_positives + false_positives),
        "accuracy": _ratio(true_positives + true_negatives, positives + negatives),
        "balanced_accuracy": (recall + specificity) / 2,
        "false_support_rate": _ratio(false_positives, negatives),
    }


def passes(scores: Floats, threshold: float | None, comparison: Comparison = ">") -> Bools:
    """Which scores are supported, shape (n,); none where there is no threshold."""
    if threshold is None:
        return np.zeros(len(scores), np.bool_)
    return scores > threshold if comparison == ">" else scores >= threshold


def decided_figures(supported: Bools, positive: Bools) -> dict[str, Any]:
    """The counts and figures of decisions, by name, as numbers; both arrays have shape (n,)."""
    counts = (supported & positive).sum(), (supported & ~positive).sum(), positive.sum(), (~positive).sum()
    return {name: values.item() for name, values in figures(*(np.array([count]) for count in counts)).items()}


def select(
    points: Mapping[str, NDArray[Any]],
    best: Sequence[str],
    at_least: Mapping[str, float] | None = None,
    at_most: Mapping[str, float] | None = None,
) -> OperatingPoint | None:
    """The point that is best by ``best[0]``, then ``best[1]`` … (larger wins), then by the lowest threshold.

    ``at_least`` and ``at_most`` bound figures; None where no threshold keeps within the bounds.
    """
    allowed = np.ones(len(points["threshold"]), dtype=bool)
    for name, bound in (at_least or {}).items():
        allowed &= points[name] >= bound
    for name, bound in (at_most or {}).items():
        allowed &= points[name] <= bound
    if not allowed.any():
        return None
    keys = [points["threshold"], *(-points[name] for name in reversed(best))]
    order = np.lexsort([key[allowed] for key in keys])
    index = np.flatnonzero(allowed)[order[0]]
    return OperatingPoint(**{name: values[index].item() for name, values in points.items()})


def _ratio(counts: NDArray[Any], of: NDArray[Any]) -> Floats:
    shares: Floats = np.divide(counts, of, out=np.zeros(counts.shape), where=of > 0)
    return shares
