"""The fusion part of the benchmark on a small workload: that both sides agree and a wrong one shows, never how fast."""

from typing import Any

import numpy as np
import pytest

from verifier.bench import plain_fusion
from verifier.bench.evidence_plans import CLAIMS, workload
from verifier.bench.fusion import measure_fusion
from verifier.fusion import numeric_atoms, tokenize


def measured() -> Any:
    return measure_fusion(drafts=6, long_plan=150, rounds=2, target=0.0)


def unmet(part: Any) -> set[str]:
    return {figure.name for figure in part.figures if figure.met is False}


def test_both_sides_agree_on_every_claim() -> None:
    part = measured()
    assert part.details["claims_equal"] == part.details["claims_compared"] == 7 * CLAIMS
    assert part.details["pairs_compared"] >= 7 * CLAIMS * 8
    assert unmet(part) == set()
    assert not part.notes[0].startswith("VERDICTS DIFFER")
    assert all(len(figure.values) == 2 for figure in part.figures if figure.unit)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("pair_score", lambda near, lexical, beta, tripped, cap: max(near, 0) ** beta * lexical ** (1 - beta)),
        ("coverage", lambda wanted, whole, held: sum(weight for token, _, weight in wanted if token in held) / whole),
        ("numbers_of", lambda token: []),
        ("band", lambda score, supported, partial: "supported" if score > partial else "unsupported"),
        ("nlargest", lambda limit, places, key: sorted(places, key=key)[:limit]),
    ],
)
def test_a_wrong_plain_side_is_seen(monkeypatch: pytest.MonkeyPatch, name: str, wrong: Any) -> None:
    monkeypatch.setattr(plain_fusion, name, wrong)
    part = measured()
    assert part.details["claims_equal"] < part.details["claims_compared"]
    assert "drafts/max_score_difference" in unmet(part)
    assert part.notes[0].startswith("VERDICTS DIFFER")


def test_a_slightly_wrong_cosine_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = plain_fusion.cosine
    monkeypatch.setattr(plain_fusion, "cosine", lambda one, two: exact(one, two) + 1e-11)
    assert {"drafts/max_score_difference", "long_plan/max_score_difference"} <= unmet(measured())


@pytest.mark.parametrize("text", ["ΟΔΟΣ, e\u0301té — can't", "2026-03-05 1,000.50 10:30 .5 1e3 5 March", "३ ⓐ _ …"])
def test_the_plain_tokenizer_and_numbers_are_those_of_the_seed(text: str) -> None:
    tokens = plain_fusion.tokenize(text)
    assert tokens == tokenize(text)
    assert [number for token in tokens for number in plain_fusion.numbers_of(token)] == [
        float(atom) for atom in numeric_atoms(tokens)
    ]


def test_a_workload_is_deterministic_and_its_vectors_have_unit_length() -> None:
    one, two = workload([20, 33], seed=3), workload([20, 33], seed=3)
    assert one.drafts == two.drafts
    assert [len(draft.spans) for draft in one.drafts] == [20, 33]
    assert all(np.array_equal(one.vectors[text], two.vectors[text]) for text in one.vectors)
    lengths = np.linalg.norm(np.stack(list(one.vectors.values())).astype(np.float64), axis=1)
    np.testing.assert_allclose(lengths, 1, atol=1e-6)
    words = [len(span.text.split()) for draft in one.drafts for span in draft.spans]
    assert min(words) >= 20 and max(words) <= 240  # a date such as 5 March 2026 takes the place of one word
