"""Sealed cohorts open once their registered calibration has passed and an unlock is recorded, and no other way."""

from pathlib import Path

import pytest

from tests.assays.assay_files import EXECUTE, SCORER, cohort, fever_rows, form, registered, write_rows
from tests.assays.sealed_place import RIGHT, WRONG, Place, calibration, sealing
from verifier.assays.ledger import append, of_kind, read_ledger
from verifier.assays.opening import open_cohort
from verifier.assays.registration import Cohort, read_registration
from verifier.assays.running import run_assay
from verifier.assays.sealing import SealedCohort, refuse_sealed, refuse_sealed_claims
from verifier.assays.unlocking import record_calibration, unlock
from verifier.errors import ConfigurationError


def opened(place: Place) -> None:
    assert record_calibration(place.registration, RIGHT, place.ledger).passed
    unlock(place.registration, place.ledger)


def test_a_failed_calibration_is_final_for_its_registration(place: Place) -> None:
    record_calibration(place.registration, WRONG, place.ledger)
    with pytest.raises(SealedCohort, match=r"stays sealed: .* has failed \(supported_precision_min\)"):
        unlock(place.registration, place.ledger)
    with pytest.raises(ConfigurationError, match="was calibrated before: register another one"):
        record_calibration(place.registration, RIGHT, place.ledger)
    with pytest.raises(SealedCohort):
        place.run()


