"""Intervals of figures: exact ones for independent claims, and a bootstrap over groups for dependent ones."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta  # type: ignore[import-untyped]

from verifier.calibration.selection import Bools, Floats, figures

SHARES = {
    "precision": ("true_positives", "false_positives"),
    "recall": ("true_positives", "false_negatives"),
    "false_support_rate": ("false_positives", "true_negatives"),
}
"""The figures that are one share of claims: hits, and misses."""


def clopper_pearson(hits: NDArray[Any], of: NDArray[Any], confidence: float = 0.95) -> tuple[Floats, Floats]:
    """The exact two-sided interval of a share, (lower, upper), each of the arrays' shape; (0, 1) where ``of`` is 0.

    Assumes independent draws with one probability: claims of one document that fail together make it too narrow.
    The bounds are beta quantiles (Clopper and Pearson, Biometrika 26, 1934): lower B(α/2; k, n-k+1), upper
    B(1-α/2; k+1, n-k), with k hits of n and α = 1 - confidence.
    """
    hits, of = np.asarray(hits, dtype=np.float64), np.asarray(of, dtype=np.float64)
    tail = (1 - confidence) / 2
    with np.errstate(invalid="ignore"):
        lower = np.where(hits > 0, beta.ppf(tail, hits, of - hits + 1), 0.0)
        upper = np.where(hits < of, beta.ppf(1 - tail, hits + 1, of - hits), 1.0)
    return lower, upper


def exact_intervals(counts: dict[str, Any], confidence: float = 0.95) -> dict[str, tuple[float, float]]:
    """The Clopper-Pearson interval of each of ``SHARES`` from counts by name."""
    found = {}
    for name, (hits, misses) in SHARES.items():
        lower, upper = clopper_pearson(counts[hits], counts[hits] + counts[misses], confidence)
        found[name] = (float(lower), float(upper))
    return found


def bootstrap(supported: Bools, positive: Bools, groups: NDArray[Any], draws: int, seed: int) -> dict[str, Floats]:
    """Figures of ``draws`` resamples of whole groups with replacement, by name, each of shape (draws,).

    Assumes independent groups; claims within one may depend on each other in any way. The decisions stand: it is
    not told again which threshold each resample would have chosen. Groups with equal counts are interchangeable, so
    a draw is one multinomial over the distinct counts, which is the same distribution at a fraction of the cost.

    Args:
        supported, positive: decisions and labels, shape (n,).
        groups: integer codes of groups, shape (n,).
        draws: number of resamples.
        seed: of the random numbers.
    """
    counts = np.zeros((int(groups.max()) + 1, 4), dtype=np.int64)
    np.add.at(counts, (groups, np.where(supported, 0, 2) + np.where(positive, 0, 1)), 1)
    counts = counts[counts.sum(axis=1) > 0]
    kinds, sizes = np.unique(counts, axis=0, return_counts=True)
    drawn = np.random.default_rng(seed).multinomial(len(counts), sizes / len(counts), size=draws) @ kinds
    true_positives, false_positives, false_negatives, true_negatives = drawn.T
    resampled = figures(
        true_positives, false_positives, true_positives + false_negatives, false_positives + true_negatives
    )
    return {name: values for name, values in resampled.items() if values.dtype == np.float64}


def percentiles(resampled: dict[str, Floats], confidence: float = 0.95) -> dict[str, tuple[float, float]]:
    """The percentile interval of each figure of a bootstrap."""
    tail = (1 - confidence) / 2
    return {
        name: (float(low), float(high))
        for name, (low, high) in ((name, np.quantile(values, [tail, 1 - tail])) for name, values in resampled.items())
    }
