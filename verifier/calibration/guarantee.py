"""A guaranteed precision: the laxest threshold that holds with a stated confidence, whatever the scores are worth."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc  # type: ignore[import-untyped]

from verifier.calibration.selection import Bools, Comparison, Floats, operating_points

GRID = np.concatenate([1 / (1 + np.exp(np.linspace(-14, 14, 1121))), [0.0]])
"""The thresholds that are tested, strict to lax: steps of 0.025 in logit, so fine where scores pile up, then 0.

It is fixed before any score is seen, which the proof needs.
"""


@dataclass(frozen=True)
class Guarantee:
    """What ``guaranteed_threshold`` found; ``threshold`` is None where it is not attainable on these data.

    Attributes:
        precision, confidence: what was asked for.
        threshold: the laxest threshold that is guaranteed.
        supported, correct: the claims that pass it, or else the laxest one where testing starts, and how many of
            them are labelled so.
        claims: claims that the test used.
        starts: claims that pass the strictest thresholds tested, see ``starting_counts``.
    """

    precision: float
    confidence: float
    threshold: float | None
    supported: int
    correct: int
    claims: int
    starts: tuple[int, ...]

    def __str__(self) -> str:
        asked = f"precision >= {self.precision:.2f} with confidence {self.confidence:.0%}"
        if self.threshold is not None:
            return f"{asked}: threshold {self.threshold:.4f}, {self.correct} of {self.supported} claims there are right"
        if self.supported < self.starts[0]:
            return (
                f"{asked}: not attainable on these data, no threshold has the {self.starts[0]} claims that a test needs"
            )
        return (
            f"{asked}: not attainable on these data, where testing starts {self.correct} of {self.supported}"
            " supported claims are right"
        )


def starting_counts(precision: float, confidence: float, claims: int) -> tuple[int, ...]:
    """How many claims pass the thresholds where a sequence starts, ascending; it depends on these numbers alone.

    The fewest claims at which one wrong one is forgiven, a tenth of all, and a quarter of all. A sequence that starts
    strict can end at an unlucky handful of claims, one that starts lax misses strict thresholds.
    """
    fewest = _forgiving(precision, (1 - confidence) / 3)
    return tuple(sorted({fewest} | {count for count in (claims // 10, claims // 4) if count > fewest}))


@lru_cache
def _forgiving(precision: float, level: float) -> int:
    """The fewest claims of which one may be wrong: P(Binomial(m, precision) >= m - 1) <= level."""
    count = 2
    while precision**count + count * (1 - precision) * precision ** (count - 1) > level:
        count += 1
    return count


def guaranteed_threshold(
    scores: Floats, positive: Bools, precision: float, confidence: float = 0.95, comparison: Comparison = ">"
) -> Guarantee:
    """The laxest threshold whose precision is at least ``precision``, found so that this holds with ``confidence``.

    Learn then Test (Angelopoulos, Bates, Candès, Jordan and Lei, arXiv:2110.01052), fixed-sequence testing with J
    starts: for thresholds t from strict to lax on the fixed ``GRID`` the hypothesis "precision at t is below the
    target" has the exact p-value P(Binomial(m, target) >= k), with m claims supported at t of which k are labelled so.
    A sequence starts at the first t with ``starting_counts`` claims and ends at the first p-value above
    (1 - confidence) / J; every threshold before is guaranteed, the laxest of all sequences is returned. No correction
    for the number of thresholds is due: an error needs the first true hypothesis of a sequence to be rejected.

    Assumptions: the claims are independent and drawn as later claims will be; the scores do not depend on these
    labels; and among thresholds stricter than where a sequence starts, precision does not fall as they rise (where it
    starts depends on the scores, not on the labels). Claims of one document are not independent: give one claim of
    each (``one_of_each``), which makes it a statement about a random claim of a random document.

    Args:
        scores: in [0, 1], shape (n,).
        positive: labels, shape (n,).
        precision: the target, in (0, 1).
        confidence: in (0, 1).
        comparison: what a score does to the threshold to be supported.
    """
    starts = starting_counts(precision, confidence, len(scores))
    points = operating_points(scores, positive, GRID, comparison)
    correct = points["true_positives"]
    supported = correct + points["false_positives"]
    failed = _tail(correct, supported, precision) > (1 - confidence) / len(starts)
    firsts = np.searchsorted(supported, starts)  # more and more claims pass, down the grid
    ends = [first + _leading(~failed[first:]) for first in firsts]
    held = [end - 1 for first, end in zip(firsts, ends, strict=True) if end > first]
    tested = firsts[firsts < len(GRID)]
    shown = max(held) if held else tested[-1] if len(tested) else len(GRID) - 1
    return Guarantee(
        precision,
        confidence,
        float(GRID[shown]) if held else None,
        int(supported[shown]),
        int(correct[shown]),
        len(scores),
        starts,
    )


def _leading(flags: Bools) -> int:
    """How many flags are set before the first that is not."""
    return len(flags) if flags.all() else int(np.argmin(flags))


def _tail(hits: NDArray[np.int64], of: NDArray[np.int64], share: float) -> Floats:
    """P(Binomial(of, share) >= hits) as a regularized incomplete beta function, elementwise."""
    some = hits > 0  # none or more are certain
    tail: Floats = np.where(some, betainc(np.where(some, hits, 1), of - hits + 1, share), 1.0)
    return tail


def one_of_each(groups: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    """The index of one random member of each group, ascending."""
    order = np.random.default_rng(seed).permutation(len(groups))
    _, first = np.unique(groups[order], return_index=True)
    return np.sort(order[first])
