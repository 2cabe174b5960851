"""Two results side by side, and the actions of the job that print them."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.assays.assay_files import EXECUTE, SCORER, fever_rows, form, write_rows
from tests.run_fixture import make_run
from verifier.assays.actions import (
    asked_form,
    compare_action,
    read_statuses,
    register_action,
    reproduce_action,
    run_action,
    unlock_action,
)
from verifier.assays.cases import CaseResult, Score, cases_of_run
from verifier.assays.compare import ScoreChange, StatusChange, compare
from verifier.assays.results import RESULT_FILE
from verifier.errors import ConfigurationError, LimitError
from verifier.records import Status
from verifier.results import read_results


def case(name: str, status: str | None, support: float | None = None, **fields: Any) -> CaseResult:
    scores = () if support is None else (score(support),)
    return CaseResult(case_id=name, status=Status(status) if status else None, scores=scores, **fields)


def score(support: float, premise: str = "p") -> Score:
    values = {"support": support}
    return Score(kind="single", references=("r",), premise_sha256=premise, hypothesis_sha256="h", values=values)


def test_what_changed() -> None:
    first = [
        case("a", "supported", 0.9, label="supported"),
        case("b", "refuted", 0.1),
        case("c", "supported"),
        case("d", None),
    ]
    second = [case("b", "refuted", 0.1), case("a", "insufficient", 0.4), case("d", "supported"), case("e", None)]
    found = compare(first, second)
    assert found.statuses == (StatusChange("a", "supported", "supported", "insufficient"),)
    assert found.scores == (ScoreChange("a", "single", ("r",), "support", 0.9, 0.4),)
    assert [(one.case_id, one.first, one.second) for one in found.undecided] == [("d", None, "supported")]
    assert (found.same, found.only_first, found.only_second, found.equal) == (1, ("c",), ("e",), False)
    assert json.loads(json.dumps(found.to_dict()))["statuses"][0]["second"] == "insufficient"
    assert compare(first[:3], first[:3]).equal


def test_scores_within_the_tolerance_and_of_other_pairs() -> None:
    first, second = [case("a", "supported", 0.5)], [case("a", "supported", 0.5 + 1e-9)]
    assert compare(first, second, 1e-8).equal and not compare(first, second).equal
    other = [case("a", "supported").model_copy(update={"scores": (score(0.5, "q"),)})]
    assert [(one.first, one.second) for one in compare(first, other).scores] == [(0.5, None), (None, 0.5)]


def test_the_cases_of_a_run_directory(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", 80)
    cases = cases_of_run(str(folder))
    rows = read_results(folder)
    assert [one.case_id for one in cases] == rows["claim_id"].to_list()
    assert [one.outcome for one in cases] == rows["outcome"].to_list()
    assert sum(len(one.scores) for one in cases) == rows["pairs"].list.len().sum()
    assert all((one.status is None) == (one.outcome != "decided") for one in cases)
    assert {one.outcome for one in cases} == {"decided", "unscored", "rejected"}
    itself = compare(cases, cases)
    assert (itself.statuses, itself.scores) == ((), ()) and len(itself.undecided) == 80 - itself.same


TRACKED: list[dict[str, float]] = []


def track(name: str, decided_by: Any, figures: Any, file: Path) -> str:
    assert {"method", "model", "revision"} <= decided_by.keys()
    TRACKED.append({**figures})
    assert file.is_file()
    return "nowhere"


def assay(tmp_path: Path, name: str, **fields: Any) -> str:
    path = write_rows(tmp_path / "claims.jsonl", fever_rows("red"))
    asked = asked_form(form(path, **fields).model_dump())
    register_action(asked, str(tmp_path / name), str(tmp_path / "ledger.jsonl"))
    return str(tmp_path / name)


def test_register_run_and_compare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ledger = str(tmp_path / "ledger.jsonl")
    run_action(assay(tmp_path, "a.json"), {}, ledger, str(tmp_path / "a"), SCORER, EXECUTE, track)
    assert TRACKED[-1]["gate/supported_recall_min/passed"] == 1
    failing = assay(tmp_path, "b.json", gates={"insufficient_correct_min": 1})
    assert "observed by" in capsys.readouterr().out
    with pytest.raises(LimitError, match="the assay trial failed: insufficient_correct_min"):
        run_action(failing, {}, ledger, str(tmp_path / "b"), SCORER, EXECUTE, track)
    compare_action(str(tmp_path / "a"), str(tmp_path / "b" / RESULT_FILE), 0, ledger, str(tmp_path / "c"))
    assert json.loads((tmp_path / "c" / "comparison.json").read_text("utf-8"))["equal"] is True
    with pytest.raises(ConfigurationError, match="cannot be read"):
        compare_action(str(tmp_path / "a"), str(tmp_path / "none"), 0, ledger, str(tmp_path / "c"))


def test_unlock(tmp_path: Path) -> None:
    ledger = str(tmp_path / "ledger.jsonl")
    calibrating = write_rows(tmp_path / "blue.jsonl", fever_rows("blue"))
    cohort = {"name": "blue", "form": "fever", "files": {"claims": str(calibrating)}}
    fields = {"sealed": True, "calibration": {"cohort": cohort, "gates": {"supported_recall_min": 1}}}
    names = [assay(tmp_path, name, **fields) for name in ("a.json", "b.json")]
    wrong = write_rows(tmp_path / "wrong.jsonl", [{"claim_id": f"blue{n}", "status": "refuted"} for n in range(6)])
    with pytest.raises(
        LimitError, match=r"the calibration failed .supported_recall_min.: the cohort claims stays sealed"
    ):
        unlock_action(names[0], str(wrong), {}, {}, ledger)
    right = write_rows(tmp_path / "right.jsonl", [{"claim_id": f"blue{n}", "status": "supported"} for n in range(6)])
    unlock_action(names[1], str(right), {}, {}, ledger)
    run_action(names[1], {}, ledger, str(tmp_path / "out"), SCORER, EXECUTE, track)


def test_calibration_decisions_in_files(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "twice.jsonl", [{"claim_id": "a", "status": None}] * 2)
    with pytest.raises(ConfigurationError, match="decides a claim twice"):
        read_statuses(path)
    assert read_statuses(write_rows(path, [{"claim_id": "a", "status": None}])) == {"a": None}
    with pytest.raises(ConfigurationError, match="holds no lines of claim_id and status"):
        read_statuses(write_rows(path, [{"claim": "a"}]))
    ledger = str(tmp_path / "ledger.jsonl")
    result = run_action(assay(tmp_path, "a.json"), {}, ledger, str(tmp_path / "a"), SCORER, EXECUTE, track)
    assert read_statuses(tmp_path / "a") == {one.case_id: one.status for one in result.cases}


def test_a_form_with_a_field_that_is_none(tmp_path: Path) -> None:
    fields = form(tmp_path / "claims.jsonl").model_dump()
    with pytest.raises(ConfigurationError, match=r"register\.gate is no field of register"):
        asked_form(fields | {"gate": {}})
    with pytest.raises(ConfigurationError, match=r"register\.cohort\.form"):
        asked_form(fields | {"cohort": fields["cohort"] | {"form": "csv"}})


def test_no_assay_chosen(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no assay is chosen"):
        reproduce_action(None, "ledger", str(tmp_path), track)
