"""The HTML report of a run directory: one file that opens offline, and its pictures as PNG."""

from pathlib import Path

from verifier.metrics import STATUSES
from verifier.report.examples import pick_examples, read_examples
from verifier.report.figures import gather
from verifier.report.pictures import COLOURS, confusion_picture, scores_picture, verdicts_picture
from verifier.report.rendering import (
    REPORT_FILE,
    headline,
    numbers,
    read_run,
    report_folder,
    report_pictures,
    save_report,
    section,
)

__all__ = ["REPORT_FILE", "report_pictures", "write_report"]

THRESHOLDS = {"entailment": "entailment_threshold", "contradiction": "contradiction_threshold", "support": "threshold"}


def write_report(run_dir: str | Path, out_dir: str | Path | None = None) -> Path:
    """Write report.html and pictures/*.png from the results, rejects and run.json of a run directory.

    Anything may be missing: an empty run gives a report that says so. Memory is that of a few aggregates and
    some dozens of example rows, whatever the size of the run.

    Args:
        run_dir: the run directory, local or a URI.
        out_dir: a local folder to write to, the run directory itself if None.
    """
    out = report_folder(run_dir, out_dir)
    run = read_run(run_dir)
    figures = gather(run_dir)
    picked = pick_examples(run_dir, figures.slowest["row_id"].to_list())
    thresholds = numbers(section(section(run, "config"), "policy"), THRESHOLDS)
    pictures = {
        "verdicts": verdicts_picture(figures.verdicts),
        "scores": scores_picture(figures.histograms, thresholds),
        "confusion": confusion_picture(figures.metrics.confusion) if figures.metrics else None,
    }
    return save_report(
        out,
        "page.html.j2",
        run,
        pictures,
        f=figures,
        unit="claim",
        statuses=STATUSES,
        colours=COLOURS,
        headline=headline(run, figures.claims, figures.decided),
        thresholds=thresholds,
        picked=picked,
        examples=read_examples(run_dir, picked.row_ids),
    )
