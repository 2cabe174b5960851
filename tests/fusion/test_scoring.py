"""Scores of arrays of pairs, the settings of the formula, and remembered vectors."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.fusion.drafts import WordEmbedder
from verifier.errors import VerificationError
from verifier.fusion import FusionConfig, pair_score
from verifier.fusion.features import TextFeatures
from verifier.fusion.scoring import Texts, coverage, fused, gates
from verifier.fusion.vectors import RememberingEmbedder

words = st.lists(st.sampled_from("alpha beta gamma 5 7 march".split()), min_size=1, max_size=8).map(" ".join)


@given(
    st.lists(st.tuples(st.floats(-1, 1), st.floats(0, 1), st.booleans()), max_size=20),
    st.floats(0, 1),
    st.floats(0, 1),
)
def test_fusion_of_arrays_is_fusion_of_each(rows: list[Any], beta: float, cap: float) -> None:
    cosine, lexical, tripped = (np.array([row[n] for row in rows]) for n in range(3))
    found = fused(cosine, lexical, tripped.astype(bool), FusionConfig(beta=beta, cap=cap))
    expected = [pair_score(c, x, beta, gate, cap) for c, x, gate in rows]
    np.testing.assert_allclose(found, expected, atol=1e-12, rtol=0)


def test_a_signal_that_is_no_number_is_an_error() -> None:
    with pytest.raises(VerificationError, match="not a number"):
        fused(np.array([np.nan]), np.array([1.0]), np.array([True]), FusionConfig())


@given(st.lists(words, min_size=1, max_size=4), st.lists(words, min_size=1, max_size=4))
def test_a_span_that_contains_the_claim_covers_it_exactly_and_has_its_numbers(
    claims: list[str], spans: list[str]
) -> None:
    plan = [*spans, *(f"{claim} and more" for claim in claims)]
    features = TextFeatures.of(claims + plan)
    zeros = [np.zeros(len(of), np.int64) for of in (claims, plan)]
    asked = Texts(features.rows(claims), zeros[0]), Texts(features.rows(plan), zeros[1])
    rows, columns = np.array(list(product(range(len(claims)), range(len(plan))))).T
    covered = coverage(features, *asked, rows, columns).reshape(len(claims), len(plan))
    tripped = gates(features, *asked, rows, columns).reshape(len(claims), len(plan))
    assert ((covered >= 0) & (covered <= 1)).all()
    for number in range(len(claims)):
        assert covered[number, len(spans) + number] == 1.0 and not tripped[number, len(spans) + number]


@pytest.mark.parametrize(
    "wrong",
    [
        {"beta": 1.1},
        {"beta": float("nan")},
        {"candidates_m": 0},
        {"supported": -0.1},
        {"partial": 0.8},
        {"cap": 2},
        {"policy": "hide"},
        {"alpha": 0.5},
    ],
)
def test_wrong_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        FusionConfig(**wrong)


def test_the_defaults_are_those_of_the_specification() -> None:
    settings = "beta=0.65 candidates_m=8 supported=0.75 partial=0.5 cap=0.2 policy='flag'"
    assert str(FusionConfig()) == settings


def test_vectors_are_remembered_and_the_memory_is_bounded() -> None:
    inner = WordEmbedder()
    memory = RememberingEmbedder(inner, 2)
    first = memory.embed(["a", "b", "a", "c"])
    np.testing.assert_array_equal(first, inner.embed(["a", "b", "a", "c"]))
    inner.asked.clear()
    np.testing.assert_array_equal(memory.embed(["c", "a"])[0], first[3])
    assert inner.asked == [["a"]], "the oldest is forgotten"
    assert (memory.model, memory.revision) == ("words", "1")
