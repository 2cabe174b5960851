"""What a sweep leaves: settings.parquet, sweep.json, the report, the tracked runs and a table to read."""

import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.table import Table

from verifier.redaction import without_secrets
from verifier.report.rendering import report_pictures, save_report
from verifier.sweep.figures import FIGURES, RANKING
from verifier.sweep.job import Sweep
from verifier.sweep.pictures import curves_picture, heat_picture, line_picture
from verifier.sweep.settings import CHOICES
from verifier.terminal import console, shown_text
from verifier.tracking import Tracker, open_run

SETTINGS_FILE, SWEEP_FILE = "settings.parquet", "sweep.json"
_STATUSES = ("supported", "refuted", "contested", "insufficient", "incomplete", "unscored")
_GROUP = dict.fromkeys(CHOICES, "scorer")  # where a field stands in jobs.verify, if not in policy
_BEST_SHOWN, _ROWS_SHOWN = 10, 500
_SHOWN = {
    "precision": "precision",
    "recall": "recall",
    "f1": "F1",
    "balanced_accuracy": "bal. acc.",
    "false_support_rate": "false sup.",
    "coverage": "covered",
}
_PACKAGES = ("claim-verifier", "numpy", "polars", "scikit-learn")
_LOGGED = (*FIGURES, *RANKING, "coverage", "missing_pairs", *(f"n_{name}" for name in _STATUSES))


def publish_sweep(found: Sweep, output_dir: str, config: Mapping[str, Any]) -> None:
    """Write everything into ``output_dir``, a local folder, log it to MLflow and print the best settings."""
    out = Path(output_dir)
    out.mkdir(parents=True, exist_ok=True)
    found.table.write_parquet(out / SETTINGS_FILE)
    document = without_secrets(_document(found, config))
    (out / SWEEP_FILE).write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    report = _report(found, out, document)
    tracking = config["tracking"]
    name = tracking["run_name"] or out.name
    with open_run(tracking["uri"], tracking["experiment"], name, output_dir, enabled=tracking["enabled"]) as tracker:
        _track(tracker, found, out, report, config)
    show_sweep(found)
    console.print(f"results {out / SETTINGS_FILE}\nreport  {report}\nMLflow  {tracker.location}", soft_wrap=True)


def show_sweep(found: Sweep) -> None:
    """Print the best settings, the run's own one, and what a reader should know."""
    incomplete = len(found.table) - int(found.table["complete"].sum())
    numbers = [*found.best.settings[:_BEST_SHOWN], *([found.own] if found.own is not None else [])]
    if numbers:
        console.print(_table(found, found.rows(list(dict.fromkeys(numbers)))))
    if found.best.settings:
        best = found.settings[found.best.settings[0]]
        bounds = f" with {' and '.join(map(str, found.constraints))}" if found.constraints else ""
        chosen = " ".join(f"{_GROUP.get(name, 'policy')}.{name}={value}" for name, value in best.changed.items())
        console.print(f"best by {found.spec.select}{bounds}: {chosen}", soft_wrap=True, markup=False)
    if found.own is not None:
        console.print("* the policy of the run itself")
    if found.best.why and not found.constraints:  # else the job ends with this sentence
        console.print(found.best.why, soft_wrap=True, markup=False)
    if incomplete:
        missing = max(found.table["missing_pairs"])
        console.print(
            f"{incomplete:,} of {len(found.table):,} settings need pairs that were not scored, up to {missing:,}:"
            " sweep.score_missing=true with the run's own scorer=… scores them",
            soft_wrap=True,
        )
    for note in found.runs.notes:
        console.print(f"note: {note}", style="yellow", markup=False, soft_wrap=True)


