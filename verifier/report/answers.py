"""The HTML report of a run on generated answers: their texts coloured by verdict, the evidence beside them."""

from pathlib import Path

from verifier.fusion.redaction import NOTICE
from verifier.report.answer_examples import pick_answers, read_answer_examples
from verifier.report.answer_figures import SHARES, gather_answers
from verifier.report.pictures import COLOURS, claim_scores_picture, verdicts_picture
from verifier.report.rendering import headline, numbers, read_run, report_folder, save_report, section

THRESHOLDS = {name: name for name in ("partial", "supported", "min_score")}


def write_answer_report(run_dir: str | Path, out_dir: str | Path | None = None) -> Path:
    """Write report.html and pictures/*.png from the results, rejects and run.json of a run on answers.

    Anything may be missing: an empty run gives a report that says so. Memory is that of a few aggregates and
    some dozens of answers, whatever the size of the run.

    Args:
        run_dir: the run directory, local or a URI.
        out_dir: a local folder to write to, the run directory itself if None.
    """
    out = report_folder(run_dir, out_dir)
    run = read_run(run_dir)
    check = section(section(run, "config"), "check")
    figures = gather_answers(run_dir, check.get("method") == "receipts")
    picked = pick_answers(run_dir, [category.name for category in figures.categories])
    thresholds = {name: value for name, value in numbers(check, THRESHOLDS).items() if 0 <= value <= 1}
    pictures = {
        "verdicts": verdicts_picture(figures.verdicts),
        "scores": claim_scores_picture(figures.histograms, thresholds, "best cosine" if figures.receipts else "score"),
        "grounded": verdicts_picture(figures.grounded, "answers"),
    }
    return save_report(
        out,
        "answers.html.j2",
        run,
        pictures,
        f=figures,
        unit="answer",
        shares=SHARES,
        notice=NOTICE,
        colours=COLOURS,
        check=check,
        headline=headline(run, figures.answers, figures.states["verified"]),
        thresholds=thresholds,
        picked=picked,
        examples=read_answer_examples(run_dir, picked.row_ids),
    )
