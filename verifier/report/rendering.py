"""What the reports share: where one goes, what run.json says, the templates' environment, and writing it all."""

import json
from base64 import b64encode
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from pyarrow.fs import FileSystem

from verifier.redaction import without_secrets
from verifier.report.examples import cut
from verifier.report.pictures import time_picture

REPORT_FILE, PICTURES = "report.html", "pictures"
_CONTROLS = {*range(0x20), 0x7F} - {0x09, 0x0A, 0x0D}  # all but tabs and line ends
_BIDI = {*range(0x202A, 0x202F), *range(0x2066, 0x206A)}
_SURROGATES = {*range(0xD800, 0xE000)}
# A browser drops the first, turns text around at the second, and no file can hold the third: a reader is to see the
# text as it was judged.
HIDDEN = dict.fromkeys(_CONTROLS | _BIDI | _SURROGATES, "\ufffd")


def report_folder(run_dir: str | Path, out_dir: str | Path | None) -> Path:
    """The local folder that a report goes to, created; ValueError where the run is remote and none is named."""
    if out_dir is None and "://" in str(run_dir):
        raise ValueError(f"{run_dir} is not a local folder: say in out_dir where the report goes")
    out = Path(run_dir if out_dir is None else out_dir)
    out.mkdir(parents=True, exist_ok=True)
    return out


def save_report(
    out: Path, template: str, run: Mapping[str, Any], pictures: Mapping[str, bytes | None], **values: Any
) -> Path:
    """Render a template into report.html, with its pictures inside, and save the pictures as PNG beside it.

    Where the timings of the run say how long its steps took, one more picture shows it.
    """
    page, run = _environment().get_template(template), without_secrets(run)
    pictures = {**pictures, "time": time_picture(section(run, "timings"))}
    html = page.render(
        run=run,
        pictures={name: png and b64encode(png).decode() for name, png in pictures.items()},
        dump=json.dumps(run, indent=2, ensure_ascii=False),
        **values,
    )
    (out / PICTURES).mkdir(exist_ok=True)
    for name, png in pictures.items():
        path = out / PICTURES / f"{name}.png"
        path.unlink(missing_ok=True)  # no picture of an earlier report beside a new one
        if png:
            path.write_bytes(png)
    report = out / REPORT_FILE
    report.write_text(html, encoding="utf-8")
    return report


def report_pictures(out_dir: str | Path) -> list[Path]:
    """The pictures that a report saved."""
    return sorted((Path(out_dir) / PICTURES).glob("*.png"))


def read_run(run_dir: str | Path) -> dict[str, Any]:
    """The content of run.json, empty where there is none that can be read."""
    root = str(run_dir)
    filesystem, path = FileSystem.from_uri(root if "://" in root else Path(root).resolve().as_uri())
    with (
        suppress(FileNotFoundError, ValueError, RecursionError),
        filesystem.open_input_stream(f"{path}/run.json") as stream,
    ):
        run = json.loads(stream.read())
        return run if isinstance(run, dict) else {}
    return {}


def section(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A mapping inside a mapping, empty where there is none."""
    found = values.get(name)
    return found if isinstance(found, Mapping) else {}


def numbers(values: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, float]:
    """The settings that ``names`` names, by its keys; those that are no number are left out."""
    return {key: values[name] for key, name in names.items() if isinstance(values.get(name), float | int)}


def headline(run: Mapping[str, Any], rows: int, decided: int) -> dict[str, Any]:
    """The model of a run, the share of its rows that were decided, and the rows that its last session did a second."""
    seconds, model = numbers(section(run, "timings"), {"verify": "verify_seconds"}).get("verify"), section(run, "model")
    session = numbers(section(run, "this_session"), {"claims": "claims", "answers": "answers"})
    return {
        "model": model.get("model") or model.get("name"),
        "revision": model.get("revision"),
        "dtype": model.get("dtype"),
        "throughput": next(iter(session.values()), decided) / seconds if seconds else None,
        "decided_share": decided / rows if rows else None,
    }


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,  # claims, evidence, labels and messages are anybody's text
        undefined=StrictUndefined,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"count": _count, "share": _share, "figure": _figure, "seconds": _seconds, "flat": _flat}
    environment.filters["cut"] = cut
    return environment


def _visible(value: Any) -> Any:
    return value.translate(HIDDEN) if isinstance(value, str) else value


def _count(value: int | None) -> str:
    return "–" if value is None else f"{value:,}".replace(",", "\u202f")


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _seconds(value: Any) -> str:
    if not isinstance(value, float | int) or not abs(value) < 1e15:
        return str(value)
    return f"{value * 1000:.1f} ms" if value < 1 else f"{value:.2f} s" if value < 120 else f"{value / 60:.1f} min"


def _flat(values: Any, prefix: str = "") -> dict[str, Any]:
    """Nested mappings by dotted name, for tables of two columns; anything else is no table."""
    flat: dict[str, Any] = {}
    for key, value in values.items() if isinstance(values, Mapping) else ():
        flat |= _flat(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {f"{prefix}{key}": value}
    return flat