def test_a_superseding_registration_can_open_it_without_reading_it(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    record_calibration(place.registration, WRONG, place.ledger)
    monkeypatch.setattr("verifier.assays.cohorts.fever._LABELS", {})  # any label that is read is unknown
    fresh = calibration(place.folder, cohort=cohort(place.folder / "none.jsonl"))
    with pytest.raises(ConfigurationError, match="cannot be read"):
        sealing(place.folder, "no", calibration=fresh)
    with pytest.raises(ConfigurationError, match="the label is 'SUPPORTS'"):
        sealing(place.folder, "no")  # of the calibration cohort alone
    monkeypatch.undo()
    second = sealing(place.folder, "second")
    assert second.cohort == place.registration.cohort and not second.observed
    assert record_calibration(second, RIGHT, place.ledger).passed
    unlock(second, place.ledger)
    with pytest.raises(SealedCohort):
        place.run()  # the first one's calibration has failed all the same
    assert place.run(second) == 0


WEAKER: dict[str, dict[str, float]] = {
    "a lower bound": {"supported_precision_min": 0.8, "supported_recall_min": 0.6},
    "a gate less": {"supported_precision_min": 0.9},
    "another gate": {"claims_evaluated_min": 0},
}


@pytest.mark.parametrize("gates", WEAKER.values(), ids=WEAKER)
def test_a_failed_calibration_is_not_undone_by_weaker_gates(place: Place, gates: dict[str, float]) -> None:
    weak = sealing(place.folder, "weak", calibration=calibration(place.folder, gates=gates))
    record_calibration(place.registration, WRONG, place.ledger)
    assert record_calibration(weak, RIGHT, place.ledger).passed
    with pytest.raises(SealedCohort, match="register every gate with a bound at least as strict"):
        unlock(weak, place.ledger)
    append(place.ledger, "unlock", {"registration": weak.digest(), "cohort": "sealed"})  # whoever wrote it
    with pytest.raises(SealedCohort, match="no weaker bound and on the same cohort"):
        place.run(weak)
    with pytest.raises(SealedCohort):
        refuse_sealed(place.file, place.ledger)


def test_nor_by_another_calibration_cohort(place: Place) -> None:
    record_calibration(place.registration, WRONG, place.ledger)
    easy = write_rows(place.folder / "easy.jsonl", fever_rows("green"))
    other = sealing(place.folder, "other", calibration=calibration(place.folder, cohort=cohort(easy)))
    record_calibration(other, {name.replace("blue", "green"): status for name, status in RIGHT.items()}, place.ledger)
    with pytest.raises(SealedCohort, match="or another calibration cohort"):
        unlock(other, place.ledger)


def test_stricter_gates_open_it_after_a_failure(place: Place) -> None:
    record_calibration(place.registration, WRONG, place.ledger)
    gates = {"supported_precision_min": 0.95, "supported_recall_min": 0.6, "false_support_rate_max": 0.1}
    strict = sealing(place.folder, "strict", calibration=calibration(place.folder, gates=gates))
    assert record_calibration(strict, RIGHT, place.ledger).passed
    unlock(strict, place.ledger)
    assert place.run(strict) == 0


def test_what_is_open_stays_open_when_another_calibration_fails_later(place: Place) -> None:
    weak = sealing(place.folder, "weak", calibration=calibration(place.folder, gates={"supported_recall_min": 0.5}))
    assert record_calibration(weak, RIGHT, place.ledger).passed
    unlock(weak, place.ledger)
    assert not record_calibration(place.registration, WRONG, place.ledger).passed
    unlock(weak, place.ledger)
    assert place.run(weak) == 0


def test_open_once_unlocked(place: Place) -> None:
    assert record_calibration(place.registration, RIGHT, place.ledger).passed
    with pytest.raises(SealedCohort):
        place.run()  # passed but not unlocked
    with pytest.raises(SealedCohort):
        refuse_sealed(place.file, place.ledger)
    unlock(place.registration, place.ledger)
    refuse_sealed(place.file, place.ledger)
    refuse_sealed_claims(place.claims(), place.ledger)
    assert place.run() == 0
    unlock(place.registration, place.ledger)
    kinds = [entry.kind for entry in read_ledger(place.ledger)]
    assert kinds == ["registration", "observation", "calibration", "unlock", "observation"]
    assert registered(place.folder, "later", form(place.file)).observed
    with pytest.raises(ConfigurationError, match="it cannot be sealed"):
        sealing(place.folder, "again")


def test_the_calibration_cohort_is_observed(place: Place) -> None:
    record_calibration(place.registration, RIGHT, place.ledger)
    assert registered(place.folder, "later", form(place.folder / "calibration.jsonl")).observed


def test_another_registration_is_not_opened_by_it(place: Place) -> None:
    other = sealing(place.folder, "other", calibration=calibration(place.folder, gates={"supported_recall_min": 0.9}))
    opened(place)
    with pytest.raises(SealedCohort, match="runs once its calibration"):
        place.run(other)


@pytest.mark.parametrize(
    ("statuses", "words"),
    [
        ({name: RIGHT[name] for name in list(RIGHT)[1:]}, "'blue0' has no decision in the calibration"),
        (RIGHT | {"red0": "supported"}, "'red0' is no claim of the calibration"),
        (RIGHT | {"blue0": "true"}, "the status of 'blue0' is 'true'"),
        ({}, "has no decision in the calibration"),
    ],
)
def test_decisions_on_other_claims_calibrate_nothing(place: Place, statuses: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        record_calibration(place.registration, statuses, place.ledger)
    assert of_kind(read_ledger(place.ledger), "calibration") == []


def test_undecided_claims_count_against_a_calibration(place: Place) -> None:
    undecided = dict.fromkeys(RIGHT, None) | {"blue0": "supported"}
    assert record_calibration(place.registration, undecided, place.ledger).failed == ["supported_recall_min"]


def test_a_calibration_cohort_that_was_changed(place: Place) -> None:
    file = place.folder / "calibration.jsonl"
    file.write_text(file.read_text("utf-8").replace("REFUTES", "SUPPORTS", 1), "utf-8")
    with pytest.raises(ConfigurationError, match="is not the registered file"):
        record_calibration(place.registration, WRONG, place.ledger)


def test_an_edited_ledger_opens_nothing(place: Place) -> None:
    record_calibration(place.registration, WRONG, place.ledger)
    text = place.ledger.read_text("utf-8")
    place.ledger.write_text(text.replace('"passed":false', '"passed":true'), "utf-8")
    peeks = [
        lambda: unlock(place.registration, place.ledger),
        lambda: place.run(),
        lambda: refuse_sealed(place.file, place.ledger),
        lambda: open_cohort(place.registration.cohort, read_ledger(place.ledger)),
    ]
    for peek in peeks:
        with pytest.raises(ConfigurationError, match="was edited"):
            peek()


def test_a_ledger_without_its_seal_runs_nothing(place: Place) -> None:
    place.ledger.unlink()
    with pytest.raises(ConfigurationError, match="never registered with this ledger"):
        place.run()
    with pytest.raises(ConfigurationError, match="never registered with this ledger"):
        record_calibration(place.registration, RIGHT, place.ledger)


def test_a_registration_edited_to_be_unsealed_is_not_registered(place: Place) -> None:
    path = place.folder / "sealed.json"
    path.write_text(path.read_text("utf-8").replace('"sealed":true', '"sealed":false'), "utf-8")
    with pytest.raises(ConfigurationError, match="it was edited since"):
        place.run(read_registration(path))


def test_calibration_and_sealed_cohort_must_not_share_claims(tmp_path: Path) -> None:
    write_rows(tmp_path / "sealed.jsonl", fever_rows("red"))
    write_rows(tmp_path / "calibration.jsonl", [*fever_rows("blue"), fever_rows("red")[2] | {"id": "hidden"}])
    with pytest.raises(ConfigurationError, match="shares claims with the cohort sealed"):
        sealing(tmp_path, "sealed")


def test_what_a_calibration_chooses_is_what_runs(tmp_path: Path) -> None:
    write_rows(tmp_path / "sealed.jsonl", fever_rows("red"))
    write_rows(tmp_path / "calibration.jsonl", fever_rows("blue"))
    chooses = ("entailment_threshold",)
    place = Place(tmp_path, sealing(tmp_path, "sealed", calibration=calibration(tmp_path, chooses=chooses)))
    for chosen in ({}, {"max_group_size": 1}, {"entailment_threshold": 0.7, "max_group_size": 1}):
        with pytest.raises(ConfigurationError, match="registered is entailment_threshold"):
            record_calibration(place.registration, RIGHT, place.ledger, chosen)
    with pytest.raises(ConfigurationError, match=r"policy\.entailment_threshold is 0\.2"):
        record_calibration(place.registration, RIGHT, place.ledger, {"entailment_threshold": 0.2})
    record_calibration(place.registration, RIGHT, place.ledger, {"entailment_threshold": 0.71})
    unlock(place.registration, place.ledger)
    result = run_assay(place.registration, EXECUTE, SCORER, place.ledger)
    assert result.policy["entailment_threshold"] == 0.71


def test_a_sample_beside_a_sealed_one_can_be_drawn_and_opened(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "claims.jsonl", fever_rows("red", 12))
    write_rows(tmp_path / "calibration.jsonl", fever_rows("blue"))
    drawn = cohort(path, sampler={"seed": "1", "split": "test", "per_stratum": 2})
    fields = {"sealed": True, "calibration": calibration(tmp_path)}
    hidden = registered(tmp_path, "sealed", form(path, cohort=drawn, **fields))
    fresh = registered(tmp_path, "fresh", form(path, cohort=drawn))
    assert not set(fresh.cohort.selected or ()) & set(hidden.cohort.selected or ())
    assert run_assay(fresh, EXECUTE, SCORER, tmp_path / "ledger.jsonl").exit_status == 0
    entries = read_ledger(tmp_path / "ledger.jsonl")
    everything = Cohort(**hidden.cohort.model_dump() | {"sampler": None, "selected": None})
    for wanted in (hidden.cohort, everything):
        with pytest.raises(SealedCohort):
            open_cohort(wanted, entries)
    with pytest.raises(SealedCohort):
        refuse_sealed(path, tmp_path / "ledger.jsonl")


def test_nothing_is_read_where_nothing_is_sealed(tmp_path: Path) -> None:
    refuse_sealed(tmp_path / "not there", tmp_path / "ledger.jsonl")
    refuse_sealed_claims([], tmp_path / "ledger.jsonl")
