"""What a finished run shows: the report, the tracked figures, the verdict table and where everything is."""

import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.compute as pc
import pyarrow.parquet as pq

from verifier.digests import sha256_json
from verifier.grounding.answers import decided_answers
from verifier.grounding.cited import Strictness
from verifier.live import LiveRun
from verifier.metrics import Metrics, measure_cells
from verifier.pipeline.execution import RUN_FILE, write_run
from verifier.pipeline.storage import exists, open_filesystem, write_text
from verifier.report import REPORT_FILE, report_pictures, write_report
from verifier.results import DECIDED_STATUS, scan_results
from verifier.terminal import console, show_verdicts
from verifier.tracking import Tracker

ANSWERS_FILE = "answers.parquet"


def publish(run_dir: str, run: Mapping[str, Any], live: LiveRun) -> None:
    """Write the report and track the run, once; print the verdicts and the locations."""
    metrics = run_metrics(run_dir)
    published = published_run(run_dir, run, live, write_report, metrics.flat() if metrics else {})
    show_verdicts(run["counts"], run["input"]["rejects_by_code"], metrics)
    show_locations(run_dir, run, published)


def published_run(
    run_dir: str,
    run: Mapping[str, Any],
    live: LiveRun,
    write: Callable[[str, str | None], Path],
    metrics: Mapping[str, float | None],
) -> Mapping[str, str]:
    """Where a finished run is tracked; it is tracked, and ``write`` writes its report, where that was not done."""
    published: Mapping[str, str] | None = run.get("published")
    if published is not None and exists(f"{run_dir}/{REPORT_FILE}"):
        return published
    with tempfile.TemporaryDirectory() as scratch:
        remote = "://" in run_dir
        report = write(run_dir, scratch if remote else None)
        tracker = live.tracker()
        _track(tracker, run, metrics, report)
        if remote:
            upload(report, run_dir)
    published = {"mlflow": tracker.location}
    write_run(run_dir, {**run, "published": published})
    return published


def show_locations(run_dir: str, run: Mapping[str, Any], published: Mapping[str, str]) -> None:
    """Print a run's notes and where everything is."""
    for note in run.get("notes", ()):
        console.print(f"note: {note}", style="yellow", markup=False)
    report = f"{run_dir}/{REPORT_FILE}"
    console.print(f"results {run_dir}\nreport  {report}\nMLflow  {published['mlflow']}", soft_wrap=True)


def write_answers(run_dir: str, strictness: Strictness) -> None:
    """Decide the answers of a run with ``data=cited``, write ``answers.parquet`` and say how many go out."""
    answers = decided_answers(run_dir, strictness)
    filesystem, root = open_filesystem(run_dir)
    pq.write_table(answers, f"{root}/{ANSWERS_FILE}", filesystem=filesystem)
    delivered = pc.sum(answers["delivered"]).as_py() or 0
    console.print(
        f"answers under strictness {strictness}: {delivered:,} delivered, {answers.num_rows - delivered:,} refused,"
        f" see {run_dir}/{ANSWERS_FILE}",
        soft_wrap=True,
    )


def run_metrics(run_dir: str) -> Metrics | None:
    """The metrics of a run's labelled claims, None where no claim has a label."""
    cells = scan_results(run_dir).with_columns(DECIDED_STATUS).group_by("label", "status").agg(pl.len()).collect()
    return measure_cells({(label, status): count for label, status, count in cells.iter_rows()})


def upload(report: Path, run_dir: str) -> None:
    """Copy a report into a run directory that is not local."""
    filesystem, root = open_filesystem(run_dir)
    write_text(filesystem, f"{root}/{report.name}", report.read_text(encoding="utf-8"))


def _track(tracker: Tracker, run: Mapping[str, Any], metrics: Mapping[str, float | None], report: Path) -> None:
    counts, timings, model = run["counts"], run["timings"], run["model"]
    tracker.log_params(run["config"])
    tracker.log_tags({"model": model["model"], "revision": model["revision"], "input_form": run["input"]["form"]})
    flat = {name: float(value) for name, value in counts.items() if not isinstance(value, Mapping)}
    for group, prefix in (("statuses", "status"), ("verdicts", "verdict"), ("corpus", "corpus")):
        flat |= {f"{prefix}/{name}": float(count) for name, count in counts.get(group, {}).items()}
    flat |= {name: float(value) for name, value in timings.items()}
    scoring, session = timings.get("scoring_seconds"), run.get("this_session", {})
    if scoring:
        rates = ("answers", "claims", "pairs")
        flat |= {f"{name}_per_second": session[name] / scoring for name in rates if name in session}
    tracker.log_metrics(flat | dict(metrics))
    files = run["input"]["inputs"]
    if files:
        digest = files[0]["sha256"] if len(files) == 1 else sha256_json([file["sha256"] for file in files])
        tracker.log_input(Path(files[0]["path"]).name, digest, files[0]["path"])
    for path in (report, *report_pictures(report.parent)):
        tracker.log_artifact(path, "pictures" if path.suffix == ".png" else None)
    run_file = report.parent / RUN_FILE
    if not run_file.is_file():  # the run directory is remote, the report was written elsewhere
        run_file.write_text(json.dumps(run, indent=2, ensure_ascii=False), encoding="utf-8")
    tracker.log_artifact(run_file)
