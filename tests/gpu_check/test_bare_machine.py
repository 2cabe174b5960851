"""The GPU check where nothing is installed but what the script says that it needs."""

import json
import subprocess
import sys
from importlib.metadata import packages_distributions, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
INSTALLED = "torch transformers numpy pyarrow tokenizers sentencepiece safetensors huggingface_hub".split()
COMMAND_LINES = {"typer"}  # transformers has one too, and it needs rich and pydantic; the library does not


def _with_needs(names: list[str]) -> set[str]:
    """The distributions and all that they need, by canonical name."""
    known = set(COMMAND_LINES)
    todo = list(map(canonicalize_name, names))
    while todo:
        if (name := todo.pop()) in known:
            continue
        known.add(name)
        needs = map(Requirement, requires(name) or ())
        todo += [
            canonicalize_name(need.name) for need in needs if not need.marker or need.marker.evaluate({"extra": ""})
        ]
    return known - COMMAND_LINES


def test_it_runs_with_torch_transformers_numpy_and_pyarrow_alone(tmp_path: Path) -> None:
    there = _with_needs(INSTALLED)
    modules = [
        module
        for module, distributions in packages_distributions().items()
        if there & set(map(canonicalize_name, distributions))
    ]
    out = tmp_path / "report.json"
    asked = ["--device", "cpu", "--shape", "tiny", "--out", str(out)]
    script = str(Path(__file__).with_name("bare_machine.py"))
    done = subprocess.run(
        [sys.executable, script, json.dumps(modules), str(ROOT), "jobs.gpu_check", *asked],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(out.read_text())
    assert list(report["families"]) == ["minilm_l6", "deberta_v3_base", "deberta_v3_large", "flan_t5_large"]
    for figures in report["families"].values():
        assert list(figures["sides"]) == ["scorer", "bare_loop"]
        assert figures["max_difference"]["bare_loop"] <= 1e-5 < figures["spread"]
    assert done.stdout.count("sentence-transformers is not installed") == 1


def test_it_runs_as_a_file_from_anywhere(tmp_path: Path) -> None:
    file = str(ROOT / "jobs" / "gpu_check.py")
    done = subprocess.run([sys.executable, file, "--help"], capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "--peak-tflops" in done.stdout and "deberta_v3_large" in done.stdout
