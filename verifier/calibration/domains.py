"""Figures by domain, with a flag on a domain that is far worse than the pool."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from verifier.calibration.intervals import exact_intervals
from verifier.calibration.selection import Bools, decided_figures


@dataclass(frozen=True)
class Domain:
    """One domain: its claims, figures, exact intervals, and the figures in which it is far below the pool."""

    name: str
    claims: int
    figures: dict[str, Any]
    intervals: dict[str, tuple[float, float]]
    flags: list[str]


def by_domain(
    supported: Bools, positive: Bools, domains: Sequence[str | None], confidence: float = 0.95
) -> list[Domain]:
    """The domains by name; claims without one are left out.

    A domain is flagged in precision or recall where the upper end of its Clopper-Pearson interval lies below the
    pooled figure, and in the false-support rate where the lower end lies above it. The pool is all claims, the
    domain included. The intervals are not corrected for how many domains there are.
    """
    pool = decided_figures(supported, positive)
    names = np.array(["" if name is None else name for name in domains], dtype=object)
    found = []
    for name in sorted({name for name in domains if name is not None}):
        members = names == name
        figures = decided_figures(supported[members], positive[members])
        intervals = exact_intervals(figures, confidence)
        flags = [figure for figure in ("precision", "recall") if intervals[figure][1] < pool[figure]]
        if intervals["false_support_rate"][0] > pool["false_support_rate"]:
            flags.append("false_support_rate")
        found.append(Domain(name, int(members.sum()), figures, intervals, flags))
    return found
