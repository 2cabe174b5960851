"""A verification run: what it needs, and the job that it is."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import polars as pl
from pydantic import StrictBool, StrictFloat

from verifier.assays.sealing import SealedCohort, refuse_sealed
from verifier.errors import ConfigurationError, LimitError
from verifier.pipeline.cluster import ActorPool, Cluster
from verifier.pipeline.execution import Job, Progress, check_written, execute_job, plain_settings, read_run
from verifier.pipeline.meter import Meter
from verifier.pipeline.prepare import clear, prepare
from verifier.pipeline.sources import InputSpec
from verifier.pipeline.storage import open_filesystem
from verifier.pipeline.summary import PrepareSummary
from verifier.pipeline.verify import run_verify
from verifier.results import DECIDED_STATUS, scan_results

_SLOWEST, _FASTEST = 1e-6, 1e12  # pairs a second


@dataclass(frozen=True)
class InputLimits:
    """What to do with bad input: ``on_error`` is reject or fail, ``max_rejects`` the most rejects (None: any)."""

    on_error: str = "reject"
    max_rejects: int | None = None

    def __post_init__(self) -> None:
        if self.max_rejects is not None and self.max_rejects < 0:
            raise ConfigurationError(f"input.max_rejects is {self.max_rejects}: a number from 0 on expected, or null")


@dataclass(frozen=True)
class Checkpointing:
    """How often finished rows are marked: a kill costs an actor at most ``max_rows_lost`` claims."""

    max_rows_lost: int = 2000

    def __post_init__(self) -> None:
        if self.max_rows_lost < 1:
            raise ConfigurationError(f"checkpoint.max_rows_lost is {self.max_rows_lost}: at least 1 claim expected")


@dataclass(frozen=True)
class Output:
    """The run directory, a path or URI."""

    dir: str

    def __post_init__(self) -> None:
        if not self.dir.strip():
            raise ConfigurationError("output.dir is empty: name a folder or a URI")


@dataclass(frozen=True)
class Dry:
    """Whether a run is only estimated, and the pairs that one actor scores in a second, as measured, for its hours."""

    dry: StrictBool = False
    pairs_per_second: StrictFloat | None = None

    def __post_init__(self) -> None:
        if self.pairs_per_second is not None and not _SLOWEST <= self.pairs_per_second <= _FASTEST:
            raise ConfigurationError(
                f"run.pairs_per_second is {self.pairs_per_second}: a number from {_SLOWEST} to {_FASTEST:,.0f} expected"
            )


@dataclass(frozen=True)
class RunPlan:
    """Everything a verification run needs, as plain values and factories.

    Attributes:
        output_dir: the run directory, a path or URI.
        data: what to read.
        limits: what to do with bad input.
        scorer: builds the scorer in the actor.
        scorer_identity: what it would be, see ``verifier.scorers.base.identify``.
        method: builds the method from policy and revision.
        policy: how scores become decisions, of the method's ``policy_type``; its model and revision are the scorer's.
        cluster, actors: where it runs.
        max_rows_lost: claims that a kill may lose an actor.
        config: the resolved configuration, for the record.
        ledger: the one of jobs.assay whose sealed claims are not scored; None where that was checked.
    """

    output_dir: str
    data: InputSpec
    limits: InputLimits
    scorer: partial[Any]
    scorer_identity: Mapping[str, str]
    method: partial[Any]
    policy: Any
    cluster: Cluster
    actors: ActorPool
    max_rows_lost: int
    config: Mapping[str, Any]
    ledger: str | None = None

    @property
    def method_name(self) -> str:
        """As results and configuration call it."""
        name: str = self.method.func.name  # type: ignore[attr-defined]
        return name


def execute(plan: RunPlan, progress: Progress) -> dict[str, Any]:
    """Run the plan, or what is left of it, and return the content of ``run.json``; see ``execute_job``."""
    settings = {"method": plan.method_name, "scorer_settings": plain_settings(plan.scorer)}
    search = plan.method.keywords.get("search", {})
    if search.get("exhaustive"):  # else nothing further is asked, whatever the range
        settings["search"] = search
    job = Job(
        output_dir=plan.output_dir,
        unit="claims",
        identity={"scorer": plan.scorer_identity, "policy": plan.policy.model_dump(mode="json"), **settings},
        model=plan.scorer_identity,
        config=plan.config,
        cluster=plan.cluster,
        prepare=partial(prepared_input, plan),
        work=partial(_verify, plan),
        counts=partial(_counts, plan.output_dir),
    )
    return execute_job(job, progress)


def prepared_input(plan: RunPlan, progress: Progress) -> PrepareSummary:
    """The prepare phase of a run, or what it left when it was done before.

    Raises SealedCohort for claims that are sealed, whatever form their file has, and keeps no copy of them.
    """
    prepared = prepare(
        plan.data,
        plan.output_dir,
        plan.policy.max_evidence,
        plan.limits.on_error,  # type: ignore[arg-type]
        plan.limits.max_rejects,
        progress=lambda rows, rejects: progress("prepare", rows, None, {"rejects": rejects}),
    )
    if plan.ledger is not None:
        with cleared_where_sealed(plan.output_dir):
            refuse_sealed(plan.output_dir, plan.ledger)
    return prepared


@contextmanager
def cleared_where_sealed(run_dir: str) -> Iterator[None]:
    """Delete what was prepared where the block raises SealedCohort, unless a run on it had begun before."""
    try:
        yield
    except SealedCohort:
        if read_run(run_dir) is None:
            clear(*open_filesystem(run_dir))
        raise


def _verify(plan: RunPlan, meter: Meter) -> None:
    run_verify(
        plan.output_dir,
        plan.scorer,
        partial(plan.method, plan.policy),
        plan.policy.model,
        plan.actors,
        plan.max_rows_lost,
        meter,
    )


def check_limits(run: Mapping[str, Any], limits: InputLimits) -> None:
    """Raise LimitError where no row could be used, or prepare and verify rejected more rows than allowed."""
    prepared = run["input"]
    if prepared["rejects"] and not prepared["rows"]:
        raise LimitError(
            f"none of {prepared['rejects']:,} rows could be used as data={prepared['form']}, the first one because"
            f" {prepared['first_reject']}"
        )
    rejected = run["counts"]["rejects"] + run["counts"].get("rejected", 0)
    if limits.max_rejects is not None and rejected > limits.max_rejects:
        raise LimitError(f"{rejected} rows were rejected and input.max_rejects is {limits.max_rejects}")


def _counts(run_dir: str, prepared: PrepareSummary) -> dict[str, Any]:
    rows = scan_results(run_dir)
    written, distinct, pairs, windowed, truncated = (
        rows.select(
            pl.len(),
            pl.col("row_id").n_unique().alias("distinct"),
            pl.col("pairs").list.len().sum(),
            pl.col("premises_windowed").sum(),
            pl.col("premises_truncated").sum(),
        )
        .collect()
        .row(0)
    )
    check_written(run_dir, written, distinct, prepared.rows, "claims")
    outcomes = rows.with_columns(DECIDED_STATUS).group_by("outcome", "status").len().collect().rows()
    statuses = {status: count for _, status, count in outcomes if status is not None}
    return {
        "claims": prepared.rows,
        "rejects": prepared.rejects,
        "pairs": int(pairs),
        "premises_windowed": int(windowed),
        "premises_truncated": int(truncated),
        "decided": sum(statuses.values()),
        **{outcome: count for outcome, status, count in outcomes if status is None},
        "statuses": dict(sorted(statuses.items())),
    }
