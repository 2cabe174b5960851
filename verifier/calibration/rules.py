"""Which threshold is the best one: constraints such as ``precision: ">=0.9"`` and named selection rules."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from verifier.calibration.selection import Bools, Comparison, Floats, OperatingPoint, operating_points, select
from verifier.errors import ConfigurationError

_CONSTRAINT = re.compile(r"\s*(>=|<=)\s*(\d*\.?\d+)\s*")
FIGURES = ("precision", "recall", "f1", "accuracy", "balanced_accuracy", "false_support_rate")
GRID = np.arange(100) / 100
"""100 steps of 0.01 from 0."""


@dataclass(frozen=True)
class Rule:
    """What is best: figures in order, larger first, then the lowest threshold; on a grid where one is given."""

    best: tuple[str, ...]
    grid: Floats | None = None


RULES = {
    "max_recall": Rule(("recall", "precision")),
    "max_precision": Rule(("precision", "recall")),
    "max_f1_on_grid": Rule(("f1",), GRID),
    "max_balanced_accuracy": Rule(("balanced_accuracy", "precision", "recall")),
}
"""The published rules: recall under a bound on precision and precision under one on recall, F1 as the WiCE paper has
it (the first of 100 steps with the best F1), and balanced accuracy."""


@dataclass(frozen=True)
class Constraint:
    """A bound that a figure of ``FIGURES`` must keep: ``>=`` or ``<=`` a value in [0, 1]."""

    figure: str
    sign: str
    bound: float

    def __str__(self) -> str:
        return f"{self.figure.replace('_', ' ')} {self.sign} {self.bound:.2f}".replace("false support", "false-support")

    def holds(self, value: float) -> bool:
        """Whether a figure keeps the bound."""
        return value >= self.bound if self.sign == ">=" else value <= self.bound


@dataclass(frozen=True)
class Choice:
    """The point that a rule chose, or None and, in a sentence, why there is none."""

    point: OperatingPoint | None
    why: str = ""


def parse_constraints(written: Mapping[str, str | float | None]) -> list[Constraint]:
    """Constraints from ``{figure: ">=0.9"}``, None for no bound; ConfigurationError names what cannot be read.

    A number alone is the least that a figure may be, of ``false_support_rate`` the most.
    """
    found = []
    for figure, text in written.items():
        if figure not in FIGURES:
            raise ConfigurationError(
                f"constraints.{figure} is no figure that can be bounded: known are {', '.join(FIGURES)}"
            )
        if text is None:
            continue
        sign = "<=" if figure == "false_support_rate" else ">="
        match = _CONSTRAINT.fullmatch(f"{sign}{text}" if isinstance(text, int | float) else text)
        if match is None or not 0 <= float(match[2]) <= 1:
            raise ConfigurationError(
                f'constraints.{figure} is {text!r}: write >= or <= and a number in [0, 1], as in ">=0.9"'
            )
        found.append(Constraint(figure, match[1], float(match[2])))
    return found


def named_rule(name: str) -> Rule:
    """A rule of ``RULES``; ConfigurationError for any other name."""
    if name not in RULES:
        raise ConfigurationError(f"the rule {name!r} is unknown: use {', '.join(RULES)}")
    return RULES[name]


def choose(
    scores: Floats,
    positive: Bools,
    rule: Rule,
    constraints: Sequence[Constraint] = (),
    comparison: Comparison = ">",
) -> Choice:
    """The best threshold on these scores (in [0, 1], shape (n,)) that keeps the constraints."""
    points = operating_points(scores, positive, rule.grid, comparison)
    point = _best(points, rule.best, constraints)
    return Choice(point) if point is not None else Choice(None, _why_not(points, constraints))


def _best(
    points: Mapping[str, Floats], best: Sequence[str], constraints: Sequence[Constraint]
) -> OperatingPoint | None:
    lower = {one.figure: one.bound for one in constraints if one.sign == ">="}
    upper = {one.figure: one.bound for one in constraints if one.sign == "<="}
    return select(points, best, lower, upper)


def _why_not(points: Mapping[str, Floats], constraints: Sequence[Constraint]) -> str:
    """The sentence for infeasible constraints: what the first of them reaches where the others hold."""
    first, *others = constraints
    given = " and ".join(map(str, others))
    missed = f"no threshold on these scores meets {first}" + (f" with {given}" if others else "")
    # A bound from above is read on the negated figure, so that the best is the largest in either case.
    shown = points if first.sign == ">=" else {**points, first.figure: -points[first.figure]}
    reached = _best(shown, [first.figure], others)
    if reached is None:
        return f"{missed}, nor {given} without it"
    value = abs(getattr(reached, first.figure))
    where = "" if not others else f" at that {others[0].figure.replace('_', ' ')}" if len(others) == 1 else " there"
    best = "best" if first.sign == ">=" else "lowest"
    return f"{missed}; the {best} {first.figure.replace('_', ' ')}{where} is {value:.4f}"
