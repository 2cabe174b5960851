"""How well scores are probabilities: the reliability diagram, ECE and Brier score."""

from dataclasses import dataclass

import numpy as np
from sklearn.metrics import average_precision_score, brier_score_loss, roc_auc_score

from verifier.calibration.intervals import clopper_pearson
from verifier.calibration.selection import Bools, Floats


@dataclass(frozen=True)
class Reliability:
    """Claims binned by score, in bins of equal width; empty bins are left out of the lists.

    Attributes:
        scores: mean score of each bin.
        shares: share of positives of each bin.
        lower, upper: its exact 95 % interval.
        counts: claims of each bin.
        ece: expected calibration error, Σ count · abs(share - score) / n (Naeini et al., AAAI 2015).
        brier: mean squared difference of score and label.
        auroc, average_precision: how well the scores rank; None where a label is missing altogether.
    """

    scores: list[float]
    shares: list[float]
    lower: list[float]
    upper: list[float]
    counts: list[int]
    ece: float
    brier: float
    auroc: float | None
    average_precision: float | None


def reliability(scores: Floats, positive: Bools, bins: int = 10) -> Reliability:
    """Reliability of scores in [0, 1], shape (n,), n at least 1; a score on a border falls into the bin above."""
    index = np.minimum((scores * bins).astype(np.int64), bins - 1)
    counts = np.bincount(index, minlength=bins)
    filled = counts > 0
    total = counts[filled]
    mean = np.bincount(index, scores, bins)[filled] / total
    hits = np.bincount(index, positive, bins)[filled]
    lower, upper = clopper_pearson(hits, total)
    both = 0 < positive.sum() < len(positive)
    return Reliability(
        scores=mean.tolist(),
        shares=(hits / total).tolist(),
        lower=lower.tolist(),
        upper=upper.tolist(),
        counts=total.tolist(),
        ece=float(np.sum(total * np.abs(hits / total - mean)) / len(scores)),
        brier=float(brier_score_loss(positive, scores, pos_label=True)),
        auroc=float(roc_auc_score(positive, scores)) if both else None,
        average_precision=float(average_precision_score(positive, scores)) if both else None,
    )