def _table(found: Sweep, rows: Sequence[Mapping[str, Any]]) -> Table:
    title = f"{len(found.table):,} settings, the best by {found.spec.select.replace('_', ' ')}"
    table = Table(title=title, title_justify="left")
    table.add_column("setting", justify="right")
    for name in found.fields:
        table.add_column(name.replace("_", " "))
    for header in _SHOWN.values():
        table.add_column(header, justify="right")
    for row in rows:
        own = row["setting"] == found.own
        fields = [shown_text(str(row[name])) for name in found.fields]
        values = ["–" if row[name] is None else f"{row[name]:.3f}" for name in _SHOWN]
        table.add_row(f"{row['setting']}{'*' if own else ''}", *fields, *values, style="bold" if own else "")
    return table


def _document(found: Sweep, config: Mapping[str, Any]) -> dict[str, Any]:
    complete = int(found.table["complete"].sum())
    return {
        "runs": list(found.runs.dirs),
        "method": found.runs.method,
        "model": dict(found.runs.model),
        "input": {str(place): dict(file) for place, file in enumerate(found.runs.inputs)},
        "counts": {"claims": int(found.table["claims"][0]), "settings": len(found.table), "complete": complete},
        "timings": {f"{name}_seconds": seconds for name, seconds in found.seconds.items()},
        "versions": {name: version(name) for name in _PACKAGES},
        "constraints": [str(one) for one in found.constraints],
        "best": found.rows(found.best.settings[:1])[0] if found.best.settings else None,
        "why": found.best.why,
        "missing": found.missing,
        "notes": list(found.runs.notes),
        "config": dict(config),
    }


def _report(found: Sweep, out: Path, document: Mapping[str, Any]) -> Path:
    best = found.best.settings
    pictures = {
        "curves": curves_picture(found.table, found.ranking, best[0] if best else None),
        "heat": heat_picture(found.table, found.axes, found.spec.select),
        "line": line_picture(found.table, found.axes),
    }
    return save_report(
        out,
        "sweep.html.j2",
        document,
        pictures,
        claims=document["counts"]["claims"],
        total=len(found.table),
        complete=document["counts"]["complete"],
        kept=len(best),
        select=found.spec.select,
        constraints=document["constraints"],
        why=found.best.why,
        fields=found.fields,
        figures=(*FIGURES, *RANKING),
        statuses=_STATUSES,
        best=found.rows(best[:_BEST_SHOWN]),
        own=found.rows([found.own]) if found.own is not None else [],
        shown=found.table.head(_ROWS_SHOWN).rows(named=True),
    )


def _track(tracker: Tracker, found: Sweep, out: Path, report: Path, config: Mapping[str, Any]) -> None:
    tracker.log_params(config)
    tracker.log_tags({"job": "sweep", "method": found.runs.method, "model": found.runs.model.get("model")})
    figures: dict[str, float | None] = {"sweep/settings": float(len(found.table))}
    figures["sweep/complete"] = float(found.table["complete"].sum())
    for row in found.rows(found.best.settings[:1]):
        figures |= {f"sweep/best/{name}": row[name] for name in _LOGGED}
    tracker.log_metrics(figures)
    for path in (out / SETTINGS_FILE, out / SWEEP_FILE, report):
        tracker.log_artifact(path)
    for path in report_pictures(out):
        tracker.log_artifact(path, "pictures")
    if tracker.run_id is not None and len(found.table) <= found.spec.nested_runs:
        for row in found.table.iter_rows(named=True):
            _track_setting(tracker.run_id, found, out, row, config["tracking"])


def _track_setting(parent: str, found: Sweep, out: Path, row: Mapping[str, Any], tracking: Mapping[str, Any]) -> None:
    setting = found.settings[row["setting"]]
    name = ", ".join(f"{field}={value}" for field, value in setting.changed.items()) or f"setting {row['setting']}"
    with open_run(tracking["uri"], tracking["experiment"], name, out, parent_run_id=parent) as nested:
        nested.log_params({**setting.policy.model_dump(mode="json"), **setting.choices})
        nested.log_tags({"job": "sweep setting", "setting": row["setting"], "complete": row["complete"]})
        nested.log_metrics({f"sweep/{field}": row[field] for field in _LOGGED})
