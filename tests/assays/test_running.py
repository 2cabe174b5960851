"""Running a registered assay: everything as registered or nothing scored; observed from then on."""

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.assays.assay_files import EXECUTE, SCORER, cohort, fever_rows, form, registered, write_rows
from tests.shared import SHARED, needs_shared
from tests.tiny_models import save_tiny
from verifier.assays.cases import CaseResult
from verifier.assays.ledger import of_kind, read_ledger
from verifier.assays.methods import in_process
from verifier.assays.registering import form_of_public
from verifier.assays.registration import Registration, Scorer, read_registration
from verifier.assays.results import AssayResult, read_result, write_result
from verifier.assays.running import run_assay
from verifier.errors import ConfigurationError, VerificationError
from verifier.records import Claim
from verifier.scorers.cross_encoder import CrossEncoderScorer
from verifier.scorers.recorded import RecordedFileScorer
from verifier.scorers.sizing import token_counter
from verifier.scorers.words import WordsScorer


def prepared(tmp_path: Path, **fields: Any) -> Registration:
    path = write_rows(tmp_path / "claims.jsonl", fever_rows("red"))
    return registered(tmp_path, "r", form(path, **fields))


def run(tmp_path: Path, registration: Registration, execute: Any = EXECUTE, **fields: Any) -> AssayResult:
    return run_assay(registration, execute, fields.pop("scorer", SCORER), tmp_path / "ledger.jsonl", **fields)


def never(*_: Any) -> list[CaseResult]:
    raise AssertionError("something was scored")


def test_a_run_and_its_result(tmp_path: Path) -> None:
    registration = prepared(tmp_path, gates={"supported_recall_min": 1.0, "supported_precision_min": 1.0})
    result = run(tmp_path, registration)
    assert (result.exit_status, result.registration_sha256, result.observed) == (0, registration.digest(), False)
    assert [(case.status, case.label) for case in result.cases] == [
        ("supported", "supported"),
        ("refuted", "refuted"),
    ] * 3
    assert read_result(write_result(result, tmp_path / "out")) == read_result(tmp_path / "out") == result
    figures = result.flat()
    assert (figures["gates/passed"], figures["passed"], figures["matched"], figures["binary/precision"]) == (2, 1, 6, 1)
    assert all(isinstance(value, float) for value in figures.values())


def test_a_failed_gate_is_exit_status_1(tmp_path: Path) -> None:
    result = run(
        tmp_path, prepared(tmp_path, gates={"supported_recall_min": 1.0, "unsafe_supported_count_max": 0}), worst
    )
    assert (result.exit_status, result.gates.passed) == (1, False)
    assert result.gates.failed == ["supported_recall_min"]


def worst(method: str, policy: Any, claims: Sequence[Claim]) -> list[CaseResult]:
    answered = EXECUTE(method, policy, claims)
    return [case.model_copy(update={"status": None, "outcome": "unscored"}) for case in answered]


def test_an_integrity_gate(tmp_path: Path) -> None:
    def one_lost(method: str, policy: Any, claims: Sequence[Claim]) -> list[CaseResult]:
        return [*worst(method, policy, claims[:1]), *EXECUTE(method, policy, claims[1:])]

    registration = prepared(tmp_path, gates={"valid_output_share_min": 0.98})
    assert run(tmp_path, registration, one_lost).gates.results["valid_output_share_min"].observed == 5 / 6
    assert run(tmp_path, registration, one_lost).exit_status == 1
    assert run(tmp_path, registration).exit_status == 0


