"""The notebooks, executed: the offline heuristic on the demo corpus, and the published scores of guards44."""

import json
import runpy
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.assays.assay_files import fever_rows, write_rows
from tests.assays.sealed_place import Place, sealing
from tests.shared import SHARED, needs_shared
from verifier.assays.compare import StatusChange
from verifier.assays.sealing import SealedCohort
from verifier.digests import sha256_file
from verifier.report.figures import gather
from verifier.results import read_results

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
VARIABLES = ("RUN_DIR", "ASSAY_DIR", "NOTEBOOK_OUT", "LEDGER")


def executed(name: str, folder: Path, **variables: str) -> dict[str, Any]:
    """What a notebook has computed, in a folder of its own and with these environment variables."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.syspath_prepend(str(NOTEBOOKS))
        for variable in VARIABLES:
            patch.delenv(variable, raising=False)
        for variable, value in {"NOTEBOOK_OUT": str(folder / "out"), **variables}.items():
            patch.setenv(variable, value)
        return runpy.run_path(str(NOTEBOOKS / f"{name}.py"))


def drawn(folder: Path) -> set[str]:
    pictures = list((folder / "out").glob("*.png"))
    assert all(picture.read_bytes().startswith(b"\x89PNG") for picture in pictures)
    return {picture.stem for picture in pictures}


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("swept")
    return executed("threshold_sweep", folder) | {"folder": folder}


def test_threshold_sweep(swept: dict[str, Any]) -> None:
    table, own = swept["found"].table, swept["own"]
    assert len(table) == 11 * 11 and swept["incomplete"].is_empty()
    metrics = gather(swept["run_dir"]).metrics
    assert metrics is not None and metrics.decided == table["claims"][0] == 128
    for name in ("precision", "recall", "true_positives", "false_positives"):
        assert own[name] == getattr(metrics.binary, name)
    kept = table.filter(table["precision"] >= 0.75)
    assert 0 < len(kept) < len(table)
    assert table.row(swept["best"], named=True)["recall"] == kept["recall"].max()
    assert drawn(swept["folder"]) == {"precision_recall", "grid"}


def test_error_analysis(swept: dict[str, Any], tmp_path: Path) -> None:
    run_dir = swept["run_dir"]
    found = executed("error_analysis", tmp_path, RUN_DIR=run_dir)
    rows = read_results(run_dir).to_dicts()
    false = [row for row in rows if row["status"] == "supported" and row["label"] != "supported"]
    assert len(false) == swept["own"]["false_positives"] > 0
    assert found["category_counts"] == Counter(row["category"] for row in false)
    fired = Counter(limitation for row in rows for limitation in row["record"]["limitations"])
    guards = {row["guard"]: row for row in found["guards"].to_dicts()}
    assert len(guards) == 2 and all(fired[guard] == row["fired"] for guard, row in guards.items())
    traps = [
        row
        for row in rows
        if "uncorroborated_model_entailment" in row["record"]["limitations"]
        and row["label"] not in ("supported", "contested")
    ]
    assert guards["uncorroborated_model_entailment"]["right"] == len(traps) > 0
    strongest = {row["claim_id"]: max((pair["entailment"] for pair in row["pairs"]), default=0.0) for row in rows}
    near = {row["claim_id"]: row["value"] for row in found["near"].to_dicts() if row["score"] == "entailment"}
    assert near == {name: value for name, value in strongest.items() if abs(value - 0.8) <= 0.05} != {}
    assert drawn(tmp_path) == {"false_supports", "entailment_by_label", "contradiction_by_label"}


@needs_shared
def test_assay_reproduction(tmp_path: Path) -> None:
    folder = SHARED / "claim-verifier" / "guards44"
    found = executed("assay_reproduction", tmp_path, ASSAY_DIR=str(folder))
    reproduction, changed = found["found"], found["changed"]
    assert reproduction.differences == () and reproduction.gates.passed and len(reproduction.gates.results) == 8
    assert sum(case.as_expected for case in reproduction.cases) == 43
    assert found["comparison"].statuses == (StatusChange("preserve_attempt", "supported", "supported", "insufficient"),)
    assert {score.case_id for score in found["comparison"].scores} == {"preserve_attempt"}
    assert "cases/preserve_attempt/status" in {line.name for line in changed.differences}
    assert drawn(tmp_path) == {"confusion"}
    assert (tmp_path / "runs" / "assays.jsonl").is_file()


def test_an_assay_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="name the folder of the assay in ASSAY_DIR"):
        executed("assay_reproduction", tmp_path, ASSAY_DIR=str(tmp_path))


@pytest.mark.parametrize("name", ["threshold_sweep", "error_analysis"])
def test_a_run_of_a_sealed_cohort_is_refused(tmp_path: Path, name: str) -> None:
    for prefix, file in (("red", "sealed.jsonl"), ("blue", "calibration.jsonl")):
        write_rows(tmp_path / file, fever_rows(prefix))
    place = Place(tmp_path, sealing(tmp_path, "sealed"))
    run = tmp_path / "run"
    run.mkdir()
    (run / "run.json").write_text(json.dumps({"input": {"inputs": [{"sha256": sha256_file(place.file)}]}}), "utf-8")
    with pytest.raises(SealedCohort, match="belongs to the sealed cohort"):
        executed(name, tmp_path, RUN_DIR=str(run), LEDGER=str(place.ledger))
