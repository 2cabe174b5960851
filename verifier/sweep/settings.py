"""The settings of a sweep: a grid over fields of the runs' policy, a list of policies, or both."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import product
from math import prod
from typing import Any

from verifier.errors import ConfigurationError
from verifier.scorers.recorded_support import check_choices
from verifier.validation import built, refuse_unknown

CHOICES = ("window_aggregation", "aggregation", "member")
"""How recorded support is put together anew, see ``RecordedSupportScorer``: swept like fields of the policy."""
_FIXED = ("model", "revision")  # what the scores come from
_RANGE_PARTS = 3
_MOST = 100_000  # settings of a sweep


@dataclass(frozen=True)
class Setting:
    """One policy, with what is swept of the scorer.

    Attributes:
        changed: the fields that the sweep names, with their values here.
        policy: the whole policy.
        choices: values of ``CHOICES``; empty for a method that asks labels.
    """

    changed: Mapping[str, Any]
    policy: Any
    choices: Mapping[str, str | None]


def settings(
    policy_type: type,
    base: Mapping[str, Any],
    grid: Mapping[str, Any],
    policies: Sequence[Mapping[str, Any]],
    choices: bool,
) -> list[Setting]:
    """Every point of the grid, the first field slowest, then the listed policies; each distinct one once.

    Args:
        policy_type: the method's ``policy_type``.
        base: the fields of the runs' own policy, which stand where a setting says nothing.
        grid: field to its values: a list, one value, or a range ``first:last:step``.
        policies: fields of each further setting.
        choices: whether ``CHOICES`` can be swept too.

    Raises ConfigurationError for a field or value that the policy does not take, or where there is no setting.
    """
    if not grid and not policies:
        raise ConfigurationError(
            "nothing to sweep: give +sweep.grid.<field>=… (a list, or a range such as 0.5:1.0:0.025) or sweep.policies"
        )
    points = [dict(zip(grid, values, strict=True)) for values in product(*_columns(grid))] if grid else []
    fields = getattr(policy_type, "model_fields", {})
    known = [name for name in fields if name not in _FIXED] + (list(CHOICES) if choices else [])
    distinct: dict[tuple[Any, Any], Setting] = {}
    for changed in (*points, *policies):
        setting = _setting(policy_type, base, changed, known)
        distinct.setdefault((setting.policy, tuple(setting.choices.items())), setting)
    return list(distinct.values())


def grid_axes(grid: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Each field of a grid with its values.

    >>> grid_axes({"entailment_threshold": "0.5:0.6:0.05", "max_group_size": [1, 2], "max_evidence": 64})
    {'entailment_threshold': [0.5, 0.55, 0.6], 'max_group_size': [1, 2], 'max_evidence': [64]}
    """
    return dict(zip(grid, _columns(grid), strict=True))


def _setting(policy_type: type, base: Mapping[str, Any], changed: Mapping[str, Any], known: Iterable[str]) -> Setting:
    refuse_unknown(changed, known, "sweep.grid or sweep.policies")
    choices = {name: changed[name] for name in CHOICES if name in changed}
    check_choices(choices.get("window_aggregation"), choices.get("aggregation"), choices.get("member"))
    fields = {name: value for name, value in changed.items() if name not in choices}
    return Setting(dict(changed), built(policy_type, {**base, **fields}, "sweep"), choices)


def _columns(grid: Mapping[str, Any]) -> list[list[Any]]:
    columns = [list(dict.fromkeys(_values(name, value))) for name, value in grid.items()]
    for name, values in zip(grid, columns, strict=True):
        if not values:
            raise ConfigurationError(f"sweep.grid.{name} has no values: give a list or a range such as 0.5:1.0:0.025")
    if prod(map(len, columns)) > _MOST:
        raise ConfigurationError(f"the grid has {prod(map(len, columns)):,} settings: at most {_MOST:,}")
    return columns


def _values(name: str, given: Any) -> list[Any]:
    if isinstance(given, list | tuple):
        return list(given)
    parts = given.split(":") if isinstance(given, str) else []
    if len(parts) != _RANGE_PARTS:
        return [given]
    try:
        first, last, step = (Decimal(part.strip()) for part in parts)
        if step <= 0:
            raise ValueError
        # decimal steps, so that the third of 0.5, 0.525, … is the number that a person writes
        steps = int((last - first) / step) + 1 if last >= first else 0
        if steps > _MOST:
            raise ConfigurationError(f"sweep.grid.{name} is {given!r}, which has {steps:,} values: at most {_MOST:,}")
        return [_number(first + number * step) for number in range(steps)]
    except (ArithmeticError, ValueError) as error:
        raise ConfigurationError(
            f"sweep.grid.{name} is {given!r}: a range is first:last:step with a step above 0, such as 0.5:1.0:0.025"
        ) from error


def _number(value: Decimal) -> int | float:
    return int(value) if value.as_tuple().exponent == 0 else float(value)
