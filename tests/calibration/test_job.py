"""The job as a user starts it: what it writes and prints, and its exit statuses."""

import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mlflow import MlflowClient

from jobs.calibrate import main
from tests.calibration.synthetic import draw
from tests.shared import SHARED, needs_shared
from tests.test_report import EVIL, read
from verifier.assays.ledger import append
from verifier.calibration.calibrators import apply, read_calibrator
from verifier.calibration.selection import decided_figures
from verifier.digests import sha256_file
from verifier.exits import run_job
from verifier.tracking import local_uri

EASY = ("calibrate.constraints.precision='>=0.7'", "guarantee.precision=0.6", "calibrate.bootstrap=200")
FEW = (*EASY[:-1], "calibrate.bootstrap=100")  # where intervals are not looked at


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Any]:
    """Runs the job in a folder of its own: exit status, standard output, standard error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HYDRA_FULL_ERROR", "1")

    def run(*overrides: str, tracking: str = "none") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["calibrate", f"tracking={tracking}", "output.dir=out", *overrides])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            run_job(main)
        return int(str(ended.value.code)), *capsys.readouterr()

    handler = signal.getsignal(signal.SIGTERM)  # a job sets its own
    yield run
    signal.signal(signal.SIGTERM, handler)


def written(folder: Path, n: int = 800, low: float = -0.3, slope: float = 1.6) -> str:
    """A table of n claims, two of each document, in three domains of which one has other labels than its scores say."""
    random = np.random.default_rng(12)
    scores, positive = draw(random, n, low, slope)
    rows = []
    for number, (score, label) in enumerate(zip(scores.tolist(), positive.tolist(), strict=True)):
        domain = ("news", EVIL, "meetings")[number // 2 % 3]
        good = bool(random.random() < 0.35) if domain == "meetings" else label
        label = "supported" if good else "refuted"
        rows.append({"score": score, "label": label, "group": f"d{number // 2}", "domain": domain})
    (folder / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return "input.table=t.jsonl"


def test_a_calibration_that_succeeds(job: Any, tmp_path: Path) -> None:
    status, output, errors = job(written(tmp_path), *EASY, tracking="local")
    assert (status, errors) == (0, ""), errors
    result = json.loads((tmp_path / "out/calibration.json").read_text())
    assert result["attainable"]
    rows = [json.loads(line) for line in (tmp_path / "t.jsonl").read_text().splitlines()]
    scores, positive = np.array([r["score"] for r in rows]), np.array([r["label"] == "supported" for r in rows])
    assert result["counts"] == {"claims": 800, "documents": 400, "positives": positive.sum()}
    assert result["in_sample"]["figures"] == decided_figures(scores > result["threshold"], positive)
    assert result["in_sample"]["figures"]["precision"] >= 0.7 and result["in_sample"]["figures"]["recall"] >= 0.6
    judged = result["out_of_fold"]
    assert judged["bootstrap"]["precision"][0] < judged["figures"]["precision"] < judged["bootstrap"]["precision"][1]
    assert len(result["folds"]["thresholds"]) == 5 and set(result["reliability"]) == {"none", "isotonic", "logistic"}
    assert result["guarantee"]["claims"] == 400 and result["guarantee"]["says"] in output
    flagged = {domain["name"]: domain["flags"] for domain in result["domains"]}
    assert "precision" in flagged["meetings"] and not flagged["news"]
    assert "far below all claims: meetings in precision" in output
    assert "the guarantee takes one claim of each of 400 documents" in output
    page = read(tmp_path / "out/report.html")
    assert len(page.sources) == 4 and EVIL.replace("\u202e", "\ufffd") in page.text
    assert not (tmp_path / "out/calibrator.json").exists()
    run_id = output.split(" run ")[-1].strip()
    metrics = MlflowClient(local_uri()).get_run(run_id).data.metrics
    assert metrics["calibrate/threshold"] == result["threshold"]
    assert metrics["calibrate/out_of_fold/precision"] == judged["figures"]["precision"]
    assert metrics["calibrate/guarantee/attained"] == 1 and metrics["calibrate/flagged_domains"] >= 1
    artifacts = {item.path for item in MlflowClient(local_uri()).list_artifacts(run_id)}
    assert artifacts == {"calibration.json", "report.html", "pictures"}


@pytest.mark.parametrize("kind", ["isotonic", "logistic"])
def test_the_calibrator_that_is_handed_out_is_the_one_that_was_measured(job: Any, tmp_path: Path, kind: str) -> None:
    status, output, _ = job(written(tmp_path), *FEW, f"calibrate.calibrator={kind}", "calibrate.comparison='>='")
    assert status == 0 and "the guarantee is on the score before calibration" in output
    result = json.loads((tmp_path / "out/calibration.json").read_text())
    rows = [json.loads(line) for line in (tmp_path / "t.jsonl").read_text().splitlines()]
    scores, positive = np.array([r["score"] for r in rows]), np.array([r["label"] == "supported" for r in rows])
    probabilities = apply(read_calibrator(tmp_path / "out/calibrator.json"), scores[:, None])
    assert result["in_sample"]["figures"] == decided_figures(probabilities >= result["threshold"], positive)
    assert job(written(tmp_path), *FEW)[0] == 0
    assert not (tmp_path / "out/calibrator.json").exists(), "none of an earlier calibration stays"


def test_the_same_command_gives_the_same_figures(job: Any, tmp_path: Path) -> None:
    found = []
    for _ in range(2):
        assert job(written(tmp_path), *FEW)[0] == 0
        found.append((tmp_path / "out/calibration.json").read_text())
    assert found[0] == found[1]


def test_constraints_that_cannot_be_met_end_with_1_and_everything_written(job: Any, tmp_path: Path) -> None:
    status, output, errors = job(written(tmp_path, low=0.3, slope=0.2), "guarantee.precision=null")
    assert status == 1
    assert errors.startswith(
        "no threshold on these scores meets precision >= 0.90 with recall >= 0.60; the best precision"
    )
    assert len(errors.strip().splitlines()) == 1
    result = json.loads((tmp_path / "out/calibration.json").read_text())
    assert not result["attainable"] and result["threshold"] is None and result["in_sample"] is None
    assert result["why_not"] == errors.strip()
    assert "5 of 5 folds found no threshold" in output
    assert result["why_not"] in read(tmp_path / "out/report.html").text


def test_a_guarantee_that_cannot_be_given_ends_with_1(job: Any, tmp_path: Path) -> None:
    status, _, errors = job(written(tmp_path), EASY[0], "guarantee.precision=0.99")
    assert status == 1
    assert errors.startswith("precision >= 0.99 with confidence 95%: not attainable on these data")


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("calibrate.rule=best", "the rule 'best' is unknown"),
        ("calibrate.constraints.precision='>0.9'", "constraints.precision is '>0.9'"),
        ("+calibrate.constraints.speed='>=0.9'", "constraints.speed is no figure"),
        ("calibrate.folds=1", "calibrate.folds is 1"),
        ("calibrate.folds=99", "too few for folds=99"),
        ("calibrate.calibrator=stack", "the stack reads texts"),
        ("calibrate.calibrator=forest", "calibrate.calibrator is 'forest'"),
        ("guarantee.precision=1", "guarantee.precision is 1"),
        ("+guarantee.recall=0.5", "guarantee.recall is no field"),
        ("+input.columns.scores=x", "input.columns.scores is no field"),
        ("input.columns.score=x", "no column 'x'"),
        ("input.run=here", "give one of input.run"),
        ("output.dir=s3://bucket/x", "a local folder expected"),
    ],
)
def test_a_bad_configuration_ends_with_2_and_one_sentence(
    job: Any, tmp_path: Path, override: str, sentence: str
) -> None:
    status, _, errors = job(written(tmp_path, n=60), override)
    assert status == 2 and sentence in errors and len(errors.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_a_sealed_table_is_not_read(job: Any, tmp_path: Path) -> None:
    table = written(tmp_path)
    files = {"claims": {"sha256": sha256_file(tmp_path / "t.jsonl")}}
    cohort = {"name": "held back", "files": files, "selected": None}
    body = {"sealed": True, "registration": "0" * 64, "identities": ["1" * 64], "cohort": cohort}
    append(tmp_path / "ledger.jsonl", "registration", body)
    status, output, errors = job(table, "ledger=ledger.jsonl", *EASY)
    assert (status, output) == (2, "") and "t.jsonl belongs to the sealed cohort held back" in errors
    assert job(table, "ledger=another.jsonl", *EASY)[0] == 0


@needs_shared
def test_the_published_minicheck_trial_as_it_lies(job: Any) -> None:
    path = SHARED / "wice/minicheck-flan-t5-large.test.scores.jsonl"
    status, _, errors = job(f"input.table={path}", "input.columns.score=probs", "input.columns.group=id")
    assert status == 1
    assert "no threshold on these scores meets precision >= 0.90 with recall >= 0.60" in errors
