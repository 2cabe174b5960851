import doctest
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifier.errors import VerificationError
from verifier.fusion import (
    PlanIdf,
    fuse,
    lexical,
    lexical_coverage,
    numeric_atoms,
    numeric_gate_trips,
    pair_score,
    tokenize,
)

words = st.lists(st.sampled_from("alpha beta gamma delta 5 march".split()), max_size=8)
spans = st.lists(words, min_size=1, max_size=5)


def atoms(text: str) -> list[str]:
    return numeric_atoms(tokenize(text))


def test_the_worked_examples_of_the_docstrings_hold() -> None:
    results = doctest.testmod(lexical)
    assert results.attempted > 10
    assert results.failed == 0


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("500.0 1,000 2026-03-05 10:30", ["500.0", "1,000", "2026", "03", "05", "10", "30"]),
        ("Can't — stop!!", ["can't", "stop"]),
        ("a\u0301 \u00e1", ["\u00e1", "\u00e1"]),
        ("東京 Tokyo", ["東", "京", "tokyo"]),
        ("ΣΑΣ", ["σασ"]),
        ("🙂 … §", []),
        ("", []),
    ],
)
def test_tokens_follow_uax_29_after_nfc(text: str, tokens: list[str]) -> None:
    assert tokenize(text) == tokens


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5 March 2026", ["5", "3", "2026"]),
        ("2026-03-05", ["2026", "3", "5"]),
        ("500 500.0 0500", ["500", "500", "500"]),
        ("1,000,000.50", ["1000000.5"]),
        ("1e3 2.5e7 1e21", ["1000", "25000000", "1" + "0" * 21]),
        ("5pm 1.2.3 1_000 v2", []),
        ("٣٤ ２０２６ ½ inf nan", []),
        ("between January and DECEMBER", ["1", "12"]),
    ],
)
def test_numbers_are_read_as_rust_reads_ascii_digits(text: str, expected: list[str]) -> None:
    assert atoms(text) == expected


def test_a_token_that_was_not_cut_at_its_marks_is_cut_here() -> None:
    assert numeric_atoms(["2026-03-05", "10:30", "1/2", "x-7"]) == ["2026", "3", "5", "10", "30", "1", "2", "7"]


def test_idf_is_that_of_the_plan() -> None:
    idf = PlanIdf([["a", "a", "b"], ["a"], ["c"]])
    assert idf.idf("a") == math.log(1 + 3 / 2)
    assert idf.idf("b") == idf.idf("unseen") == math.log(1 + 3)


def test_a_plan_of_texts_is_tokenized() -> None:
    assert PlanIdf(["Alpha beta", "alpha"]).idf("alpha") == math.log(2)


def test_coverage_is_a_multiset_and_ignores_the_length_of_the_span() -> None:
    idf = PlanIdf([["a", "b"], ["a"]])
    a, b = math.log(2), math.log(3)
    assert lexical_coverage(["a", "b", "b"], ["b", *["z"] * 99], idf) == pytest.approx(b / (a + 2 * b))


def test_a_claim_without_weight_is_not_covered() -> None:
    assert lexical_coverage([], ["a"], PlanIdf([["a"]])) == 0.0
    assert lexical_coverage(["a"], ["a"], PlanIdf([])) == 0.0


@given(words, words, spans)
def test_coverage_lies_between_zero_and_one(claim: list[str], span: list[str], plan: list[list[str]]) -> None:
    assert 0.0 <= lexical_coverage(claim, span, PlanIdf(plan)) <= 1.0


@given(words.filter(bool), words, spans)
def test_a_span_that_contains_the_claim_covers_it_exactly(
    claim: list[str], more: list[str], plan: list[list[str]]
) -> None:
    assert lexical_coverage(claim, more + claim[::-1], PlanIdf(plan)) == 1.0


@given(words, words, words, spans)
def test_a_longer_span_never_covers_less(
    claim: list[str], span: list[str], more: list[str], plan: list[list[str]]
) -> None:
    idf = PlanIdf(plan)
    assert lexical_coverage(claim, span + more, idf) >= lexical_coverage(claim, span, idf)


numbers = st.lists(st.sampled_from(["1", "2", "3"]))


@given(numbers, numbers, numbers)
def test_more_evidence_never_trips_the_gate_and_more_claim_never_opens_it(
    claim: list[str], span: list[str], more: list[str]
) -> None:
    if not numeric_gate_trips(claim, span):
        assert not numeric_gate_trips(claim, span + more)
    else:
        assert numeric_gate_trips(claim + more, span)


def test_the_gate_wants_every_number() -> None:
    assert numeric_gate_trips(["1", "2"], ["1"])
    assert not numeric_gate_trips(["1", "1"], ["1", "9"])
    assert not numeric_gate_trips([], [])


@given(st.floats(-1, 1), st.floats(0, 1), st.floats(-1, 2))
def test_a_fused_score_lies_between_zero_and_one_and_the_gate_caps_all_of_it(
    cos: float, lex: float, beta: float
) -> None:
    fused = fuse(cos, lex, beta)
    assert 0.0 <= fused <= 1.0
    assert pair_score(cos, lex, beta, False) == fused
    assert pair_score(cos, lex, beta, True) == min(fused, 0.2)


def test_fusion_is_geometric_after_the_cosine_is_clamped() -> None:
    assert fuse(0.8, 0.6, 0.65) == pytest.approx(0.8**0.65 * 0.6**0.35)
    assert fuse(-0.5, 1.0, 0.65) == 0.0
    assert fuse(-0.5, 0.7, 0.0) == 0.7
    assert fuse(0.3, 0.0, 1.0) == 0.3


def test_nan_is_an_error_and_never_a_score() -> None:
    with pytest.raises(VerificationError, match="must be numbers"):
        pair_score(math.nan, 1.0, 0.65, True)
