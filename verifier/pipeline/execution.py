"""A job from input to results in two phases: prepare, work, and ``run.json`` that says what was done."""

import json
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib.metadata import version
from typing import Any

from verifier.errors import ConfigurationError
from verifier.pipeline.cluster import Cluster, capacity, connected
from verifier.pipeline.compaction import compact
from verifier.pipeline.identity import refuse_another_run
from verifier.pipeline.leftovers import drop_leftovers, failed_rows, finished_rows, forget_unscored, written_rows
from verifier.pipeline.meter import Meter, Totals, watched
from verifier.pipeline.storage import check_writable, held, open_filesystem, read_text, write_text
from verifier.pipeline.summary import PrepareSummary
from verifier.redaction import without_secrets

RUN_FILE = "run.json"
# Settings of models that change where and how fast they answer, not what.
_HARMLESS = frozenset(
    "device token_budget allow_cpu_fallback cache_size path registration claims concurrent"
    " api_key_env concurrency timeout retries backoff backoff_max".split()
)
_PACKAGES = ("claim-verifier", "ray", "torch", "transformers", "pyarrow", "polars", "numpy")

LOADING = "load"
Progress = Callable[[str, int, int | None, Totals], None]
"""Told (phase, rows done, rows in all or None, further counts) while a job goes on.

While no actor is ready the phase is ``LOADING`` and the counts are the ``CPU`` and ``GPU`` that the cluster has.
"""


@dataclass(frozen=True)
class Job:
    """What makes one job differ from another.

    Attributes:
        output_dir: the run directory, a path or URI.
        unit: what a row is, in messages: ``claims``, ``answers``.
        identity: what results depend on beside the input; another one is refused in the same run directory.
        model: of ``run.json``: what answers, its revision and what else identifies it.
        config: the resolved configuration, for the record.
        cluster: where it runs.
        prepare: the prepare phase, or what it left when it was done before.
        work: does what is left of the work phase, on a connected Ray.
        index: builds on a connected Ray what the work needs.
        counts: the ``counts`` of ``run.json``, from the results.
    """

    output_dir: str
    unit: str
    identity: Mapping[str, Any]
    model: Mapping[str, str]
    config: Mapping[str, Any]
    cluster: Cluster
    prepare: Callable[[Progress], PrepareSummary]
    work: Callable[[Meter], None]
    counts: Callable[[PrepareSummary], dict[str, Any]]
    index: Callable[[Progress], None] = lambda progress: None


def execute_job(job: Job, progress: Progress) -> dict[str, Any]:
    """Do the job, or what is left of it, and return the content of ``run.json``.

    A finished one is left as it is. Raises ConfigurationError before any model is loaded where the job cannot work
    or the run directory belongs to another one.
    """
    written = {name: without_secrets(getattr(job, name)) for name in ("identity", "model", "config")}
    job = replace(job, **written)
    check_writable(job.output_dir)
    with held(job.output_dir):
        run = read_run(job.output_dir)
        if run is not None:
            refuse_another_run(run["identity"], job.identity, job.output_dir)
        if job.cluster.address is None or (run is not None and run["status"] == "finished"):
            return _execute(job, run, progress)
        with connected(job.cluster):  # before anything is read: a wrong address is told first
            return _execute(job, run, progress)


def _execute(job: Job, run: dict[str, Any] | None, progress: Progress) -> dict[str, Any]:
    started = time.perf_counter()
    prepared = job.prepare(progress)
    if run is not None:
        _refuse_another_input(run["input"], asdict(prepared), job.output_dir)
    if run is not None and run["status"] == "finished":
        _check_whole(job, prepared.rows)
        if not failed_rows(job.output_dir):
            return run
    resumed = run is not None
    run = _begun(job, prepared, time.perf_counter() - started)
    write_run(job.output_dir, run)
    if resumed:  # only now: killed from here on, the run is one that goes on
        forget_unscored(job.output_dir)
        compact(job.output_dir)
    done = _worked(job, prepared.rows, progress) if prepared.rows else {}
    drop_leftovers(job.output_dir, prepared.rows)
    compact(job.output_dir)
    run = _finished(job, run, prepared, done)
    write_run(job.output_dir, run)
    return run


def read_run(run_dir: str) -> dict[str, Any] | None:
    """The content of a run directory's ``run.json``, None where there is none."""
    filesystem, root = open_filesystem(run_dir)
    text = read_text(filesystem, f"{root}/{RUN_FILE}")
    if text is None:
        return None
    try:
        run: dict[str, Any] = json.loads(text)
        run["status"], run["identity"].keys(), [file["sha256"] for file in run["input"]["inputs"]]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigurationError(f"{run_dir}/{RUN_FILE} is damaged: use another output.dir") from error
    return run


