"""In-sample and cross-fitted estimates beside the truth, and a picture of it.

``python -m tests.calibration.bias bias.png`` writes the picture.
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from tests.calibration.synthetic import Floats, draw, true_balanced_accuracy
from verifier.calibration.crossfit import cross_fit
from verifier.calibration.rules import RULES, choose
from verifier.calibration.selection import decided_figures
from verifier.report.pictures import png

TRUTH = (0.2, 0.6)
CLAIMS = 60
RULE = RULES["max_balanced_accuracy"]


def estimation_errors(repetitions: int, seed: int) -> dict[str, Floats]:
    """Estimated minus true balanced accuracy of what was chosen, for each estimator, shape (repetitions,).

    The truth of the in-sample figure is that of its threshold, of the cross-fitted one the mean over its folds'.
    """
    random = np.random.default_rng(seed)
    errors: dict[str, list[float]] = {"in sample": [], "cross-fitted": []}
    for _ in range(repetitions):
        scores, positive = draw(random, CLAIMS, *TRUTH)
        point = choose(scores, positive, RULE).point
        assert point is not None
        errors["in sample"].append(point.balanced_accuracy - true_balanced_accuracy(point.threshold, *TRUTH))
        crossed = cross_fit(
            "none", scores[:, None], positive, np.arange(CLAIMS), RULE, seed=int(random.integers(2**31))
        )
        estimate = decided_figures(crossed.supported, positive)["balanced_accuracy"]
        truth = np.mean([true_balanced_accuracy(t, *TRUTH) for t in crossed.thresholds if t is not None])
        errors["cross-fitted"].append(estimate - float(truth))
    return {name: np.array(values) for name, values in errors.items()}


def write_picture(errors: dict[str, Floats], path: Path) -> None:
    """Histograms of the errors; one that is unbiased has its mean at 0."""
    figure = Figure(figsize=(7.2, 3.0), layout="constrained")
    axes = figure.subplots()
    edges = np.histogram_bin_edges(np.concatenate(list(errors.values())), 40).tolist()
    for (name, values), colour in zip(errors.items(), ("#D55E00", "#0072B2"), strict=True):
        axes.hist(values, bins=edges, color=colour, alpha=0.55, label=f"{name}: mean {values.mean():+.4f}")
        axes.axvline(values.mean(), color=colour, linewidth=1.6)
    axes.axvline(0, color="#222222", linestyle="--", linewidth=1.2)
    axes.set_xlabel("estimated minus true balanced accuracy")
    axes.set_ylabel("repetitions")
    axes.legend(frameon=False, fontsize=9)
    path.write_bytes(png(figure, axes))


if __name__ == "__main__":
    write_picture(estimation_errors(500, 1), Path(sys.argv[1]))
