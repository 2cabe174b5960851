"""The pictures of a report, as PNG bytes; colours are Okabe and Ito's, told apart by colour-blind readers."""

import io
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import StrMethodFormatter

COLOURS = {
    "supported": "#009E73",
    "refuted": "#D55E00",
    "contested": "#CC79A7",
    "insufficient": "#56B4E9",
    "incomplete": "#E69F00",
    "partial": "#E69F00",
    "unsupported": "#D55E00",
    "evidence_redacted": "#0072B2",
    "contradicted": "#D55E00",
    "conflicting": "#CC79A7",
    "unverified": "#56B4E9",
    "rejected": "#555555",
    "unscored": "#999999",
    "unavailable": "#999999",
    "unknown": "#999999",
}
SCORE_COLOURS = {"entailment": "#009E73", "contradiction": "#D55E00"}
INK = "#222222"
BLUE = "#0072B2"

STEPS = {
    "prepare_read_seconds": "read input",
    "prepare_validate_seconds": "validate",
    "prepare_write_seconds": "write work",
    "load_seconds": "load scorer",
    "plan_seconds": "plan",
    "tokenize_seconds": "tokenize",
    "model_seconds": "score pairs",
    "write_seconds": "write results",
}
LABELS_SHOWN = 40  # rows of the confusion matrix; more would be no picture


def verdicts_picture(verdicts: Mapping[str, int], unit: str = "claims") -> bytes | None:
    """Bars of how many claims, or other units, became what; nothing for none."""
    if not sum(verdicts.values()):
        return None
    names, counts = list(verdicts), list(verdicts.values())
    figure = Figure(figsize=(7.2, 2.9), layout="constrained")
    axes = figure.subplots()
    bars = axes.barh(range(len(names)), counts, color=[COLOURS.get(name, BLUE) for name in names])
    # Names of a damaged file are anybody's text, as labels are below.
    axes.set_yticks(range(len(names)), [name.replace("_", " ")[:40] for name in names], parse_math=False)
    total = sum(counts)
    axes.bar_label(bars, [f"{n:,}  ({n / total:.1%})" for n in counts], padding=4, fontsize=9, color=INK)
    axes.set_xlim(0, max(counts) * 1.22)
    axes.invert_yaxis()
    axes.set_xlabel(unit)
    return png(figure, axes)


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
    panels[0].set_ylim(0, 1.3 * max(1, *(max(counts) for counts in histograms.values())))  # one scale for all panels
    panels[0].set_ylabel("pairs (log scale)")
    return png(figure, *panels)


def claim_scores_picture(
    histograms: Mapping[str, Sequence[int]], thresholds: Mapping[str, float], score: str
) -> bytes | None:
    """One histogram of claims a verdict, one below the other, with the thresholds of the run; nothing for no claims."""
    if not histograms:
        return None
    figure = Figure(figsize=(7.2, 0.9 + 0.95 * len(histograms)), layout="constrained")
    rows = figure.subplots(len(histograms), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for axes, (verdict, counts) in zip(rows, histograms.items(), strict=True):
        axes.stairs(counts, np.linspace(0, 1, len(counts) + 1), fill=True, color=COLOURS.get(verdict, BLUE))
        axes.set_yscale("symlog", linthresh=1)
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        name = verdict.replace("_", "\n")[:40]
        axes.set_ylabel(name, rotation=0, ha="right", va="center", fontsize=9, color=INK, parse_math=False)
        for threshold in thresholds.values():
            axes.axvline(threshold, color=INK, linestyle="--", linewidth=1.2)
    for name, threshold in thresholds.items():
        left = name == "partial"  # away from the next threshold, which is above it
        rows[0].annotate(
            f"{name.replace('_', ' ')} {threshold:g}",
            (threshold, 1),
            (-3 if left else 3, 2),
            ("data", "axes fraction"),
            "offset points",
            ha="right" if left else "left",
            fontsize=8,
        )
    rows[-1].set_xlim(0, 1)
    rows[-1].set_ylim(0, 1.3 * max(max(counts) for counts in histograms.values()))  # one scale for all
    rows[-1].set_xlabel(f"{score} (claims on a log scale)")
    return png(figure, *rows)


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
    return png(figure, axes)


def time_picture(timings: Mapping[str, Any]) -> bytes | None:
    """Bars of the seconds that each of ``STEPS`` took, those that were not measured left out; nothing for none."""
    found = {name: timings.get(step) for step, name in STEPS.items()}
    taken = {name: spent for name, spent in found.items() if isinstance(spent, float | int) and 0 <= spent < 1e12}
    if not sum(taken.values()):
        return None
    figure = Figure(figsize=(7.2, 0.8 + 0.26 * len(taken)), layout="constrained")
    axes = figure.subplots()
    bars = axes.barh(list(taken), list(taken.values()), color=BLUE)
    labels = [f"{spent:,.{2 if spent < 10 else 0}f} s" for spent in taken.values()]
    axes.bar_label(bars, labels, padding=4, fontsize=9, color=INK)
    axes.set_xlim(0, max(taken.values()) * 1.15)
    axes.invert_yaxis()
    axes.set_xlabel("seconds")
    return png(figure, axes)


def png(figure: Figure, *panels: Axes) -> bytes:
    """A figure as PNG, its panels without the lines that say nothing."""
    for axes in panels:
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=9, colors=INK)
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # a label in another script: the page has it
        figure.savefig(buffer, format="png", dpi=160)
    return buffer.getvalue()
