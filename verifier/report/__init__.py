"""The HTML report of a run directory: one file that opens offline, and its pictures as PNG."""

import json
import re
from base64 import b64encode
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from pyarrow.fs import FileSystem

from verifier.metrics import STATUSES
from verifier.report.examples import pick_examples, read_examples
from verifier.report.figures import gather
from verifier.report.pictures import COLOURS, confusion_picture, scores_picture, verdicts_picture

__all__ = ["REPORT_FILE", "report_pictures", "write_report"]

REPORT_FILE, PICTURES = "report.html", "pictures"
THRESHOLDS = {"entailment": "entailment_threshold", "contradiction": "contradiction_threshold", "support": "threshold"}
PASSWORD = re.compile(r"://[^/\s@\"]+@")


def write_report(run_dir: str | Path, out_dir: str | Path | None = None) -> Path:
    """Write report.html and pictures/*.png from the results, rejects and run.json of a run directory.

    Anything may be missing: an empty run gives a report that says so. Memory is that of a few aggregates and
    some dozens of example rows, whatever the size of the run.

    Args:
        run_dir: the run directory, local or a URI.
        out_dir: a local folder to write to, the run directory itself if None.
    """
    if out_dir is None and "://" in str(run_dir):
        raise ValueError(f"{run_dir} is not a local folder: say in out_dir where the report goes")
    out = Path(run_dir if out_dir is None else out_dir)
    out.mkdir(parents=True, exist_ok=True)
    run = _read_run(run_dir)
    figures = gather(run_dir)
    picked = pick_examples(run_dir, figures.slowest["row_id"].to_list())
    policy = _section(_section(run, "config"), "policy")
    thresholds = {kind: policy[name] for kind, name in THRESHOLDS.items() if isinstance(policy.get(name), float | int)}
    pictures = {
        "verdicts": verdicts_picture(figures.verdicts),
        "scores": scores_picture(figures.histograms, thresholds),
        "confusion": confusion_picture(figures.metrics.confusion) if figures.metrics else None,
    }
    page = _template().render(
        run=run,
        f=figures,
        statuses=STATUSES,
        colours=COLOURS,
        headline=_headline(run, figures.claims, figures.decided),
        thresholds=thresholds,
        picked=picked,
        examples=read_examples(run_dir, picked.row_ids),
        pictures={name: png and b64encode(png).decode() for name, png in pictures.items()},
        dump=PASSWORD.sub("://…@", json.dumps(run, indent=2, ensure_ascii=False)),
    )
    (out / PICTURES).mkdir(exist_ok=True)
    for name, png in pictures.items():
        path = out / PICTURES / f"{name}.png"
        path.unlink(missing_ok=True)  # no picture of an earlier report beside a new one
        if png:
            path.write_bytes(png)
    report = out / REPORT_FILE
    report.write_text(page, encoding="utf-8")
    return report


def report_pictures(out_dir: str | Path) -> list[Path]:
    """The pictures that ``write_report`` saved."""
    return sorted((Path(out_dir) / PICTURES).glob("*.png"))


def _read_run(run_dir: str | Path) -> dict[str, Any]:
    root = str(run_dir)
    filesystem, path = FileSystem.from_uri(root if "://" in root else Path(root).resolve().as_uri())
    with suppress(FileNotFoundError, ValueError), filesystem.open_input_stream(f"{path}/run.json") as stream:
        run = json.loads(stream.read())
        return run if isinstance(run, dict) else {}
    return {}


def _section(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    section = values.get(name)
    return section if isinstance(section, Mapping) else {}


def _headline(run: Mapping[str, Any], claims: int, decided: int) -> dict[str, Any]:
    timings, model = _section(run, "timings"), _section(run, "model")
    seconds = next((timings[name] for name in ("verify", "verify_seconds") if timings.get(name)), None)
    return {
        "model": model.get("model") or model.get("name"),
        "revision": model.get("revision"),
        "dtype": model.get("dtype"),
        "throughput": decided / seconds if seconds else None,
        "decided_share": decided / claims if claims else None,
    }


def _template() -> Any:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,  # claims, evidence, labels and messages are anybody's text
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"count": _count, "share": _share, "figure": _figure, "seconds": _seconds, "flat": _flat}
    return environment.get_template("page.html.j2")


def _count(value: int | None) -> str:
    return "–" if value is None else f"{value:,}".replace(",", "\u202f")


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _seconds(value: Any) -> str:
    if not isinstance(value, float | int):
        return str(value)
    return f"{value * 1000:.1f} ms" if value < 1 else f"{value:.2f} s" if value < 120 else f"{value / 60:.1f} min"


def _flat(values: Any, prefix: str = "") -> dict[str, Any]:
    """Nested mappings by dotted name, for tables of two columns; anything else is no table."""
    flat: dict[str, Any] = {}
    for key, value in values.items() if isinstance(values, Mapping) else ():
        flat |= _flat(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {f"{prefix}{key}": value}
    return flat
