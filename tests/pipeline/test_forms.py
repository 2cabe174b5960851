"""Every input form, and every way one row can be bad, with its code."""

import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from verifier.errors import ConfigurationError, InputError
from verifier.pipeline.forms import (
    claim_from_bundle,
    claim_from_case,
    claim_from_claims,
    claim_from_joined,
    claim_from_wice,
    evidence_from_table,
    occurs,
    registered_cases,
)
from verifier.pipeline.validation import parse_object
from verifier.records import Claim, Evidence, evidence_digest
from verifier.schemas import claim_from_row, work_row

SHARED = Path(__file__).resolve().parents[3] / "shared"


def row(**changes: Any) -> dict[str, Any]:
    good = {"claim_id": "c1", "claim": "Ada moved.", "evidence": [{"reference": "m1", "text": "Ada moved away."}]}
    return {name: value for name, value in (good | changes).items() if value is not ...}


def item(**changes: Any) -> dict[str, Any]:
    good = {"reference": "m1", "text": "Ada moved away."}
    return {name: value for name, value in (good | changes).items() if value is not ...}


def refused(function: Any, *args: Any) -> tuple[str, str]:
    with pytest.raises(InputError) as caught:
        function(*args)
    assert "\n" not in str(caught.value)
    return caught.value.code, str(caught.value)


BAD_TEXT = {
    b'{"claim_id": ': "unparseable_json",
    b"\x00\x00": "unparseable_json",
    b'{"claim": "a\x00b"}': "unparseable_json",
    b"[" * 100_000 + b"]" * 100_000: "unparseable_json",
    b'{"a":' * 100_000: "unparseable_json",
    b'{"a": ' + b"1" * 5000 + b"}": "unparseable_json",
    b"{} {}": "unparseable_json",
    b"\xef\xbb\xbf{}": "unparseable_json",
    b"[1]": "not_an_object",
    b"null": "not_an_object",
    b'"text"': "not_an_object",
    b'{"claim": NaN}': "not_finite_number",
    b'{"claim": [-Infinity]}': "not_finite_number",
    b'{"claim": "\xff"}': "invalid_utf8",
    b'{"claim": "\xed\xa0\x80"}': "invalid_utf8",
    b'{"claim": "a", "claim": "b"}': "repeated_field",
}


@pytest.mark.parametrize(("raw", "code"), BAD_TEXT.items(), ids=range(len(BAD_TEXT)))
def test_bad_text_is_refused(raw: bytes, code: str) -> None:
    assert refused(parse_object, raw)[0] == code


BAD_CLAIMS = [
    (row(claim_id=...), "missing_claim_id", "claim_id is missing"),
    (row(claim_id=None), "missing_claim_id", "claim_id"),
    (row(claim_id=" "), "missing_claim_id", "claim_id is empty"),
    (row(claim_id=7), "not_a_string", "claim_id is 7"),
    (row(claim=...), "missing_claim", "claim"),
    (row(claim=" \n"), "empty_claim", "claim"),
    (row(claim=["a"]), "not_a_string", "claim is a list"),
    (row(claim=float("inf")), "not_finite_number", "claim is inf"),
    (row(claim="\ud800"), "invalid_utf8", "claim"),
    (row(evidence=...), "missing_evidence_field", "evidence"),
    (row(evidence=None), "missing_evidence_field", "evidence"),
    (row(evidence="text"), "evidence_not_a_list", "evidence"),
    (row(evidence=["text"]), "evidence_not_an_object", "evidence[0]"),
    (row(evidence=[item(), item(reference="m2", text=...)]), "missing_evidence_field", "evidence[1].text"),
    (row(evidence=[item(reference=...)]), "missing_evidence_field", "evidence[0].reference"),
    (row(evidence=[item(text="  ")]), "empty_passage", "evidence[0].text"),
    (row(evidence=[item(text=None)]), "missing_evidence_field", "evidence[0].text"),
    (row(evidence=[item(text=3)]), "not_a_string", "evidence[0].text is 3"),
    (row(evidence=[item(reference="")]), "empty_reference", "evidence[0].reference"),
    (row(evidence=[item(text="\udc00")]), "invalid_utf8", "evidence[0].text"),
    (row(evidence=[item(source_type="tv")]), "unknown_enum_value", "evidence[0].source_type is 'tv'; known are"),
    (row(evidence=[item(epistemic_type=[])]), "unknown_enum_value", "evidence[0].epistemic_type"),
    (row(evidence=[item(lifecycle_state="x")]), "unknown_enum_value", "evidence[0].lifecycle_state"),
    (row(evidence=[item(memory_id="zz")]), "bad_memory_id", "evidence[0].memory_id is 'zz'"),
    (row(evidence=[item(memory_id=5)]), "bad_memory_id", "evidence[0].memory_id"),
    (row(evidence=[item(event_time="soon")]), "bad_time", "evidence[0].event_time is 'soon'"),
    (row(evidence=[item(valid_to=float("nan"))]), "not_finite_number", "evidence[0].valid_to"),
    (row(evidence=[item(valid_from=10**400)]), "bad_time", "evidence[0].valid_from"),
    (row(evidence=[item(score=1)]), "unknown_field", "evidence[0].score"),
    (row(requires_complete_set="perhaps"), "not_a_boolean", "requires_complete_set"),
    (row(requires_complet_set=True), "unknown_field", "'requires_complet_set' is not a field here; known are claim_id"),
    (row(label="\ud800"), "invalid_utf8", "label"),
    (row(document_id="a\udfff"), "invalid_utf8", "document_id"),
    (row(label=1), "not_a_string", "label is 1"),
]