def write_run(run_dir: str, run: Mapping[str, Any]) -> None:
    """Write a run directory's ``run.json``."""
    filesystem, root = open_filesystem(run_dir)
    filesystem.create_dir(root, recursive=True)
    write_text(filesystem, f"{root}/{RUN_FILE}", json.dumps(run, indent=2, ensure_ascii=False) + "\n")


def plain_settings(factory: partial[Any]) -> dict[str, Any]:
    """The keywords of a model's factory that could change a result, and of the factories among them, as JSON."""

    def plain(value: Any) -> Any:
        if isinstance(value, partial):
            return {"scorer": value.func.__name__, **plain_settings(value)}
        return {name: plain(item) for name, item in value.items()} if isinstance(value, Mapping) else value

    return {name: plain(value) for name, value in factory.keywords.items() if name not in _HARMLESS}


def _refuse_another_input(before: Mapping[str, Any], now: Mapping[str, Any], run_dir: str) -> None:
    """Raise ConfigurationError where a run was made from files of other content than those that are prepared now."""
    digests = [[file["sha256"] for file in summary["inputs"]] for summary in (before, now)]
    if digests[0] != digests[1]:
        raise ConfigurationError(f"{run_dir} belongs to another input: use another output.dir")


def _check_whole(job: Job, rows: int) -> None:
    """Raise ConfigurationError where the results of a finished run are no longer all there."""
    run_dir = job.output_dir
    written = written_rows(run_dir)
    if written != rows:
        raise ConfigurationError(
            f"{run_dir}/results has {written} of {rows} {job.unit}, though the run was finished:"
            f" delete {run_dir}/results, checkpoint and {RUN_FILE} to verify them again, or use another output.dir"
        )


def shown(progress: Progress, phase: str, rows: int, done_before: int = 0) -> Callable[[Totals], None]:
    """What tells ``progress`` of a meter's totals in a phase that began with ``done_before`` of ``rows`` done."""

    def show(totals: Totals) -> None:
        if totals:
            progress(phase, done_before + int(totals.get("rows", 0)), rows, totals)
        else:
            progress(LOADING, 0, None, capacity())

    return show


def _begun(job: Job, prepared: PrepareSummary, seconds: float) -> dict[str, Any]:
    steps = {f"prepare_{name}_seconds": spent for name, spent in prepared.seconds.items()}
    return {
        "status": "started",
        "identity": job.identity,
        "config": job.config,
        "input": asdict(prepared),
        "model": job.model,
        "versions": {name: version(name) for name in _PACKAGES} | {"python": platform.python_version()},
        "started_at": time.time(),
        "timings": {"prepare_seconds": seconds, **steps},
    }


def _worked(job: Job, rows: int, progress: Progress) -> dict[str, Any]:
    """Run the work phase; the keys of ``run.json`` that say what this session did."""
    started = time.perf_counter()
    with connected(job.cluster):
        job.index(progress)
        meter = Meter()
        done_before = finished_rows(job.output_dir)

        show = shown(progress, "verify", rows, done_before)
        with watched(meter, show):
            job.work(meter)
        totals, notes = meter.totals(), meter.notes()
        show(totals)
    timings = {"verify_seconds": time.perf_counter() - started}
    if "first_rows_at" in totals:
        timings["scoring_seconds"] = totals["last_rows_at"] - totals["first_rows_at"]
    counted = {name: amount for name, amount in totals.items() if not name.endswith(("_seconds", "_at"))}
    return {
        "timings": timings | {name: value for name, value in totals.items() if name.endswith("_seconds")},
        "this_session": {job.unit if name == "rows" else name: amount for name, amount in counted.items()},
        "notes": notes,
    }


def _finished(job: Job, run: dict[str, Any], prepared: PrepareSummary, done: Mapping[str, Any]) -> dict[str, Any]:
    counts = job.counts(prepared)
    timings = {**run["timings"], **done.get("timings", {})}
    return {"notes": [], **run, **done, "status": "finished", "finished_at": time.time(), "counts": counts} | {
        "timings": timings
    }


def check_written(run_dir: str, written: int, distinct: int, rows: int, unit: str) -> None:
    """Raise ConfigurationError where the results do not hold each row of the input once."""
    if (written, distinct) != (rows, rows):
        raise ConfigurationError(
            f"{run_dir}/results has {written} rows of {distinct} {unit} where {rows} were to be verified:"
            " delete its results and checkpoint and run again"
        )
