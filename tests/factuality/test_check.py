from collections.abc import Callable

import pytest

from tests.factuality.test_corpus import CharacterEmbedder, passages
from verifier.errors import ConfigurationError, VerificationError
from verifier.factuality import ClaimVerdict, Corroboration, FactualityReceipt, check_factuality
from verifier.factuality.check import receipt, retrieve_answers
from verifier.factuality.corpus import Corpus, Hit, Passage

CORPUS = Corpus(
    passages(
        ["The drug cures cancer in mice.", "The drug cures no cancer and does not work.", "Paris lies in France."]
    ),
    CharacterEmbedder(),
)


class Found:
    """A store that has found these hits."""

    def __init__(self, *scores: float) -> None:
        self.hits = [Hit(Passage(f"p{i}", f"text {i}"), score) for i, score in enumerate(scores)]

    def search(self, query: str, k: int, *, scope: str | None = None) -> list[Hit]:
        return self.hits[:k]


def test_conflicting_evidence_supports_and_contradicts() -> None:
    checked = check_factuality(CORPUS, "The drug cures cancer. Paris lies in France! Zebras jump quickly.")
    assert [(v.supported, v.contradicted) for v in checked.verdicts] == [(True, True), (True, False), (False, False)]
    first = checked.verdicts[0]
    assert [entry["id"] for entry in first.citations] == ["p0"]
    assert [entry["id"] for entry in first.contradictions] == ["p1"]
    assert set(first.citations[0]) == {"id", "kind", "score"}
    assert first.score >= first.citations[0]["score"] - 1e-4
    assert checked.unsupported() == [checked.verdicts[2]]
    assert checked.contradicted() == [first]
    assert checked.grounded_fraction == 0.6667
    assert not checked.is_grounded()
    assert checked.is_grounded(2 / 3)


@pytest.mark.parametrize("answer", ["", "  \n ", "Yes.", "Maybe!\nNo."])
def test_an_answer_without_claims_is_unknown_and_never_grounded(answer: str) -> None:
    checked = check_factuality(CORPUS, answer)
    assert checked.grounded_fraction is None
    assert not checked.is_grounded()
    assert not checked.is_grounded(0.0)
    assert checked.as_dict() == {
        "grounded_fraction": None,
        "n_claims": 0,
        "n_unsupported": 0,
        "n_contradicted": 0,
        "claims": [],
    }


def test_the_rounded_fraction_meets_the_threshold() -> None:
    def of(supported: int, n: int) -> FactualityReceipt:
        return FactualityReceipt("a", [ClaimVerdict("c d", i < supported, 0.5) for i in range(n)])

    assert of(2, 3).is_grounded(2 / 3)
    assert not of(1, 3).is_grounded(1 / 3)  # 0.3333 is less
    assert of(29_999, 30_000).is_grounded()  # 1.0 to 4 places
    assert not of(9_999, 10_000).is_grounded()
    assert not of(3, 3).is_grounded(float("nan"))


def test_scores_are_rounded_in_entries_and_in_the_dictionary() -> None:
    checked = check_factuality(Found(0.123456, 0.91234567), "one claim", corroborates=lambda *_: True, min_score=0.1)
    (verdict,) = checked.verdicts
    assert verdict.score == 0.91234567
    assert verdict.citations == [
        {"id": "p0", "kind": "text", "score": 0.1235},
        {"id": "p1", "kind": "text", "score": 0.9123},
    ]
    assert checked.as_dict()["claims"][0]["score"] == 0.9123


def test_evidence_below_the_floor_does_not_count_but_its_score_is_told() -> None:
    (verdict,) = check_factuality(Found(0.1999999), "one claim", corroborates=lambda *_: True).verdicts
    assert (verdict.supported, verdict.citations, verdict.score) == (False, [], 0.1999999)
    (verdict,) = check_factuality(Found(0.2), "one claim", corroborates=lambda *_: True).verdicts
    assert verdict.supported
    (verdict,) = check_factuality(Found(), "one claim").verdicts
    assert (verdict.supported, verdict.score) == (False, 0.0)


