"""Scoring on Ray what a sweep lacks, as a run of its own: killed midway, the same command goes on."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from verifier.digests import sha256_json
from verifier.errors import ConfigurationError
from verifier.pipeline.cluster import ActorPool, Cluster
from verifier.pipeline.execution import Job, Progress, check_written, execute_job, plain_settings
from verifier.pipeline.identity import differences
from verifier.pipeline.members import placed
from verifier.pipeline.meter import Meter, told_of_loading
from verifier.pipeline.storage import open_filesystem
from verifier.pipeline.summary import PrepareSummary, load_summary, save_summary
from verifier.pipeline.verify import run_rows
from verifier.redaction import without_secrets
from verifier.results import PAIR, result_row, results_table, scan_folder, scan_results
from verifier.schemas import WORK_SCHEMA, claim_from_row, table_slices
from verifier.sweep.missing import ask_missing
from verifier.sweep.runs import Runs, scorer_of
from verifier.sweep.settings import Setting

_LACKING_SCHEMA = WORK_SCHEMA.append(pa.field("lacking", pa.list_(pa.int32()))).append(
    pa.field("known", pa.list_(PAIR))
)
_ROW_GROUP = 1_000


@dataclass(frozen=True)
class MissingPlan:
    """Where and with what missing pairs are scored; attributes as in ``verifier.pipeline.run.RunPlan``."""

    output_dir: str
    scorer: partial[Any]
    scorer_identity: Mapping[str, str]
    cluster: Cluster
    actors: ActorPool
    max_rows_lost: int
    config: Mapping[str, Any]


class MissingActor:
    """Scores tables of claims with the settings under which they lack pairs.

    Args:
        scorer: builds the scorer here, where it runs.
        method: the type of the method.
        settings: all of the sweep.
        batch_size: claims whose pairs are scored together.
        meter: is told what was done.
    """

    def __init__(
        self, scorer: partial[Any], method: Any, settings: Sequence[Setting], batch_size: int, meter: Meter
    ) -> None:
        with told_of_loading(meter):
            self._scorer = scorer()
        self._method, self._settings, self._batch_size, self._meter = method, settings, batch_size, meter

    def __call__(self, table: pa.Table) -> pa.Table:
        """A result row a row of ``table``, whose pairs are those that were scored now."""
        batches = table_slices(table, self._batch_size)
        return pa.concat_tables([results_table([]), *(self._scored(batch) for batch in batches)])

    def _scored(self, batch: pa.Table) -> pa.Table:
        started = time.perf_counter()
        rows = batch.to_pylist()
        outcomes = ask_missing(
            self._scorer,
            self._method,
            self._settings,
            [claim_from_row(row) for row in rows],
            [row["lacking"] for row in rows],
            [pair for row in rows for pair in row["known"]],
        )
        seconds = time.perf_counter() - started
        self._meter.add(
            {
                "rows": len(rows),
                "pairs": sum(len(outcome.pairs) for outcome in outcomes),
                "unscored": sum(outcome.error is not None for outcome in outcomes),
                "batch_seconds": seconds,
            }
        )
        scorer = {name: str(getattr(self._scorer, name, "unknown")) for name in ("model", "revision", "dtype")}
        return results_table(
            result_row(row, outcome, method=self._method.name, seconds=seconds / len(rows), **scorer)
            for row, outcome in zip(rows, outcomes, strict=True)
        )


def check_scorer(plan: MissingPlan, runs: Runs) -> None:
    """Raise ConfigurationError where the scorer is not the one that the runs were made with, all of them the same."""
    # A run directory keeps no secret to compare with.
    now = without_secrets({"scorer": plan.scorer_identity, "scorer_settings": plain_settings(plan.scorer)})
    found = differences(scorer_of(runs.identities[0]), now)
    if found:
        raise ConfigurationError(
            f"{runs.dirs[0]} was made with another scorer: {'; '.join(found)}: give sweep.score_missing that one"
        )


def score_missing(
    plan: MissingPlan, runs: Runs, settings: Sequence[Setting], lacking: pl.DataFrame, progress: Progress
) -> str:
    """Score what settings lack on Ray; the run directory that holds it.

    Args:
        plan: where and with what.
        runs: the runs whose scores are known.
        settings: all of the sweep.
        lacking: ``claim``, the position among the claims of all runs, and ``setting``, the number of one under which
            it lacks pairs, both int32, by claim.
        progress: told of the rows that are done.
    """
    check_scorer(plan, runs)
    job = Job(
        output_dir=plan.output_dir,
        unit="claims",
        identity={
            "runs": {str(number): identity for number, identity in enumerate(runs.identities)},
            "inputs": [file["sha256"] for file in runs.inputs],
            "settings": sha256_json([[one.policy.model_dump(mode="json"), dict(one.choices)] for one in settings]),
        },
        model=plan.scorer_identity,
        config=plan.config,
        cluster=plan.cluster,
        prepare=lambda progress: _prepared(plan.output_dir, runs, lacking),
        work=lambda meter: _work(plan, runs.method_type, settings, meter),
        counts=lambda prepared: _counts(plan.output_dir, prepared),
    )
    execute_job(job, progress)
    return plan.output_dir


def _prepared(output_dir: str, runs: Runs, lacking: pl.DataFrame) -> PrepareSummary:
    """Write ``work/``, or find it written: claims by their position, with what is known and lacking of each."""
    filesystem, root = open_filesystem(output_dir)
    summary = load_summary(filesystem, root)
    if summary is not None:
        return summary
    frames = [
        scan_folder(run, "work", WORK_SCHEMA).join(
            scan_results(run).select("row_id", known="pairs"), on="row_id", how="left"
        )
        for run in runs.dirs
    ]
    numbered = pl.concat([frame.sort("row_id") for frame in frames]).drop("row_id").with_row_index("row_id")
    by_claim = lacking.lazy().group_by(row_id=pl.col("claim").cast(pl.Int64)).agg(lacking="setting")
    rows = numbered.with_columns(pl.col("row_id").cast(pl.Int64)).join(by_claim, on="row_id").sort("row_id").collect()
    table = rows.with_columns(pl.col("subclaims", "known").fill_null([]))
    filesystem.create_dir(f"{root}/work", recursive=True)
    arrow = table.select(_LACKING_SCHEMA.names).to_arrow().cast(_LACKING_SCHEMA)
    pq.write_table(arrow, f"{root}/work/0.parquet", filesystem=filesystem, row_group_size=_ROW_GROUP)
    summary = PrepareSummary(
        form="missing",
        max_evidence=runs.policy["max_evidence"],
        ignore=(),
        rows_read=len(rows),
        rows=len(rows),
        evidence_items=0,
        rejects=0,
        rejects_by_code={},
        first_reject=None,
        labels={},
        categories={},
        work_files=1,
        reject_files=0,
        total_bytes=0,
        inputs=(),
    )
    save_summary(filesystem, root, summary)
    return summary


def _work(plan: MissingPlan, method: Any, settings: Sequence[Setting], meter: Meter) -> None:
    scorer, pool = placed(plan.scorer, plan.actors)
    arguments = (scorer, method, settings, pool.batch_size, meter)
    run_rows(plan.output_dir, MissingActor, arguments, pool, plan.max_rows_lost)


def _counts(run_dir: str, prepared: PrepareSummary) -> dict[str, Any]:
    written, distinct, pairs, unscored = (
        scan_results(run_dir)
        .select(
            pl.len(),
            pl.col("row_id").n_unique().alias("distinct"),
            pl.col("pairs").list.len().sum(),
            (pl.col("outcome") != "decided").sum().alias("unscored"),
        )
        .collect()
        .row(0)
    )
    check_written(run_dir, written, distinct, prepared.rows, "claims")
    return {"claims": prepared.rows, "pairs": int(pairs), "unscored": int(unscored)}
