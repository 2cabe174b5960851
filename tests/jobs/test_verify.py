"""The job as a user runs it: the published assay, logical GPUs, and a scorer that fails midway."""

import json
import time
from pathlib import Path

import pytest

from tests.jobs.driver import FREE, REPOSITORY, run, run_anew, run_json, started
from tests.jobs.inputs import write_claims, write_lines
from verifier.pipeline.storage import held
from verifier.results import read_results, record_of

ASSAYS = REPOSITORY.parent / "shared" / "data" / "claim-verifier"
CLAIMS = ("data=claims", "data.path=claims.jsonl")

needs_assays = pytest.mark.skipif(not ASSAYS.is_dir(), reason=f"{ASSAYS} is not here")


def recorded(name: str) -> tuple[str, ...]:
    folder = ASSAYS / name
    path, scores = folder / "registration.json", folder / "scores.jsonl"
    return "data=registration", f"data.path={path}", "scorer=recorded", f"scorer.path={scores}", "tracking=none"


@needs_assays
@pytest.mark.parametrize("batch_size", [256, 3])
def test_the_published_assay_comes_out_equal(tmp_path: Path, batch_size: int) -> None:
    status, _, errors = run(tmp_path, *recorded("guards44"), "output.dir=out", f"actors.batch_size={batch_size}")
    assert status == 0, errors
    published = [json.loads(line) for line in (ASSAYS / "guards44/scores.jsonl").read_text().splitlines()]
    rows = {row["claim_id"]: row for row in read_results(tmp_path / "out").to_dicts()}
    assert len(rows) == len(published) == 44
    for case in published:
        record = record_of(rows[case["id"]]).to_dict()
        ours = {name: record[name] for name in ("status", "evaluation_id", "result_sha256")}
        assert ours == {name: case[name] for name in ours}, case["id"]


@needs_assays
def test_a_pair_without_a_score_costs_one_claim(tmp_path: Path) -> None:
    status, _, errors = run_anew(tmp_path, *recorded("minimal20"), "output.dir=out")
    assert status == 0, errors
    published = [json.loads(line) for line in (ASSAYS / "minimal20/scores.jsonl").read_text().splitlines()]
    rows = {row["claim_id"]: row for row in read_results(tmp_path / "out").to_dicts()}
    assert rows.keys() == {case["id"] for case in published}
    unscored = [row for row in rows.values() if row["outcome"] != "decided"]
    assert [(row["outcome"], row["error_code"]) for row in unscored] == [("unscored", "missing_score")]
    assert run_json(tmp_path / "out")["counts"]["unscored"] == 1


def test_a_run_that_asks_no_model_and_labels_with_markup_are_published(tmp_path: Path) -> None:
    rows = [{"claim_id": f"c{n}", "claim": "x", "evidence": [], "label": "[/foo]\x1b[2J"} for n in range(2)]
    write_lines(tmp_path / "claims.jsonl", rows)
    job = (*FREE, *CLAIMS, "output.dir=out", "tracking.enabled=true", "tracking.uri=sqlite:///mlflow.db")
    status, out, errors = run(tmp_path, *job)
    assert status == 0, errors
    assert "[/foo]" in out and "\x1b" not in out and "report  out/report.html" in out
    (tmp_path / "out").rename(tmp_path / "moved")
    (tmp_path / "moved/report.html").unlink()
    status, out, errors = run(tmp_path, *job, "output.dir=moved")
    assert status == 0 and "report  moved/report.html" in out, errors
    assert (tmp_path / "moved/report.html").is_file(), "a report that is gone is written again"
    for path in (tmp_path / "moved/results").glob("*.parquet"):
        path.unlink()
    status, _, errors = run(tmp_path, *job, "output.dir=moved")
    assert status == 2 and "has 0 of 2 claims" in errors, errors


def test_a_run_directory_that_another_job_holds_is_refused(tmp_path: Path) -> None:
    write_claims(tmp_path / "claims.jsonl", 2)
    (tmp_path / "out").mkdir()
    with held(str(tmp_path / "out")):
        status, _, errors = run(tmp_path, *FREE, *CLAIMS, "output.dir=out")
    assert status == 2 and "another job is at work in out" in errors, errors