def test_k_pieces_of_evidence_are_asked_for() -> None:
    (verdict,) = check_factuality(Found(*[0.9] * 9), "one claim", corroborates=lambda *_: True).verdicts
    assert len(verdict.citations) == 4
    (verdict,) = check_factuality(Found(*[0.9] * 9), "one claim", corroborates=lambda *_: True, k=7).verdicts
    assert len(verdict.citations) == 7


@pytest.mark.parametrize(
    ("answer", "supported", "contradicted"),
    [
        (True, True, False),
        (False, False, False),
        (Corroboration.SUPPORTED, True, False),
        (Corroboration.CONTRADICTED, False, True),
        (Corroboration.UNVERIFIED, False, False),
    ],
)
def test_a_corroborator_answers_with_a_corroboration_or_a_bool(
    answer: Corroboration | bool, supported: bool, contradicted: bool
) -> None:
    asked = []

    def corroborates(evidence: str, claim: str) -> Corroboration | bool:
        asked.append((evidence, claim))
        return answer

    (verdict,) = check_factuality(Found(0.9), "one claim", corroborates=corroborates).verdicts
    assert asked == [("text 0", "one claim")]
    assert (verdict.supported, verdict.contradicted) == (supported, contradicted)


def fails(*_: str) -> bool:
    raise RuntimeError("out of memory")


@pytest.mark.parametrize(
    "corroborates", [fails, lambda *_: None, lambda *_: "supported", lambda *_: 1, lambda *_: 0.9, lambda *_: "no"]
)
def test_anything_else_from_a_corroborator_is_an_error_and_never_support(corroborates: Callable[..., bool]) -> None:
    with pytest.raises(VerificationError, match="the corroborator"):
        check_factuality(Found(0.9), "one claim", corroborates=corroborates)


def test_an_extractor_is_pluggable_and_must_return_texts() -> None:
    checked = check_factuality(Found(0.9), "x", extract=lambda answer: [f"{answer} said", " ", "word"])
    assert [verdict.claim for verdict in checked.verdicts] == ["x said", "word"]
    for wrong in ([None], "one text"):
        with pytest.raises(VerificationError, match="extract"):
            check_factuality(Found(0.9), "x", extract=lambda _, found=wrong: found)


def test_evidence_may_come_from_a_generator() -> None:
    class Lazy(Found):
        def search(self, *args: object, **settings: object) -> object:
            return iter(super().search(*args, **settings))

    assert check_factuality(Lazy(0.9), "one claim") == check_factuality(Found(0.9), "one claim")


def test_limits_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="k is 0"):
        check_factuality(Found(), "one claim", k=0)
    with pytest.raises(ConfigurationError, match="min_score is nan"):
        check_factuality(Found(), "one claim", min_score=float("nan"))
    with pytest.raises(VerificationError, match="not a finite number"):
        check_factuality(Found(float("nan")), "one claim", corroborates=lambda *_: True)


def test_a_batch_of_answers_gets_the_receipts_of_each() -> None:
    answers = ["The drug cures cancer.", "", "Paris lies in France. The drug cures cancer."]
    batch = retrieve_answers(CORPUS, answers, k=2)
    assert [receipt(answer) for answer in batch] == [check_factuality(CORPUS, answer, k=2) for answer in answers]


def test_every_answer_of_a_batch_has_its_own_scope() -> None:
    corpus = Corpus(passages(["same words"] * 2, ["red", "blue"]), CharacterEmbedder())
    batch = retrieve_answers(corpus, ["same words"] * 3, scopes=["blue", None, "green"])
    cited = [[entry["id"] for entry in receipt(answer).verdicts[0].citations] for answer in batch]
    assert cited == [["p1"], ["p0", "p1"], []]
