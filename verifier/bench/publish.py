"""What the benchmark shows and keeps: tables, ``bench.json`` and the tracked run."""

import json
import os
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from verifier.bench.figures import Part, metrics
from verifier.terminal import console
from verifier.tracking import open_run

_PACKAGES = ("claim-verifier", "ray", "torch", "transformers", "pyarrow", "polars")


def publish_bench(parts: Sequence[Part], output_dir: str, config: Mapping[str, Any]) -> Path:
    """Print the tables and the locations, write ``bench.json`` and log to MLflow; returns the file."""
    for part in parts:
        if part.figures:
            console.print(part.table())
        for note in part.notes:
            console.print(note, soft_wrap=True, markup=False)
    path = Path(output_dir) / "bench.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {"machine": machine(), "config": config, "parts": [part.to_dict() for part in parts]}
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    tracking = config["tracking"]
    name = tracking["run_name"] or path.parent.name
    with open_run(tracking["uri"], tracking["experiment"], name, output_dir, enabled=tracking["enabled"]) as tracker:
        tracker.log_params(config)
        tracker.log_tags({"job": "bench", **machine()})
        tracker.log_metrics(metrics(parts))
        tracker.log_artifact(path)
    console.print(f"results {path}\nMLflow  {tracker.location}", soft_wrap=True)
    return path


def machine() -> dict[str, Any]:
    """Where the figures come from."""
    return {
        "cpus": os.cpu_count(),
        "platform": platform.platform(),
        "python": platform.python_version(),
        **{name: version(name) for name in _PACKAGES},
    }
