"""``python -m jobs.assay``: registered before it is scored, run on Ray, refused where anything differs."""

import json
from pathlib import Path

from tests.jobs.driver import FREE, run, run_anew, run_forked
from tests.jobs.inputs import write_form
from verifier.results import read_results

REGISTER = (
    *("action=register", "registration=mine.json", "register.name=mine", "register.purpose='A trial.'"),
    *("register.cohort.form=wice", "+register.cohort.files.claims=wice.jsonl"),
    "+register.gates.claims_evaluated_min=20",
)
RUN = ("action=run", "registration=mine.json", "output.dir=out")


def test_a_registered_assay_runs_on_ray_and_is_refused_where_a_byte_differs(tmp_path: Path) -> None:
    write_form(tmp_path, "wice", 20, 0)
    again = [part.replace("mine", "second") for part in REGISTER]
    status, out, errors = run(tmp_path, *FREE, *REGISTER, name="assay")
    assert status == 0 and "not observed before" in out, errors
    status, out, errors = run_anew(tmp_path, *FREE, *RUN, name="assay")
    assert status == 0 and "passed" in out, errors
    result = json.loads((tmp_path / "out/result.json").read_text())
    rows = read_results(tmp_path / "out/run")
    statuses = dict(rows.select("claim_id", "status").iter_rows())
    assert {case["case_id"]: case["status"] for case in result["cases"]} == statuses and len(rows) == 20
    assert rows["label"].is_null().all(), "labels are attached when all is decided"
    ((status, errors),) = run_forked([(tmp_path, (*FREE, *again), {})], "assay")
    assert status == 0, errors
    assert json.loads((tmp_path / "second.json").read_text())["observed"]
    text = (tmp_path / "wice.jsonl").read_text()
    (tmp_path / "wice.jsonl").write_text(text.replace("Claim 3 holds.", "Claim 3 folds."))
    ((status, errors),) = run_forked([(tmp_path, (*FREE, *RUN, "output.dir=other"), {})], "assay")
    assert status == 2 and "wice.jsonl" in errors and not (tmp_path / "other").exists(), errors
