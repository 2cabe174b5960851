"""The pictures of a sweep, as PNG bytes."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from verifier.report.pictures import BLUE, INK, png
from verifier.sweep.figures import Ranking

_ORANGE, _GREEN = "#E69F00", "#009E73"
_NAMES = {"f1": "F1", "auroc": "AUROC"}
_TICKS = 12  # more would overlap
_CELLS = 12  # of a side, up to which the numbers are written


def curves_picture(table: pl.DataFrame, best: Ranking | None, chosen: int | None) -> bytes | None:
    """Precision against recall: every complete setting, and the scores of the chosen one; beside it risk by coverage.

    Risk is the share of the claims accepted as supported that are labelled otherwise, when they are accepted from the
    highest score down; coverage is their share of all claims. Nothing without labels.
    """
    points = table.filter(pl.col("complete") & pl.col("precision").is_not_null())
    if points.is_empty() and best is None:
        return None
    figure = Figure(figsize=(9.6, 3.5), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.scatter(points["recall"], points["precision"], s=14, color=BLUE, alpha=0.6, label="settings", zorder=3)
    if best is not None and len(best.true_positives):
        left.step(best.recall, best.precision, where="pre", color="#999999", linewidth=1.2, label="its scores")
        right.plot(best.coverage, 1 - best.precision, color=BLUE, linewidth=1.4)
    if chosen is not None:
        one = table.filter(pl.col("setting") == chosen)
        left.scatter(one["recall"], one["precision"], s=60, color=_ORANGE, edgecolor=INK, label="best", zorder=4)
    left.set(xlabel="recall of supported", ylabel="precision of supported", xlim=(0, 1.02), ylim=(0, 1.04))
    left.legend(loc="lower left", frameon=False, fontsize=9)
    right.set(xlabel="coverage: share accepted as supported", ylabel="risk: share of them labelled otherwise")
    right.set(xlim=(0, 1), ylim=(0, 1))
    return png(figure, left, right)


def heat_picture(table: pl.DataFrame, axes: Mapping[str, Sequence[Any]], figure_name: str) -> bytes | None:
    """A figure over a grid of two fields, the first downwards; nothing for another grid, or without labels.

    Cells of settings that lack pairs are left white.
    """
    varied = [name for name, values in axes.items() if len(values) > 1]
    if len(varied) != 2 or table[figure_name].null_count() == len(table):
        return None
    rows, columns = varied
    cells = np.full((len(axes[rows]), len(axes[columns])), np.nan)
    places = [{value: place for place, value in enumerate(axes[name])} for name in varied]
    for row, column, value, complete in table.select(rows, columns, figure_name, "complete").iter_rows():
        if value is not None and complete and row in places[0] and column in places[1]:
            cells[places[0][row], places[1][column]] = value
    figure = Figure(figsize=(6.6, 4.6), layout="constrained")
    panel = figure.subplots()
    image = panel.imshow(cells, cmap="viridis", aspect="auto", origin="lower")
    figure.colorbar(image, ax=panel, label=_NAMES.get(figure_name, figure_name.replace("_", " ")))
    if max(cells.shape) <= _CELLS:
        middle = (np.nanmin(cells) + np.nanmax(cells)) / 2 if np.isfinite(cells).any() else 0.5
        for (row, column), value in np.ndenumerate(cells):
            if np.isfinite(value):
                colour = "white" if value < middle else INK
                panel.text(column, row, f"{value:.3f}", ha="center", va="center", color=colour, fontsize=8)
    for name, ticks in ((columns, panel.set_xticks), (rows, panel.set_yticks)):
        step = -(-len(axes[name]) // _TICKS)
        ticks(range(0, len(axes[name]), step), [_shown(value) for value in axes[name][::step]])
    panel.set(xlabel=columns.replace("_", " "), ylabel=rows.replace("_", " "))
    return png(figure, panel)


def line_picture(table: pl.DataFrame, axes: Mapping[str, Sequence[Any]]) -> bytes | None:
    """Precision, recall and balanced accuracy along the one field that a grid varies; nothing for another grid."""
    varied = [name for name, values in axes.items() if len(values) > 1]
    shown = table.filter(pl.col("complete") & pl.col("precision").is_not_null())
    if len(varied) != 1 or shown.is_empty():
        return None
    figure = Figure(figsize=(7.2, 3.2), layout="constrained")
    panel = figure.subplots()
    places = {value: place for place, value in enumerate(axes[varied[0]])}
    points = [row for row in shown.iter_rows(named=True) if row[varied[0]] in places]
    at = [places[row[varied[0]]] for row in points]
    for name, colour in (("precision", BLUE), ("recall", _ORANGE), ("balanced_accuracy", _GREEN)):
        panel.plot(
            at, [row[name] for row in points], color=colour, marker="o", markersize=3, label=name.replace("_", " ")
        )
    step = -(-len(places) // _TICKS)
    panel.set_xticks(range(0, len(places), step), [_shown(value) for value in axes[varied[0]][::step]])
    panel.set(xlabel=varied[0].replace("_", " "), ylim=(0, 1.04))
    panel.legend(loc="lower center", frameon=False, fontsize=9, ncols=3)
    return png(figure, panel)


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value).replace("_", " ")[:24]