@pytest.mark.parametrize(("value", "code", "words"), BAD_CLAIMS)
def test_bad_claims_are_refused_by_field_and_value(value: dict[str, Any], code: str, words: str) -> None:
    found, message = refused(claim_from_claims, value)
    assert found == code
    assert words in message
    assert len(message) < 400


def test_claims() -> None:
    items = [item(_rank=1), item(reference=" m2 ", memory_id=None)]
    claim = claim_from_claims(row(label=None, _note=3, evidence=items))
    assert claim == Claim("c1", "Ada moved.", (Evidence("m1", "Ada moved away."), Evidence("m2", "Ada moved away.")))
    assert claim_from_claims(row(evidence=[])).evidence == ()


def test_work_rows_give_the_claim_back() -> None:
    times = {"event_time": "2026-01-02T03:04:05.678901+02:00", "valid_from": "2026-01-02T03:04:05Z"}
    claim = claim_from_claims(row(evidence=[item(**times, valid_to="2026-01-02T03:04:05", source_type="tool_output")]))
    stored = work_row(7, claim)
    assert stored["evidence"][0]["valid_from"] == "2026-01-02T03:04:05Z"
    assert stored["evidence"][0]["event_time"] == times["event_time"]
    again = claim_from_row(stored)
    assert again == claim
    assert evidence_digest(again.evidence) == evidence_digest(claim.evidence)


def test_joined() -> None:
    value = {"claim_id": "c1", "claim": "Ada moved.", "evidence_set": "s", "label": "supported"}
    assert claim_from_joined(value, [item()]) == claim_from_claims(row(label="supported"))
    assert refused(claim_from_joined, value | {"evidence": []}, [item()])[0] == "unknown_field"
    assert evidence_from_table(item(evidence_set=" s ", _x=1)) == ("s", Evidence("m1", "Ada moved away."))
    assert refused(evidence_from_table, item())[0] == "missing_evidence_field"
    assert refused(evidence_from_table, item(evidence_set="\ud800"))[0] == "invalid_utf8"
    assert refused(evidence_from_table, item(evidence_set="s", sset=1))[0] == "unknown_field"


def variant(**changes: Any) -> dict[str, Any]:
    good = {"label": "partially_supported", "claim": "Ada moved.", "evidence": ["One.", " ", "Two."]}
    return good | {"meta": {"id": "t1"}} | changes


def test_wice() -> None:
    claim = claim_from_wice([variant(), variant(evidence=["Three."])])
    assert (claim.claim_id, claim.document_id) == ("t1", "t1")
    assert (claim.label, claim.category) == ("insufficient", "partially_supported")
    assert [(e.reference, e.text) for e in claim.evidence] == [("t1:oracle:1", "One.\nTwo."), ("t1:oracle:2", "Three.")]
    namespace = uuid.UUID("5211a7d2-cf39-4c7c-8bbc-4f762448d294")
    assert claim.evidence[1].memory_id == uuid.uuid5(namespace, "t1:2")
    supported = claim_from_wice([variant(label="supported")])
    assert (supported.label, supported.category) == ("supported", "supported")


@pytest.mark.parametrize(
    ("variants", "code"),
    [
        ([variant(meta={})], "missing_claim_id"),
        ([variant(meta={"id": "\ud800"})], "invalid_utf8"),
        ([variant(), variant(label="supported")], "inconsistent_variants"),
        ([variant(label="maybe")], "unknown_enum_value"),
        ([variant(evidence=[" "])], "empty_passage"),
        ([variant(evidence=[1])], "not_a_string"),
        ([variant(evidence="One.")], "evidence_not_a_list"),
        ([variant(evidence=None)], "missing_evidence_field"),
        ([variant(claim=None)], "missing_claim"),
        ([variant(more=1)], "unknown_field"),
    ],
)
def test_bad_wice(variants: list[dict[str, Any]], code: str) -> None:
    assert refused(claim_from_wice, variants)[0] == code