def test_sigterm_ends_a_run_as_an_interrupt_does(tmp_path: Path) -> None:
    write_claims(tmp_path / "claims.jsonl", 400)
    job = (*FREE, *CLAIMS, "output.dir=out", "checkpoint.max_rows_lost=40")
    with started(tmp_path, *job, FREE_LOG=tmp_path / "log", FREE_DELAY=0.5) as driver:
        while not (tmp_path / "log").exists():
            assert driver.process.poll() is None, driver.errors()
            time.sleep(0.1)
        driver.process.terminate()
        assert driver.process.wait(60) == 3, driver.errors()
        assert "interrupted: what is finished is kept, the same command resumes" in driver.errors()
    status, _, errors = run(tmp_path, *job)
    assert status == 0, errors
    assert read_results(tmp_path / "out")["row_id"].to_list() == list(range(400))


def test_two_actors_share_two_logical_gpus(tmp_path: Path) -> None:
    write_claims(tmp_path / "claims.jsonl", 120)
    settings = {"FREE_LOG": tmp_path / "log", "FREE_DELAY": 0.2, "FREE_LOADED": tmp_path / "loaded"}
    gpus = ("cluster.num_gpus=2", "actors.num_gpus=1", "actors.num_cpus=1", "actors.max_size=2", "actors.min_size=2")
    status, _, errors = run(
        tmp_path, *FREE, *CLAIMS, *gpus, "output.dir=out", "checkpoint.max_rows_lost=20", **settings
    )
    assert status == 0, errors
    assert len(set((tmp_path / "loaded").read_text().split())) == 2
    assert len({line.split()[0] for line in (tmp_path / "log").read_text().splitlines()}) == 2
    assert read_results(tmp_path / "out").height == 120


def test_a_pair_without_finite_scores_is_unscored_and_asked_again_by_the_same_command(tmp_path: Path) -> None:
    write_claims(tmp_path / "claims.jsonl", 60)
    job, log = (*FREE, *CLAIMS, "output.dir=out", "checkpoint.max_rows_lost=20"), tmp_path / "log"
    status, out, errors = run(tmp_path, *job, FREE_FAIL="Claim 50 holds.", FREE_FAIL_HOW="nan")
    assert status == 0, errors
    rows = {row["row_id"]: row for row in read_results(tmp_path / "out").to_dicts()}
    assert [n for n, row in rows.items() if row["outcome"] == "unscored"] == [50]
    assert (rows[50]["status"], rows[50]["record"]["status"]) == ("insufficient", "insufficient")
    assert rows[50]["error_code"] == "not_finite" and "unscored" in out
    assert run_json(tmp_path / "out")["counts"]["unscored"] == 1
    status, out, errors = run(tmp_path, *job, FREE_LOG=log)
    assert status == 0, errors
    assert {line.split()[2] for line in log.read_text().splitlines()} == {"50"}, "only what is missing is asked"
    again = {row["row_id"]: row for row in read_results(tmp_path / "out").to_dicts()}
    assert {**again, 50: None} == {**rows, 50: None} and again[50]["outcome"] == "decided"
    assert "unscored" not in run_json(tmp_path / "out")["counts"]


def test_a_scorer_that_dies_exits_3_and_is_resumed_and_a_claim_it_fails_on_is_rejected(tmp_path: Path) -> None:
    write_claims(tmp_path / "claims.jsonl", 60)
    job = (*FREE, *CLAIMS, "output.dir=out", "checkpoint.max_rows_lost=20")
    log = tmp_path / "log"
    status, _, errors = run(tmp_path, *job, FREE_LOG=log, FREE_FAIL="Claim 50 holds.", FREE_FAIL_HOW="die")
    assert status == 3, errors
    sentence = errors.strip().splitlines()[-1]
    assert "the sky fell" in sentence and "the same command resumes" in sentence, errors
    assert "Traceback" not in errors
    kept = read_results(tmp_path / "out", ["row_id"])["row_id"].to_list()
    assert 0 < len(kept) < 60 and 50 not in kept
    log.unlink()
    status, out, errors = run(tmp_path, *job, FREE_LOG=log, FREE_FAIL="Claim 50 holds.", FREE_FAIL_HOW="raise")
    assert status == 0 and "rejected" in out, errors
    again = {int(line.split()[2]) for line in log.read_text().splitlines() if " Claim " in line}
    assert not again & set(kept), "finished claims were scored again"
    rows = read_results(tmp_path / "out").to_dicts()
    assert [row["row_id"] for row in rows] == list(range(60))
    assert [(n, row["error_code"]) for n, row in enumerate(rows) if row["outcome"] != "decided"] == [
        (50, "scorer_failed")
    ]
    assert "the sky fell" in rows[50]["error_message"] and rows[50]["record"] is None
