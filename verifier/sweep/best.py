"""The best setting of a sweep under constraints."""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from verifier.calibration.rules import Constraint
from verifier.errors import ConfigurationError
from verifier.sweep.figures import FIGURES, RANKING

SELECTABLE = (*FIGURES, *RANKING)
_SMALLER_IS_BETTER = ("false_support_rate",)


@dataclass(frozen=True)
class Best:
    """The complete settings that keep the constraints, best first (numbers of rows); why there is none, if so."""

    settings: Sequence[int]
    why: str | None = None


def check_select(figure: str) -> None:
    """Raise ConfigurationError for a figure that nothing can be the best by."""
    if figure not in SELECTABLE:
        raise ConfigurationError(f"sweep.select is {figure!r}: choose one of {', '.join(SELECTABLE)}")


def ranked_settings(table: pl.DataFrame, figure: str, constraints: Sequence[Constraint]) -> Best:
    """Order the settings by a figure, then by precision and recall, then as they stand in the table.

    Larger is better, but for the false-support rate. Settings that are not complete are left out.
    """
    if table[figure].null_count() == len(table):
        return Best((), "no claim with a label is decided under any setting, so that none is the best")
    whole = table.filter(pl.col("complete") & pl.col(figure).is_not_null())
    if whole.is_empty():
        return Best((), "no setting is complete: every one needs pairs that were not scored")
    kept = whole.filter(pl.all_horizontal(pl.lit(True), *(_holds(one) for one in constraints)))
    if kept.is_empty():
        return Best((), _why_none(whole, constraints))
    keys = [figure, *(name for name in ("precision", "recall") if name != figure)]
    descending = [*(name not in _SMALLER_IS_BETTER for name in keys), False]
    return Best(kept.sort([*keys, "setting"], descending=descending)["setting"].to_list())


def _holds(constraint: Constraint) -> pl.Expr:
    column = pl.col(constraint.figure)
    return column >= constraint.bound if constraint.sign == ">=" else column <= constraint.bound


def _why_none(table: pl.DataFrame, constraints: Sequence[Constraint]) -> str:
    wanted = " and ".join(str(constraint) for constraint in constraints)
    reached = []
    for one in constraints:
        others = table.filter(pl.all_horizontal(pl.lit(True), *(_holds(two) for two in constraints if two != one)))
        if len(others):
            best = float((max if one.sign == ">=" else min)(others[one.figure]))
            name = one.figure.replace("_", " ")
            reached.append(f"the {'largest' if one.sign == '>=' else 'smallest'} {name} is {best:.4f}")
    beside = f"; where the other constraints hold {' and '.join(reached)}" if reached and len(constraints) > 1 else ""
    alone = f"; {reached[0]}" if reached and len(constraints) == 1 else ""
    return f"no setting keeps {wanted}{beside}{alone}"
