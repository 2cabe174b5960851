"""Scores with a known truth: uniform on [0, 1], a claim with score s being positive with probability a + b·s."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def draw(random: np.random.Generator, n: int, low: float, slope: float) -> tuple[Floats, Bools]:
    scores = random.random(n)
    return scores, random.random(n) < low + slope * scores


def true_precision(threshold: float, low: float, slope: float) -> float:
    """The share of positives above a threshold: the mean of low + slope·s on (threshold, 1)."""
    return low + slope * (1 + threshold) / 2


def true_balanced_accuracy(threshold: float, low: float, slope: float) -> float:
    base = low + slope / 2
    above = true_precision(threshold, low, slope) * (1 - threshold)
    recall, false_support = above / base, (1 - threshold - above) / (1 - base)
    return (recall + 1 - false_support) / 2
