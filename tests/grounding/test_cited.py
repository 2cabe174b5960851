"""Answers that cite sentences: premises, verifiers, strictness and the row form."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.scorers.chat_server import Answer, ChatServer, completion
from tests.tiny_models import LINES, save_tiny_flan_t5, save_tiny_hhem
from verifier.errors import InputError, VerificationError
from verifier.grounding.cited import (
    CitedSentence,
    Document,
    VerificationResult,
    cited_premise,
    claims_from_cited,
    decide_answer,
)
from verifier.grounding.verifiers import (
    DualNLIVerifier,
    HHEMVerifier,
    LLMJudgeVerifier,
    MiniCheckVerifier,
    NLIVerifier,
    Verifier,
)
from verifier.protocol import PairError
from verifier.scorers.base import DetailedScorer, NLIScorer
from verifier.scorers.ensemble import EnsembleScorer
from verifier.scorers.hhem import HHEMScorer
from verifier.scorers.minicheck_flan_t5 import MiniCheckFlanT5Scorer
from verifier.scorers.recorded_support import RecordedSupportScorer

DOCUMENTS = {
    "one": Document("one", {"one:1": "First.", "one:2": " Second. ", "both": "of one"}),
    "two": Document("two", {"two:1": "Third.", "both": "of two", "two:blank": " "}),
}


class Counting:
    """A scorer of the seed, with what it was asked."""

    def __init__(self, support: float = 0.5) -> None:
        self.support = support
        self.asked: list[tuple[str, str]] = []

    def score_pairs(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        self.asked += pairs
        return [self.support] * len(pairs)


@pytest.mark.parametrize(
    ("ids", "premise"),
    [
        (["one:1"], "First."),
        (["one:2", "one:1"], " Second.  First."),
        (["two:1", "one:1"], "Third. First."),
        (["one:1", "one:1"], "First. First."),
        (["one:1", "none", "two:1"], "First. Third."),
        (["both"], "of one"),
        (["none"], ""),
        ([], ""),
    ],
)
def test_premises(ids: list[str], premise: str) -> None:
    assert cited_premise(ids, DOCUMENTS) == premise
    swapped = dict(reversed(DOCUMENTS.items()))
    assert cited_premise(ids, swapped) == premise.replace("of one", "of two")
    assert cited_premise(ids, {}) == ""


def test_one_result_a_sentence_and_blank_ones_are_never_asked() -> None:
    scorer = Counting()
    sentences = [
        CitedSentence("Claim.", ("one:1", "two:1")),
        CitedSentence("Nothing found.", ("none",)),
        CitedSentence("  ", ("one:1",)),
        CitedSentence("Blank premise.", ("two:blank",)),
        CitedSentence(" Last. ", ["one:1"]),
        CitedSentence("No citation."),
    ]
    results = NLIVerifier(scorer).verify(sentences, DOCUMENTS)
    assert scorer.asked == [("First. Third.", "Claim."), ("First.", " Last. ")]
    assert [result.cited_sentence_index for result in results] == list(range(6))
    assert [result.claim_text for result in results] == [sentence.text for sentence in sentences]
    assert [(result.is_supported, result.nli_score) for result in results] == [
        (True, 0.5), (False, 0.0), (False, 0.0), (False, 0.0), (True, 0.5), (False, 0.0)
    ]  # fmt: skip
    assert NLIVerifier(scorer).verify([], DOCUMENTS) == [] and len(scorer.asked) == 2


@given(st.floats(0, 1), st.floats(0, 1))
def test_supported_at_the_threshold_and_above(support: float, threshold: float) -> None:
    result = NLIVerifier(Counting(support), threshold).verify([CitedSentence("C.", ("one:1",))], DOCUMENTS)[0]
    assert (result.is_supported, result.nli_score) == (support >= threshold, support)


@pytest.mark.parametrize("threshold", [-0.01, 1.01, float("nan"), float("inf")])
def test_thresholds_out_of_range(threshold: float) -> None:
    for build in (
        lambda: NLIVerifier(Counting(), threshold),
        lambda: DualNLIVerifier(Counting(), Counting(), threshold=threshold),
        lambda: HHEMVerifier(threshold=threshold),
        lambda: MiniCheckVerifier(threshold=threshold),
        lambda: LLMJudgeVerifier(threshold=threshold),
    ):
        with pytest.raises(ValueError, match=r"a number in \[0, 1\] expected"):
            build()


def test_the_published_thresholds() -> None:
    assert NLIVerifier(Counting()).threshold == MiniCheckVerifier().threshold == LLMJudgeVerifier().threshold == 0.5
    assert DualNLIVerifier(Counting(), Counting()).threshold == 0.0562
    assert HHEMVerifier().threshold == 0.3


@pytest.mark.parametrize(("rule", "expected"), [("min", 0.05), ("mean", 0.5), ("max", 0.95)])
def test_two_scorers_as_one(rule: str, expected: float) -> None:
    first, second = Counting(0.95), Counting(0.05)
    verifier = DualNLIVerifier(first, second, rule)
    result = verifier.verify([CitedSentence("C.", ("one:1",)), CitedSentence("C.", ())], DOCUMENTS)[0]
    assert (result.is_supported, result.nli_score) == (expected >= 0.0562, pytest.approx(expected))
    assert first.asked == second.asked == [("First.", "C.")]
    assert verifier.score_pairs([("p", "h"), (" ", "h")]) == pytest.approx([expected, 0.0])
    with pytest.raises(ValueError, match="'median' is unknown"):
        DualNLIVerifier(first, second, "median")


def test_a_sentence_without_a_score_is_unsupported_and_told_apart() -> None:
    scorer = RecordedSupportScorer([("First.", "A.", 0.9)], model="m", revision="r")
    verifier = NLIVerifier(scorer, threshold=0.0)
    sentences = [CitedSentence("A.", ("one:1",)), CitedSentence("", ()), CitedSentence("B.", ("one:1",))]
    results = verifier.verify(sentences, DOCUMENTS)
    assert [result.nli_score for result in results] == [0.9, 0.0, None]
    assert [result.is_supported for result in results] == [True, True, False]
    assert results[2].error is not None and results[2].error.code == "missing_score"
    with pytest.raises(VerificationError, match="pair 2 has no score"):
        verifier.score_pairs([("First.", "A."), ("", "x"), ("First.", "B.")])


def test_a_verifier_is_a_scorer_and_can_be_a_member() -> None:
    scorer = RecordedSupportScorer([("p", "h", 0.9)], model="m", revision="r")
    verifier = NLIVerifier(scorer)
    assert isinstance(verifier, Verifier) and isinstance(verifier, NLIScorer) and isinstance(verifier, DetailedScorer)
    assert (verifier.model, verifier.revision, verifier.dtype) == ("m", "r", "recorded")
    assert EnsembleScorer([verifier, Counting(0.2)]).score_pairs([("p", "h")]) == [0.2]


PAIRS = [(LINES[0], LINES[1]), (" ".join(LINES), LINES[2]), ("", "blank"), ("blank", " ")]
CITED = [CitedSentence(hypothesis, (str(number),)) for number, (_, hypothesis) in enumerate(PAIRS)]
CITED_DOCUMENTS = {"d": Document("d", {str(number): premise for number, (premise, _) in enumerate(PAIRS)})}


@pytest.fixture(scope="module")
def hhem(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    model, tokenizer = save_tiny_hhem(tmp_path_factory.mktemp("hhem"))
    return {"model_name": model, "tokenizer_model": tokenizer}


@pytest.fixture(scope="module")
def flan_t5(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_tiny_flan_t5(tmp_path_factory.mktemp("flan_t5"))


def test_the_named_verifiers_score_with_their_families(hhem: dict[str, str], flan_t5: str) -> None:
    first, second = HHEMVerifier(**hhem), MiniCheckVerifier(flan_t5)
    of_hhem = HHEMScorer(hhem["model_name"], tokenizer_model=hhem["tokenizer_model"]).score_pairs(PAIRS)
    of_minicheck = MiniCheckFlanT5Scorer(flan_t5, packing="sentences", serialization="premise_hypothesis").score_pairs(
        PAIRS
    )
    assert of_hhem[2:] == of_minicheck[2:] == [0.0, 0.0] and min(of_hhem[:2] + of_minicheck[:2]) > 0
    assert np.abs(np.subtract(first.score_pairs(PAIRS), of_hhem)).max() < 1e-5
    assert np.abs(np.subtract(second.score_pairs(PAIRS), of_minicheck)).max() < 1e-5
    dual = DualNLIVerifier(HHEMVerifier(**hhem), MiniCheckVerifier(flan_t5)).verify(CITED, CITED_DOCUMENTS)
    expected = np.minimum(of_hhem, of_minicheck)
    assert np.abs(np.subtract([result.nli_score for result in dual], expected)).max() < 1e-5
    assert [result.is_supported for result in dual] == (expected >= 0.0562).tolist()


def test_nothing_is_loaded_before_a_score_is_needed(hhem: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("verifier.scorers.hhem.load_weights", None)  # loading now would fail
    verifier = DualNLIVerifier(HHEMVerifier(**hhem), MiniCheckVerifier("/no/such/directory"))
    assert [result.nli_score for result in verifier.verify(CITED[2:], CITED_DOCUMENTS)] == [0.0, 0.0]


def test_a_judge_and_its_unreadable_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_KEY", "sk-of-a-test")

    def reply(message: str) -> Answer:
        readable = json.loads(message)["claim"] == "A."
        return completion('{"supported": true, "confidence": 0.9}' if readable else "I cannot say.")

    sentences = [CitedSentence(text, ("one:1",)) for text in ("A.", "B.", " ")]
    with ChatServer(lambda message, _: reply(message)) as server:
        judge = LLMJudgeVerifier("openai/tiny", num_retries=0, api_base=server.url, api_key_env="JUDGE_KEY")
        results = judge.verify(sentences, DOCUMENTS)
    assert [(result.is_supported, result.nli_score) for result in results] == [(True, 0.9), (False, None), (False, 0.0)]
    assert results[1].error is not None and results[1].error.outcome == "unscored"


def results_of(flags: Sequence[bool | None]) -> list[VerificationResult]:
    """Supported, unsupported and (None) unscored sentences."""
    error = PairError("unscored", "timeout", "no answer")
    return [
        VerificationResult(index, "c", False, None, error)
        if flag is None
        else VerificationResult(index, "c", flag, float(flag))
        for index, flag in enumerate(flags)
    ]


@pytest.mark.parametrize(
    ("flags", "delivered"),  # loose, balanced, strict, paranoid
    [
        ([True, True], (True, True, True, True)),
        ([True, False], (True, True, False, False)),
        ([True, None], (True, True, False, False)),
        ([False, False], (True, False, False, False)),
        ([None, False], (True, False, False, False)),
        ([], (True, True, True, True)),
    ],
)
def test_strictness(flags: list[bool | None], delivered: tuple[bool, ...]) -> None:
    for strictness, expected in zip(("loose", "balanced", "strict", "paranoid"), delivered, strict=True):
        decision = decide_answer(results_of(flags), strictness)
        assert decision.delivered is expected and (decision.reason is None) is expected
        assert decision.unsupported == tuple(index for index, flag in enumerate(flags) if flag is False)
        assert decision.unscored == tuple(index for index, flag in enumerate(flags) if flag is None)


def test_the_reason_of_a_refusal() -> None:
    reason = decide_answer(results_of([False, True, None, False]), "strict").reason
    assert reason == (
        "the answer has 2 of 4 sentences without support (number 1, 4) and 1 of 4 sentences without a score (number 3)"
    )
    with pytest.raises(ValueError, match="'severe' is unknown"):
        decide_answer([], "severe")  # type: ignore[arg-type]


def row(**changes: Any) -> dict[str, Any]:
    return {
        "answer_id": "a",
        "sentences": [
            {"text": " Both. ", "supporting_sentence_ids": ["two:1", "one:1"]},
            {"text": "Nothing.", "supporting_sentence_ids": []},
        ],
        "documents": [
            {"doc_id": "one", "sentences": [{"id": "one:1", "text": "First."}]},
            {"doc_id": "two", "sentences": [{"id": "two:1", "text": "Third."}]},
        ],
    } | changes


def test_a_row_becomes_a_claim_a_sentence() -> None:
    first, second = claims_from_cited(row(_note={"of": "mine"}))
    assert (first.claim_id, first.claim, first.document_id) == ("a#0", "Both.", "a")
    assert [(item.reference, item.text) for item in first.evidence] == [("two:1", "Third."), ("one:1", "First.")]
    assert (second.claim_id, second.evidence) == ("a#1", ())
    assert all(item.memory_id is not None for item in first.evidence)


def cited(text: Any, *ids: Any) -> dict[str, Any]:
    return {"sentences": [{"text": text, "supporting_sentence_ids": list(ids)}]}


def document(*sentences: Any, doc_id: str = "one") -> dict[str, Any]:
    return {"doc_id": doc_id, "sentences": list(sentences)}


@pytest.mark.parametrize(
    ("changes", "code", "path"),
    [
        ({"answer_id": None}, "missing_answer_id", "answer_id"),
        ({"answer_id": " "}, "missing_answer_id", "answer_id"),
        ({"answer_id": 7}, "not_a_string", "answer_id"),
        ({"sentences": None}, "missing_field", "sentences"),
        ({"sentences": []}, "empty_answer", "sentences"),
        ({"sentences": "text"}, "not_a_list", "sentences"),
        ({"sentences": ["text"]}, "not_an_object", r"sentences\[0\]"),
        (cited(" "), "empty_claim", r"sentences\[0\]\.text"),
        (cited("\ud800"), "invalid_utf8", r"sentences\[0\]\.text"),
        ({"sentences": [{"text": "x"}]}, "missing_field", r"sentences\[0\]\.supporting_sentence_ids"),
        (cited("x", " "), "empty_reference", r"sentences\[0\]\.supporting_sentence_ids\[0\]"),
        (cited("x", 1), "not_a_string", r"supporting_sentence_ids\[0\]"),
        (cited("x", "one:1", "no"), "unknown_sentence_id", "'no', which no document has"),
        (cited("x", "one:1", " one:1"), "repeated_reference", "'one:1' twice"),
        ({"documents": None}, "missing_field", "documents"),
        ({"documents": [document({"id": "i", "text": ""})]}, "empty_passage", r"documents\[0\]\.sentences\[0\]\.text"),
        ({"documents": [document({"id": "", "text": "t"})]}, "empty_reference", r"sentences\[0\]\.id"),
        ({"documents": [document(*[{"id": "i", "text": "t"}] * 2)]}, "repeated_sentence_id", "'i'"),
        ({"documents": [document(), document()]}, "repeated_document_id", "'one' twice"),
        ({"strictness": "strict"}, "unknown_field", "strictness"),
    ],
)
def test_rows_that_cannot_be_used(changes: dict[str, Any], code: str, path: str) -> None:
    with pytest.raises(InputError, match=path) as caught:
        claims_from_cited(row(**changes))
    assert caught.value.code == code and "\n" not in str(caught.value)