def test_what_decides_never_sees_a_label(tmp_path: Path) -> None:
    seen: list[Claim] = []

    def looking(method: str, policy: Any, claims: Sequence[Claim]) -> list[CaseResult]:
        seen.extend(claims)
        return list(reversed(EXECUTE(method, policy, claims)))

    result = run(tmp_path, prepared(tmp_path), looking)
    assert {(claim.label, claim.category) for claim in seen} == {(None, None)}
    assert [case.case_id for case in result.cases] == [row["id"] for row in fever_rows("red")]
    assert result.cases[0].label == "supported"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"model": "other"}, "the scorer's model is other"),
        ({"revision": "2"}, "the scorer's revision is 2, registered is 1"),
        ({"identity": {"weights": "x"}}, "the scorer's identity weights is x, registered is None"),
        ({"settings": {"too_long": "truncate"}}, "the scorer's settings too_long is truncate"),
    ],
)
def test_another_scorer_is_refused(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    registration = prepared(tmp_path)
    with pytest.raises(ConfigurationError, match=words):
        run(tmp_path, registration, never, scorer=Scorer(**SCORER.model_dump() | change))
    assert of_kind(read_ledger(tmp_path / "ledger.jsonl"), "observation") == []


def test_a_changed_data_set_is_refused(tmp_path: Path) -> None:
    registration = prepared(tmp_path)
    path = tmp_path / "claims.jsonl"
    path.write_bytes(path.read_bytes().replace(b"Oslo", b"Osla", 1))
    with pytest.raises(ConfigurationError, match="is not the registered file"):
        run(tmp_path, registration, never)
    write_rows(tmp_path / "moved.jsonl", fever_rows("red"))
    assert run(tmp_path, registration, paths={"claims": tmp_path / "moved.jsonl"}).exit_status == 0


def test_an_edited_registration_is_refused(tmp_path: Path) -> None:
    prepared(tmp_path)
    path = tmp_path / "r.json"
    path.write_text(
        path.read_text("utf-8").replace('"supported_recall_min":0.5', '"supported_recall_min":0.1'), "utf-8"
    )
    with pytest.raises(ConfigurationError, match="it was edited since, or never registered"):
        run(tmp_path, read_registration(path), never)


def test_a_registration_without_its_ledger_is_refused(tmp_path: Path) -> None:
    registration = prepared(tmp_path)
    (tmp_path / "ledger.jsonl").unlink()
    with pytest.raises(ConfigurationError, match="never registered with this ledger"):
        run(tmp_path, registration, never)


@pytest.mark.parametrize("limit", [{"unit": "words", "maximum": 13}, {"unit": "characters", "maximum": 73}])
def test_an_input_beyond_the_limit_ends_the_run_before_any_prediction(tmp_path: Path, limit: dict[str, Any]) -> None:
    enough = prepared(tmp_path, input_limit=limit)  # "The red ferry to Quito never left early." and its claim
    rows = fever_rows("red")
    sizes = [len(f"{row['evidence'][0]}\n{row['claim']}") for row in rows]
    words = [len(f"{row['evidence'][0]} {row['claim']}".split()) for row in rows]
    largest = max(sizes) if limit["unit"] == "characters" else max(words)
    exact = registered(tmp_path, "s", form(tmp_path / "claims.jsonl", input_limit=limit | {"maximum": largest}))
    if limit["maximum"] < largest:
        with pytest.raises(ConfigurationError, match="nothing was scored"):
            run(tmp_path, enough, never)
        assert of_kind(read_ledger(tmp_path / "ledger.jsonl"), "observation") == []
    assert run(tmp_path, exact).exit_status == 0
    too_long = registered(tmp_path, "t", form(tmp_path / "claims.jsonl", input_limit=limit | {"maximum": largest - 1}))
    with pytest.raises(ConfigurationError, match="nothing was scored"):
        run(tmp_path, too_long, never)


def test_the_marks_of_a_group_count_as_input(tmp_path: Path) -> None:
    row = fever_rows("red")[0] | {"evidence": ["One left.", "Two left early.", "Three."]}
    path = write_rows(tmp_path / "claims.jsonl", [row])
    words = len(f"[E1] Two left early. [E2] One left. {row['claim']}".split())
    for maximum, refused in ((words, False), (words - 1, True)):
        limit = {"unit": "words", "maximum": maximum}
        registration = registered(
            tmp_path, f"r{maximum}", form(path, gates={"claims_evaluated_min": 1}, input_limit=limit)
        )
        if refused:
            with pytest.raises(ConfigurationError, match=f"can need {words} words of input"):
                run(tmp_path, registration, never)
        else:
            assert run(tmp_path, registration).exit_status == 0


def test_a_limit_in_tokens_needs_a_tokenizer(tmp_path: Path) -> None:
    registration = prepared(tmp_path, input_limit={"unit": "tokens", "maximum": 100})
    with pytest.raises(ConfigurationError, match="only a scorer with a tokenizer"):
        run(tmp_path, registration, never)
    assert run(tmp_path, registration, count_tokens=lambda text: len(text.split())).exit_status == 0


def test_a_limit_in_tokens_is_counted_by_the_scorers_own_tokenizer(tmp_path: Path) -> None:
    save_tiny("bert", tmp_path / "model")
    count = token_counter(partial(CrossEncoderScorer, model=str(tmp_path / "model")))
    longest = max(count(text) for text in ("It opened in 1995 and never closed.", "Red."))
    assert longest > count("Red.") > 0
    registration = prepared(tmp_path, input_limit={"unit": "tokens", "maximum": 1})
    with pytest.raises(ConfigurationError, match="tokens of input and 1 are registered"):
        run(tmp_path, registration, never, count_tokens=count)
    with pytest.raises(ConfigurationError, match="WordsScorer has no tokenizer of its own"):
        run(tmp_path, registration, never, count_tokens=token_counter(partial(WordsScorer)))


def test_answers_for_other_claims(tmp_path: Path) -> None:
    registration = prepared(tmp_path)
    with pytest.raises(VerificationError, match="of other claims"):
        run(tmp_path, registration, lambda method, policy, claims: EXECUTE(method, policy, claims[1:]))
    with pytest.raises(VerificationError, match="of other claims"):
        run(tmp_path, registration, lambda method, policy, claims: [*EXECUTE(method, policy, claims)] * 2)


def test_a_cohort_once_observed_is_marked_in_every_later_registration(tmp_path: Path) -> None:
    first = prepared(tmp_path)
    before = registered(tmp_path, "before", form(tmp_path / "claims.jsonl"))
    assert not before.observed
    run(tmp_path, first)
    run(tmp_path, first)
    assert len(of_kind(read_ledger(tmp_path / "ledger.jsonl"), "observation")) == 1
    after = registered(tmp_path, "after", form(tmp_path / "claims.jsonl"))
    assert (after.observed, after.observed_by) == (True, (first.digest(),))
    mixed = write_rows(tmp_path / "mixed.jsonl", [*fever_rows("blue"), *fever_rows("red")[:1]])
    assert registered(tmp_path, "mixed", form(mixed)).observed
    assert not registered(tmp_path, "blue", form(write_rows(tmp_path / "blue.jsonl", fever_rows("blue")))).observed


def test_a_run_that_fails_midway_has_observed(tmp_path: Path) -> None:
    registration = prepared(tmp_path)
    with pytest.raises(AssertionError):
        run(tmp_path, registration, never)
    assert registered(tmp_path, "after", form(tmp_path / "claims.jsonl")).observed


def test_a_fresh_sample_leaves_out_what_was_observed(tmp_path: Path) -> None:
    rows = fever_rows("red", 12)
    path = write_rows(tmp_path / "claims.jsonl", rows)
    drawn = cohort(path, sampler={"seed": "7", "split": "dev", "per_stratum": 2})
    first = registered(tmp_path, "first", form(path, cohort=drawn))
    run(tmp_path, first)
    fresh = registered(tmp_path, "fresh", form(path, cohort=drawn))
    assert not fresh.observed and not set(fresh.cohort.selected or ()) & set(first.cohort.selected or ())
    again = cohort(path, sampler={"seed": "7", "split": "dev", "per_stratum": 2, "exclude_observed": False})
    second = registered(tmp_path, "again", form(path, cohort=again))
    assert second.observed and second.cohort.selected == first.cohort.selected
    renamed = write_rows(tmp_path / "renamed.jsonl", [row | {"id": f"new-{row['id']}"} for row in rows])
    sampler = {"seed": "7", "split": "dev", "per_stratum": 4}
    by_text = registered(tmp_path, "renamed", form(renamed, cohort=cohort(renamed, sampler=sampler)))
    assert not {name.removeprefix("new-") for name in by_text.cohort.selected or ()} & set(first.cohort.selected or ())
    run(tmp_path, fresh)
    assert run(tmp_path, fresh).exit_status == 0


@needs_shared
def test_a_published_assay_registered_anew_and_run(tmp_path: Path) -> None:
    folder = SHARED / "claim-verifier" / "guards44"
    recorded = RecordedFileScorer(str(folder / "scores.jsonl"), registration=str(folder / "registration.json"))
    scorer = Scorer(model=recorded.model, revision=recorded.revision)
    asked = form_of_public(folder / "registration.json", scorer)
    registration = registered(tmp_path, "guards", asked)
    result = run(tmp_path, registration, in_process(recorded), scorer=scorer)
    assert (result.exit_status, result.observed, result.summary["matched"], len(result.gates.results)) == (
        0,
        True,
        43,
        8,
    )
    lines = [json.loads(line) for line in (folder / "scores.jsonl").read_text("utf-8").splitlines()]
    assert [case.result_sha256 for case in result.cases] == [line["result_sha256"] for line in lines]
    with pytest.raises(ConfigurationError, match="the policy's model is"):
        registered(tmp_path, "other", form_of_public(folder / "registration.json", SCORER))
