"""Answers checked against a corpus: receipts equal those of ``check_factuality``, whoever corroborates."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.factuality.cases import generate
from tests.fusion.drafts import WordEmbedder
from verifier.answers.receipted import ReceiptConfig, ReceiptedAnswers
from verifier.answers.records import Answer, CheckedAnswer
from verifier.decompose.receipt_sentences import ReceiptSentences
from verifier.errors import ConfigurationError
from verifier.factuality import check_factuality, sentence_claims
from verifier.factuality.corpus import Corpus, Hit, Passage
from verifier.fusion.records import Draft, DraftClaim
from verifier.scorers.words import WordsScorer

PASSAGES = [
    Passage("p1", "The drug cures cancer in mice."),
    Passage("p2", "The drug cures no cancer."),
    Passage("p3", "The port is open on Sundays.", "log", "harbour"),
]


class Searcher:
    def __init__(self, passages: Sequence[Passage] = PASSAGES) -> None:
        self.corpus = Corpus(passages, WordEmbedder())

    def search_many(self, queries: Sequence[str], k: int, scopes: Sequence[str | None]) -> list[list[Hit]]:
        return self.corpus.search_many(queries, k, scopes)

    def cuts(self, queries: Sequence[str]) -> list[bool]:
        return [len(query) > 60 for query in queries]


def check(answer: Answer, scorer: Any = None, **settings: Any) -> CheckedAnswer:
    checker = ReceiptedAnswers(ReceiptSentences(), Searcher(), ReceiptConfig(**settings), scorer or WordsScorer())
    (found,) = checker.check([answer])
    return found


@given(st.lists(st.sampled_from([claim for _, claim in generate(40, seed=7)] + ["Yes.", "", "a\nb c"]), max_size=4))
def test_a_receipt_is_that_of_check_factuality(sentences: list[str]) -> None:
    passages = [Passage(f"p{n}", text) for n, (text, _) in enumerate(generate(60, seed=8))]
    answer = " ".join(sentences)
    checker = ReceiptedAnswers(ReceiptSentences(), Searcher(passages), ReceiptConfig(), WordsScorer())
    (found,) = checker.check([Answer("a", answer)])
    expected = check_factuality(Corpus(passages, WordEmbedder()), answer)
    receipt = json.loads(found.receipt or "")
    assert receipt.pop("answer_id") == "a" and receipt.pop("is_grounded") == expected.is_grounded()
    assert receipt == expected.as_dict()
    assert found.grounded_fraction == expected.grounded_fraction
    verdicts = {(True, True): "conflicting", (True, False): "supported", (False, True): "contradicted"}
    assert [claim.verdict for claim in found.claims] == [
        verdicts.get((one.supported, one.contradicted), "unverified") for one in expected.verdicts
    ]


@given(st.text("ab. !?\n\r\t\u2003İ", max_size=40))
def test_claims_are_the_seeds_sentences_where_they_stand(text: str) -> None:
    (found,) = ReceiptSentences().decompose([Draft("d", text)])
    assert [claim.text for claim in found.claims] == sentence_claims(text)
    assert all(text[slice(*claim.draft_span)] == claim.text for claim in found.claims)
    starts = [claim.draft_span for claim in found.claims]
    assert starts == sorted(starts)


def test_evidence_stands_beside_each_claim() -> None:
    found = check(Answer("a", "The drug cures cancer. The port is closed."), min_score=0.0)
    first, second = found.claims
    assert first.verdict == "conflicting" and second.verdict == "supported", "the heuristic knows no opposites"
    assert {(one.evidence_id, one.role) for one in first.evidence} == {("p1", "supports"), ("p2", "contradicts")}
    assert {one.text for one in first.evidence} == {PASSAGES[0].text, PASSAGES[1].text}
    assert (second.start, second.end) == (23, 42) and found.delivered == "The drug cures cancer. The port is closed."
    assert found.trace is None and found.error is None


def test_scope_filters_before_ranking() -> None:
    claims = "The drug cures cancer in mice."
    assert check(Answer("a", claims, scope="harbour")).claims[0].verdict == "unverified"
    assert check(Answer("a", claims)).claims[0].verdict != "unverified"
    assert check(Answer("a", claims, scope="nobody")).claims[0].score == 0


def test_an_answer_without_claims_is_unknown_and_not_grounded() -> None:
    for text in ("", "Yes.", " \n"):
        found = check(Answer("a", text), grounded_at=0.0)
        assert found.verification == "unknown: the answer has no claims" and found.grounded_fraction is None
        assert json.loads(found.receipt or "")["is_grounded"] is False and found.error is None


def test_own_claims_and_their_markers_are_kept() -> None:
    claim = DraftClaim("The port is open on Sundays.", (0, 4), ("S1",))
    (found,) = check(Answer("a", "Open", claims=(claim,))).claims
    assert (found.verdict, found.start, found.end, found.cited_markers) == ("supported", 0, 4, ("S1",))


def test_support_scorers_corroborate_too_and_low_support_is_no_contradiction() -> None:
    class Support:
        model, revision = "support", "1"

        def score_pairs(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
            return [0.9 if "open" in premise else 0.0 for premise, _ in pairs]

    answer = "The port is open on Sundays. The drug cures cancer."
    assert [claim.verdict for claim in check(Answer("a", answer), Support()).claims] == ["supported", "unverified"]


def test_a_pair_without_a_score_costs_its_answer_alone() -> None:
    class Flaky(WordsScorer):
        def score(self, pairs: Sequence[tuple[str, str]]) -> Any:
            return np.where([["drug" in claim] for _, claim in pairs], np.nan, super().score(pairs))

    answers = [Answer("a", "The drug cures cancer."), Answer("b", "The port is open on Sundays.")]
    broken, whole = ReceiptedAnswers(ReceiptSentences(), Searcher(), ReceiptConfig(), Flaky()).check(answers)
    assert broken.verification.startswith("unavailable: ") and broken.receipt is None and broken.claims == ()
    assert broken.error is not None and broken.error.outcome == "unscored"
    assert whole.verification == "verified" and whole.grounded_fraction == 1.0


def test_an_empty_corpus_supports_nothing() -> None:
    checker = ReceiptedAnswers(ReceiptSentences(), Searcher([]), ReceiptConfig(), WordsScorer())
    (found,) = checker.check([Answer("a", "The port is open.")])
    assert [claim.verdict for claim in found.claims] == ["unverified"] and found.grounded_fraction == 0


@pytest.mark.parametrize(
    "settings",
    [
        {"k": 0},
        {"k": 1001},
        {"min_score": float("nan")},
        {"min_score": 1.5},
        {"entailment_threshold": 0.4},
        {"contradiction_threshold": 2},
        {"grounded_at": 1.1},
    ],
)
def test_a_configuration_that_makes_no_sense_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(settings))):
        ReceiptConfig(**settings)
