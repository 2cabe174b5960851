"""One verification run from input to results: prepare, verify, and ``run.json`` that says what was done."""

import json
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from typing import Any

import polars as pl

from verifier.errors import ConfigurationError, LimitError
from verifier.pipeline.actor import COUNTERS
from verifier.pipeline.cluster import ActorPool, Cluster, check_room, connected
from verifier.pipeline.identity import refuse_another_run
from verifier.pipeline.leftovers import drop_leftovers, failed_rows, finished_rows, forget_unscored, written_rows
from verifier.pipeline.members import members_of
from verifier.pipeline.meter import Meter, Totals, watched
from verifier.pipeline.prepare import prepare
from verifier.pipeline.sources import InputSpec
from verifier.pipeline.storage import check_writable, held, open_filesystem, read_text, write_text
from verifier.pipeline.summary import PrepareSummary
from verifier.pipeline.verify import run_verify
from verifier.results import DECIDED_STATUS, scan_results

RUN_FILE = "run.json"
_COUNTS = ("claims", "pairs", "unscored", *COUNTERS)
# Settings of scorers that change where and how fast scores are made, not what they are.
_HARMLESS = frozenset(
    "device token_budget allow_cpu_fallback cache_size path registration claims concurrent"
    " api_key_env concurrency timeout retries backoff backoff_max".split()
)
_PACKAGES = ("claim-verifier", "ray", "torch", "transformers", "pyarrow", "polars", "numpy")

Progress = Callable[[str, int, int | None, Totals], None]
"""Told (phase, rows done, rows in all or None, further counts) while a run goes on."""


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
    """Whether a run is only estimated."""

    dry: bool = False


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

    @property
    def method_name(self) -> str:
        """As results and configuration call it."""
        name: str = self.method.func.name  # type: ignore[attr-defined]
        return name


def execute(plan: RunPlan, progress: Progress) -> dict[str, Any]:
    """Run the plan, or what is left of it, and return the content of ``run.json``.

    A finished run is left as it is. Raises ConfigurationError before any model is loaded where the plan cannot
    work or the run directory belongs to another one.
    """
    check_writable(plan.output_dir)
    with held(plan.output_dir):
        return _execute(plan, progress)


def _execute(plan: RunPlan, progress: Progress) -> dict[str, Any]:
    identity = {"scorer": plan.scorer_identity, "policy": plan.policy.model_dump(mode="json"), **_settings(plan)}
    run = read_run(plan.output_dir)
    if run is not None:
        refuse_another_run(run["identity"], identity, plan.output_dir)
    started = time.perf_counter()
    prepared = prepared_input(plan, progress)
    if run is not None:
        _refuse_another_input(run["input"], asdict(prepared), plan.output_dir)
    if run is not None and run["status"] == "finished":
        _check_whole(plan.output_dir, prepared.claims)
        if not failed_rows(plan.output_dir):
            return run
    resumed = run is not None
    run = _begun(plan, identity, prepared, time.perf_counter() - started)
    write_run(plan.output_dir, run)
    if resumed:  # only now: killed from here on, the run is one that goes on
        forget_unscored(plan.output_dir)
    done = _verify(plan, prepared.claims, progress) if prepared.claims else {}
    drop_leftovers(plan.output_dir, prepared.claims)
    run = _finished(plan.output_dir, run, prepared, done)
    write_run(plan.output_dir, run)
    return run


def prepared_input(plan: RunPlan, progress: Progress) -> PrepareSummary:
    """The prepare phase of a run, or what it left when it was done before."""
    return prepare(
        plan.data,
        plan.output_dir,
        plan.policy.max_evidence,
        plan.limits.on_error,  # type: ignore[arg-type]
        plan.limits.max_rejects,
        progress=lambda rows, rejects: progress("prepare", rows, None, {"rejects": rejects}),
    )


def read_run(run_dir: str) -> dict[str, Any] | None:
    """The content of a run directory's ``run.json``, None where there is none."""
    filesystem, root = open_filesystem(run_dir)
    text = read_text(filesystem, f"{root}/{RUN_FILE}")
    if text is None:
        return None
    try:
        run: dict[str, Any] = json.loads(text)
        run["identity"], run["input"]["inputs"], run["status"]
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigurationError(f"{run_dir}/{RUN_FILE} is damaged: use another output.dir") from error
    return run


def write_run(run_dir: str, run: Mapping[str, Any]) -> None:
    """Write a run directory's ``run.json``."""
    filesystem, root = open_filesystem(run_dir)
    filesystem.create_dir(root, recursive=True)
    write_text(filesystem, f"{root}/{RUN_FILE}", json.dumps(run, indent=2, ensure_ascii=False) + "\n")


