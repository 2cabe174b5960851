"""A sweep from finished runs to a table of settings, and the best one among them."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from verifier.calibration.rules import Constraint, parse_constraints
from verifier.errors import ConfigurationError
from verifier.sweep.best import Best, check_select, ranked_settings
from verifier.sweep.figures import Labels, Ranking, ranking, setting_row, settings_frame
from verifier.sweep.runs import Runs, RunTable, check_evidence_limit, open_runs, read_claims
from verifier.sweep.settings import Setting, grid_axes, settings

SweepProgress = Callable[[str, int, int | None, Mapping[str, float]], None]
ScoreMissing = Callable[[Runs, Sequence[Setting], pl.DataFrame], str]
"""Scores what settings lack, see ``lacking_settings``, and says in which run directory the scores are."""


@dataclass(frozen=True)
class SweepSpec:
    """What to sweep, as the configuration has it.

    Attributes:
        runs: directory of a finished run, or several.
        name: of the sweep; unused here, the output folder is named after it.
        grid: field of the policy to its values, see ``verifier.sweep.settings``.
        policies: fields of each further setting.
        constraints: figure to a bound such as ``">=0.9"``.
        select: the figure that the best setting is the best by.
        score_missing: whether pairs that settings lack are scored.
        nested_runs: settings up to which each has an MLflow run of its own.
    """

    runs: str | list[str]
    name: str | None = None
    grid: dict[str, Any] | None = None
    policies: list[dict[str, Any]] | None = None
    constraints: dict[str, str | float | None] | None = None
    select: str = "recall"
    score_missing: bool = False
    nested_runs: int = 50

    def __post_init__(self) -> None:
        check_select(self.select)
        parse_constraints(self.constraints or {})
        if self.nested_runs < 0:
            raise ConfigurationError(f"sweep.nested_runs is {self.nested_runs}: a number from 0 on expected")

    @property
    def run_dirs(self) -> list[str]:
        """The directories of ``runs``."""
        return [self.runs] if isinstance(self.runs, str) else self.runs


@dataclass(frozen=True)
class Sweep:
    """What a sweep found.

    Attributes:
        spec, runs: what was swept.
        settings: in the order of the table.
        table: one row a setting, see ``verifier.sweep.figures.setting_row``.
        constraints: as read.
        best: numbers of the settings, the best first.
        ranking: of the best setting's scores; of the first complete one where none is the best, None without any.
        own: number of the setting that has the first run's own policy, None where it is not among them.
        missing: run directory of what was scored for the sweep, None where nothing was.
        seconds: spent on reading and facts, and on the settings.
    """

    spec: SweepSpec
    runs: Runs
    settings: Sequence[Setting]
    table: pl.DataFrame
    constraints: Sequence[Constraint]
    best: Best
    ranking: Ranking | None
    own: int | None
    missing: str | None
    seconds: Mapping[str, float]

    @property
    def fields(self) -> list[str]:
        """The fields that the sweep names."""
        return list(dict.fromkeys(name for setting in self.settings for name in setting.changed))

    @property
    def axes(self) -> dict[str, list[Any]]:
        """The fields of the grid with their values."""
        return grid_axes(self.spec.grid) if self.spec.grid else {}

    def rows(self, numbers: Sequence[int]) -> list[dict[str, Any]]:
        """Rows of the table by their numbers."""
        return [self.table.row(number, named=True) for number in numbers]


def lacking_settings(table: RunTable, settings: Sequence[Setting]) -> pl.DataFrame:
    """``claim`` and ``setting``, both int32: under which settings each claim lacks pairs."""
    rows = [np.flatnonzero(table.decide(setting).missing).astype(np.int32) for setting in settings]
    numbers = np.repeat(np.arange(len(rows), dtype=np.int32), [len(found) for found in rows])
    return pl.DataFrame({"claim": np.concatenate(rows), "setting": numbers})


def sweep(spec: SweepSpec, progress: SweepProgress, score_missing: ScoreMissing | None = None) -> Sweep:
    """Decide every claim of the runs under every setting; ConfigurationError where that cannot be done.

    Pairs that settings lack are scored by ``score_missing``, where it is given, and what it leaves is read.
    """
    started = time.perf_counter()
    runs = open_runs(spec.run_dirs)
    asked = settings(runs.policy_type, runs.policy, spec.grid or {}, spec.policies or (), runs.has_choices)
    check_evidence_limit(runs, asked)
    claims = read_claims(runs)
    table, missing = RunTable(runs, claims, asked), None
    if score_missing is not None:
        lacking = lacking_settings(table, asked)
        if len(lacking):
            missing = score_missing(runs, asked, lacking)
            table = RunTable(runs, claims, asked, [missing])
    labels = Labels.of(claims)
    ready = time.perf_counter()
    rows = []
    for number, setting in enumerate(asked):
        rows.append(setting_row(number, setting, table.decide(setting), labels))
        progress("sweep", number + 1, len(asked), {})
    frame = settings_frame(rows)
    constraints = parse_constraints(spec.constraints or {})
    best = ranked_settings(frame, spec.select, constraints)
    drawn = [*best.settings[:1], *frame.filter("complete")["setting"].to_list()[:1]]
    own = [number for number, one in enumerate(asked) if not one.choices and one.policy.model_dump() == runs.policy]
    return Sweep(
        spec=spec,
        runs=runs,
        settings=asked,
        table=frame,
        constraints=constraints,
        best=best,
        ranking=ranking(table.decide(asked[drawn[0]]), labels) if drawn and labels.known.any() else None,
        own=own[0] if own else None,
        missing=missing,
        seconds={"facts": ready - started, "settings": time.perf_counter() - ready},
    )
