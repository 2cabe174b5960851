"""What a benchmark measures: figures of several rounds, shown as a table and kept as JSON."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

from rich.table import Table


@dataclass(frozen=True)
class Figure:
    """One measured quantity.

    Attributes:
        name: what it is, also the name of its MLflow metric, ``/`` between parts.
        values: one a round.
        unit: of the values; ``x`` for a ratio.
        least, most: the bounds that the median has to keep (None: no target).
    """

    name: str
    values: Sequence[float]
    unit: str = ""
    least: float | None = None
    most: float | None = None

    @property
    def median(self) -> float:
        """The middle of the rounds."""
        return float(median(self.values))

    @property
    def met(self) -> bool | None:
        """Whether the median keeps the bounds; None where there are none."""
        if self.least is None and self.most is None:
            return None
        return (self.least is None or self.median >= self.least) and (self.most is None or self.median <= self.most)

    @property
    def target(self) -> str:
        """The bounds in words."""
        bounds = [f">= {_shown(self.least)}"] if self.least is not None else []
        bounds += [f"<= {_shown(self.most)}"] if self.most is not None else []
        return " ".join(bounds)


@dataclass(frozen=True)
class Part:
    """One part of the benchmark.

    Attributes:
        name: of the part, as in ``bench.parts``.
        title: what was put beside what.
        figures: what was measured; none where the part was skipped.
        notes: sentences that belong to the table.
        details: everything else worth keeping, JSON values.
    """

    name: str
    title: str
    figures: Sequence[Figure] = ()
    notes: Sequence[str] = ()
    details: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The part as JSON values, medians, ranges and whether targets are met included."""
        figures = [
            asdict(figure)
            | {"values": list(figure.values), "median": figure.median, "met": figure.met}
            | {"min": min(figure.values), "max": max(figure.values)}
            for figure in self.figures
        ]
        return {
            "name": self.name,
            "title": self.title,
            "figures": figures,
            "notes": list(self.notes),
            "details": dict(self.details),
        }

    def table(self) -> Table:
        """The part as a table: median, range over the rounds, target, and whether it is met."""
        table = Table(title=f"{self.name}: {self.title}", title_justify="left")
        table.add_column("figure")
        for name in ("median", "min - max", "unit", "target"):
            table.add_column(name, justify="right")
        table.add_column("met")
        for figure in self.figures:
            spread = f"{_shown(min(figure.values))} - {_shown(max(figure.values))}" if len(figure.values) > 1 else ""
            met = {None: "", True: "[green]yes[/]", False: "[bold red]no[/]"}[figure.met]
            table.add_row(figure.name, _shown(figure.median), spread, figure.unit, figure.target, met)
        return table


def metrics(parts: Iterable[Part]) -> dict[str, float | None]:
    """The medians of all figures by ``<part>/<figure>``."""
    return {f"{part.name}/{figure.name}": figure.median for part in parts for figure in part.figures}


def _shown(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
