"""Registering: what is worked out, what is refused, and that a registration cannot change afterwards."""

from pathlib import Path
from typing import Any

import pydantic
import pytest

from tests.assays.assay_files import cohort, fever_rows, form, registered, write_rows
from verifier.assays.ledger import of_kind, read_ledger
from verifier.assays.registering import AssayForm, register
from verifier.assays.registration import Registration, read_registration
from verifier.digests import sha256_file
from verifier.errors import ConfigurationError
from verifier.records import VerificationPolicy


def test_everything_is_on_record(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "claims.jsonl", fever_rows("red"))
    registration, digest = register(form(path), tmp_path / "ledger.jsonl", tmp_path / "r.json")
    assert registration.cohort.shape.model_dump() == {"rows": 6, "claims": 6, "labels": {"refuted": 3, "supported": 3}}
    assert registration.cohort.files["claims"].sha256 == sha256_file(path)
    assert set(registration.policy) == set(VerificationPolicy.model_fields)
    assert (registration.observed, registration.sealed, registration.ledger_head) == (False, False, None)
    assert digest == registration.digest() == sha256_file(tmp_path / "r.json")
    assert (tmp_path / "r.json.sha256").read_text("utf-8") == f"{digest}  r.json\n"
    assert read_registration(tmp_path / "r.json") == registration
    (entry,) = read_ledger(tmp_path / "ledger.jsonl")
    assert (entry.kind, entry.body["registration"], len(entry.body["identities"])) == ("registration", digest, 6)


def test_a_registration_is_never_rewritten(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "claims.jsonl", fever_rows("red"))
    first = registered(tmp_path, "r", form(path))
    with pytest.raises(ConfigurationError, match="is never rewritten"):
        registered(tmp_path, "r", form(path, purpose="Another one."))
    assert read_registration(tmp_path / "r.json") == first
    assert len(read_ledger(tmp_path / "ledger.jsonl")) == 1


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"sha256": {"claims": "0" * 64}}, "is not the registered file"),
        ({"shape": {"rows": 7, "claims": 6, "labels": {}}}, "has rows 6, expected is 7"),
        ({"shape": {"claims": 5, "labels": {}}}, "has claims 6, expected is 5"),
        ({"shape": {"claims": 6, "labels": {"supported": 6}}}, "has labels .* expected is"),
        (
            {"files": {"rows": "x"}},
            "cohort.files has 'rows', which the form fever does not know: known are claims, pages",
        ),
        ({"files": {"pages": "x"}}, "cohort.files lacks 'claims'"),
        ({"options": {"split": "test"}}, "cohort.options has 'split'"),
        ({"files": {"claims": "nowhere.jsonl"}}, "cannot be read"),
        ({"sampler": {"seed": "s", "split": "dev", "per_stratum": 4}}, "has 3 claims with the label 'refuted'"),
    ],
)
def test_another_cohort_than_expected(tmp_path: Path, fields: dict[str, Any], words: str) -> None:
    path = write_rows(tmp_path / "claims.jsonl", fever_rows("red"))
    with pytest.raises(ConfigurationError, match=words):
        registered(tmp_path, "r", form(path, cohort=cohort(path, **fields)))
    assert not (tmp_path / "r.json").exists() and read_ledger(tmp_path / "ledger.jsonl") == []


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"method": "guess"}, "method is 'guess'"),
        ({"policy": {"model": "other", "revision": "1"}}, "the policy's model is other"),
        (
            {"policy": {"model": "words-and-negation-heuristic", "revision": "1", "thresold": 1}},
            "policy.thresold is no field",
        ),
        ({"gates": {"beauty_min": 1}}, "beauty_min is no gate"),
        ({"gates": {}}, "gates: no gate is set"),
        ({"sealed": True}, "a sealed cohort needs a calibration"),
    ],
)
def test_a_registration_that_says_something_impossible(tmp_path: Path, fields: dict[str, Any], words: str) -> None:
    path = write_rows(tmp_path / "claims.jsonl", fever_rows("red"))
    with pytest.raises(ConfigurationError, match=words):
        registered(tmp_path, "r", form(path, **fields))
    assert read_ledger(tmp_path / "ledger.jsonl") == []


def test_unknown_fields_are_refused(tmp_path: Path) -> None:
    with pytest.raises(pydantic.ValidationError, match="thresholds"):
        AssayForm.model_validate(form(tmp_path).model_dump() | {"thresholds": 1})


@pytest.mark.parametrize(("old", "new"), [('"supported_recall_min":0.5', '"supported_recall_min":0.4'), ("{", "{ ")])
def test_an_edited_registration_is_noticed(tmp_path: Path, old: str, new: str) -> None:
    registration = registered(tmp_path, "r", form(write_rows(tmp_path / "claims.jsonl", fever_rows("red"))))
    path = tmp_path / "r.json"
    path.write_text(path.read_text("utf-8").replace(old, new, 1), "utf-8")
    if new == "{ ":
        with pytest.raises(ConfigurationError, match="its text is not the canonical one"):
            read_registration(path)
    else:
        assert read_registration(path).digest() != registration.digest()


def test_a_sample_takes_the_same_claims_whoever_draws_it(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "claims.jsonl", fever_rows("red", 12))
    drawn = cohort(path, sampler={"seed": "7", "split": "dev", "per_stratum": 2})
    first, second = (registered(tmp_path, name, form(path, cohort=drawn)) for name in ("a", "b"))
    assert first.cohort.selected == second.cohort.selected
    assert first.cohort.shape.model_dump() == {"rows": 12, "claims": 4, "labels": {"refuted": 2, "supported": 2}}
    assert first.cohort.digest() == second.cohort.digest()
    assert Registration.model_validate_json(first.text()) == first
    assert len(of_kind(read_ledger(tmp_path / "ledger.jsonl"), "registration")) == 2


def test_a_registration_that_the_ledger_does_not_take_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_rows(tmp_path / "claims.jsonl", fever_rows("red"))
    registered(tmp_path, "first", form(path))
    # two at once: the second has read the ledger before the first wrote to it
    monkeypatch.setattr("verifier.assays.registering.read_ledger", lambda _: [])
    with pytest.raises(ConfigurationError, match="was written to meanwhile"):
        registered(tmp_path, "second", form(path))
    assert sorted(found.name for found in tmp_path.glob("second*")) == []


def test_a_ledger_that_cannot_be_written_to_leaves_no_registration(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "claims.jsonl", fever_rows("red"))
    (tmp_path / "ledger.jsonl").symlink_to(tmp_path / "nowhere" / "ledger.jsonl")
    with pytest.raises(ConfigurationError, match=r"the ledger .* cannot be written to"):
        register(form(path), tmp_path / "ledger.jsonl", tmp_path / "r.json")
    assert not list(tmp_path.glob("r.json*"))


def test_a_registration_that_cannot_be_written_is_not_registered(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "claims.jsonl", fever_rows("red"))
    (tmp_path / "r.json.sha256").mkdir()
    with pytest.raises(ConfigurationError, match="cannot be written"):
        registered(tmp_path, "r", form(path))
    assert not (tmp_path / "r.json").exists() and read_ledger(tmp_path / "ledger.jsonl") == []


def test_a_registration_given_up_while_it_waits_for_the_ledger_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def given_up(*_: Any) -> None:
        raise KeyboardInterrupt

    path = write_rows(tmp_path / "claims.jsonl", fever_rows("red"))
    monkeypatch.setattr("verifier.assays.registering.append_after", given_up)
    with pytest.raises(KeyboardInterrupt):
        registered(tmp_path, "r", form(path))
    assert not list(tmp_path.glob("r.json*"))