def _settings(plan: RunPlan) -> dict[str, Any]:
    """The scorer's settings that could change a result; devices and batch sizes could not."""
    settings = _plain_settings(plan.scorer)
    return {"method": plan.method_name, "scorer_settings": settings}


def _refuse_another_input(before: Mapping[str, Any], now: Mapping[str, Any], run_dir: str) -> None:
    """Raise ConfigurationError where a run was made from files of other content than those that are prepared now."""
    digests = [[file["sha256"] for file in summary["inputs"]] for summary in (before, now)]
    if digests[0] != digests[1]:
        raise ConfigurationError(f"{run_dir} belongs to another input: use another output.dir")


def _check_whole(run_dir: str, claims: int) -> None:
    """Raise ConfigurationError where the results of a finished run are no longer all there."""
    rows = written_rows(run_dir)
    if rows != claims:
        raise ConfigurationError(
            f"{run_dir}/results has {rows} of {claims} claims, though the run was finished:"
            f" delete {run_dir}/results, checkpoint and {RUN_FILE} to verify them again, or use another output.dir"
        )


def _plain_settings(factory: partial[Any]) -> dict[str, Any]:
    """The keywords of a factory, and of the factories among them, as JSON values."""

    def plain(value: Any) -> Any:
        if isinstance(value, partial):
            return {"scorer": value.func.__name__, **_plain_settings(value)}
        return {name: plain(item) for name, item in value.items()} if isinstance(value, Mapping) else value

    return {name: plain(value) for name, value in factory.keywords.items() if name not in _HARMLESS}


def _begun(plan: RunPlan, identity: Mapping[str, Any], prepared: PrepareSummary, seconds: float) -> dict[str, Any]:
    return {
        "status": "started",
        "identity": identity,
        "config": plan.config,
        "input": asdict(prepared),
        "model": identity["scorer"],
        "versions": {name: version(name) for name in _PACKAGES} | {"python": platform.python_version()},
        "started_at": time.time(),
        "timings": {"prepare_seconds": seconds},
    }


def _verify(plan: RunPlan, claims: int, progress: Progress) -> dict[str, Any]:
    """Run the verify phase; the keys of ``run.json`` that say what this session did."""
    started = time.perf_counter()
    with connected(plan.cluster):
        check_room(plan.actors, len(members_of(plan.scorer)) if plan.actors.members == "separate" else 0)
        meter = Meter()
        done_before = finished_rows(plan.output_dir)
        with watched(
            meter, lambda totals: progress("verify", done_before + int(totals.get("claims", 0)), claims, totals)
        ):
            run_verify(
                plan.output_dir,
                plan.scorer,
                partial(plan.method, plan.policy),
                plan.policy.model,
                plan.actors,
                plan.max_rows_lost,
                meter,
            )
        totals, notes = meter.totals(), meter.notes()
    timings = {"verify_seconds": time.perf_counter() - started}
    if "first_claims_at" in totals:
        timings["scoring_seconds"] = totals["last_claims_at"] - totals["first_claims_at"]
    return {
        "timings": timings | {name: value for name, value in totals.items() if name.endswith("_seconds")},
        "this_session": {name: totals[name] for name in _COUNTS if name in totals},
        "notes": notes,
    }


def check_limits(run: Mapping[str, Any], limits: InputLimits) -> None:
    """Raise LimitError where prepare and verify together rejected more rows than allowed."""
    rejected = run["counts"]["rejects"] + run["counts"].get("rejected", 0)
    if limits.max_rejects is not None and rejected > limits.max_rejects:
        raise LimitError(f"{rejected} rows were rejected and input.max_rejects is {limits.max_rejects}")


def _finished(run_dir: str, run: dict[str, Any], prepared: PrepareSummary, done: Mapping[str, Any]) -> dict[str, Any]:
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
    if (written, distinct) != (prepared.claims, prepared.claims):
        raise ConfigurationError(
            f"{run_dir}/results has {written} rows of {distinct} claims where {prepared.claims} were to be verified:"
            " delete its results and checkpoint and run again"
        )
    outcomes = rows.with_columns(DECIDED_STATUS).group_by("outcome", "status").len().collect().rows()
    statuses = {status: count for _, status, count in outcomes if status is not None}
    counts = {
        "claims": prepared.claims,
        "rejects": prepared.rejects,
        "pairs": int(pairs),
        "premises_windowed": int(windowed),
        "premises_truncated": int(truncated),
        "decided": sum(statuses.values()),
        **{outcome: count for outcome, status, count in outcomes if status is None},
        "statuses": dict(sorted(statuses.items())),
    }
    timings = {**run["timings"], **done.get("timings", {})}
    return {"notes": [], **run, **done, "status": "finished", "finished_at": time.time(), "counts": counts} | {
        "timings": timings
    }
