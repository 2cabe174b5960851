"""The three published assays from their recorded scores."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from tests.assays.assay_files import SCORER, form, registered
from tests.shared import SHARED, needs_shared
from verifier.assays.compare import StatusChange
from verifier.assays.ledger import of_kind, read_ledger
from verifier.assays.public_forms import read_public_registration
from verifier.assays.reproducing import PublishedAssay, Reproduction, reproduce
from verifier.assays.results import flat_metrics
from verifier.errors import ConfigurationError

CONF = Path(__file__).parents[2] / "conf" / "assay"
GUARDS = SHARED / "claim-verifier" / "guards44"
MINIMAL = SHARED / "claim-verifier" / "minimal20"
WICE = SHARED / "wice"

pytestmark = needs_shared


def published(name: str, folder: Path) -> PublishedAssay:
    config = OmegaConf.load(CONF / f"{name}.yaml")
    config.folder = str(folder)
    fields: Any = OmegaConf.to_container(config, resolve=True)
    del fields["folder"]
    return PublishedAssay(**fields)


def copied(folder: Path, tmp_path: Path) -> Path:
    target = tmp_path / folder.name
    shutil.copytree(folder, target, copy_function=shutil.copyfile)
    target.chmod(0o755)
    return target


def ours(found: Reproduction) -> dict[str, Any]:
    return {line.name: line.ours for line in found.lines}


def test_guards44(tmp_path: Path) -> None:
    found = reproduce(published("guards44", GUARDS), tmp_path / "ledger.jsonl")
    assert (found.differences, found.exit_status, found.under_schema_3) == ((), 0, None)
    figures = ours(found)
    assert (figures["summary/cases"], figures["summary/matched"]) == (44, 43)
    assert len(found.gates.results) == 8 and found.gates.passed
    recorded = [json.loads(line) for line in (GUARDS / "scores.jsonl").read_text("utf-8").splitlines()]
    for record in recorded:
        for name in ("status", "evaluation_id", "result_sha256"):
            assert figures[f"cases/{record['id']}/{name}"] == record[name]
    assert flat_metrics(found.cases, found.gates)["gate/supported_correct_min/observed"] == 13


@pytest.mark.parametrize("name", ["guards44", "minimal20"])
def test_the_figures_of_the_configuration_are_the_published_ones(name: str) -> None:
    summary = json.loads((SHARED / "claim-verifier" / name / "summary.json").read_text("utf-8"))
    figures = published(name, tmp_folder := SHARED / "claim-verifier" / name).figures
    assert figures == {part: summary[part] for part in ("summary", "quality_gates")}
    assert tmp_folder.is_dir()


def test_the_figures_of_the_trial_are_the_published_ones() -> None:
    document = json.loads((WICE / "minicheck-flan-t5-large.published.json").read_text("utf-8"))
    figures = published("wice_minicheck_flan_t5", WICE).figures
    assert figures == {part: document[part] for part in ("summary", "quality_gates")}


@pytest.mark.parametrize("old", ["Kai repaired", '"insufficient"', '"entailment_threshold": 0.8', "\n"])
def test_a_changed_byte_of_a_registration_is_refused(tmp_path: Path, old: str) -> None:
    folder = copied(GUARDS, tmp_path)
    file = folder / "registration.json"
    text = file.read_text("utf-8")
    assert old in text
    file.write_text(text.replace(old, old[:-1] + chr(ord(old[-1]) + 1), 1), "utf-8")
    with pytest.raises(ConfigurationError, match="is not the registered file: its sha256 is"):
        reproduce(published("guards44", folder), tmp_path / "ledger.jsonl")
    assert read_ledger(tmp_path / "ledger.jsonl") == []


def changed_scores(folder: Path, case_id: str, value: float) -> None:
    file = folder / "scores.jsonl"
    records = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    record = next(one for one in records if one["id"] == case_id)
    record["groups"][0][1][0] = value
    file.write_text("".join(json.dumps(one) + "\n" for one in records), "utf-8")


def test_one_changed_score_is_a_difference(tmp_path: Path) -> None:
    folder = copied(GUARDS, tmp_path)
    changed_scores(folder, "preserve_attempt", 0.9982207417488099)  # the last bit
    found = reproduce(published("guards44", folder), tmp_path / "ledger.jsonl")
    assert [line.name for line in found.differences] == ["cases/preserve_attempt/result_sha256"]
    assert found.gates.passed and found.exit_status == 1


def test_one_score_that_changes_a_status_shows_everywhere(tmp_path: Path) -> None:
    folder = copied(GUARDS, tmp_path)
    file = folder / "scores.jsonl"
    records = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    next(one for one in records if one["id"] == "preserve_attempt")["groups"][0][1] = [0.5, 0.25, 0.25]
    file.write_text("".join(json.dumps(one) + "\n" for one in records), "utf-8")
    found = reproduce(published("guards44", folder), tmp_path / "ledger.jsonl")
    names = {line.name for line in found.differences}
    assert {"summary/matched", "gates/supported_correct_min/passed", "cases/preserve_attempt/status"} <= names
    assert found.gates.failed == ["supported_correct_min"] and found.exit_status == 1


def test_a_recorded_case_too_many_or_too_few(tmp_path: Path) -> None:
    folder = copied(GUARDS, tmp_path)
    file = folder / "scores.jsonl"
    lines = file.read_text("utf-8").splitlines(keepends=True)
    file.write_text("".join(lines[1:]), "utf-8")
    found = reproduce(published("guards44", folder), tmp_path / "ledger.jsonl")
    assert "cases/guard_hope_completion/status" in {line.name for line in found.differences}
    file.write_text("".join([*lines, lines[0].replace("guard_hope_completion", "another")]), "utf-8")
    with pytest.raises(ConfigurationError, match="no recorded scores that can be read"):
        reproduce(published("guards44", folder), tmp_path / "ledger.jsonl")


def test_minimal20_under_both_schemas(tmp_path: Path) -> None:
    found = reproduce(published("minimal20", MINIMAL), tmp_path / "ledger.jsonl")
    assert (found.differences, found.exit_status) == ((), 0)
    recorded = [json.loads(line) for line in (MINIMAL / "scores.jsonl").read_text("utf-8").splitlines()]
    digests = [(case.evaluation_id, case.result_sha256) for case in found.cases]
    assert digests == [(record["evaluation_id"], record["result_sha256"]) for record in recorded]
    now = found.under_schema_3
    assert now is not None
    assert now.statuses == (StatusChange("support_user_intent", "supported", "supported", "insufficient"),)
    (open_case,) = now.undecided
    assert (open_case.case_id, open_case.first, open_case.second) == ("support_two_hop_owner", "supported", None)
    assert "no score was recorded" in open_case.reason
    assert now.same == 18 and {score.case_id for score in now.scores} == {"support_two_hop_owner"}


def test_a_changed_score_of_the_older_record_is_a_difference(tmp_path: Path) -> None:
    folder = copied(MINIMAL, tmp_path)
    changed_scores(folder, "support_exact_date", 0.9954038858413697)
    found = reproduce(published("minimal20", folder), tmp_path / "ledger.jsonl")
    assert [line.name for line in found.differences] == ["cases/support_exact_date/result_sha256"]
    assert found.exit_status == 1


def test_the_trial_on_wice(tmp_path: Path) -> None:
    found = reproduce(published("wice_minicheck_flan_t5", WICE), tmp_path / "ledger.jsonl")
    assert found.differences == ()
    figures = ours(found)
    counts = ("true_positive", "false_positive", "true_negative", "false_negative")
    assert [figures[f"summary/metrics/{name}"] for name in counts] == [80, 24, 224, 30]
    assert figures["summary/metrics/balanced_accuracy"] == pytest.approx(0.81524926686217, abs=1e-12)
    assert found.gates.failed == ["supported_precision_min"] and len(found.gates.results) == 6
    assert found.exit_status == 1


def test_a_figure_that_is_off_by_more_than_the_tolerance_is_a_difference(tmp_path: Path) -> None:
    assay = published("wice_minicheck_flan_t5", WICE)
    assay.figures["summary"]["metrics"]["f1"] += 1e-11
    found = reproduce(assay, tmp_path / "ledger.jsonl")
    assert [line.name for line in found.differences] == ["summary/metrics/f1"]


def test_another_data_set_is_refused(tmp_path: Path) -> None:
    lines = (WICE / "test.jsonl").read_bytes()
    changed = tmp_path / "test.jsonl"
    changed.write_bytes(lines.replace(b"Irene", b"Irena", 1))
    assay = published("wice_minicheck_flan_t5", WICE).model_copy(update={"claims": str(changed)})
    with pytest.raises(ConfigurationError, match="is not the registered file"):
        reproduce(assay, tmp_path / "ledger.jsonl")


def test_a_second_registration_on_guards44_is_marked_as_observed(tmp_path: Path) -> None:
    cases = {"name": "guards", "form": "authored", "files": {"cases": str(GUARDS / "registration.json")}}
    gates = {"unsafe_supported_count_max": 0}
    ledger = tmp_path / "ledger.jsonl"
    first = registered(tmp_path, "first", form(GUARDS, cohort=cases, gates=gates))
    assert first.observed and first.observed_by == ("published:guards44",)
    assert first.cohort.shape.claims == 44 and first.scorer == SCORER
    reproduce(published("guards44", GUARDS), ledger)
    reproduce(published("guards44", GUARDS), ledger)
    (observation,) = of_kind(read_ledger(ledger), "observation")
    second = registered(tmp_path, "second", form(GUARDS, cohort=cases, gates=gates))
    assert second.observed_by == ("published:guards44", observation.body["registration"])
    assert observation.body["registration"] == published("guards44", GUARDS).registration_sha256


def test_the_public_forms_as_they_are() -> None:
    guards = read_public_registration(GUARDS / "registration.json")
    assert guards.cohort.shape.labels == {
        "contested": 4, "incomplete": 4, "insufficient": 16, "refuted": 6, "supported": 14,
    }  # fmt: skip
    assert (guards.name, guards.method, guards.policy["max_group_size"], len(guards.gates)) == (
        "guards44",
        "groups",
        2,
        8,
    )
    assert guards.observed and guards.purpose.startswith("Confirm on the fully observed 44-case")
    trial = read_public_registration(WICE / "minicheck-flan-t5-large.published.json", WICE / "test.jsonl")
    policy = {name: trial.policy[name] for name in ("threshold", "comparison", "premise")}
    assert policy == {"threshold": 0.5, "comparison": ">", "premise": "each"}
    assert (trial.cohort.shape.rows, trial.scorer.model) == (1070, "lytang/MiniCheck-Flan-T5-Large")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kind": "another"}, "neither kind nor dataset"),
        ({"evaluation": {}}, "lacks 'gates'"),
        ({"evaluation": {"gates": {"beauty_min": 1}}}, "beauty_min is no gate"),
        ({"protocol": {"cases": "none", "config": {}}}, "no list protocol.cases"),
    ],
)
def test_a_public_form_that_is_none(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    document = json.loads((GUARDS / "registration.json").read_text("utf-8")) | change
    path = tmp_path / "registration.json"
    path.write_text(json.dumps(document), "utf-8")
    with pytest.raises(ConfigurationError, match=words):
        read_public_registration(path)


def test_a_rule_that_no_policy_has(tmp_path: Path) -> None:
    document = json.loads((WICE / "minicheck-flan-t5-large.published.json").read_text("utf-8"))
    document["protocol"]["variant_aggregation"] = "median"
    path = tmp_path / "trial.json"
    path.write_text(json.dumps(document), "utf-8")
    with pytest.raises(ConfigurationError, match="variant_aggregation is 'median'"):
        read_public_registration(path)
