"""The pictures of a calibration, as PNG bytes."""

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from matplotlib.figure import Figure

from verifier.calibration.domains import Domain
from verifier.calibration.reliability import Reliability
from verifier.calibration.selection import Bools, Comparison, Floats, operating_points
from verifier.report.pictures import BLUE, INK, png

GREEN, RED, ORANGE = "#009E73", "#D55E00", "#E69F00"
DOMAINS_SHOWN = 30  # more would be no picture
NAMES = {"none": "score as it is"}
_COLOURS = (BLUE, RED, GREEN, ORANGE)


def curve_picture(
    scores: Floats,
    positive: Bools,
    comparison: Comparison,
    threshold: float | None,
    guaranteed: float | None,
    bounds: Mapping[str, float],
) -> bytes:
    """Precision and recall against the threshold, with the chosen and the guaranteed one and the bounds on both."""
    points = operating_points(scores, positive, comparison=comparison)
    some = points["true_positives"] + points["false_positives"] > 0  # the precision of nothing is no point
    figure = Figure(figsize=(8.6, 3.4), layout="constrained")
    axes = figure.subplots()
    where: Literal["post", "pre"] = "post" if comparison == ">" else "pre"
    for name, colour in (("precision", BLUE), ("recall", ORANGE)):
        axes.step(points["threshold"][some], points[name][some], where=where, color=colour, label=name)
        if name in bounds:
            bound = f"{name} asked for, {bounds[name]:g}"
            axes.axhline(bounds[name], color=colour, linestyle=":", linewidth=1.2, label=bound)
    for value, name, style in ((threshold, "chosen", "--"), (guaranteed, "guaranteed", "-.")):
        if value is not None:
            axes.axvline(value, color=INK, linestyle=style, linewidth=1.2, label=f"{name} {value:.3f}")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1.04)
    axes.set_xlabel("threshold")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False, fontsize=9)
    return png(figure, axes)


def reliability_picture(found: Mapping[str, Reliability]) -> bytes:
    """Share of positives against the mean score of each bin, a panel a calibrator, with exact intervals."""
    figure = Figure(figsize=(3.1 * len(found) + 0.6, 3.4), layout="constrained")
    panels = figure.subplots(1, len(found), sharey=True, squeeze=False)[0]
    for axes, (name, one), colour in zip(panels, found.items(), _COLOURS, strict=False):
        shares = np.array(one.shares)
        errors = np.maximum([shares - one.lower, np.array(one.upper) - shares], 0)
        axes.plot([0, 1], [0, 1], color="#999999", linewidth=1)
        axes.errorbar(one.scores, shares, errors, color=colour, marker="o", markersize=4, linewidth=1.2, capsize=2)
        axes.set_title(f"{NAMES.get(name, name)}\nECE {one.ece:.3f}, Brier {one.brier:.3f}", fontsize=9, color=INK)
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1.02)
        axes.set_xlabel("mean probability")
    panels[0].set_ylabel("share labelled positive")
    return png(figure, *panels)


def domains_picture(domains: Sequence[Domain], pool: Mapping[str, float]) -> bytes | None:
    """Precision and recall of each domain with exact intervals, beside the pool's; flagged ones are red."""
    shown = list(domains)[:DOMAINS_SHOWN]
    if not shown:
        return None
    figure = Figure(figsize=(7.6, 1.2 + 0.36 * len(shown)), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for axes, name in zip(panels, ("precision", "recall"), strict=True):
        values = np.array([one.figures[name] for one in shown])
        ends = np.array([one.intervals[name] for one in shown])
        colours = [RED if name in one.flags else BLUE for one in shown]
        axes.barh(range(len(shown)), values, color=colours)
        known = ends[:, 1] - ends[:, 0] < 1  # an interval of 0 to 1 says that nothing was there
        rows = np.arange(len(shown))[known]
        errors = np.maximum([values[known] - ends[known, 0], ends[known, 1] - values[known]], 0)
        axes.errorbar(values[known], rows, xerr=errors, fmt="none", ecolor=INK, elinewidth=1, capsize=2)
        axes.axvline(pool[name], color=INK, linestyle="--", linewidth=1.2)
        axes.set_xlim(0, 1)
        axes.set_xlabel(f"{name} (dashed: all claims, {pool[name]:.3f})")
    # Names are anybody's text: a dollar sign in one is no formula.
    panels[0].set_yticks(range(len(shown)), [one.name[:40] for one in shown], parse_math=False)
    panels[0].invert_yaxis()
    return png(figure, *panels)


def bootstrap_picture(
    resampled: Mapping[str, Floats], figures: Mapping[str, float], intervals: Mapping[str, tuple[float, float]]
) -> bytes:
    """Histograms of the resampled out-of-fold figures, with what was measured and the ends of the interval."""
    names = ("precision", "recall", "balanced_accuracy", "false_support_rate")
    figure = Figure(figsize=(10.4, 2.7), layout="constrained")
    panels = figure.subplots(1, len(names))
    for axes, name in zip(panels, names, strict=True):
        axes.hist(resampled[name], bins=30, color="#56B4E9")
        axes.axvline(figures[name], color=INK, linewidth=1.4)
        for end in intervals[name]:
            axes.axvline(end, color=INK, linestyle=":", linewidth=1.2)
        low, high = intervals[name]
        axes.set_title(f"{figures[name]:.3f} ({low:.3f} to {high:.3f})", fontsize=9, color=INK)
        axes.set_xlabel(name.replace("_", " "))
        axes.set_yticks([])
    return png(figure, *panels)