def test_registration() -> None:
    case = {"id": "a", "claim": "Ada moved.", "expected_status": "refuted", "category": "x", "evidence": [item()]}
    claim = claim_from_case(case)
    assert (claim.claim_id, claim.label, claim.category) == ("a", "refuted", "x")
    assert refused(claim_from_case, case | {"expected_status": "true"})[0] == "unknown_enum_value"
    assert refused(claim_from_case, case | {"id": None})[0] == "missing_claim_id"
    assert registered_cases({"protocol": {"cases": [case]}}, "f") == [case]
    with pytest.raises(ConfigurationError, match=r"f is not a registered assay"):
        registered_cases({"protocol": {}}, "f")


@pytest.mark.skipif(not SHARED.is_dir(), reason="../shared with the published assays is absent")
@pytest.mark.parametrize(("name", "count"), [("guards44", 44), ("minimal20", 20)])
def test_published_registrations(name: str, count: int) -> None:
    path = SHARED / "data" / "claim-verifier" / name / "registration.json"
    cases = registered_cases(json.loads(path.read_text()), str(path))
    claims = [claim_from_case(case) for case in cases]
    assert len(claims) == count
    assert all(str(e.memory_id) == raw["memory_id"] for c, case in zip(claims, cases, strict=True)
               for e, raw in zip(c.evidence, case["evidence"], strict=True))  # fmt: skip


@pytest.mark.parametrize(
    ("context", "cited"),
    [
        ("[m1] one", True),
        ('"m1"', True),
        ('{"id":"m1"}', True),
        ('{"id" : "m1"}', True),
        ('["m1"]', True),
        ("[[m1]]", True),
        ("m1", False),
        ("(m1)", False),
        ("'m1'", False),
        ("[m1, m2]", False),
        ("[ m1 ]", False),
        ("[M1]", False),
        ("[m11]", False),
        ('"text":"I said m1"', False),
    ],
)
def test_occurrence(context: str, cited: bool) -> None:
    assert occurs("m1", context) is cited


def bundle(**changes: Any) -> dict[str, Any]:
    items = [item(), item(reference="m2", text="Hidden.", rendered_text="Shown."), item(reference="m3")]
    good = {"claim_id": "c1", "claim": "Ada moved.", "context": "[m2] Shown. [m1] Ada.", "evidence": items}
    return {name: value for name, value in (good | changes).items() if value is not ...}


def used(value: dict[str, Any]) -> list[tuple[str, str]]:
    return [(e.reference, e.text) for e in claim_from_bundle(value).evidence]


def test_bundle_uses_what_the_reader_saw() -> None:
    assert used(bundle()) == [("m1", "Ada moved away."), ("m2", "Shown.")]
    assert used(bundle(evidence_refs=["m2", "m1"])) == [("m2", "Shown."), ("m1", "Ada moved away.")]
    assert used(bundle(evidence_refs=["m2"])) == [("m2", "Shown.")]
    assert used(bundle(evidence_refs=[])) == []
    only_rendered = [item(text=..., rendered_text="Shown."), item(reference="m3", text=...)]
    assert used(bundle(evidence=only_rendered)) == [("m1", "Shown.")]


@pytest.mark.parametrize(
    ("changes", "code", "words"),
    [
        ({"context": ...}, "missing_context", "context"),
        ({"context": " "}, "missing_context", "context"),
        ({"context": 1}, "not_a_string", "context"),
        ({"context": "m1 m2 m3"}, "no_cited_evidence", "context"),
        ({"evidence": []}, "no_cited_evidence", "context"),
        ({"evidence_refs": ["m1", "m9"]}, "unknown_evidence_ref", "'m9'"),
        ({"evidence_refs": ["m3"]}, "unknown_evidence_ref", "'m3'"),
        ({"evidence_refs": "m1"}, "evidence_refs_not_a_list", "'m1'"),
        ({"evidence_refs": [1]}, "not_a_string", "1"),
        ({"evidence": [item(reference="m9"), item(rendered_text=" ")]}, "empty_passage", "evidence[1].text"),
        ({"evidence": [item(rendered_text=4)]}, "not_a_string", "evidence[0].text"),
        ({"evidence": [item(reference=None)]}, "missing_evidence_field", "evidence[0].reference"),
        ({"evidence": [item(text=...)]}, "missing_evidence_field", "evidence[0].text"),
        ({"evidence": [item(hidden_text="x")]}, "unknown_field", "evidence[0].hidden_text"),
        ({"refs": ["m1"]}, "unknown_field", "refs"),
    ],
)
def test_bad_bundles(changes: dict[str, Any], code: str, words: str) -> None:
    found, message = refused(claim_from_bundle, bundle(**changes))
    assert found == code
    assert words in message
