"""The GPU check: every family in turn until the time is used up, and what is told of it."""

import gc
import json
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from verifier.bench.gpu_family import Settings, measure_family
from verifier.bench.gpu_pairs import DISTRIBUTION, synthetic_claims
from verifier.bench.gpu_shapes import FAMILIES, peak_tflops
from verifier.errors import ConfigurationError

_TURN_SECONDS = {"tiny": 0.2, "real": 3.0}
_MOST_CLAIMS = {"tiny": 6, "real": 4000}
_COLUMNS = ("family", "pairs/s", "tokens/s", "MFU", "padding", "GiB", "/ loop", "/ predict", "/ by claim", "difference")

Report = dict[str, Any]


def check_gpu(
    families: Sequence[str],
    device: str,
    shape: str,
    deadline: float,
    peak: float | None = None,
    keep: Callable[[Report], object] = lambda report: None,
) -> Report:
    """Measure families one after another; the report, JSON values.

    Args:
        families: names in ``FAMILIES``.
        device: ``cuda`` or ``cpu``.
        shape: ``real`` (the published ones) or ``tiny``.
        deadline: ``time.perf_counter()`` after which no further family begins; those are in ``left_out``.
        peak: 10^12 operations a second that the device can do at most; None looks it up by its name.
        keep: gets the report after each family. A family that fails is in ``failed``, and the others go on.

    Raises:
        ConfigurationError: there is no GPU.
    """
    if device == "cuda" and not torch.cuda.is_available():
        raise ConfigurationError("there is no GPU here that torch can use: to try the check out, use --device cpu")
    place = torch.device(device)
    if place.type == "cpu":
        torch.set_num_threads(1)  # a CPU tries the check out; tiny operations wait for each other in several threads
    name = torch.cuda.get_device_name(place) if place.type == "cuda" else platform.machine()
    peak = peak or peak_tflops(name)
    claims = synthetic_claims(_MOST_CLAIMS[shape])
    report: Report = {
        "device": {"type": place.type, "name": name, "peak_tflops": peak},
        "versions": {package: _version(package) for package in ("torch", "transformers", "sentence-transformers")},
        "shape": shape,
        "lengths": DISTRIBUTION,
        "families": {},
        "failed": {},
        "left_out": [],
    }
    for family in families:
        if time.perf_counter() >= deadline:
            report["left_out"].append(family)
            continue
        settings = Settings(device, shape == "tiny", _TURN_SECONDS[shape], deadline, peak)
        try:
            with TemporaryDirectory() as folder:
                report["families"][family] = measure_family(FAMILIES[family], Path(folder) / family, claims, settings)
        except Exception as error:
            report["failed"][family] = f"{type(error).__name__}: {error}"
        keep(report)
        gc.collect()  # a scorer and its engine hold each other, and the next family's memory is measured
        if place.type == "cuda":
            torch.cuda.empty_cache()
    keep(report)
    return report


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def table(report: Mapping[str, Any]) -> str:
    """The report as plain text: a line a family, and what else there is to say."""
    rows = [_COLUMNS, *(_row(name, figures) for name, figures in report["families"].items())]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return "\n".join([*lines, *_notes(report)])


def _row(name: str, figures: Mapping[str, Any]) -> tuple[str, ...]:
    side, ratios, memory = figures["sides"]["scorer"], figures["ratios"], figures["peak_memory_bytes"]["scorer"]
    used = side["model_flops_utilization"]
    return (
        name,
        f"{side['pairs_per_second']:,.0f}",
        f"{side['tokens_per_second']:,.0f}",
        "-" if used is None else f"{used:.1%}",
        f"{figures['padding_share']['scorer']:.1%}",
        "-" if memory is None else f"{memory / 2**30:.1f}",
        *(_times(ratios.get(other)) for other in ("bare_loop", "predict_all", "predict_by_claim")),
        f"{max(figures['max_difference'].values()):.0e}",
    )


def _times(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.2f}x"


def _notes(report: Mapping[str, Any]) -> list[str]:
    device = report["device"]
    peak = "no known peak, so no MFU" if device["peak_tflops"] is None else f"peak {device['peak_tflops']:g} TFLOP/s"
    notes = [f"{device['name']}, {peak}, {report['shape']} shapes with random weights; {report['lengths']}"]
    notes.append(
        "/ loop, / predict, / by claim: pairs/s of the scorer over those of the bare loop (its own batches, tokenized"
        " beforehand), of CrossEncoder.predict over all pairs, and of a predict call for each claim"
    )
    pairs = [figures for figures in report["families"].values() if figures["scorer"] == "CrossEncoderScorer"]
    if any("predict_all" not in figures["ratios"] for figures in pairs):
        notes.append("sentence-transformers is not installed, so nothing was compared with CrossEncoder.predict")
    if device["type"] == "cpu":
        notes.append("on a CPU the scorer has all threads and the others one: ratios say nothing (see jobs.bench)")
    wrong = [name for name, figures in report["families"].items() if not figures["agree"]]
    notes += [f"PROBABILITIES DIFFER: {', '.join(wrong)}"] if wrong else []
    notes += [f"FAILED {name}: {reason}" for name, reason in report["failed"].items()]
    if report["left_out"]:
        notes.append(f"left out, as the time was used up: {', '.join(report['left_out'])}")
    return notes


def write(report: Mapping[str, Any], path: Path) -> None:
    """Write the report as JSON."""
    path.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
