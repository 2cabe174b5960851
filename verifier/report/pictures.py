"""The pictures of a report, as PNG bytes; colours are Okabe and Ito's, told apart by colour-blind readers."""

import io
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

COLOURS = {
    "supported": "#009E73",
    "refuted": "#D55E00",
    "contested": "#CC79A7",
    "insufficient": "#56B4E9",
    "incomplete": "#E69F00",
    "rejected": "#555555",
    "unscored": "#999999",
}
SCORE_COLOURS = {"entailment": "#009E73", "contradiction": "#D55E00"}
INK = "#222222"
BLUE = "#0072B2"

LABELS_SHOWN = 40  # rows of the confusion matrix; more would be no picture


def verdicts_picture(verdicts: Mapping[str, int]) -> bytes | None:
    """Bars of how many claims became what; nothing for no claims."""
    if not sum(verdicts.values()):
        return None
    names, counts = list(verdicts), list(verdicts.values())
    figure = Figure(figsize=(7.2, 2.9), layout="constrained")
    axes = figure.subplots()
    bars = axes.barh(names, counts, color=[COLOURS.get(name, BLUE) for name in names])
    total = sum(counts)
    axes.bar_label(bars, [f"{n:,}  ({n / total:.1%})" for n in counts], padding=4, fontsize=9, color=INK)
    axes.set_xlim(0, max(counts) * 1.22)
    axes.invert_yaxis()
    axes.set_xlabel("claims")
    _tidy(axes)
    return _png(figure)


def scores_picture(histograms: Mapping[str, Sequence[int]], thresholds: Mapping[str, float]) -> bytes | None:
    """One histogram a score, side by side, with the threshold of the run; nothing for no scores."""
    if not histograms:
        return None
    figure = Figure(figsize=(max(4.0, 3.6 * len(histograms)), 2.9), layout="constrained")
    panels = figure.subplots(1, len(histograms), sharey=True, squeeze=False)[0]
    for axes, (score, counts) in zip(panels, histograms.items(), strict=True):
        edges = np.linspace(0, 1, len(counts) + 1)
        axes.stairs(counts, edges, fill=True, color=SCORE_COLOURS.get(score, BLUE))
        axes.set_xlabel(score)
        axes.set_xlim(0, 1)
        axes.set_xticks([0, 0.2, 0.4, 0.6, 0.8, 1], ["0", "0.2", "0.4", "0.6", "0.8", "1"])
        axes.set_yscale("symlog", linthresh=1)  # scores pile up at both ends: a linear axis hides all between
        if score in thresholds:
            axes.axvline(thresholds[score], color=INK, linestyle="--", linewidth=1.2)
            axes.set_title(f"threshold {thresholds[score]:g}", fontsize=9, color=INK)
        _tidy(axes)
    panels[0].set_ylim(0, 1.3 * max(1, *(max(counts) for counts in histograms.values())))  # one scale for all panels
    panels[0].set_ylabel("pairs (log scale)")
    return _png(figure)


def confusion_picture(confusion: Mapping[str, Mapping[str, int]]) -> bytes | None:
    """Labels against statuses, coloured by share of the label; nothing for no labelled claims."""
    if not confusion:
        return None
    labels, statuses = list(confusion)[:LABELS_SHOWN], list(next(iter(confusion.values())))
    counts = np.array([[confusion[label][status] for status in statuses] for label in labels], dtype=float)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    figure = Figure(figsize=(6.4, 1.3 + 0.45 * len(labels)), layout="constrained")
    axes = figure.subplots()
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    for (row, column), count in np.ndenumerate(counts):
        colour = "white" if shares[row, column] > 0.55 else INK
        axes.text(column, row, f"{count:,.0f}", ha="center", va="center", color=colour, fontsize=9)
    axes.set_xticks(range(len(statuses)), statuses)
    # Labels are anybody's text: a dollar sign in one is no formula.
    axes.set_yticks(range(len(labels)), [label[:40] for label in labels], parse_math=False)
    axes.set_xlabel("status")
    axes.set_ylabel("label")
    _tidy(axes)
    return _png(figure)


def _tidy(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=9, colors=INK)


def _png(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=160)
    return buffer.getvalue()
