import doctest
import importlib

import pytest

from tests.shared import needs_shared, read_lines
from verifier.factuality import corroborate, sentence_claims


@needs_shared
def test_all_400_published_pairs_agree() -> None:
    cases = read_lines("factuality/vectors.jsonl")
    assert len(cases) == 400
    assert [case for case in cases if corroborate(case["evidence"], case["claim"]) != case["expected"]] == []
    assert [case for case in cases if sentence_claims(case["evidence"]) != case["evidence_claims"]] == []


@pytest.mark.parametrize(
    ("evidence", "claim", "expected"),
    [
        ("not one of the drug", "drug", "contradicted"),  # the fourth word after the negator
        ("not one of the old drug", "drug", "supported"),  # the fifth
        ("not one never drug works", "drug works", "contradicted"),  # another negator starts anew
        ("Not now. The drug works", "drug works", "supported"),  # a sentence ends the scope
        ("Not now.The drug works", "drug works", "contradicted"),  # without white space it does not end
        ("The drug isn't good", "The drug is good", "contradicted"),
        ("drug", "drug cancer", "supported"),  # half of the words
        ("drug drug", "drug drug cancer mice", "unverified"),  # each word counts once
        ("not", "not", "unverified"),  # a negator alone is nothing shared
        ("", "drug works", "unverified"),
        ("the", "the", "unverified"),
    ],
)
def test_the_rules_one_by_one(evidence: str, claim: str, expected: str) -> None:
    assert corroborate(evidence, claim) == expected


def test_a_long_text_without_marks_is_read_in_linear_time() -> None:
    text = "never mind the gap " * 50_000 + " " * 200_000 + "." * 200_000
    assert corroborate(text, "mind gap") == "contradicted"


@pytest.mark.parametrize("name", ["corroboration", "receipts"])
def test_the_worked_examples_of_the_docstrings(name: str) -> None:
    results = doctest.testmod(importlib.import_module(f"verifier.factuality.{name}"))
    assert results.attempted >= 4
    assert results.failed == 0
