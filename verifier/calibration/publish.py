"""What a calibration leaves: calibration.json, the calibrator, the report, the tracked run and a few lines to read."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from verifier.calibration.inputs import Labelled
from verifier.calibration.pictures import (
    NAMES,
    bootstrap_picture,
    curve_picture,
    domains_picture,
    reliability_picture,
)
from verifier.calibration.study import Study
from verifier.redaction import without_secrets
from verifier.report.rendering import report_pictures, save_report, section
from verifier.terminal import console, shown_text
from verifier.tracking import open_run

CALIBRATION_FILE, CALIBRATOR_FILE = "calibration.json", "calibrator.json"
_SHOWN = ("precision", "recall", "f1", "accuracy", "balanced_accuracy", "false_support_rate")


def publish(study: Study, data: Labelled, output_dir: str, config: Mapping[str, Any]) -> None:
    """Write everything into ``output_dir``, a local folder, log it to MLflow and print the figures and the places."""
    out = Path(output_dir)
    out.mkdir(parents=True, exist_ok=True)
    document = without_secrets(
        {"input": data.source, "counts": _counts(data), **study.to_dict(), "config": dict(config)}
    )
    files = [_written(out / CALIBRATION_FILE, document)]
    (out / CALIBRATOR_FILE).unlink(missing_ok=True)  # none of an earlier calibration beside a new one
    if study.calibrator["kind"] != "none":
        fitted_on = {name: section(data.source, "model").get(name) for name in ("model", "revision")}
        files.append(_written(out / CALIBRATOR_FILE, {**study.calibrator, "base": fitted_on}))
    report = _report(study, data, out, config)
    tracking = config["tracking"]
    name = tracking["run_name"] or out.name
    with open_run(tracking["uri"], tracking["experiment"], name, output_dir, enabled=tracking["enabled"]) as tracker:
        tracker.log_params(config)
        tracker.log_tags({"job": "calibrate", "scores_sha256": data.source["scores_sha256"]})
        tracker.log_metrics(metrics(study, data))
        for path in (*files, report):
            tracker.log_artifact(path)
        for path in report_pictures(out):
            tracker.log_artifact(path, "pictures")
    show(study)
    console.print(f"results {files[0]}\nreport  {report}\nMLflow  {tracker.location}", soft_wrap=True)


def metrics(study: Study, data: Labelled) -> dict[str, float | None]:
    """The figures of a calibration by the names that MLflow has them under, which stay the same."""
    point, guarantee = study.choice.point, study.guarantee
    found: dict[str, float | None] = {f"calibrate/{name}": count for name, count in _counts(data).items()}
    found["calibrate/attainable"] = float(point is not None)
    found["calibrate/threshold"] = point.threshold if point else None
    for where, measured in (("in_sample", study.in_sample), ("out_of_fold", study.out_of_fold)):
        if measured is not None and (where == "in_sample" or study.judged):
            found |= {f"calibrate/{where}/{name}": measured.figures[name] for name in _SHOWN}
    for name in _SHOWN if study.judged else ():
        low, high = study.out_of_fold.bootstrap[name]
        found |= {f"calibrate/out_of_fold/{name}_low": low, f"calibrate/out_of_fold/{name}_high": high}
    if guarantee is not None:
        found["calibrate/guarantee/attained"] = float(guarantee.threshold is not None)
        found["calibrate/guarantee/threshold"] = guarantee.threshold
    for kind, one in study.reliability.items():
        kind = "score" if kind == "none" else kind
        for name in ("ece", "brier", "auroc", "average_precision"):
            found[f"calibrate/{kind}/{name}"] = getattr(one, name)
    return found | {"calibrate/flagged_domains": float(sum(bool(one.flags) for one in study.domains))}


def show(study: Study) -> None:
    """Print the figures, the guarantee, the flagged domains and what a reader should know."""
    point = study.choice.point
    title = "no threshold on all claims" if point is None else f"score {study.comparison} {point.threshold:.6g}"
    table = Table(title=title, title_justify="left")
    table.add_column("figure")
    for column in ("in sample", "out of fold", f"{study.spec.confidence:.0%} interval"):
        table.add_column(column, justify="right")
    for name in _SHOWN if study.judged else ():
        low, high = study.out_of_fold.bootstrap[name]
        inside = f"{study.in_sample.figures[name]:.3f}" if study.in_sample else "–"
        outside = f"{study.out_of_fold.figures[name]:.3f}"
        table.add_row(name.replace("_", " "), inside, outside, f"{low:.3f} to {high:.3f}")
    if study.judged:
        console.print(table)
    if study.guarantee is not None:
        console.print(str(study.guarantee), soft_wrap=True)
    for domain in study.domains if study.judged else ():
        if domain.flags:
            console.print("far below all claims:", shown_text(domain.name), f"in {', '.join(domain.flags)}")
    for note in study.notes:
        console.print(f"note: {note}", style="yellow", markup=False, soft_wrap=True)


def _report(study: Study, data: Labelled, out: Path, config: Mapping[str, Any]) -> Path:
    point, guarantee, judged = study.choice.point, study.guarantee, study.out_of_fold
    same_scale = study.spec.calibrator in ("none", "stack")  # else the guarantee is on the score before calibration
    pictures = {
        "curve": curve_picture(
            study.scores,
            data.positive,
            study.comparison,
            point.threshold if point else None,
            guarantee.threshold if guarantee and same_scale else None,
            {one.figure: one.bound for one in study.constraints if one.sign == ">="},
        ),
        "reliability": reliability_picture(study.reliability),
        "domains": domains_picture(study.domains, judged.figures) if study.judged else None,
        "bootstrap": bootstrap_picture(study.resampled, judged.figures, judged.bootstrap) if study.judged else None,
    }
    counts = _counts(data)
    return save_report(
        out,
        "calibration.html.j2",
        {"input": data.source, "counts": counts, "config": config},
        pictures,
        s=study,
        **counts,
        positive=config["input"]["positive"],
        failures=study.failures(),
        confidence=f"{study.spec.confidence:.0%}",
        names=NAMES,
    )


def _counts(data: Labelled) -> dict[str, int]:
    return {
        "claims": len(data.scores),
        "documents": len(np.unique(data.groups)),
        "positives": int(data.positive.sum()),
    }


def _written(path: Path, document: Mapping[str, Any]) -> Path:
    path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return path
